"""The server that a client under test talks to: whatever is sent to it, it answers, and goes on."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tool_chaining_conformance.client.mock_server import MockServer
from tool_chaining_conformance.target.era import Era

from .host import LEGACY, META, MODERN
from .support import scripts

pytestmark = pytest.mark.quick

MODERN_META = {META + "protocolVersion": MODERN}


@contextmanager
def playing(name: str, era: Era = Era.MODERN) -> Iterator[MockServer]:
    """Play a case, given as `scenario/case`."""
    (script, case), *_ = [
        (script, case)
        for script in scripts()
        for case in script.cases
        if f"{script.scenario}/{case.name}" == name
    ]
    with MockServer(script, case, era, patience=5) as mock:
        yield mock


def asked(mock: MockServer, method: str, path: str, body: Any = None, **more: Any) -> Any:
    """Return the status and the body of an answer to a request of its own connection."""
    connection = http.client.HTTPConnection(mock.origin.removeprefix("http://"), timeout=10)
    try:
        connection.request(method, path, body, **more)
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        connection.close()


def message(method: str, params: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()


def test_a_message_may_come_in_chunks() -> None:
    whole = message("tools/list", {"_meta": MODERN_META})
    with playing("schemas/valid-arguments") as mock:
        chunks = [whole[:9], whole[9:]]
        status, answer = asked(mock, "POST", "/mcp", chunks, encode_chunked=True)
        assert status == 200
        assert {tool["name"] for tool in answer["result"]["tools"]} >= {"begin", "relay"}
        (request,) = mock.log.requests
        assert request.method == "tools/list"


@pytest.mark.parametrize("era", Era)
def test_the_other_revision_is_refused_and_noted(era: Era) -> None:
    other = "server/discover" if era is Era.LEGACY else "initialize"
    with playing("chain/chain-of-three", era) as mock:
        status, answer = asked(mock, "POST", "/mcp", message(other, {"protocolVersion": LEGACY}))
        assert status == 400
        assert answer["error"]["code"] == (-32601 if era is Era.LEGACY else -32022)
        assert mock.log.refused_method == other
        assert mock.log.requests == []
