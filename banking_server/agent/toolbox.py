"""The tools of one or more servers, as a model is told of them."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.types import Tool

from banking_server.agent.reply import REPLY_TO_USER
from banking_server.chaining import DEFAULT_CALL_TIMEOUT, hidden_from_model, list_all_tools
from banking_server.chaining.values import follow, pointer_parts
from banking_server.host.names import stem
from banking_server.text import cut, one_line

NAME_LENGTH: Final = 64
"""Longest name that the tool calling of endpoints allows, in characters."""

DEPTH: Final = 4
"""Levels of an argument's schema that are described."""

MAX_DESCRIPTION: Final = 10_000
"""Characters of a description that a model is given."""

MAX_INSTRUCTIONS: Final = 20_000
"""Characters of a server's instructions that a model is given."""

MAX_LINES: Final = 200
"""Lines that describe the arguments of one tool; a schema that refers to itself has no end."""

_LISTS: Final = re.compile(r"(?:list|search|find)(?![a-z])")
_GETS: Final = re.compile(r"(?:get|show|read|query)(?![a-z])")


class ToolsUnavailable(Exception):
    """A server did not list its tools; the message is one line for people."""


@dataclass(frozen=True)
class OfferedTool:
    """A tool that the model may call."""

    name: str
    """The name by which the model knows the tool."""
    server: str
    tool: Tool
    """The tool as its server lists it, under the server's own name."""
    client: Client
    trusted: bool = False
    """Whether the host believes what the server says of its tools (their annotations)."""

    @property
    def read_only(self) -> bool:
        """Whether a server that the host trusts says that the tool changes nothing."""
        return self.trusted and self.says_read_only

    @property
    def repeatable(self) -> bool:
        """Whether a server that the host trusts says that a second equal call changes nothing."""
        hint = getattr(self.tool.annotations, "idempotent_hint", None)
        return self.read_only or (self.trusted and hint is True)

    @property
    def says_read_only(self) -> bool:
        """Whether its server says so, trusted or not: for what only repetitions hang on."""
        return getattr(self.tool.annotations, "read_only_hint", None) is True

    def in_words(self) -> str:
        """Describe the tool as text for the model."""
        lines = [f"Tool: {self.name}"]
        if self.tool.title:
            lines.append(f"Title: {one_line(self.tool.title, MAX_DESCRIPTION)}")
        lines.append("Description: " + one_line(self.tool.description or "none", MAX_DESCRIPTION))
        described = _properties(self.tool.input_schema, self.tool.input_schema)
        arguments = list(islice(described, MAX_LINES))
        lines.append("Arguments:" if arguments else "Arguments: none")
        return "\n".join([*lines, *arguments])

    def as_function(self) -> dict[str, Any]:
        """Describe the tool for an endpoint's own tool calling."""
        about = self.tool.description or self.tool.title or ""
        function = {"name": self.name, "description": about, "parameters": self.tool.input_schema}
        return {"type": "function", "function": function}


class Toolbox:
    """All tools of all servers, each under a name that no other one has.

    A tool keeps its own name if it can. If two servers have tools of the same name, each is
    offered as `<server>__<name>`. Characters that names may not contain become `_`, and names that
    still clash or are too long are numbered. Names are settled once and do not change.
    """

    def __init__(self, tools: list[OfferedTool], instructions: Mapping[str, str]) -> None:
        self.tools = tools
        self.instructions = instructions
        """The instructions of the servers that have any, by the server's name."""
        self._by_name = {offered.name: offered for offered in tools}
        own: dict[str, list[OfferedTool]] = {}
        for offered in tools:
            own.setdefault(offered.tool.name, []).append(offered)
        self._by_own_name = {name: found[0] for name, found in own.items() if len(found) == 1}

    @classmethod
    async def gather(
        cls,
        clients: Mapping[str, Client],
        *,
        trusted: Collection[str] = (),
        call_timeout: float | None = DEFAULT_CALL_TIMEOUT,
        allowed: Collection[str] | None = None,
    ) -> "Toolbox":
        """List the tools of connected servers, all pages of each.

        Tools that are hidden from the model are left out.

        Args:
            clients: The servers' clients, by names that the caller chooses for the servers.
            trusted: The names of those whose annotations are believed. No tool of another one
                counts as read-only.
            call_timeout: Seconds that each server may take to list its tools.
            allowed: The tools that may be used, by their servers' names for them; the name of a
                server stands for all its tools. By default all.

        Raises:
            ToolsUnavailable: Tools are not listed, or one that is allowed is not there.
        """
        found: list[tuple[str, Tool, Client, bool]] = []
        there = set(clients)
        for server, client in clients.items():
            listed = await _listed(server, client, call_timeout)
            there |= {tool.name for tool in listed}
            found += [
                (server, tool, client, server in trusted)
                for tool in listed
                if not hidden_from_model(tool.meta)
                and (allowed is None or {tool.name, server} & {*allowed})
            ]
        if missing := set(allowed or ()) - there:
            raise ToolsUnavailable(
                "No tool and no server has these names, which are allowed: "
                f"{', '.join(sorted(missing))[:200]}. The servers are: {', '.join(clients)}"
            )
        told_apart = _names([(server, tool.name) for server, tool, *_ in found])
        offered = [OfferedTool(name, *one) for name, one in zip(told_apart, found, strict=True)]
        instructions = {
            server: cut(client.instructions, MAX_INSTRUCTIONS)
            for server, client in clients.items()
            if client.instructions
        }
        return cls(offered, instructions)

    def find(self, *names: str) -> OfferedTool | None:
        """Return the first tool that one of these names stands for, or None."""
        for known in (self._by_name, self._by_own_name):
            for name in names:
                if name in known:
                    return known[name]
        return None

    def lists(self, server: str, of: str) -> OfferedTool | None:
        """Return a tool of a server that most likely lists its ids of a kind, such as `account`.

        Its server says that it only reads, or its name says so. It does not take such an id itself.
        """
        found: list[tuple[bool, bool, OfferedTool]] = []
        for one in self.tools:
            needed = one.tool.input_schema.get("required") or []
            about, lists = _is_about(one.tool.name, of), bool(_LISTS.match(one.tool.name))
            reads = lists or one.says_read_only or bool(_GETS.match(one.tool.name))
            takes_one = of in {stem(str(name)) for name in needed}
            if one.server == server and reads and (about or lists) and not takes_one:
                found.append((not about, bool(needed), one))
        return min(found, key=lambda each: each[:2], default=(None, None, None))[2]

    def in_words(self) -> str:
        """Describe all tools as text for the model."""
        return "\n\n".join(offered.in_words() for offered in self.tools)

    def functions(self) -> list[dict[str, Any]]:
        """Describe all tools for an endpoint's own tool calling."""
        return [offered.as_function() for offered in self.tools]


async def _listed(server: str, client: Client, seconds: float | None) -> list[Tool]:
    try:
        with anyio.fail_after(seconds):
            return await list_all_tools(client)
    except TimeoutError:
        reason = f"not within {seconds:g} s"
    except (MCPError, OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
    raise ToolsUnavailable(f"The server {server!r} does not list its tools: {reason}")


def _is_about(name: str, of: str) -> bool:
    """Return whether a tool's name has the word for a kind of thing in it, plural or not."""
    words = [word.lower().removesuffix("s") for word in re.findall("[A-Z]?[a-z]+", name)]
    return any(len(word) > 3 and of.removesuffix("s").endswith(word) for word in words)


def legal_name(name: str) -> str:
    """Return `name` in a form that the tool calling of endpoints allows."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:NAME_LENGTH] or "_"


def _names(tools: list[tuple[str, str]]) -> list[str]:
    wanted = Counter(legal_name(name) for _, name in tools)
    names: list[str] = []
    for server, own in tools:
        name = legal_name(own)
        if wanted[name] > 1:
            name = legal_name(f"{server}__{own}")
        unique, number = name, 2
        while unique in (REPLY_TO_USER, *names) or (unique != legal_name(own) and unique in wanted):
            unique = f"{name[: NAME_LENGTH - 1 - len(str(number))]}_{number}"
            number += 1
        names.append(unique)
    return names


def _properties(
    part: Mapping[str, Any], root: Mapping[str, Any], indent: str = ""
) -> Iterator[str]:
    """Yield a line for each property of an object's schema, nested properties indented."""
    properties, required = part.get("properties"), part.get("required")
    if not isinstance(properties, dict) or len(indent) // 2 >= DEPTH:
        return
    for name, given in properties.items():
        schema = resolved(given, root)
        needed = isinstance(required, list) and name in required
        notes = [_type(schema, root), "required" if needed else "optional"]
        if schema.get("default") is not None:
            notes.append(f"default {_json(schema['default'])}")
        about = str(schema.get("description") or schema.get("title") or "no description")
        yield f"{indent}- {name} ({', '.join(notes)}): {one_line(about, MAX_DESCRIPTION)}"
        for nested in (schema, resolved(schema.get("items"), root)):
            yield from _properties(nested, root, indent + "  ")


def _type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> str:
    """Say what a value must be: `number, at least 0.01`; `one of "confirm", "cancel"`."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(map(_json, schema["enum"]))
    if isinstance(options, list) and depth < DEPTH:
        words = [_type(resolved(option, root), root, depth + 1) for option in options]
        return " or ".join(dict.fromkeys(words))
    kind = schema.get("type", "any value")
    if kind == "array" and depth < DEPTH:
        return f"list of {_type(resolved(schema.get('items'), root), root, depth + 1)}"
    rules = (("minimum", "at least"), ("maximum", "at most"), ("format", "as"), ("const", "always"))
    bounds = [f"{words} {schema[rule]}" for rule, words in rules if rule in schema]
    return ", ".join([" or ".join(kind) if isinstance(kind, list) else str(kind), *bounds])


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within the schema; a reference that leads nowhere adds nothing."""
    beside: dict[str, Any] = {}
    for _ in range(DEPTH):
        if not isinstance(schema, dict):
            return beside
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return {**schema, **beside}
        beside = {**{key: value for key, value in schema.items() if key != "$ref"}, **beside}
        parts = pointer_parts(reference.removeprefix("#"))
        schema = None if parts is None else follow(parts, root)
    return beside


def _json(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False), MAX_DESCRIPTION)
