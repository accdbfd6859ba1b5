"""Somebody who opens connections and says nothing, or not all of it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from banking_server.benchmark.load import BenchmarkFailed

SOCKETS: Final = 2_000
DESCRIPTORS: Final = 1_024
"""What the server may open."""

_ADDRESSES: Final = 40
_HALF: Final = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "


def limit_descriptors(most: int) -> None:
    """Let this process open so many files and sockets. Raises `BenchmarkFailed`."""
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    except (ImportError, OSError, ValueError) as error:
        raise BenchmarkFailed(f"A process cannot have {most:,} descriptors here.") from error


@contextmanager
def idle_sockets(port: int) -> Iterator[None]:
    """Keep connections open from other loopback addresses; every other one sent half a head.

    Raises `BenchmarkFailed`.
    """
    limit_descriptors(4 * SOCKETS)
    with ExitStack() as open_until_the_end:
        for number in range(SOCKETS):
            each = open_until_the_end.enter_context(socket.socket())
            try:
                each.bind((f"127.0.0.{2 + number % _ADDRESSES}", 0))
                each.connect(("127.0.0.1", port))
                if number % 2:
                    each.send(_HALF)
            except OSError as error:
                raise BenchmarkFailed(f"A connection could not be opened: {error}") from error
        yield
