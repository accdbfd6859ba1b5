"""What was sent, read: the JSON-RPC message of a line or of a request's body, or why it is none.

Both transports read here first.
"""

import json
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from mcp.types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

MAX_BYTES: Final = 2 * 1024 * 1024
"""The longest message: room for an argument of a megabyte to be refused by name."""

MAX_DEPTH: Final = 100
"""How many objects and lists a message may have in one another."""


@dataclass(frozen=True)
class Refusal:
    """Why something sent is not taken, as the JSON-RPC error that answers it."""

    code: int
    message: str
    request_id: str | int | None = None
    """The id of the request, where there is one."""
    owed: bool = True
    """Whether JSON-RPC asks for an answer: to a notification, or to an answer, there is none."""
    is_answer: bool = False
    """Whether what was sent answers a question: whoever asked should get this error instead."""


def read(sent: bytes) -> dict[str, Any] | Refusal:
    """Return the message that was sent: a request, a notification or an answer, or why it is none.

    A number that a double does not hold is refused by its name, since what reads it further in
    would take another number for it: `0.010000000000000001` is not 0.01.
    """
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        # What is no character becomes half of one, with which an id is none.
        seen = _outline(sent.decode(errors="surrogateescape"))
        return seen.refusal(PARSE_ERROR, "The message is not UTF-8.")
    # Counting is next to nothing, and there are rarely so many.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        seen = _outline(text)
        if seen.depth > MAX_DEPTH:
            words = f"The message has more than {MAX_DEPTH} objects and lists in one another."
            return seen.refusal(INVALID_REQUEST, words)
    try:
        message = _STRICT.decode(text)
    except JSONDecodeError as error:
        return Refusal(PARSE_ERROR, f"The message is not JSON: {error}.")
    except _NotTaken as literal:
        return _outline(text).refusal(literal.code, str(literal))
    except ValueError:
        # Python reads no integer of more than 4,300 digits, unless it is told to.
        words = "The message has an integer of more digits than are read."
        return _outline(text).refusal(INVALID_PARAMS, words)
    if "\\u" in text and _HALF_A_CHARACTER.search(text) and not _is_text(message):
        words = "A text in the message is not Unicode: it has half of a surrogate pair."
        return _outline(text).refusal(INVALID_REQUEST, words)
    return _misshapen(message) or message


def too_long(beginning: bytes, end: bytes = b"", most_bytes: int = MAX_BYTES) -> Refusal:
    """Return the refusal of a message that goes on beyond `most_bytes`; `end` is its last bytes.

    What may be a request is answered: its id may stand between the two.
    """
    seen = _outline(beginning.decode(errors="surrogateescape"))
    if "id" not in seen.names and (last := _LAST_MEMBERS.search(end.decode(errors="replace"))):
        rest = _outline("{" + last[1])
        seen = replace(seen, names=seen.names | rest.names, request_id=rest.request_id)
    words = f"The message is longer than {most_bytes:,} bytes."
    refusal = seen.refusal(INVALID_REQUEST, words)
    return replace(refusal, owed=not refusal.is_answer)


def _misshapen(message: Any) -> Refusal | None:
    """Return the refusal of JSON that is no JSON-RPC message of MCP."""
    if not isinstance(message, dict):
        words = "The message must be one JSON object; there are no batches."
        return Refusal(INVALID_REQUEST, words)
    if "method" not in message and ("result" in message or "error" in message):
        return None  # To be looked at by whoever knows the question that it answers.
    request_id = id_of(message)
    is_request = "id" in message
    if message.get("jsonrpc") != "2.0":
        return Refusal(INVALID_REQUEST, 'The member jsonrpc must be "2.0".', request_id)
    if not isinstance(message.get("method"), str):
        return Refusal(INVALID_REQUEST, "The member method must be a text.", request_id)
    if not is_request and not message["method"].startswith("notifications/"):
        words = "The member id is missing, and the method is no notification's."
        return Refusal(INVALID_REQUEST, words, owed=False)
    if is_request and request_id is None:
        return Refusal(INVALID_REQUEST, "The member id must be a text or a whole number.")
    if not isinstance(message.get("params", {}), dict | None):
        words = "The member params must be an object."
        return Refusal(INVALID_REQUEST, words, request_id, owed=is_request)
    return None


def id_of(message: Any) -> str | int | None:
    """Return the id of a message if it is one that an answer can give back, else None."""
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return found if isinstance(found, int) or _is_text(found) else None


_HALF_A_CHARACTER: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""What may be one: the escape of a surrogate, most of which stand in pairs."""


def _is_text(value: Any) -> bool:
    """Whether all texts in a JSON value can be written again."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


# --- literals -------------------------------------------------------------------------------------


class _NotTaken(ValueError):
    """A literal that is not taken; the message says why."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


def _number(literal: str) -> float:
    """Read a number with a fraction or an exponent. Raises `_NotTaken` if a double is another."""
    number = float(literal)
    # A double's shortest text is the number that was written, if that has up to 15 digits.
    if len(literal) <= 15 and "e" not in literal and "E" not in literal:
        return number
    try:
        same = Decimal(literal) == Decimal(repr(number))
    except ArithmeticError:
        same = False
    if not same:
        shown = literal if len(literal) <= 60 else f"{literal[:59]}…"
        raise _NotTaken(
            INVALID_PARAMS,
            f"The number {shown} would be taken for {number!r}, so it is refused. "
            "Please write it with at most 15 digits.",
        )
    return number


def _constant(literal: str) -> float:
    raise _NotTaken(PARSE_ERROR, f"The message is not JSON: it has {literal}.")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises `_NotTaken` if a name stands in it twice (RFC 7493, 2.3)."""
    found = dict(members)
    if len(found) < len(members):
        words = "An object in the message has two members of one name, so that either could be"
        raise _NotTaken(INVALID_REQUEST, f"{words} meant.")
    return found


_STRICT: Final = JSONDecoder(
    parse_float=_number, parse_constant=_constant, object_pairs_hook=_object
)

# --- what is not to be parsed ---------------------------------------------------------------------

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]+|[\]}]+', re.DOTALL)
"""A text, or brackets. A text without an end is one too, lest each quotation mark in it be tried as
the beginning of another, up to the end of the message."""

_COLON: Final = re.compile(r"\s*+:\s*+")
_ID: Final = re.compile(
    r'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"'
    r"|-?(?:0|[1-9][0-9]{0,599})(?![0-9.eE])"
)
_MEMBER: Final = r'\s*+"[^"\\]*+"\s*+:\s*+(?:"[^"\\]*+"|[^\s",:{}\[\]\\]++)\s*+'
_LAST_MEMBERS: Final = re.compile(rf"[,{{]({_MEMBER}(?:,{_MEMBER})*+\}})\s*+\Z")
"""The last members of the outermost object, if their values are plain. Read from its end, where no
text is open, nothing else can look like them."""

_NAMES: Final = ("id", "method", "result", "error")


@dataclass(frozen=True)
class _Outline:
    """What can be seen of a message without parsing it."""

    depth: int
    """How many objects and lists it has in one another."""
    request_id: str | int | None
    names: frozenset[str]
    """Which of `_NAMES` the outermost object has."""

    def refusal(self, code: int, words: str) -> Refusal:
        """Return the refusal of this message, which may be nobody's request."""
        is_answer = "method" not in self.names and not self.names.isdisjoint(("result", "error"))
        owed = not is_answer and ("method" not in self.names or "id" in self.names)
        return Refusal(code, words, self.request_id, owed=owed, is_answer=is_answer)


def _outline(text: str) -> _Outline:
    depth = deepest = 0
    request_id = None
    names = set()
    for token in _TOKEN.finditer(text):
        found = token[0]
        if found[0] in "[{":
            depth += len(found)
            deepest = max(deepest, depth)
        elif found[0] in "]}":
            depth -= len(found)
        elif depth == 1 and found[1:-1] in _NAMES and (colon := _COLON.match(text, token.end())):
            if found == '"id"':
                value = _ID.match(text, colon.end())
                this = id_of({"id": json.loads(value[0])}) if value else None
                request_id = this if "id" not in names or this == request_id else None
            names.add(found[1:-1])
    return _Outline(deepest, request_id, frozenset(names))
