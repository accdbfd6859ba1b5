"""Asks a person at a terminal: a server's questions (elicitation), and for the host's consent."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final

import anyio
from mcp.client.context import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from rich.console import Console

from banking_server.client.names import Names
from banking_server.client.plain import LINE, quoted_name
from banking_server.client.printing import Hidden, compact, say
from banking_server.client.tool_list import ANYTHING, may_do
from tool_chaining import Tool
from tool_chaining.arguments import ArgumentCheck
from tool_chaining.text import cut, one_line, printable

if sys.platform != "win32":
    import termios

IN_DOUBT: Final = "An earlier call of this tool may have taken effect already."

Answer = str | int | float | bool | list[str] | None
"""What a person answers to one field of a form; None if they leave it out."""


class TerminalQuestions:
    """Puts questions to the person at the terminal, one at a time."""

    def __init__(self, out: Console, hidden: Hidden = nullcontext) -> None:
        """`hidden` hides everything else on the terminal, from question to answer."""
        self._out = out
        self._hidden = hidden
        self._one_at_a_time = anyio.Lock()
        self.names = Names()
        """The names that servers gave to the ids in calls."""

    async def consents(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        *,
        trust_hints: bool,
        name: str | None = None,
        server: str = "",
        again: bool = False,
    ) -> bool:
        """Ask whether to make a call that may change something, naming what it affects.

        `name` is the person's name for the tool, if it differs from the server's own, and
        `server` is the server whose names are shown. `again`: the tool is in
        doubt, since it may have run before.
        """
        async with self._asking():
            if again:
                say(self._out, IN_DOUBT, indent=3, style="red")
            for line in self.names.id_lines(server, arguments):
                say(self._out, line, indent=3)
            may = what_it_may_do(tool, quoted_name(name or tool.name), trust_hints=trust_hints)
            return await self._agrees(f"{may}. Call it? [y/N] ")

    def asked_by(self, server: str) -> ElicitationFnT:
        """Return the same questions, with the name of the server that asks them."""
        return partial(self.__call__, who=f"The server {quoted_name(server)}")

    async def __call__(
        self,
        context: ClientRequestContext,
        params: ElicitRequestParams,
        *,
        who: str = "The server",
    ) -> ElicitResult:
        """Answer a server's question; an `elicitation_callback` of the client."""
        if not isinstance(params, ElicitRequestFormParams):
            asked = cut(compact(params.message), LINE)
            say(self._out, f"{who} asks you to open a web page: {asked}. This program declined.")
            return ElicitResult(action="decline")
        async with self._asking():
            say(self._out, f"{who} asks:")
            say(self._out, params.message, indent=3, style="bold")
            content: dict[str, Answer] = {}
            required = params.requested_schema.get("required", [])
            for name, schema in params.requested_schema.get("properties", {}).items():
                try:
                    value = await self._field(name, schema, optional=name not in required)
                except EOFError:
                    return ElicitResult(action="cancel")
                except _Declined:
                    return ElicitResult(action="decline")
                if value is not None:
                    content[name] = value
            # A form without fields is a question all the same.
            if not content and not await self._agrees("   [y/N] "):
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content=content)

    async def _agrees(self, question: str) -> bool:
        answer = await self._read(question)
        return answer is not None and answer.lower() in ("y", "yes")

    async def _field(self, name: str, schema: dict[str, Any], *, optional: bool) -> Answer:
        """Ask for one field of a form until the answer fits.

        Raises EOFError if the input ends, and _Declined if the person leaves out a field that has
        to be answered.
        """
        titles = choices(schema)
        say(self._out, one_line(str(schema.get("title") or name)), indent=3)
        if isinstance(schema.get("description"), str):
            say(self._out, schema["description"], indent=3, style="dim")
        for number, title in enumerate(titles.values(), start=1):
            say(self._out, f"{number}. {one_line(title)}", indent=5)
        default = schema.get("default")
        empty = "skips" if optional else "declines"
        if default is not None:
            empty = f"means {compact(default)}"
        prompt = f"   {_hint(schema, titles)} (an empty line {empty}): "
        while True:
            line = await self._read(prompt)
            if line is None:
                raise EOFError
            if not line:
                if default is None and not optional:
                    raise _Declined
                return default
            try:
                value = parse(line, schema, titles)
            except ValueError as problem:
                say(self._out, str(problem), indent=3, style="red")
                continue
            form = {"type": "object", "properties": {name: schema}}
            if ArgumentCheck().problem("", form, {name: value}) is None:
                return value
            say(self._out, "That does not fit the question.", indent=3, style="red")

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Ask inside the block. Discard what was typed before the question: it cannot be an answer.

        A server, or a model, can show a fake question first.
        """
        async with self._one_at_a_time:
            with self._hidden():
                if sys.platform != "win32":
                    with suppress(termios.error):
                        termios.tcflush(sys.stdin, termios.TCIFLUSH)
                self._out.print()
                yield

    async def _read(self, prompt: str) -> str | None:
        """Return the next line without surrounding spaces, or None if the input has ended."""
        self._out.print(printable(prompt), end="", soft_wrap=True)
        self._out.file.flush()
        # Wait in the event loop, not in a thread: only there can Ctrl-C interrupt it.
        if sys.platform != "win32":
            await anyio.wait_readable(sys.stdin)
        line = sys.stdin.readline()
        return line.strip() if line else None


def what_it_may_do(tool: Tool, name: str, *, trust_hints: bool) -> str:
    """Say what calls of a tool may do, according to its server unless that is trusted.

    A single call may do less (cancel, for example), but only the server knows.
    """
    said, _ = may_do(tool.wire)
    source = "The" if trust_hints or said == ANYTHING else "According to its server, the"
    return f"{source} tool {name} {said}"


class _Declined(Exception):
    """The person entered an empty line for a required field."""


def choices(schema: dict[str, Any]) -> dict[str, str]:
    """Return a field's possible values, each with its title; empty if any value will do."""
    offered = schema.get("items", schema) if schema.get("type") == "array" else schema
    titled = offered.get("oneOf") or offered.get("anyOf")
    if titled:
        return {str(one["const"]): str(one.get("title", one["const"])) for one in titled}
    values = [str(value) for value in offered.get("enum", [])]
    return dict(zip(values, map(str, offered.get("enumNames", values)), strict=False))


def parse(line: str, schema: dict[str, Any], titles: Mapping[str, str]) -> Answer:
    """Return what a typed line means for a field.

    Raises ValueError with a sentence for people if the line is not valid.
    """
    kind = schema.get("type")
    if titles:
        if kind == "array":
            return [_choice(part.strip(), titles) for part in line.split(",")]
        return _choice(line, titles)
    if kind == "boolean":
        if line.lower() in ("y", "yes", "true"):
            return True
        if line.lower() in ("n", "no", "false"):
            return False
        raise ValueError("Please answer yes or no.")
    if kind in ("integer", "number"):
        try:
            return int(line) if kind == "integer" else float(line)
        except ValueError:
            raise ValueError("Please answer with a number.") from None
    return line


def _choice(line: str, titles: Mapping[str, str]) -> str:
    values = list(titles)
    if line in titles:
        return line
    if line.isdecimal() and 1 <= int(line) <= len(values):
        return values[int(line) - 1]
    raise ValueError(f"Please answer with a number from 1 to {len(values)}.")


def _hint(schema: dict[str, Any], titles: Mapping[str, str]) -> str:
    if titles:
        many = schema.get("type") == "array"
        return f"Numbers from 1 to {len(titles)}, with commas" if many else f"1-{len(titles)}"
    return {"boolean": "y/n", "integer": "A whole number", "number": "A number"}.get(
        str(schema.get("type")), "Your answer"
    )
