"""The client's messages as raw JSON, in both directions."""

import json
from typing import Any, NoReturn

from mcp import MCPError
from mcp.types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

from tool_chaining.hosting.reading import whole
from tool_chaining.text import is_json
from tool_chaining_proxy.eras import Declared, Json, in_request
from tool_chaining_proxy.sdk import InboundLadderRejection, classify_inbound_request


class Unreadable(MCPError):
    """A message that cannot be read. `id` is its own, if it has one."""

    def __init__(self, number: Any, code: int, message: str) -> None:
        super().__init__(code=code, message=message)
        self.id = number


def read(raw: bytes) -> Json:
    """Return a message of the client. Raises `Unreadable`, which does not repeat it."""
    text = raw.decode(errors="replace").strip("\ufeff \t\r\n")
    try:
        value = json.loads(text, strict=False, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Unreadable(None, PARSE_ERROR, "The message is not JSON.") from None
    # Half of a surrogate pair cannot be written again. JSON has it only as an escape.
    is_text = "\\ud" not in text.lower() or is_json(value)
    if is_text and isinstance(value, dict) and _is_message(value):
        return value
    # The id of an answer is not the client's.
    number = value.get("id") if isinstance(value, dict) and "method" in value else None
    words = "This is not a JSON-RPC message of MCP."
    raise Unreadable(whole(number), INVALID_REQUEST, words)


def _is_message(value: Json) -> bool:
    if value.get("jsonrpc") != "2.0" or not isinstance(value.get("params") or {}, dict):
        return False
    if "method" in value:
        return isinstance(value["method"], str)
    return "id" in value and ("result" in value or "error" in value)


def written(message: Json) -> bytes:
    """Return a message as JSON on one line. A number that JSON cannot write is null."""
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(message), parse_constant=lambda _: None)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def answer_to(number: Any, outcome: Json | MCPError) -> Json:
    """Return the answer to the message with this id."""
    if not isinstance(outcome, MCPError):
        return {"jsonrpc": "2.0", "id": number, "result": outcome}
    error: Json = {"code": outcome.code, "message": outcome.message}
    if outcome.error.data is not None:
        error["data"] = outcome.error.data
    return {"jsonrpc": "2.0", "id": number, "error": error}


def declared_in_handshake(message: Json) -> Declared:
    """Return what `initialize` declares, on 2025-11-25. Raises MCPError."""
    params = message.get("params") or {}
    if not isinstance(params.get("protocolVersion"), str):
        words = "The member protocolVersion of initialize must be a text."
        raise MCPError(code=INVALID_PARAMS, message=words)
    revision, capabilities = params["protocolVersion"], params.get("capabilities")
    return Declared.read(revision, capabilities, params.get("clientInfo"))


def declared_in_request(message: Json, headers: Any = None) -> Declared:
    """Return what a request of 2026-07-28 declares. Raises MCPError."""
    verdict = classify_inbound_request(message, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        raise MCPError(code=verdict.code, message=verdict.message, data=verdict.data)
    return in_request(message["params"], verdict.protocol_version)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(constant)
