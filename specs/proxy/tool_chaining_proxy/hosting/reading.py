"""Reads a server's messages so that every request ends, even if its answer is wrong.

The SDK drops what it cannot read, and the request would wait for its whole time limit. So each line
on stdio, and each JSON body or event over HTTP, passes `read_message` first. It

- repairs what has one meaning: a byte order mark, a control character inside a string, half of a
  surrogate pair (U+FFFD), an id `3.0`, a missing `jsonrpc`, an error without a code. A directive
  with half of a pair stays malformed: it becomes null;
- puts an error in the place of an answer that cannot be read. Its effect is then unknown;
- drops what is not an MCP message, such as a log line.

It logs a warning for each.
"""

import json
import logging
import re
from typing import Any, Final

from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from tool_chaining.content import member
from tool_chaining.directive import META_KEY
from tool_chaining.text import one_line, quoted

UNREADABLE: Final = "The server answered with something that is not a result."

NOT_KNOWN: Final = "Whether the request took effect is not known."

ANSWERS: Final = "com.example/answers"
"""The member of an error's data that names the request whose answer it may be."""

_NO_RESULT: Final = ErrorData(code=INTERNAL_ERROR, message=UNREADABLE)

_HALF: Final = re.compile("[\ud800-\udfff]")
_ID: Final = (
    r'"id"\s*:\s*(-?(?:0|[1-9]\d{0,18})(?=\s*[,}])'
    r'|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
)
_VERSION: Final = r'"jsonrpc"\s*:\s*"2\.0"'
_WITH_ID: Final = re.compile(
    rf"\A\s*\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}|\{{\s*{_VERSION}\s*,\s*{_ID}"
    rf"|{_ID}(?:\s*,\s*{_VERSION})?\s*\}}\s*\Z"
)
"""Where a message's own id is, as opposed to an id inside its result."""
_KEY: Final = re.compile(r"""["'](method|result|error)["']\s*:""")
_JSONRPC: Final = re.compile(r"""["']jsonrpc["']\s*:""")
_OUTCOMES: Final = {"result", "error"}
_MEMBERS: Final = {"id", "method", "params", "result", "error"}
"""A message without `jsonrpc` has no others. A log line in JSON has."""

logger = logging.getLogger(__name__)


def read_message(raw: bytes, own: Any = None, *, alone: bool = False) -> str:
    """Return a message of the server in the form that the SDK reads; "" if there is none.

    `own` is the id of the request if only its answer may come here, as over HTTP; if it comes
    `alone`, everything else is an error. On stdio an error with id null is returned for an answer
    whose request is not certain: `ANSWERS` in its data is a guess.
    """
    text = raw.decode("utf-8-sig", "replace").strip("\ufeff \t\r\n")
    if not (text or alone):
        return ""
    message, value = _message(text), None
    # A request has no outcome. Some servers repeat the method in an answer.
    if not isinstance(message, JSONRPCResponse | JSONRPCError):
        value = _parsed(text)
        if message is None or ("id" in value and _OUTCOMES & value.keys()):
            try:
                text, message = _repaired(value, text)
            except RecursionError:
                value = message = None
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and not alone:
        return text
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        if own is None or str(message.id) == str(own):
            return text
        logger.warning("An answer of the server lacks the id of its request.")
        return error_line(own, getattr(message, "error", _NO_RESULT).message)
    error = instead_of(text, value=value, own=own)
    if alone and not error:
        said = f"{UNREADABLE.rstrip('.')}: {one_line(text)}" if text else UNREADABLE
        error = error_line(own, said)
    return error


def error_line(number: Any, words: str, guess: Any = None) -> str:
    """Return an error response in the place of an answer. Its code never says "not made"."""
    said = words if number is None else with_doubt(words)
    error: dict[str, Any] = {"code": INTERNAL_ERROR, "message": said}
    if guess is not None:
        error["data"] = {ANSWERS: guess}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error})


def with_doubt(words: str) -> str:
    """Return the error message that replaces an answer, whose effect is unknown."""
    return f"{words.rstrip('.') or UNREADABLE.rstrip('.')}. {NOT_KNOWN}"


def instead_of(text: str, words: str = UNREADABLE, *, value: Any = None, own: Any = None) -> str:
    """Return an error for anything shaped like an answer, otherwise "".

    `value` is the text as JSON, if it is JSON.
    """
    message = value
    if isinstance(value, list) and value:
        message = next(
            (one for one in value if isinstance(one, dict) and _OUTCOMES & one.keys()), value[0]
        )
    if isinstance(message, dict):
        is_answer = message.get("method") is None and (
            "jsonrpc" in message
            or {"id", "result"} <= message.keys()
            or (bool(_OUTCOMES & message.keys()) and message.keys() <= _MEMBERS)
        )
        number, certain = _number(message), "jsonrpc" in message
    else:
        # A line break can be lost between two messages: the last one counts.
        found, messages = _WITH_ID.search(text), [*_JSONRPC.finditer(text)]
        key = _KEY.search(text, messages[-1].end() if len(messages) > 1 else 0)
        is_message = value is None and bool(messages)
        is_answer = is_message and (key is None or key[1] != "method")
        number = found and json.loads(found[1] or found[2] or found[3], strict=False)
        certain = text.startswith("{")
    if not is_answer:
        words = "The server writes lines that are no MCP messages; they are ignored. The first: %s"
        logger.warning(words, quoted(text[:100]), extra={"kind": words})
        return ""
    logger.warning("An answer of the server cannot be read.")
    if own is not None or (certain and number is not None):
        return error_line(number if own is None else own, words)
    return error_line(None, words, number)


def whole(value: Any) -> Any:
    """Return JSON with U+FFFD for each half of a surrogate pair, which cannot be written."""
    if isinstance(value, int):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(_HALF.sub("\ufffd", text)) if _HALF.search(text) else value


def _message(text: str) -> Any:
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _repaired(value: Any, text: str) -> tuple[str, Any]:
    """Return a message with only one possible meaning, in the SDK's form."""
    if not isinstance(value, dict):
        return text, None
    number, result, error = _number(value), value.get("result"), value.get("error")
    repaired: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
    if isinstance(result, dict):
        repaired["result"] = result
    elif "jsonrpc" not in value and not value.keys() <= _MEMBERS:
        return text, None
    elif isinstance(error, dict) or (error is not None and "jsonrpc" in value):
        code, words = member(error, "code"), member(error, "message")
        repaired["error"] = {
            "code": code if type(code) is int else INTERNAL_ERROR,
            "message": words if isinstance(words, str) else quoted(error)[:400],
        }
    elif isinstance(value.get("method"), str):
        # PHP writes an empty object as an empty list.
        params = value.get("params")
        repaired = {**value, "params": params if isinstance(params, dict) else {}, "jsonrpc": "2.0"}
    else:
        return text, None
    meta = member(result, "_meta")
    if isinstance(meta, dict) and _HALF.search(json.dumps(meta.get(META_KEY), ensure_ascii=False)):
        meta[META_KEY] = None
    line = json.dumps(whole(repaired), ensure_ascii=False)
    if (message := _message(line)) is None:
        return text, None
    logger.warning("A message of the server violates JSON-RPC, and was repaired.")
    return line, message


def _number(message: dict[str, Any]) -> Any:
    """Return the id of a message: an integer or a string, or None."""
    number = message.get("id")
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None
