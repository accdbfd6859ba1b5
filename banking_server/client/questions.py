"""Asks a person at a terminal: a server's questions (elicitation), and for the host's consent."""

import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import anyio
from mcp.client.context import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from rich.console import Console
from rich.live import Live
from rich.text import Text

from banking_server.client.plain import LINE, quoted_name
from banking_server.client.printing import compact, say
from banking_server.client.status_line import StatusLine
from banking_server.client.tool_list import ANYTHING, as_list, as_mapping, may_do
from tool_chaining import Tool
from tool_chaining.arguments import ArgumentCheck
from tool_chaining.text import cut, one_line, printable

if sys.platform != "win32":
    import termios
    import tty

IN_DOUBT: Final = "An earlier call of this tool may have taken effect already."

SHOWN_AT_ONCE: Final = 12
"""The most entries of a list to show at once."""

_KEYS: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.)|.", re.DOTALL)
"""A key that sends a sequence, as the arrow keys do, or any other."""
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_REST_OF_A_KEY: Final = 0.05
"""Seconds for the rest of a sequence; without it, the person pressed Esc."""

Answer = str | int | float | bool | list[str] | None
"""What a person answers to one field of a form; None if they leave it out."""


class _Declined(Exception):
    """The person left out a field that has to be answered."""


class TerminalQuestions:
    """Puts questions to the person at the terminal, one at a time."""

    def __init__(self, out: Console, waiting: StatusLine) -> None:
        """`waiting` is the status line, which a question removes."""
        self._out = out
        self._waiting = waiting
        self._one_at_a_time = anyio.Lock()

    async def consents(self, tool: Tool, *, trust_hints: bool, again: bool = False) -> bool:
        """Ask whether to make a call that may change something.

        `again`: the tool is in doubt, since it may have run before.
        """
        async with self._asking():
            if again:
                say(self._out, IN_DOUBT, indent=3, style="red")
            may = what_it_may_do(tool, trust_hints=trust_hints)
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
            self._waiting.remove()
            say(self._out, f"{who} asks you to open a web page: {asked}. This program declined.")
            return ElicitResult(action="decline")
        async with self._asking():
            say(self._out, f"{who} asks:")
            say(self._out, params.message, indent=3, style="bold")
            content: dict[str, Answer] = {}
            required = as_list(params.requested_schema.get("required"))
            for name, schema in as_mapping(params.requested_schema.get("properties")).items():
                try:
                    value = await self._field(name, as_mapping(schema), name not in required)
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

    async def _field(self, name: str, schema: Mapping[str, Any], optional: bool) -> Answer:
        """Ask for one field of a form until the answer fits.

        Raises EOFError if the input ends, and _Declined if the person leaves out a field that has
        to be answered.
        """
        titles = choices(schema)
        say(self._out, one_line(str(schema.get("title") or name)), indent=3)
        if isinstance(schema.get("description"), str):
            say(self._out, schema["description"], indent=3, style="dim")
        default = schema.get("default")
        if not isinstance(default, str | int | float | None):
            default = None
        empty = "skips" if optional else "declines"
        if default is not None:
            empty = f"means {cut(compact(default), LINE)}"
        for number, title in enumerate([] if self._can_move else titles.values(), start=1):
            say(self._out, f"{number}. {one_line(title, LINE)}", indent=5)
        while True:
            if titles and self._can_move:
                many = schema.get("type") == "array"
                at = [*titles].index(str(default)) if str(default) in titles else 0
                picked = await self._moved_through([*titles.values()], at, many=many, empty=empty)
                values = [[*titles][number] for number in picked]
                value: Answer = values if many else "".join(values)
            else:
                line = await self._read(f"   {_hint(schema, titles)} (an empty line {empty}): ")
                if line is None:
                    raise EOFError
                try:
                    value = parse(line, schema, titles) if line else ""
                except ValueError as problem:
                    say(self._out, str(problem), indent=3, style="red")
                    continue
            if value in ("", []):
                if default is None and not optional:
                    raise _Declined
                return default
            form = {"type": "object", "properties": {name: dict(schema)}}
            misfit = ArgumentCheck().problem("", form, {name: value})
            if misfit is None:
                return value
            rule = misfit.partition(": ")[2]
            say(self._out, f"That does not fit the question: {rule}.", indent=3, style="red")

    @property
    def _can_move(self) -> bool:
        """Whether the terminal can show a list to move through."""
        return (
            sys.platform != "win32" and self._out.file.isatty() and not self._out.is_dumb_terminal
        )

    async def _moved_through(
        self, labels: list[str], at: int, *, many: bool, empty: str
    ) -> list[int]:
        """Let the person move through a list with the arrow keys, or by a number.

        Returns the chosen entries, none if the person leaves the question out. Raises EOFError.
        """
        labels = [one_line(label, LINE) for label in labels]
        how = f"Arrow keys{', Space' if many else ''} and Enter; Esc {empty}"
        before = termios.tcgetattr(sys.stdin)
        try:
            tty.setcbreak(sys.stdin, termios.TCSANOW)
            with Live(console=self._out, auto_refresh=False) as shown:
                answer = "   Cancelled."
                try:
                    picked = await self._picked(shown, labels, at, how, many=many)
                    chosen = [f"   {number + 1}. {labels[number]}" for number in picked]
                    answer = "\n".join(chosen) or f"   No answer {empty}."
                finally:
                    shown.update(Text(answer), refresh=True)
                return picked
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)

    async def _picked(
        self, shown: Live, labels: list[str], at: int, how: str, *, many: bool
    ) -> list[int]:
        """Show the list after each key until the person has chosen."""
        chosen, typed = set[int](), ""
        while True:
            marked = chosen if many else {at}
            shown.update(_list(labels, at, marked, how, self._out), refresh=True)
            for key in await _keys() or ["\x04"]:
                typed = typed + key if key.isdecimal() else ""
                if key in "\r\n":
                    return sorted(chosen) if many else [at]
                elif key == "\x1b":
                    return []
                elif key == "\x04":  # Ctrl-D, or the terminal is gone.
                    raise EOFError
                elif key == " ":
                    chosen ^= {at}
                elif key[-1] in "AB" and len(key) == 3:
                    at = (at + (1 if key[-1] == "B" else -1)) % len(labels)
                elif typed and 1 <= int(typed) <= len(labels):
                    at = int(typed) - 1

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Ask inside the block. Discard what was typed before the question: it cannot be an answer.

        A server, or a model, can show a fake question first.
        """
        async with self._one_at_a_time:
            self._waiting.remove()
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
            try:
                await anyio.wait_readable(sys.stdin)
            except anyio.get_cancelled_exc_class():
                self._out.print()
                raise
        line = sys.stdin.readline()
        return line.strip() if line else None


async def _keys() -> list[str]:
    """Wait for keys, and return them; none at the end of the input."""
    keys = b""
    with anyio.CancelScope() as rest:
        while not keys or _UNFINISHED.search(keys):
            await anyio.wait_readable(sys.stdin)
            more = os.read(sys.stdin.fileno(), 1024)
            if not more:
                break
            keys += more
            rest.deadline = anyio.current_time() + _REST_OF_A_KEY
    return _KEYS.findall(keys.decode(errors="replace"))


def _list(labels: list[str], at: int, marked: set[int], how: str, out: Console) -> Text:
    """Return the part of a list around the entry `at` that fits into the terminal."""
    lines = 1 + max(len(label) + 12 for label in labels) // out.width
    fit = max(1, min(SHOWN_AT_ONCE, (out.height - 3) // lines))
    first = max(0, min(at - fit // 2, len(labels) - fit))
    text = Text()
    for number, label in list(enumerate(labels))[first : first + fit]:
        mark = "x" if number in marked else " "
        line = f"   {'>' if number == at else ' '} [{mark}] {number + 1}. {label}\n"
        text.append(line, "bold" if number == at else "")
    return text.append(f"   {how}. {len(labels)} entries.", "dim")


def what_it_may_do(tool: Tool, *, trust_hints: bool) -> str:
    """Say what calls of a tool may do, according to its server unless that is trusted.

    A single call may do less (cancel, for example), but only the server knows.
    """
    said, _ = may_do(tool.wire)
    source = "The" if trust_hints or said == ANYTHING else "According to its server, the"
    return f"{source} tool {quoted_name(tool.name)} {said}"


def choices(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a field's possible values, each with its title; empty if any value will do."""
    is_list = schema.get("type") == "array"
    offered = as_mapping(schema.get("items")) if is_list else schema
    titled = [as_mapping(one) for one in as_list(offered.get("oneOf") or offered.get("anyOf"))]
    found = {
        str(one["const"]): str(one.get("title", one["const"])) for one in titled if "const" in one
    }
    if found:
        return found
    values = [str(value) for value in as_list(offered.get("enum"))]
    return dict(zip(values, map(str, as_list(offered.get("enumNames")) or values), strict=False))


def parse(line: str, schema: Mapping[str, Any], titles: Mapping[str, str]) -> Answer:
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


def _hint(schema: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    if titles:
        many = schema.get("type") == "array"
        return f"Numbers from 1 to {len(titles)}, with commas" if many else f"1-{len(titles)}"
    kinds = {"boolean": "y/n", "integer": "A whole number", "number": "A number"}
    return kinds.get(str(schema.get("type")), "Your answer")
