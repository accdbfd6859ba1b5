"""The names that a server gave to the ids in a call: calls have ids, but people know names.

A question for consent shows each id of a call with its name from an earlier result of the same
server: an object with an id and a name beside it (`accountId` and `accountName`, `id` and `name`).
An id that is a whole word in a text of the server is known too. Each server's names count for that
server alone. An id that the server has not named is marked: a model may have made it up.
"""

import json
import re
import unicodedata
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from banking_server.client.plain import quoted_name
from tool_chaining.content import Json, content_of, in_text, is_error

MAX_IDS: Final = 2_000
"""The most ids of one server to remember: the latest ones."""

MAX_VALUES: Final = 20_000
"""The most values to search in one result."""

MAX_TEXT: Final = 200_000
"""The most characters to read as JSON in a text, and to remember of a server's texts."""

MAX_SHOWN: Final = 10
"""The most ids to show from lists and parts of a call, fewer if the call itself has many."""

MAX_OWN: Final = 50
"""The most ids to show of the call itself."""

_NAMED: Final = re.compile(r"[-*\s]*(?:(.{1,40}?) *(?:\(\0\)|: *\0)|\0: *(.{1,40}?))[.;,\s]*")
"""A line with an id, here NUL, and its name: `name (id)`, `name: id` or `id: name`."""

_NAMES: Final = 3
"""The most names to remember for one id; none is preferred."""

_ID: Final = re.compile("(?:id|Id|ID)|(.+?)(?:Id|ID|_id)")
_MANY: Final = re.compile("(.+?)(?:Ids|IDs|_ids)")
_NUMBER: Final = re.compile("(.+?)_?(?:[Uu]uid|UUID|[Rr]ef|[Rr]eference|[Nn]umber)")
_DESCRIBED: Final = re.compile(r"\b(?:[Ii]d|ID|[Ii]dentifier)s?\b")

_IN_TEXT: Final = re.compile(
    r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]{1,40}(?:[-_][A-Za-z0-9]{1,40}){1,5}(?![\w-])"
    r"|(?<![\w-])[A-Za-z]{1,4}\d{2,12}(?![\w-])"
)
"""What looks like an id in a text: `rx_100`, `TRX-2026-1`, `RX100`."""

_PLAIN_NAME: Final = re.compile(r"[^\W_](?:[\w.,'&+/-]| (?! )){0,59}")
"""A name that cannot pass for our own words, or for another id."""

_UNSEEN: Final = re.compile(r"^\s|\s\Z|(?<=\s)\s")

_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class _Thing:
    """What an id stands for: the kind of thing, empty if unknown, and its names."""

    def __init__(self, of: str = "", names: list[str] | None = None) -> None:
        self.of = of
        self.names = names or []


class Names:
    """The ids and names that servers have returned, for each server apart."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Thing]] = {}
        self._texts: dict[str, str] = {}

    def add_result(self, server: str, said: Json) -> None:
        """Remember the ids and names in a server's result; `server` is the host's name for it.

        An error names nothing: it repeats what the caller made up.
        """
        if is_error(said):
            return
        known = self._of.setdefault(server, {})
        texts = [in_text(item) for item in content_of(said)]
        structured = said.get("structuredContent")
        values = [_parsed(text) for text in texts] if structured is None else [structured]
        as_data = False
        for each in _parts(values):
            if isinstance(each, dict):
                as_data = _note(known, each) or as_data
            else:
                texts.append(each)
        if not as_data:
            _note_lines(known, "\n".join(texts)[:MAX_TEXT])
        self.add_texts(server, *texts)
        for oldest in list(known)[: max(0, len(known) - MAX_IDS)]:
            del known[oldest]

    def add_texts(self, server: str, *texts: str) -> None:
        """Remember texts that may contain ids for this server."""
        self._texts[server] = "\n".join([self._texts.get(server, ""), *texts])[-MAX_TEXT:]

    def knows(self, server: str, id_: str) -> bool:
        """Return whether a server has named an id, as data or as a whole word in a text.

        A value with a space is an id only as data; in a text it is more likely a name.
        """
        if re.search(r"\s", id_):
            return id_ in self._of.get(server, {})
        word = rf"(?<![\w-]){re.escape(id_)}(?![\w-])"
        return id_ in self._of.get(server, {}) or bool(re.search(word, self._texts.get(server, "")))

    def unnamed(
        self, server: str, arguments: Mapping[str, Any], input_schema: Mapping[str, Any]
    ) -> list[tuple[str, str]]:
        """Return the ids in a call that the server has not named, each with its argument's name.

        An argument holds an id if its name or description says so, and its value has no space.
        An account id is not accepted as a transfer id.
        """
        found: list[tuple[str, str]] = []
        for thing in _objects([arguments]):
            outermost = thing is arguments
            for key, value in thing.items():
                match = _ID.fullmatch(key) or _MANY.fullmatch(key)
                is_id = match is not None and (match[1] is not None or outermost)
                is_id = is_id or (type(value) is str and bool(_NUMBER.fullmatch(key)))
                if not is_id and not (outermost and _is_described_as_id(input_schema, key)):
                    continue
                for each in value if isinstance(value, list) else [value]:
                    id_ = _as_id(each)
                    words = id_ and re.search(r"\s", id_) and not (is_id and outermost)
                    if id_ and not words and not self._is_named(server, stem(key), id_):
                        found.append((key, id_))
        return found

    def _is_named(self, server: str, of: str, id_: str) -> bool:
        """Return whether a server has named an id, and not for another kind of thing."""
        thing = self._of.get(server, {}).get(id_)
        if thing is not None and of and not of.endswith(thing.of):
            return False
        return self.knows(server, id_)

    def returned(self, server: str, key: str) -> list[str]:
        """Return a server's ids that are possible for an argument, with names."""
        of = stem(key)
        return [
            f"{id_} ({thing.names[-1]})" if thing.names else id_
            for id_, thing in self._of.get(server, {}).items()
            if of.endswith(thing.of) or not of
        ]

    def id_lines(self, server: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return a line for each id in a call's arguments: its kind, its name, and the id."""
        known = self._of.get(server, {})
        own = {k: v for k, v in arguments.items() if not isinstance(v, dict | list)}
        others = {k: v for k, v in arguments.items() if k not in own}
        # Ids in the call itself come first, so that none gets hidden behind others.
        first, then = (list(self._lines(server, known, part)) for part in (own, others))
        lines = first[:MAX_OWN]
        lines += then[: max(0, MAX_SHOWN - len(lines))]
        left_out = len(first) + len(then) - len(lines)
        return [*lines, f"and {left_out} more ids"] if left_out else lines

    def _lines(
        self, server: str, known: Mapping[str, _Thing], arguments: Mapping[str, Any]
    ) -> Iterator[str]:
        for thing in _objects([dict(arguments)]):
            for key, value in thing.items():
                match = _ID.fullmatch(key) or _MANY.fullmatch(key)
                for each in value if isinstance(value, list) else [value]:
                    id_ = _as_id(each) or ""
                    is_id = match is not None and match[1] is not None and type(each) is str
                    if id_ in known or is_id:
                        named = id_ in known or self.knows(server, id_)
                        words = _named(str(each), known[id_].names if id_ in known else [], known)
                        note = "" if named else ", which this server has not named"
                        yield f"{_label(key, match)}: {words}{note}"


def stem(key: str) -> str:
    """Return the kind of an id, from its argument's name: `prescription` for `prescription_id`."""
    match = _ID.fullmatch(key) or _MANY.fullmatch(key) or _NUMBER.fullmatch(key)
    return (match[1] or "" if match else key).replace("_", "").lower()


def _is_described_as_id(input_schema: Mapping[str, Any], key: str) -> bool:
    properties = input_schema.get("properties")
    schema = properties.get(key) if isinstance(properties, dict) else None
    about = schema.get("description") if isinstance(schema, dict) else None
    return isinstance(about, str) and bool(_DESCRIBED.search(about))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text) if len(text) <= MAX_TEXT else None
    except (ValueError, RecursionError):
        return None


def _parts(values: list[Any]) -> Iterator[dict[str, Any] | str]:
    """Yield the objects and texts in some values, at any depth, up to a limit."""
    waiting, seen = deque(values), 0
    while waiting and seen < MAX_VALUES:
        value = waiting.popleft()
        seen += 1
        if isinstance(value, dict):
            yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value


def _objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    return (part for part in _parts(values) if isinstance(part, dict))


def _note(known: dict[str, _Thing], thing: dict[str, Any]) -> bool:
    """Note the ids in an object, and the names beside them; return whether there are any."""
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
        names = known.pop(id_, _Thing()).names  # Move it to the end: the oldest is forgotten first.
        if name and name not in names:
            # Keep the first and the newest: its former and its current name.
            names = [*names[:1], *names[1:][-_NAMES + 2 :], name]
        known[id_] = _Thing(stem(key), names)
    return bool(ids)


def _note_lines(known: dict[str, _Thing], text: str) -> None:
    """Note the ids in a text, and the name of each id that shares a line only with its name."""
    for line in text.splitlines():
        ids = _IN_TEXT.findall(line)
        for id_ in ids:
            named = _NAMED.fullmatch(line.replace(id_, "\0")) if len(ids) == 1 else None
            known.setdefault(id_, _Thing("", [n for n in named.groups() if n] if named else []))


def _as_id(value: Any) -> str | None:
    """Return a value as an id; None if it is not one."""
    if isinstance(value, str) and 0 < len(value) <= 128:
        return value
    return str(value) if type(value) is int and abs(value) < 10**18 else None


def _label(key: str, match: re.Match[str] | None) -> str:
    of = match[1] if match and match[1] else key
    if not _PLAIN_ID.fullmatch(of):
        return quoted_name(of)
    return re.sub("([a-z0-9])([A-Z])", r"\1 \2", of).replace("_", " ").lower()


def _named(id_: str, names: list[str], known: Mapping[str, object]) -> str:
    # An invisible blank makes it a different id.
    shown = id_ if _PLAIN_ID.fullmatch(id_) else quoted_name(_UNSEEN.sub("\N{OPEN BOX}", id_))
    if not names:
        return shown
    words = [
        name if _is_plain(name) and name not in known else quoted_name(name, 60) for name in names
    ]
    return f"{' or '.join(words)} ({shown})"


def _is_plain(name: str) -> bool:
    """Whether a name is safe to show: it cannot pass for another, or reverse the line."""
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in name if sign.isalpha()}
    turned = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in name)
    return bool(_PLAIN_NAME.fullmatch(name)) and len(scripts) <= 1 and not turned
