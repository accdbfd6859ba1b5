"""A person at a terminal: shown each step of a chain, asked what servers and the host ask.

What a server sends is never trusted to the terminal as it is: control characters are replaced.
"""

import json
import os
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, TextIO

import anyio
from mcp.client.context import ClientRequestContext
from mcp.types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
)
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from banking_server.chaining import (
    META_KEY,
    ChainResult,
    FollowNonDestructive,
    Outcome,
    Proposal,
    Step,
)
from banking_server.chaining.arguments import argument_problem
from banking_server.chaining.content import for_user, in_text

_BIDI_CONTROLS: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)

Answer = str | int | float | bool | list[str] | None


class _Console(Console):
    """Falls silent when nobody reads it any more; what is under way goes on."""

    def on_broken_pipe(self) -> None:
        """Let the rest of the output go nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def console(stream: TextIO) -> Console:
    """Return a console on `stream`: styled and wrapped on a terminal, else plain whole lines."""
    terminal = stream.isatty()
    return _Console(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=not terminal)


def printable(text: str) -> str:
    """Return a text with nothing in it that could steer the terminal."""
    return "".join(
        character
        if character in "\n\t"
        or (unicodedata.category(character) not in ("Cc", "Cs") and character not in _BIDI_CONTROLS)
        else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def say(out: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Print a text of anybody's, indented also where it wraps."""
    shown = printable(text)
    if out.soft_wrap:
        margin = " " * indent
        out.print("\n".join(f"{margin}{line}".rstrip() for line in shown.split("\n")))
    else:
        out.print(Padding(Text(shown, style=style), (0, 0, 0, indent), expand=False))


def compact(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


class Narrator:
    """Shows a chain as it happens: each call and why it is made, then what the user is told.

    It is also the host's consent: what is annotated harmless is followed, and anything else only
    if `follow_all` or the person at the terminal says yes.
    """

    def __init__(
        self, out: Console, *, questions: "TerminalQuestions | None", follow_all: bool = False
    ) -> None:
        self._out = out
        self._questions = questions
        self._follow_all = follow_all
        self._last: Step | None = None

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Show the first call."""
        self._announce(1, tool, arguments, "you asked for it")

    def told(self, step: Step) -> None:
        """Show the result of a step; an `on_step` of the chain."""
        self._last = step
        for line in shown_to_user(step.result):
            self._out.print()
            say(self._out, line, indent=3)
        if step.result.is_error:
            say(self._out, "(The tool reports this as an error.)", indent=3, style="red")

    async def allows(self, proposal: Proposal) -> bool:
        """Show the call that comes next, and return whether it may be made."""
        meta = (self._last.result.meta if self._last else None) or {}
        self._out.print()
        self._announce(
            proposal.level,
            proposal.tool.name,
            proposal.arguments,
            f"{proposal.previous_tool} said so: _meta.{META_KEY} = {compact(meta.get(META_KEY))}",
        )
        if self._follow_all or await FollowNonDestructive().allows(proposal):
            return True
        return self._questions is not None and await self._questions.consents(proposal.tool.name)

    def end(self, result: ChainResult) -> None:
        """Show how the chain ended."""
        self._out.print()
        calls = f"{len(result.steps)} call{'' if len(result.steps) == 1 else 's'}"
        good = result.outcome is Outcome.COMPLETED
        say(
            self._out,
            f"Chain {result.outcome} after {calls}: {result.detail}.",
            style="bold" if good else "bold red",
        )

    def _announce(self, level: int, tool: str, arguments: Mapping[str, Any], why: str) -> None:
        say(self._out, f"{level}. {tool}", style="bold cyan")
        say(self._out, f"with     {compact(arguments)}", indent=3)
        say(self._out, f"because  {why}", indent=3)


def shown_to_user(result: CallToolResult) -> list[str]:
    """Return what of a result is for the user's eyes, in order.

    Content for another audience only is left out. Where that is all there is, and no text was
    meant for anybody else, the structured content is shown.
    """
    items = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]
    texts = [in_text(item) for item in items if for_user(item)]
    if not texts and not result.content and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False, indent=2)]
    return texts


class TerminalQuestions:
    """Puts questions to the person at the terminal: on standard error, one at a time."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._one_at_a_time = anyio.Lock()

    async def consents(self, tool: str) -> bool:
        """Ask whether a follow-up call that may destroy something is made."""
        async with self._one_at_a_time:
            self._out.print()
            answer = await self._read(f"{tool} may change or destroy something. Call it? [y/N] ")
            return answer is not None and answer.lower() in ("y", "yes")

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answer a server's question; an `elicitation_callback` of the client."""
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        async with self._one_at_a_time:
            self._out.print()
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
            if not content and not await self._agrees():
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content=content)

    async def _agrees(self) -> bool:
        """A form without a single answer is a question all the same."""
        answer = await self._read("   [y/N] ")
        return answer is not None and answer.lower() in ("y", "yes")

    async def _field(self, name: str, schema: dict[str, Any], *, optional: bool) -> Answer:
        """Ask for one field of a form until the answer fits.

        Raises EOFError where the input ends, and _Declined for an empty line that leaves nothing.
        """
        titles = choices(schema)
        say(self._out, schema.get("title") or name, indent=3)
        if isinstance(schema.get("description"), str):
            say(self._out, schema["description"], indent=3, style="dim")
        for number, title in enumerate(titles.values(), start=1):
            say(self._out, f"{number}. {title}", indent=5)
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
            if argument_problem(form, {name: value}) is None:
                return value
            say(self._out, "That does not fit what is asked for.", indent=3, style="red")

    async def _read(self, prompt: str) -> str | None:
        """Return the next line without its ends, or None where the input has ended."""
        self._out.print(printable(prompt), end="", soft_wrap=True)
        self._out.file.flush()
        # Waiting in the event loop, not in a thread: only that can be interrupted by Ctrl-C.
        if sys.platform != "win32":
            await anyio.wait_readable(sys.stdin)
        line = sys.stdin.readline()
        return line.strip() if line else None


class _Declined(Exception):
    """The person answered a field that has to be answered with an empty line."""


def choices(schema: dict[str, Any]) -> dict[str, str]:
    """Return the values that a field offers with their titles; empty for a free field."""
    offered = schema.get("items", schema) if schema.get("type") == "array" else schema
    titled = offered.get("oneOf") or offered.get("anyOf")
    if titled:
        return {str(one["const"]): str(one.get("title", one["const"])) for one in titled}
    values = [str(value) for value in offered.get("enum", [])]
    return dict(zip(values, map(str, offered.get("enumNames", values)), strict=False))


def parse(line: str, schema: dict[str, Any], titles: Mapping[str, str]) -> Answer:
    """Return what a typed line means for a field. Raises ValueError with a sentence for people."""
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
