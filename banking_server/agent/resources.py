"""What servers offer to know at the start: their resources, read once for the model, and bounded.

A resource read is like a call that changes nothing: a server that the host trusts is asked without
more ado, and for any other the host decides. What is for the user alone is not read. A resource
that cannot be read is left out: the tools are there, and say why.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.types import Resource, TextResourceContents

from banking_server.chaining.content import for_user_alone, on_the_wire
from banking_server.text import cut, one_line

MAX_RESOURCES: Final = 20
"""Resources of one server that are read."""

MAX_RESOURCE: Final = 8_000
"""Characters of one resource that a model is told."""

MAX_KNOWN: Final = 16_000
"""Characters of all resources of all servers that a model is told."""

READ_TIME: Final = 10.0
"""Seconds that each server may take to list its resources, and again to read them."""

MAX_ABOUT: Final = 500
"""Characters of a resource's description that a model is told."""

_FAILURES: Final = (MCPError, OSError, RuntimeError, ValueError)
"""What a server that cannot be read does to the client."""

MayRead = Callable[[str, Resource], Awaitable[bool]]
"""Says for the host whether a resource of a server, by the host's name for it, is read."""


@dataclass(frozen=True)
class Known:
    """A resource, as a model is told of it."""

    server: str
    uri: str
    about: str
    text: str
    said: tuple[str, ...]
    """The texts as the server gave them."""
    client: Client

    def in_words(self) -> str:
        """Return it as text for the model."""
        return f"{self.about} ({self.uri}):\n{self.text}"


async def read_resources(client: Client, server: str, may_read: MayRead) -> tuple[list[Known], int]:
    """Read what a server offers to know; never raises for what the server does.

    `server` is the host's name for it. `may_read` is asked before each resource is read. Returns
    also how many resources are left out because there are too many.
    """
    capabilities = client.server_capabilities
    if capabilities is None or capabilities.resources is None:
        return [], 0
    try:
        with anyio.fail_after(READ_TIME):
            listed = (await client.list_resources()).resources
    except _FAILURES:
        return [], 0
    wanted: list[Known] = []
    for resource in listed[:MAX_RESOURCES]:
        if for_user_alone(on_the_wire(resource)) or not await may_read(server, resource):
            continue
        words = resource.description or resource.title or resource.name
        about = one_line(words, MAX_ABOUT)
        wanted.append(Known(server, str(resource.uri), about, "", (), client))
    return await read(wanted), max(0, len(listed) - MAX_RESOURCES)


async def read(offered: Sequence[Known]) -> list[Known]:
    """Read resources, for the first time or again; those that cannot be read are left out."""
    known: list[Known] = []
    for _, of_server in groupby(offered, key=attrgetter("server")):
        with anyio.move_on_after(READ_TIME):
            for one in of_server:
                said = await _texts(one)
                if any(said):
                    text = cut("\n".join(map(compact, said)), MAX_RESOURCE)
                    known.append(replace(one, text=text, said=said))
    return known


async def _texts(one: Known) -> tuple[str, ...]:
    try:
        contents = (await one.client.read_resource(one.uri)).contents
    except _FAILURES:
        return ()
    return tuple(
        item.text
        for item in contents
        if isinstance(item, TextResourceContents) and not for_user_alone(on_the_wire(item))
    )


def within_bounds(known: Sequence[Known]) -> list[Known]:
    """Return the first of each server's that are together not too much for a model.

    Each server has an equal share; what one does not need is there for the others.
    """
    share = MAX_KNOWN // max(1, len({one.server for one in known}))
    kept: set[int] = set()
    left = MAX_KNOWN
    for bound in (share, MAX_KNOWN):
        used = Counter[str]()
        for number, one in enumerate(known):
            length = len(one.in_words())
            used[one.server] += length
            if number not in kept and used[one.server] <= bound and length <= left:
                kept.add(number)
                left -= length
    return [known[number] for number in sorted(kept)]


def compact(text: str) -> str:
    """Return JSON in fewer characters, an object with plain members on a line; other text as it is.

    Names are kept beside their values, so that a small model does not lose which is which.
    """
    try:
        return "\n".join(_lines(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _lines(value: Any) -> list[str]:
    if isinstance(value, list):
        return [f"- {_on_a_line(item)}" for item in value]
    if not isinstance(value, dict):
        return [_on_a_line(value)]
    lines: list[str] = []
    for name, item in value.items():
        if isinstance(item, list) and any(isinstance(one, dict) for one in item):
            lines += [f"{name}:", *_lines(item)]
        else:
            lines.append(f"{name}: {_on_a_line(item)}")
    return lines


def _on_a_line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_on_a_line(item)}" for name, item in value.items())
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value, ensure_ascii=False)
