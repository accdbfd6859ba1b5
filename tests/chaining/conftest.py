"""Fixtures: the two test servers, reached over every transport and in both eras."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from banking_server.chaining import CLIENT_EXTENSION

from .chain_server import build
from .support import EVERYWHERE, Peer, connect, http_server, say_yes, stdio_server


@pytest.fixture(scope="session")
def target_of() -> Iterator[Any]:
    """Say what a client connects to; an HTTP server is started once, when first asked for."""
    urls: dict[str, str] = {}
    with ExitStack() as running:

        def target(kind: str, transport: str) -> Any:
            if transport == "memory":
                return build(kind)
            if transport == "stdio":
                return stdio_server(kind)
            if kind not in urls:
                urls[kind] = running.enter_context(http_server(build(kind)))
            return urls[kind]

        yield target


def _name(param: tuple[str, str]) -> str:
    return "-".join(param)


@pytest.fixture(scope="module", params=EVERYWHERE, ids=_name)
async def connected(
    request: pytest.FixtureRequest, anyio_backend: str, target_of: Any
) -> AsyncIterator[Peer]:
    """One connection to the scripted server for all tests of a module."""
    transport, mode = request.param
    async with connect(
        target_of("scripted", transport), transport, mode, extensions=[CLIENT_EXTENSION]
    ) as peer:
        yield peer


@pytest.fixture
async def peer(connected: Peer) -> Peer:
    """The same connection, with nothing left over from another test."""
    connected.answer, connected.questions = say_yes, []
    await connected.calls()
    return connected


@pytest.fixture(scope="module", params=EVERYWHERE, ids=_name)
async def declared(
    request: pytest.FixtureRequest, anyio_backend: str, target_of: Any
) -> AsyncIterator[Peer]:
    """A client of the checked server that declared the extension."""
    transport, mode = request.param
    async with connect(
        target_of("checked", transport), transport, mode, extensions=[CLIENT_EXTENSION]
    ) as peer:
        yield peer


@pytest.fixture(scope="module", params=EVERYWHERE, ids=_name)
async def undeclared(
    request: pytest.FixtureRequest, anyio_backend: str, target_of: Any
) -> AsyncIterator[Peer]:
    """A client of the checked server that did not."""
    transport, mode = request.param
    async with connect(target_of("checked", transport), transport, mode) as peer:
        yield peer
