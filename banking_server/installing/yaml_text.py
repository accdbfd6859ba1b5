"""One member of a YAML text changed, and the rest left as it is, comments and blank lines included.

PyYAML says where each member begins and ends; lines are put in or taken out there, each new member
being one line, written as JSON, which is YAML too. What came of it is read again, and if anything
but that member has changed the text is left alone: YAML can be written in more ways than these.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import yaml

from banking_server.installing.unreadable import NotByName, TwiceThere, Unreadable

_OTHERWISE: Final = "it is written in a way that cannot be changed line by line"
_INDENT: Final = "  "


def parse(text: str) -> Any:
    """Return what a text holds: None if that is nothing. Raises `Unreadable`."""
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1} is no YAML: " if error.problem_mark else ""
        raise Unreadable(f"{line}{error.problem}") from error
    except yaml.YAMLError as error:
        raise Unreadable("it is no YAML: it has a character that must not be there") from error
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with `value` at `path`, and with the mappings on the way there.

    Raises `Unreadable`.
    """
    before = parse(text)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if _is_null(root):
        after = _ended(text) + _block(path[0], _nested(path[1:], value), 0, _newline(text))
    else:
        after = _put(text, root, None, path, value)
    expected, parent = _way(before, path)
    parent[path[-1]] = value
    return _checked(after, expected)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at `path`, which is there. Raises `Unreadable`."""
    after = _drop(text, yaml.compose(text, Loader=yaml.SafeLoader), None, path)
    expected, parent = _way(parse(text), path)
    del parent[path[-1]]
    return _checked(after, expected)


_Pair = tuple[yaml.Node, yaml.Node]
"""The key and the value of a member."""


def _put(text: str, node: Any, holder: _Pair | None, path: Sequence[str], value: Any) -> str:
    key, *rest = path
    found = _find(node, key, holder)
    if not found:
        return _inserted(text, node, holder, key, _nested(rest, value))
    [pair] = found
    if not rest or _is_null(pair[1]):
        return _replaced(text, pair, _nested(rest, value))
    return _put(text, pair[1], pair, rest, value)


def _drop(text: str, node: Any, holder: _Pair | None, path: Sequence[str]) -> str:
    key, *rest = path
    [pair] = _find(node, key, holder)
    if rest:
        return _drop(text, pair[1], pair, rest)
    if holder and len(node.value) == 1:
        return _replaced(text, holder, {})
    start, end = _lines(text, pair)
    return text[:start] + text[end:]


def _find(node: Any, key: str, holder: _Pair | None) -> list[_Pair]:
    if not isinstance(node, yaml.MappingNode):
        raise NotByName(holder[0].value if holder else None)
    found = [pair for pair in node.value if pair[0].value == key]
    if len(found) > 1:
        raise TwiceThere(key)
    return found


def _way(held: Any, path: Sequence[str]) -> tuple[Any, Any]:
    """Return what a text holds, and of it the mapping that holds the member at `path`.

    Those on the way are new, since in YAML a mapping may be a part of several others.
    """
    root = parent = dict(held or {})
    for key in path[:-1]:
        parent[key] = dict(parent.get(key) or {})
        parent = parent[key]
    return root, parent


def _checked(text: str, expected: Any) -> str:
    if parse(text) != expected:
        raise Unreadable(_OTHERWISE)
    return text


def _is_null(node: yaml.Node | None) -> bool:
    return node is None or node.tag == "tag:yaml.org,2002:null"


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _inserted(text: str, node: yaml.MappingNode, holder: _Pair | None, key: str, value: Any) -> str:
    """Add a member at the end of a mapping."""
    if not node.value and holder:
        return _replaced(text, holder, {key: value})
    if node.flow_style:
        raise Unreadable(_OTHERWISE)
    _, at = _lines(text, node.value[-1])
    begun = _ended(text[:at])
    column = node.value[0][0].start_mark.column
    return begun + _block(key, value, column, _newline(text)) + text[at:]


def _replaced(text: str, pair: _Pair, value: Any) -> str:
    """Write a member anew; a comment on its one line, or on its first one, stays there."""
    start, end = _lines(text, pair)
    key, old = pair
    first, *rest = _block(key.value, value, key.start_mark.column, _newline(text)).splitlines(True)
    if old.start_mark.line == old.end_mark.line:
        behind = text[max(old.end_mark.index, key.end_mark.index + 1) : end].strip()
        if behind.startswith("#"):
            first = f"{first.rstrip()}  {behind}{_newline(text)}"
    return text[:start] + first + "".join(rest) + text[end:]


def _lines(text: str, pair: _Pair) -> tuple[int, int]:
    """Return where the lines of a member begin and end."""
    key, value = pair
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    if text[start : key.start_mark.index].strip():
        raise Unreadable(_OTHERWISE)
    last = value
    while not getattr(last, "flow_style", True) and last.value:
        child = last.value[-1]
        last = child[1] if isinstance(child, tuple) else child
    # What an alias stands for lies before it.
    end = max(last.end_mark.index, key.end_mark.index)
    if text[end - 1] != "\n":
        end = text.find("\n", end) + 1 or len(text)
    return start, end


def _block(key: str, value: Any, column: int, newline: str) -> str:
    """Return a member in lines of its own, one for each that is no mapping with members."""
    blank = " " * column
    if not isinstance(value, dict) or not value:
        return f"{blank}{key}: {json.dumps(value, ensure_ascii=False)}{newline}"
    inner = (_block(name, each, column + len(_INDENT), newline) for name, each in value.items())
    return f"{blank}{_name(key)}:{newline}{''.join(inner)}"


def _name(key: str) -> str:
    """Return a key as it is written: in quotes where it would otherwise be something else."""
    return key if yaml.safe_load(key) == key else json.dumps(key)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + _newline(text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
