"""Reads a server's messages so that every request ends, even if its answer is wrong.

The SDK drops what it cannot read, and the request would wait for its whole time limit. So each line
on stdio, and each JSON body or event over HTTP, passes `read_messages` first. It

- repairs what has one meaning: a byte order mark, a control character inside a string, half of a
  surrogate pair (U+FFFD), an id `3.0`, a missing `jsonrpc`, an error without a code, several
  messages on one line or in an array. A directive with half of a pair stays malformed: it becomes
  null;
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

_DECODER: Final = json.JSONDecoder(strict=False)
_BETWEEN: Final = re.compile(r"[\ufeff \t\r\n]*")
_HALF: Final = re.compile("[\ud800-\udfff]")
_ID: Final = (
    r'"id"\s*:\s*(-?(?:0|[1-9]\d{0,18})(?=\s*[,}])'
    r'|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
)
_VERSION: Final = r'"jsonrpc"\s*:\s*"2\.0"'
_WITH_ID: Final = re.compile(
    rf"\A\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}|{_ID}(?:\s*,\s*{_VERSION})?\s*\}}\s*\Z"
)
"""Where a message's own id is, as opposed to an id inside its result."""
_BEGINS: Final = re.compile(r"""[\[{\s]*["'](?:jsonrpc|id|result|error)["']\s*:""")
_KEY: Final = re.compile(r"""["'](method|result|error)["']\s*:""")
_JSONRPC: Final = re.compile(r"""["']jsonrpc["']\s*:""")
_OUTCOMES: Final = {"result", "error"}
_MEMBERS: Final = {"id", "method", "params", "result", "error"}
"""A message without `jsonrpc` has no others. A log line in JSON has."""
_NOISE: Final = "The server writes lines that are no MCP messages; they are ignored. The first: %s"

logger = logging.getLogger(__name__)


def read_messages(raw: bytes) -> list[str]:
    """Return the messages of a line or an event of the server, in the form that the SDK reads.

    An answer that cannot be read becomes an error. Its id is null if it is not certain which
    request it answers.
    """
    text = raw.decode("utf-8-sig", "replace").strip("\ufeff \t\r\n")
    if not text:
        return []
    message = _message(text)
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return [text]
    values, rest = _values(text)
    if isinstance(message, JSONRPCRequest | JSONRPCNotification) and not _is_answer(values[0]):
        return [text]
    found = [line for value in values if (line := _repaired(value))]
    if error := answer_in(rest, UNREADABLE):
        found.append(error)
    if not found:
        logger.warning(_NOISE, quoted(text[:100]), extra={"kind": _NOISE})
    return found


def read_answer(raw: bytes, own: Any, *, alone: bool) -> list[str]:
    """Return the messages of a body or an event over HTTP, which answers the request `own`.

    An answer comes last, and has the id of the request. If it is `alone`, as in a JSON body,
    anything else is an error in its place.
    """
    answers: list[tuple[str, Any]] = []
    others: list[tuple[str, Any]] = []
    for line in read_messages(raw):
        message = json.loads(line)
        (answers if _is_answer(message) else others).append((line, message))
    mine = [line for line, message in answers if str(message.get("id")) == str(own)][:1]
    if answers and not mine:
        logger.warning("An answer of the server lacks the id of its request.")
        words = member(answers[0][1].get("error"), "message")
        mine = [error_line(own, words if isinstance(words, str) else UNREADABLE)]
    if alone and not mine:
        text = one_line(raw.decode("utf-8", "replace"))
        mine = [error_line(own, f"{UNREADABLE.rstrip('.')}: {text}" if text else UNREADABLE)]
    return mine if alone else [*(line for line, _ in others), *mine]


def error_line(number: Any, words: str) -> str:
    """Return an error response in the place of an answer. Its code never says "not made"."""
    error = {"code": INTERNAL_ERROR, "message": words if number is None else with_doubt(words)}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error})


def with_doubt(words: str) -> str:
    """Return the error message that replaces an answer, whose effect is unknown."""
    return f"{words.rstrip('.') or UNREADABLE.rstrip('.')}. {NOT_KNOWN}"


def answer_in(text: str, words: str) -> str:
    """Return an error for a text that begins like an answer and is not JSON, otherwise "".

    A text that begins in another way may be a log line that quotes an answer.
    """
    key = _KEY.search(text)
    if not (_BEGINS.match(text) and _JSONRPC.search(text)) or (key and key[1] == "method"):
        return ""
    logger.warning("An answer of the server cannot be read.")
    found = _WITH_ID.search(text)
    return error_line(found and json.loads(found[1] or found[2], strict=False), words)


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


def _values(text: str) -> tuple[list[Any], str]:
    """Return the JSON objects and arrays at the beginning of a text, and the rest of it.

    The items of an array stand for themselves.
    """
    values: list[Any] = []
    at = 0
    while text.startswith(("{", "["), at):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values += value if isinstance(value, list) else [value]
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
    return values, text[at:]


def _is_answer(value: Any) -> bool:
    """Return whether a value is meant as an answer. Some servers repeat the method in it."""
    if not isinstance(value, dict):
        return False
    names = value.keys()
    is_message = "jsonrpc" in names or names <= _MEMBERS
    has_outcome = not names.isdisjoint(_OUTCOMES)
    if value.get("method") is not None:
        return is_message and has_outcome and "id" in names
    return {"id", "result"} <= names or "jsonrpc" in names or (is_message and has_outcome)


def _repaired(value: Any) -> str:
    """Return a message with only one possible meaning in the SDK's form; "" if it is none."""
    number, repaired = _number(value), None
    if _is_answer(value):
        result, error = value.get("result"), value.get("error")
        if isinstance(result, dict):
            repaired = {"id": number, "result": result}
            _mend_directive(result)
        elif error is not None:
            code, words = member(error, "code"), member(error, "message")
            repaired = {
                "id": number,
                "error": {
                    "code": code if type(code) is int else INTERNAL_ERROR,
                    "message": words if isinstance(words, str) else quoted(error)[:400],
                },
            }
    elif isinstance(member(value, "method"), str):
        if "jsonrpc" not in value and not value.keys() <= _MEMBERS:
            return ""
        # PHP writes an empty object as an empty list.
        params = value.get("params")
        repaired = {**value, "params": params if isinstance(params, dict) else {}}
    else:
        return ""
    if repaired is not None:
        try:
            line = json.dumps(whole({**repaired, "jsonrpc": "2.0"}), ensure_ascii=False)
        except RecursionError:
            line = ""
        if _message(line) is not None:
            logger.warning("A message of the server violates JSON-RPC, and was repaired.")
            return line
    if not _is_answer(value):
        return ""
    logger.warning("An answer of the server cannot be read.")
    return error_line(number, UNREADABLE)


def _mend_directive(result: dict[str, Any]) -> None:
    meta = result.get("_meta")
    if isinstance(meta, dict) and _HALF.search(json.dumps(meta.get(META_KEY), ensure_ascii=False)):
        meta[META_KEY] = None


def _number(message: Any) -> Any:
    """Return the id of a message: an integer or a string, or None."""
    number = member(message, "id")
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None
