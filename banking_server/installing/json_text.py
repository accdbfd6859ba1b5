"""One member of a JSON text changed, and the rest left as it is: comments, blanks, line ends.

Libraries that read JSON with comments write it anew, or without them. So comments and trailing
commas are made blanks of the same length here, Python's own reader says where each member of what
is left begins and ends, and the text is changed there.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from banking_server.installing.unreadable import NotByName, TwiceThere, Unreadable

_STRING: Final = r'"(?:[^"\\]|\\.)*+"'
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMAS: Final = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*[}}\]])", re.DOTALL)
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INDENT: Final = "  "


def parse(text: str, *, comments: bool) -> Any:
    """Return what a text holds: None if that is nothing.

    `comments` says whether it may have comments and trailing commas. Raises `Unreadable`.
    """
    _, strict = _bare(text, comments=comments)
    return _loads(strict) if strict.strip() else None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with `value` at `path`, and with the objects on the way there.

    Raises `Unreadable`.
    """
    bare, strict = _bare(text)
    if not strict.strip():
        newline = _newline(text)
        begun = f"{text.rstrip()}{newline}" if text.strip() else ""
        return put(f"{begun}{{{newline}}}{newline}", path, value)
    _loads(strict)
    return _Texts(text, bare, strict).put(_after(strict, 0), None, path, value)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, which is there. Raises `Unreadable`."""
    texts = _Texts(text, *_bare(text))
    return texts.drop(_after(texts.strict, 0), None, path)


@dataclass(frozen=True)
class _Member:
    key: str
    key_start: int
    start: int
    end: int


@dataclass(frozen=True)
class _Object:
    start: int
    end: int
    members: Sequence[_Member]

    def find(self, key: str) -> list[_Member]:
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise TwiceThere(key)
        return found


@dataclass(frozen=True)
class _Texts:
    """A text, and the same without comments, and without trailing commas too."""

    whole: str
    bare: str
    strict: str

    def put(self, start: int, parent: str | None, path: Sequence[str], value: Any) -> str:
        here = _object(self.strict, start, parent)
        key, *rest = path
        found = here.find(key)
        if not found:
            return _inserted(self.whole, self.bare, here, key, _nested(rest, value))
        [member] = found
        if not rest or self.strict[member.start : member.end] == "null":
            return _replaced(self.whole, here, member, _nested(rest, value))
        return self.put(member.start, key, rest, value)

    def drop(self, start: int, parent: str | None, path: Sequence[str]) -> str:
        here = _object(self.strict, start, parent)
        key, *rest = path
        [member] = here.find(key)
        if not rest:
            return _dropped(self.whole, self.bare, here, member)
        return self.drop(member.start, key, rest)


def _bare(text: str, *, comments: bool = True) -> tuple[str, str]:
    """Return the text without comments, and also without trailing commas, each as long as it was.

    Raises `Unreadable` if it has any and may not.
    """
    bare = _COMMENTS.sub(lambda found: _blank(found[0]), text)
    strict = _TRAILING_COMMAS.sub(lambda found: _blank(found[0]), bare)
    if not comments and strict != text:
        at = next(
            at for at, (one, other) in enumerate(zip(text, strict, strict=True)) if one != other
        )
        raise Unreadable(
            f"line {_line(text, at)} has a comment or a comma too many, which this host does not "
            "read; take it out first"
        )
    return bare, strict


def _blank(token: str) -> str:
    return token if token[0] == '"' else re.sub(r"[^\r\n]", " ", token)


def _loads(strict: str) -> Any:
    try:
        return json.loads(strict, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        # Some of its messages go on with a place: "Unterminated string starting at".
        why = error.msg.lower().removesuffix(" at").removesuffix(" starting")
        raise Unreadable(f"line {error.lineno} is no JSON: {why}") from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder()


def _object(strict: str, start: int, key: str | None) -> _Object:
    """Return the members of the object that begins there in a text that `_loads` has read."""
    if strict[start] != "{":
        raise NotByName(key)
    members = []
    at = _after(strict, start + 1)
    while strict[at] != "}":
        key_start = at
        name, at = _DECODER.raw_decode(strict, at)
        value_start = _after(strict, _after(strict, at) + 1)
        _, end = _DECODER.raw_decode(strict, value_start)
        members.append(_Member(name, key_start, value_start, end))
        at = _after(strict, end)
        if strict[at] == ",":
            at = _after(strict, at + 1)
    return _Object(start, at + 1, members)


def _after(text: str, at: int) -> int:
    """Return where the blanks end that begin there."""
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _inserted(text: str, bare: str, here: _Object, key: str, value: Any) -> str:
    """Add a member at the end of an object, after whatever comments stand there."""
    close = here.end - 1
    last = here.members[-1] if here.members else None
    missing = "," if last and "," not in bare[last.end : close] else ""
    comma_at = last.end if last else close
    end = max(len(text[:close].rstrip()), comma_at if last else 0)
    begun = text[: last.end] + missing + text[last.end : end] if last else text[:end]
    name = json.dumps(key, ensure_ascii=False)
    if not _in_lines(text, here):
        space = " " if last else ""
        return f"{begun}{space}{name}: {json.dumps(value, ensure_ascii=False)}{text[close:]}"
    newline = _newline(text)
    outer = _indent(text, here.start)
    inner = outer + _unit(text)
    if last and not text[_line_start(text, last.key_start) : last.key_start].strip():
        inner = _indent(text, last.key_start)
    shown = _shown(text, value, inner)
    return f"{begun}{newline}{inner}{name}: {shown}{newline}{outer}{text[close:]}"


def _replaced(text: str, here: _Object, member: _Member, value: Any) -> str:
    if _in_lines(text, here):
        shown = _shown(text, value, _indent(text, member.key_start))
    else:
        shown = json.dumps(value, ensure_ascii=False)
    return text[: member.start] + shown + text[member.end :]


def _dropped(text: str, bare: str, here: _Object, member: _Member) -> str:
    if (
        text[here.start + 1 : member.key_start].isspace()
        and text[member.end : here.end - 1].isspace()
    ):
        return f"{text[: here.start]}{{}}{text[here.end :]}"
    start, end = member.key_start, member.end
    comma = _after(bare, end)
    if bare[comma] == ",":
        end = comma + 1
    elif (index := here.members.index(member)) > 0:
        comma = bare.index(",", here.members[index - 1].end)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    before, after = text[:start].rstrip(" \t"), text[end:].lstrip(" \t")
    if before.endswith("\n") and after.startswith(("\n", "\r")):
        return before + after.lstrip("\r").removeprefix("\n")
    if after.startswith("}"):
        return before + after
    return text[:start] + after


def _in_lines(text: str, here: _Object) -> bool:
    """Say whether an object is, or would be, written with each member on a line of its own."""
    if here.members:
        return "\n" in text[here.start : here.end]
    return here.start == 0 or "\n" in text.strip()


def _shown(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _unit(text: str) -> str:
    """Return by how much the text indents: as its first indented line is, or by two blanks."""
    found = re.search(r"^[ \t]+(?=\")", text, re.MULTILINE)
    return found[0] if found else _INDENT


def _indent(text: str, at: int) -> str:
    line = text[_line_start(text, at) :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
