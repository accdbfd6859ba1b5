"""The client's messages as raw JSON, in both directions."""

import json
from typing import Any, NoReturn

from mcp import MCPError
from mcp.types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

from tool_chaining.text import is_json
from tool_chaining_proxy.eras import Declared, Json, declared_by
from tool_chaining_proxy.exchange import Channel, Exchange
from tool_chaining_proxy.hosting.reading import whole
from tool_chaining_proxy.options import ProxyOptions
from tool_chaining_proxy.sdk import InboundLadderRejection, classify_inbound_request


class Refusal(MCPError):
    """An answer to a message that goes no further. `id` is that of the message, if it has one."""

    def __init__(self, number: Any, code: int, message: str, data: Any = None) -> None:
        super().__init__(code=code, message=message, data=data)
        self.id = number


def read(raw: bytes) -> Json:
    """Return a message of the client. Raises `Refusal`, which does not repeat it."""
    text = raw.decode(errors="replace").strip("\ufeff \t\r\n")
    try:
        value = json.loads(text, strict=False, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refusal(None, PARSE_ERROR, "The message is not JSON.") from None
    number = value.get("id") if isinstance(value, dict) else None
    # Half of a surrogate pair cannot be written again. JSON has it only as an escape.
    is_text = "\\ud" not in text.lower() or is_json(value)
    if not is_text or not isinstance(value, dict) or not _is_message(value):
        words = "This is not a JSON-RPC message of MCP."
        is_answer = isinstance(value, dict) and "method" not in value
        # The id of an answer is not the client's.
        raise Refusal(None if is_answer else whole(number), INVALID_REQUEST, words)
    return value


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


def exchange_of(
    message: Json, channel: Channel, declared: Declared, options: ProxyOptions
) -> Exchange:
    """Return the exchange that a request begins. Raises `Refusal`."""
    params = message.get("params") or {}
    if not isinstance(params.get("_meta") or {}, dict):
        raise Refusal(message["id"], INVALID_PARAMS, "The member _meta must be an object.")
    return Exchange(
        message,
        channel,
        declared_by(message["method"], params, declared.revision) if declared.modern else declared,
        max_waiting=options.max_parked,
        wait_for=options.parked_for,
    )


def modern_request(message: Json, headers: Any = None) -> Declared:
    """Return what a request of 2026-07-28 declares. Raises `Refusal` if it is not one."""
    verdict = classify_inbound_request(message, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        raise Refusal(message["id"], verdict.code, verdict.message, verdict.data)
    return declared_by(message["method"], message.get("params"), verdict.protocol_version)


def handshake(message: Json) -> Declared:
    """Return what `initialize` declares. Raises `Refusal`."""
    if not isinstance((message.get("params") or {}).get("protocolVersion"), str):
        words = "The member protocolVersion of initialize must be a text."
        raise Refusal(message["id"], INVALID_PARAMS, words)
    return declared_by("initialize", message["params"], "")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(constant)
