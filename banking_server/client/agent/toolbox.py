"""The tools of one or more servers, as a model sees them."""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final

import anyio
from mcp import Client, MCPError

from banking_server.client.agent.reply import REPLY_TO_USER
from banking_server.client.names import stem
from tool_chaining import Follower, Tool
from tool_chaining.client import DEFAULT_CALL_TIMEOUT
from tool_chaining.errors import ForPeople
from tool_chaining.text import one_line
from tool_chaining.tools import read_list

logger = logging.getLogger(__name__)

NAME_LENGTH: Final = 64
"""The longest name that endpoints allow for a tool, in characters."""

REFERENCES: Final = 4
"""The most references in a schema to follow, one after the other."""

_json = partial(json.dumps, ensure_ascii=False)

_READS: Final = re.compile(r"(?:(list|search|find)|get|show|read|query)(?![a-z])")
"""The beginning of a read-only tool's name; the group matches if it lists things."""


class ToolsUnavailable(ForPeople):
    """A server did not list its tools; the message is one line for people."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool that the model may call."""

    name: str
    """The name by which the model knows the tool."""
    server: str
    tool: Tool
    """The tool as its server lists it, under the server's own name."""
    follower: Follower
    """That of its server, for the whole conversation. Nobody trusts the server, so the arguments of
    a directive are not validated here: the server does that."""
    trusted: bool = False
    """Whether the host trusts the annotations of the server's tools."""

    @property
    def read_only(self) -> bool:
        """Whether a server that the host trusts marks the tool as read-only."""
        return self.trusted and self.tool.read_only

    @property
    def reads(self) -> bool:
        """Whether it most likely only reads, judging by its server's hint or its name."""
        return self.tool.read_only or _READS.match(self.tool.name) is not None

    @property
    def description(self) -> str:
        """Its server's description; empty if there is none."""
        description = self.tool.wire.get("description")
        return description if isinstance(description, str) else ""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of its arguments; a schema that is not an object is ignored."""
        schema = self.tool.input_schema
        return schema if isinstance(schema, dict) else {}

    @property
    def needed(self) -> list[str]:
        """The names of its required arguments."""
        return _strings(self.input_schema.get("required"))

    @property
    def schema(self) -> Any:
        """The schema of its arguments, without references unless it is nested too deeply."""
        try:
            return _without_references(self.input_schema, self.input_schema)
        except RecursionError:
            return self.input_schema

    def in_words(self) -> str:
        """Describe the tool as text for the model."""
        lines = [f"Tool: {self.name}"]
        if self.tool.title:
            lines.append(f"Title: {one_line(self.tool.title)}")
        lines.append("Description: " + one_line(self.description or "none"))
        arguments = list(_properties(self.schema))
        lines.append("Arguments:" if arguments else "Arguments: none")
        return "\n".join([*lines, *arguments])

    def as_function(self) -> dict[str, Any]:
        """Describe the tool for an endpoint's own tool calling."""
        about = self.description or self.tool.title or ""
        function = {"name": self.name, "description": about, "parameters": self.input_schema}
        return {"type": "function", "function": function}


class Toolbox:
    """All tools of all servers, each under a unique name.

    A tool keeps its own name if it can. If two servers have tools of the same name, each is
    offered as `<server>__<name>`. Characters that names may not contain become `_`, and names that
    still clash get a number. Names are settled once and do not change.
    """

    def __init__(self, tools: list[OfferedTool], instructions: Mapping[str, str]) -> None:
        self.tools = tools
        self.instructions = instructions
        """Each server's instructions, by the server's name; may be empty."""
        self._known = {offered.name: offered for offered in tools}

    @classmethod
    async def gather(
        cls,
        clients: Mapping[str, Client],
        *,
        trusted: Collection[str] = (),
        call_timeout: float | None = DEFAULT_CALL_TIMEOUT,
        allowed: Collection[str] | None = None,
        note: Callable[[str], None] = logger.warning,
    ) -> "Toolbox":
        """List the tools of connected servers, all pages of each.

        Tools that are hidden from the model are left out. The keys of `clients` are names that the
        caller chooses for the servers. Only tools of servers in `trusted` can count as read-only.
        `allowed` are the tools to use, by their servers' names for them; the name of a server
        stands for all its tools. The default is all. A server may take `call_timeout` seconds to
        list its tools. `note` is called with each part of a list that cannot be read.

        Raises ToolsUnavailable, also if an allowed tool does not exist.
        """
        allow = {*(allowed or ())}
        found: list[OfferedTool] = []
        missing = allow - {*clients}
        for server, client in clients.items():
            follower = Follower(client, validate=False)
            for tool in await _listed(server, client, call_timeout, note):
                missing.discard(tool.name)
                may = allowed is None or not allow.isdisjoint((tool.name, server))
                if may and not tool.hidden:
                    found.append(OfferedTool(tool.name, server, tool, follower, server in trusted))
        if missing:
            raise ToolsUnavailable(
                "No tool and no server has these names, which are allowed: "
                f"{', '.join(sorted(missing))[:200]}. The servers are: {', '.join(clients)}"
            )
        said = {name: client.instructions or "" for name, client in clients.items()}
        return cls(_told_apart(found), said)

    def find(self, *names: str) -> OfferedTool | None:
        """Return the first tool with one of these names, or None."""
        return next((self._known[name] for name in names if name in self._known), None)

    def lists(self, server: str, of: str) -> OfferedTool | None:
        """Return the server's tool that most likely lists ids of a kind, such as `account`.

        It is read-only by its server's hint or its name. It does not take such an id itself.
        """
        found: list[tuple[bool, bool, int]] = []
        for number, one in enumerate(self.tools):
            name, about = _READS.match(one.tool.name), _is_about(one.tool.name, of)
            lists = about or (name is not None and name[1] is not None)
            if one.server == server and one.reads and lists and of not in map(stem, one.needed):
                found.append((not about, bool(one.needed), number))
        return self.tools[min(found)[2]] if found else None

    def may_list(self, server: str) -> OfferedTool | None:
        """Return the server's first tool that only reads and needs no argument, or None."""
        every = (one for one in self.tools if one.server == server)
        return next((one for one in every if one.reads and not one.needed), None)


async def _listed(
    server: str, client: Client, seconds: float | None, note: Callable[[str], None]
) -> Iterable[Tool]:
    try:
        with anyio.fail_after(seconds):
            listed = await read_list(client, lambda problem: note(f"{server}: {problem}"))
        if listed.failure is not None and not listed.tools:
            raise listed.failure
        return listed.tools.values()
    except (MCPError, OSError, RuntimeError, ValueError) as error:  # A timeout is an OSError.
        reason = one_line(str(error), 200) or type(error).__name__
    raise ToolsUnavailable(f"The server {server!r} does not list its tools: {reason}")


def _is_about(name: str, of: str) -> bool:
    """Return whether a tool's name contains the word for a kind of thing, singular or plural."""
    words = [word.lower().removesuffix("s") for word in re.findall("[A-Z]?[a-z]+", name)]
    return any(len(word) > 3 and of.removesuffix("s").endswith(word) for word in words)


def _told_apart(tools: list[OfferedTool]) -> list[OfferedTool]:
    """Return the tools under unique names."""
    own = Counter(one.name for one in tools)
    named: dict[str, OfferedTool] = {}
    for number, one in enumerate(tools, start=1):
        full = one.name if own[one.name] == 1 else f"{one.server}__{one.name}"
        full = name = re.sub(r"[^A-Za-z0-9_-]", "_", full)[:NAME_LENGTH]
        numbers = count(number)
        while name == REPLY_TO_USER or name in named:
            name = f"{next(numbers)}_{full}"[:NAME_LENGTH]
        named[name] = replace(one, name=name)
    return [*named.values()]


def _without_references(part: Any, root: Mapping[str, Any], followed: int = 0) -> Any:
    """Return a part of a schema with its references resolved.

    A reference that leads nowhere, or in a circle, adds nothing.
    """
    if isinstance(part, list):
        return [_without_references(each, root, followed) for each in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if not isinstance(reference, str):
        return {name: _without_references(one, root, followed) for name, one in part.items()}
    own = {name: one for name, one in part.items() if name != "$ref"}
    target = _at(root, reference) if followed < REFERENCES else None
    both = {**target, **own} if isinstance(target, dict) else own
    return _without_references(both, root, followed + 1)


def _at(schema: Any, reference: str) -> Any:
    """Return what a reference such as `#/$defs/Order` points to; None if it leads nowhere."""
    start, *parts = reference.split("/")
    found = schema if start == "#" else None
    for part in parts:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _properties(schema: Any, indent: str = "") -> Iterator[str]:
    """Yield a line for each property of an object's schema, nested properties indented."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    required = _strings(schema.get("required"))
    for name, given in properties.items():
        about = given if isinstance(given, dict) else {}
        notes = [_type(about), "required" if name in required else "optional"]
        if about.get("default") is not None:
            notes.append(f"default {_json(about['default'])}")
        words = str(about.get("description") or about.get("title") or "no description")
        yield f"{indent}- {name} ({', '.join(notes)}): {one_line(words)}"
        for nested in (about, about.get("items")):
            yield from _properties(nested, indent + "  ")


def _type(schema: Any) -> str:
    """Say what a value must be: `number, at least 0.01`; `one of "confirm", "cancel"`."""
    if not isinstance(schema, dict):
        return "any value"
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(map(_json, schema["enum"]))
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        return " or ".join(dict.fromkeys(map(_type, options)))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type(schema.get('items'))}"
    rules = (("minimum", "at least"), ("maximum", "at most"), ("format", "as"), ("const", "always"))
    bounds = [f"{words} {schema[rule]}" for rule, words in rules if rule in schema]
    kinds = _strings(kind if isinstance(kind, list) else [kind])
    return ", ".join([" or ".join(kinds) or "any value", *bounds])


def _strings(value: Any) -> list[str]:
    """Return the strings in a list; none if it is not a list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
