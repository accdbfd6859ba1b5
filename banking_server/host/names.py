"""What a server has called the things that a call is about: people know names, calls have ids.

A question for consent shows each id of a call with the name that the same server gave it, in what
it returned before: an object with an id and a name beside it (`accountId` and `accountName`, `id`
and `name`). What one server says names nothing of another's. An id that the server has not named is
shown as such: a model may have made it up.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp.types import CallToolResult, TextContent

from banking_server.host.plain import quoted_name

MAX_IDS: Final = 2_000
"""Ids of one server that are remembered, the latest."""

MAX_VALUES: Final = 20_000
"""Values in one result that are looked through."""

MAX_TEXT: Final = 200_000
"""Characters of a text that are read as JSON."""

MAX_SHOWN: Final = 10
"""Ids in lists and in parts of a call that are shown, fewer if the call itself has many."""

MAX_OWN: Final = 50
"""Ids that a call itself has, and that are shown."""

_NAMES: Final = 3
"""Different names of one id that are remembered: none of them is preferred."""

_ID: Final = re.compile("(?:id|Id|ID)|(.+?)(?:Id|ID|_id)")
_MANY: Final = re.compile("(.+?)(?:Ids|IDs|_ids)")

_PLAIN_NAME: Final = re.compile(r"[^\W_](?:[\w.,'&+/-]| (?! )){0,59}")
"""A name in which nothing looks like words of ours, or like another id."""

_UNSEEN: Final = re.compile(r"^\s|\s\Z|(?<=\s)\s")

_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class Names:
    """The ids and names that servers have returned, each server's by itself."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, list[str]]] = {}

    def learn(self, server: str, said: CallToolResult) -> None:
        """Take note of what a server, by the host's name for it, has returned.

        An error names nothing: it repeats what the caller made up.
        """
        if said.is_error:
            return
        if said.structured_content is not None:
            values = [said.structured_content]
        else:
            values = [_parsed(item.text) for item in said.content if isinstance(item, TextContent)]
        known = self._of.setdefault(server, {})
        for each in _objects(values):
            _note(known, each)
        for oldest in list(known)[: max(0, len(known) - MAX_IDS)]:
            del known[oldest]

    def shown(self, server: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return a line for each id in the arguments of a call: what it is of, its name, itself."""
        known = self._of.get(server, {})
        own = {k: v for k, v in arguments.items() if not isinstance(v, dict | list)}
        others = {k: v for k, v in arguments.items() if k not in own}
        # Those that the call itself has stand first, so that none is hidden behind others.
        first, then = list(_lines(known, own)), list(_lines(known, others))
        lines = first[:MAX_OWN]
        lines += then[: max(0, MAX_SHOWN - len(lines))]
        left_out = len(first) + len(then) - len(lines)
        return [*lines, f"and {left_out} more ids"] if left_out else lines


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError):
        return None


def _objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects in some values, however deep, as long as there are not too many."""
    waiting, seen = list(values), 0
    while waiting and seen < MAX_VALUES:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _note(known: dict[str, list[str]], thing: dict[str, Any]) -> None:
    """Take note of the ids in an object, and of the names beside them."""
    ids = {key: match for key in thing if (match := _ID.fullmatch(key))}
    for key, match in ids.items():
        id_ = _as_id(thing[key])
        if id_ is None:
            continue
        of = match[1]
        wanted = [f"{of}Name", f"{of}_name"] if of else []
        if len(ids) == 1:
            wanted += ["name", "title"]
        name = next((thing[each] for each in wanted if isinstance(thing.get(each), str)), None)
        names = known.pop(id_, [])  # To the end: the oldest is forgotten first.
        if name and name not in names:
            # The first and the newest: what it was called before, and what it is called now.
            names = [*names[:1], *names[1:][-_NAMES + 2 :], name]
        known[id_] = names


def _as_id(value: Any) -> str | None:
    """Return a value as an id; None if it is not one."""
    if isinstance(value, str) and 0 < len(value) <= 128:
        return value
    return str(value) if type(value) is int and abs(value) < 10**18 else None


def _lines(known: dict[str, list[str]], arguments: Mapping[str, Any]) -> Iterator[str]:
    for thing in _objects([dict(arguments)]):
        for key, value in thing.items():
            match = _ID.fullmatch(key) or _MANY.fullmatch(key)
            for each in value if isinstance(value, list) else [value]:
                names = known.get(_as_id(each) or "")
                if names is None and (match is None or match[1] is None or type(each) is not str):
                    continue
                yield f"{_label(key, match)}: {_named(str(each), names, known)}"


def _label(key: str, match: re.Match[str] | None) -> str:
    of = match[1] if match and match[1] else key
    if not _PLAIN_ID.fullmatch(of):
        return quoted_name(of)
    return re.sub("([a-z0-9])([A-Z])", r"\1 \2", of).replace("_", " ").lower()


def _named(id_: str, names: list[str] | None, known: Mapping[str, object]) -> str:
    # A blank that would not be seen makes another id of it.
    shown = id_ if _PLAIN_ID.fullmatch(id_) else quoted_name(_UNSEEN.sub("\N{OPEN BOX}", id_))
    if names is None:
        return f"{shown}, which this server has not named"
    if not names:
        return shown
    words = [
        name if _is_plain(name) and name not in known else quoted_name(name, 60) for name in names
    ]
    return f"{' or '.join(words)} ({shown})"


def _is_plain(name: str) -> bool:
    """Whether a name is shown as it is: not if it can pass for another, or turns the line about."""
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in name if sign.isalpha()}
    turned = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in name)
    return bool(_PLAIN_NAME.fullmatch(name)) and len(scripts) <= 1 and not turned
