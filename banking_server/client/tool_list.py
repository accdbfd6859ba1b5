"""The tools of any server: a summary for a person, or all of it as JSON."""

import re
from collections.abc import Mapping
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.types import METHOD_NOT_FOUND
from rich.console import Console

from banking_server import MOVES_MONEY
from banking_server.client import connect
from banking_server.client.connect import ConnectionFailed, Failures
from banking_server.client.plain import LINE, NAME, sentence
from banking_server.client.printing import compact, say, say_in_parts
from tool_chaining.content import has_next_step, on_the_wire
from tool_chaining.negotiation import has_declared
from tool_chaining.text import one_line
from tool_chaining.tools import read_list

_SENTENCE: Final = re.compile(r"(.+?[.!?])(?= +[^a-z])")
"""The first sentence of a description, if another one follows; `--json` has the rest."""

_WAYS: Final = 6
"""The most alternatives of a schema to search."""

_DEPTH: Final = 3
"""How deep to search a schema for the values of an argument."""

ANYTHING: Final = "may change or destroy something"
"""What a tool without hints may do, by MCP's defaults."""


async def offer_of(client: Client, failures: Failures) -> dict[str, Any]:
    """Return what a connected server offers, as JSON; a server without tools lists none.

    `toolChaining` says whether it advertises the extension; `unread` has sentences about parts of
    the list that cannot be read.

    Raises `ConnectionFailed` if the list takes too long, or cannot be read at all.
    """
    unread: list[str] = []
    try:
        with anyio.fail_after(connect.SECONDS):
            listed = await read_list(client, unread.append)
        if listed.failure is not None and not listed.tools:
            raise listed.failure
    except TimeoutError:
        late = f"The server did not list its tools within {connect.SECONDS:g} s."
        raise ConnectionFailed(late) from None
    except ValueError as error:
        raise ConnectionFailed(f"The server's tools are not shown: {error}.") from None
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            why = failures.reason(error)
            raise ConnectionFailed(f"The server did not list its tools: {why}.") from error
    info = client.server_info
    return {
        "server": on_the_wire(info) if info else {},
        "protocolVersion": client.protocol_version,
        "toolChaining": has_declared(client.server_capabilities, client.protocol_version),
        "tools": [tool.wire for tool in listed.tools.values()],
        "unread": unread,
    }


def show_offer(out: Console, offer: Mapping[str, Any]) -> None:
    """Print what a server offers: who it is, then each tool."""
    server, tools = offer["server"], offer["tools"]
    count = f"{len(tools):,} tool{'' if len(tools) == 1 else 's'}"
    name, title = _text(server, "name"), _text(server, "title")
    who = f"{name or 'A server without a name'} {_text(server, 'version')}".strip()
    more = f"{f', {title}' if title else ''}: {count} (MCP {_text(offer, 'protocolVersion')})"
    chains = (
        ". It advertises tool chaining: a result can name the next tool"
        if offer["toolChaining"]
        else ""
    )
    say_in_parts(out, (who, "bold"), (f"{more}{chains}", ""))
    for tool in tools:
        say(out, "")
        _show_tool(out, tool, chains=offer["toolChaining"])
    for problem in offer["unread"]:
        say(out, "")
        say(out, sentence(problem), style="red")


def _show_tool(out: Console, tool: Mapping[str, Any], *, chains: bool) -> None:
    """Print a tool: its names, the possible effects of a call, its description and its arguments.

    `chains` says whether its server advertises tool chaining.
    """
    name = _text(tool, "name")
    title = _text(tool, "title") or _text(as_mapping(tool.get("annotations")), "title")
    also = f"  {title}" if title not in ("", name) else ""
    say_in_parts(out, (name, "bold cyan"), (also, "bold"))
    say_in_parts(out, *_hints(tool, chains=chains), indent=2)
    if description := _first_sentence(tool):
        say(out, description, indent=2)
    schema = as_mapping(tool.get("inputSchema"))
    arguments, required = as_mapping(schema.get("properties")), as_list(schema.get("required"))
    for argument in arguments:
        about = _first_sentence(as_mapping(arguments[argument]))
        say_in_parts(
            out,
            (one_line(argument, NAME), "cyan"),
            (f": {one_line(type_in_words(arguments[argument], schema), LINE)}", "dim"),
            (", required" if argument in required else "", "bold"),
            (f". {about}" if about else "", ""),
            indent=4,
            hang=2,
        )


def may_do(tool: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a call of a tool (as JSON) may do according to its server, with the style."""
    hints = as_mapping(tool.get("annotations"))
    if as_mapping(tool.get("_meta")).get(MOVES_MONEY) is True:
        return "may move money", "red"
    if hints.get("readOnlyHint") is True:
        return "only reads", "green"
    if hints.get("destructiveHint") is False:
        return "may change something", "yellow"
    return ANYTHING, "red"


def _hints(tool: Mapping[str, Any], *, chains: bool) -> list[tuple[str, str]]:
    """Return a server's hints about a tool, each with its style.

    A tool whose output schema lacks `nextStep` may name a next tool too; nothing shows that.
    """
    hints = as_mapping(tool.get("annotations"))
    words = [may_do(tool)]
    if hints.get("idempotentHint") is True and hints.get("readOnlyHint") is not True:
        words.append(("repeatable", "dim"))
    if hints.get("openWorldHint") is True:
        words.append(("reaches out to other systems", "dim"))
    if chains and has_next_step(as_mapping(tool.get("outputSchema"))):
        words.append(("can name a next tool", "magenta"))
    return [part for hint in words for part in ((", ", ""), hint)][1:]


def type_in_words(schema: object, root: object, depth: int = _DEPTH) -> str:
    """Return the types of an argument in a few words: "string or number".

    `root` is the schema that a `$ref` points into. Never raises, whatever the schema is.
    """
    found, root = as_mapping(schema), as_mapping(root)
    reference = found.get("$ref")
    if isinstance(reference, str):
        kept = as_mapping(root.get("$defs") or root.get("definitions"))
        found = as_mapping(kept.get(reference.rpartition("/")[2]))
    if "const" in found:
        return compact(found["const"])
    if values := as_list(found.get("enum")):
        return _either([compact(value) for value in values])
    if (ways := as_list(found.get("anyOf")) or as_list(found.get("oneOf"))) and depth:
        return _either([type_in_words(way, root, depth - 1) for way in ways[:_WAYS]])
    kinds = as_list(found.get("type")) or [found.get("type")]
    named = [_kind(kind, found, root, depth) for kind in kinds if isinstance(kind, str)]
    return _either(named) if named else "anything"


def _kind(kind: str, schema: Mapping[str, Any], root: object, depth: int) -> str:
    if kind == "array" and "items" in schema and depth:
        return f"array of {type_in_words(schema['items'], root, depth - 1)}"
    return kind


def _either(words: list[str]) -> str:
    """Join these with "or"; null is left out."""
    return " or ".join(dict.fromkeys(word for word in words if word != "null")) or "null"


def _first_sentence(holder: Mapping[str, Any]) -> str:
    text = _text(holder, "description", LINE)
    first = _SENTENCE.match(text)
    return first[1] if first else text


def _text(holder: Mapping[str, Any], name: str, length: int = NAME) -> str:
    value = holder.get(name)
    return one_line(value, length) if isinstance(value, str) else ""


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, or an empty one instead of anything else."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Any]:
    """Return a JSON array, or an empty one instead of anything else."""
    return value if isinstance(value, list) else []
