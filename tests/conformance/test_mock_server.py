"""The server that a client under test talks to: whatever is sent to it, it answers, and goes on."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tool_chaining_conformance.client import mock_server
from tool_chaining_conformance.client.mock_server import MockServer
from tool_chaining_conformance.target.era import Era

from .host import META, MODERN
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


@pytest.mark.parametrize(
    ("header", "body", "status"),
    [
        ({"content-length": "3000000000"}, b"", 413),
        ({"content-length": "-1"}, b"", 413),
        ({"transfer-encoding": "chunked"}, b"ffffffff\r\n", 413),
        ({"transfer-encoding": "chunked"}, b"1\r\nx\r\n400000\r\n", 413),
        ({"transfer-encoding": "chunked"}, b"x" * 2000, 400),
    ],
)
def test_no_more_of_a_body_is_read_than_a_message_may_have(
    header: dict[str, str], body: bytes, status: int
) -> None:
    with playing("schemas/valid-arguments") as mock:
        assert asked(mock, "POST", "/mcp", body, headers=header)[0] == status
        assert asked(mock, "POST", "/mcp", message("tools/list"))[0] == 200, "it goes on"


def test_no_more_is_kept_of_a_client_than_a_run_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mock_server, "KEPT_BYTES", 100_000)
    body = message("tools/list", {"x": "y" * 40_000})
    with playing("schemas/valid-arguments") as mock:
        statuses = [asked(mock, "POST", "/mcp", body)[0] for _ in range(4)]
    assert statuses == [200, 200, 413, 413]
    assert mock.allowance.left < 0
