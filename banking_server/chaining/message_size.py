"""How large one message of a server may be: more is not read, over stdio and over HTTP.

A server can write without end, and whoever reads it would run out of memory. `SteadyHttpClient`
keeps to this bound by itself. Over stdio the SDK reads with the encoding that it is given, and
`BOUNDED_LINES` is UTF-8 that keeps to it::

    StdioServerParameters(command="some-server", encoding=BOUNDED_LINES)

A message of too many values is not read either: in memory, each of them takes many times its bytes.
An answer that is longer, or is not JSON as the SDK reads it, becomes an error for its request. Any
other line that is becomes one for nobody, with the id null: what it was cannot be told. The decoder
hands out whole lines, so that nothing goes through the beginning of a line again with each piece of
it that comes.
"""

import codecs
import json
import re
from itertools import islice
from typing import Final

from pydantic_core import from_json

MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message of a server that is read, in bytes, without any compression."""

TOO_LARGE: Final = (
    f"The server sent a message of more than {MESSAGE_BYTES // 1024**2} MiB, which is not read."
)

MAX_VALUES: Final = 100_000
"""About so many values, members of members included, may one message consist of.

A byte of JSON can become twenty of memory: an empty list, say, or a small tool.
"""

TOO_MANY: Final = (
    f"The server sent a message of more than {MAX_VALUES:,} values, which is not read."
)

NO_RESULT: Final = "The server answered with something that is no result."

NOT_THE_ANSWER: Final = "The server answered another request than was made."

COMPRESSED: Final = "The server sent a compressed message, which was not asked for."

BOUNDED_LINES: Final = "utf_8_bounded_lines"
"""The encoding of a server over stdio whose messages are bounded."""

_KEPT: Final = 1000
"""Bytes of the beginning and of the end of a line in which it says whose answer it is."""

_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_ID: Final = rb'"id"\s*:\s*(?P<id>-?\d+|"(?:[^"\\]|\\.)*")\s*'
_ANSWER: Final = re.compile(
    rb'\s*\{\s*(?:%b,\s*)?(?:%b,\s*)?(?:%b,\s*)?"(?:result|error)"\s*:' % (_VERSION, _ID, _VERSION)
)
_END: Final = re.compile(rb",\s*(?:%b,\s*)?%b(?:,\s*%b)?\}\s*\Z" % (_VERSION, _ID, _VERSION))


_ASKS: Final = re.compile(rb'\s*\{\s*(?:%b,\s*)?"method"' % _VERSION)
"""How a request begins, or a notification."""

_QUOTE: Final = ord('"')

_SIGN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{]', re.DOTALL)
"""A text as a whole, which may have no end, or a sign with which a value begins."""


def problem_of(message: bytes) -> str | None:
    """Say what is too much about a message, or return None."""
    if len(message) > MESSAGE_BYTES:
        return TOO_LARGE
    if sum(message.count(sign) for sign in (b",", b"[", b"{")) <= MAX_VALUES:
        return None
    values = (found for found in _SIGN.finditer(message) if message[found.start()] != _QUOTE)
    return TOO_MANY if next(islice(values, MAX_VALUES, None), None) else None


class _BoundedLines(codecs.IncrementalDecoder):
    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._begin_line()

    def _begin_line(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._too_large = self._answered = False

    def decode(self, data: bytes, final: bool = False) -> str:  # type: ignore[override]
        """Return the lines that have ended, each as a whole, and errors for those too large."""
        *ends, rest = bytes(data).split(b"\n")
        said = []
        for end in ends:
            said += [self._more(end), self._line()]
            self._begin_line()
        return "".join([*said, self._more(rest)])

    def _more(self, piece: bytes) -> str:
        """Take in more of a line. If it is too long, return its error as soon as it is known."""
        self._parts.append(piece)
        self._size += len(piece)
        if not self._too_large and self._size <= MESSAGE_BYTES:
            return ""
        line = b"".join(self._parts)
        self._parts = [line[-_KEPT:]]
        if self._too_large:
            return ""
        self._too_large = True
        answer = _ANSWER.match(line[:_KEPT])
        self._answered = answer is None or answer["id"] is not None
        return _error(answer and answer["id"]) if self._answered else ""

    def _line(self) -> str:
        """Return the line that has ended, if nothing stands in its place yet."""
        line = b"".join(self._parts)
        if self._too_large:
            end = _END.search(line)
            return "" if self._answered else _error(end and end["id"])
        if (problem := problem_of(line)) is not None:
            return _error(_whose(line), problem)
        text = line.decode("utf-8", self.errors)
        return "".join(_error(number, NO_RESULT) for number in _lost(text)) or text + "\n"


def _whose(line: bytes) -> bytes | None:
    """Return whose answer a line is, if it says so at its beginning or at its end."""
    if _ASKS.match(line):
        return None
    found = (_ANSWER.match(line[:_KEPT]), _END.search(line[-_KEPT:]))
    return next((one["id"] for one in found if one and one["id"]), None)


def _lost(text: str) -> list[bytes]:
    """Return whose answers are in a line that the SDK cannot read, and would drop."""
    try:
        said = from_json(text)
    except ValueError:
        number = _whose(text.encode())
        return [] if number is None else [number]
    return [
        json.dumps(one["id"]).encode()
        for one in (said if isinstance(said, list) else ())
        if isinstance(one, dict) and "method" not in one and isinstance(one.get("id"), int | str)
    ]


def answers(text: str | bytes, number: object) -> bool:
    """Return whether a message is not an answer to any other request than `number`."""
    try:
        said = from_json(text)
    except ValueError:
        return True  # Whoever reads it will say what is wrong.
    is_answer = isinstance(said, dict) and "method" not in said and "id" in said
    return not is_answer or str(said["id"]) == str(number)


def _error(number: bytes | None, problem: str = TOO_LARGE) -> str:
    error = f'{{"code":-32603,"message":"{problem}"}}'
    return f'{{"jsonrpc":"2.0","id":{(number or b"null").decode()},"error":{error}}}\n'


def _find(name: str) -> codecs.CodecInfo | None:
    if name != BOUNDED_LINES:
        return None
    utf_8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        utf_8.encode, utf_8.decode, incrementaldecoder=_BoundedLines, name=BOUNDED_LINES
    )


codecs.register(_find)
