"""How a person at a terminal is asked, how their answers are read, and what they are shown."""

import io
import os
import termios
from collections.abc import Callable, Iterator
from typing import Any, cast

import anyio
import pytest
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestURLParams
from rich.console import Console

from banking_server.client.narrator import shown_to_user
from banking_server.client.plain import quoted_name
from banking_server.client.printing import console
from banking_server.client.questions import TerminalQuestions, _list, what_it_may_do
from banking_server.client.status_line import StatusLine
from tool_chaining import Tool
from tool_chaining.content import Json

pytestmark = [pytest.mark.quick, pytest.mark.anyio]

COLOUR = {"type": "string", "title": "Colour", "enum": ["red", "blue"], "description": "Of it all."}
MANY = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}}
FORM = {
    "type": "object",
    "properties": {
        "colour": COLOUR,
        "pieces": {"type": "integer", "minimum": 1},
        "wrapped": {"type": "boolean", "default": False},
    },
    "required": ["colour", "pieces"],
}
NO_LINE = StatusLine(io.StringIO())
RED = {"colour": "red", "pieces": 1, "wrapped": False}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A terminal as standard input; types what a person types."""
    theirs, ours = os.openpty()
    with os.fdopen(ours, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield lambda keys: os.write(theirs, keys.encode()) and None
    os.close(theirs)


class Shown(io.StringIO):
    """What is shown; a person types when they are asked, and not before."""

    def __init__(self, terminal: Callable[[str], None], keys: str) -> None:
        super().__init__()
        self._terminal = terminal
        self._keys = keys

    def flush(self) -> None:
        if self.getvalue().endswith((": ", "] ")) and self._keys:
            keys, self._keys = self._keys, ""
            self._terminal(keys)


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


@pytest.mark.parametrize(
    ("schema", "keys", "answer", "told"),
    [
        (FORM, "2\n3\ny\n", {"colour": "blue", "pieces": 3, "wrapped": True}, "Of it all."),
        (FORM, "red\n1\n\n", RED, "means false"),
        (FORM, "1\n0\n1\nn\n", RED, "not fit the question: must satisfy minimum 1"),
        (FORM, "3\nred\nx\n1\nperhaps\nno\n", RED, "Please answer with a number from 1 to 2."),
        (FORM, "\n", "decline", "an empty line declines"),
        (FORM, "1\n\x04", "cancel", "What shall it be?"),
        (form(many=MANY), "2, 1\n", {"many": ["b", "a"]}, "with commas"),
        # A form without a field is a question all the same.
        (form(), "y\n", {}, "[y/N]"),
        # Forms that are not as MCP has them: what cannot be read is not there.
        ({"properties": {"a": {"type": "string"}}, "required": True}, "x\n", {"a": "x"}, "skips"),
        ({"properties": [1], "required": "a"}, "y\n", {}, "[y/N]"),
        ({"properties": {"a": True}}, "x\n", {"a": "x"}, "Your answer"),
        (form(a={"title": 7, "enum": "no", "oneOf": [1, {}]}), "x\n\n", "decline", "not fit"),
        (form(a={"type": "array", "items": [], "default": {}}), "\n", "decline", "declines"),
        (form(a={"enum": [1, None], "enumNames": 5}), "2\n\n", "decline", "not fit"),
    ],
)
async def test_a_form_is_asked_field_by_field(
    terminal: Callable[[str], None], schema: Any, keys: str, answer: Any, told: str
) -> None:
    shown = Shown(terminal, keys)
    params = ElicitRequestFormParams(message="What shall it be?", requested_schema=schema)
    with anyio.fail_after(30):
        result = await TerminalQuestions(console(shown), NO_LINE)(
            cast(ClientRequestContext, None), params
        )
    assert (result.content if result.action == "accept" else result.action) == answer
    assert told in shown.getvalue()


@pytest.mark.parametrize(
    ("schema", "keys", "answer"),
    [
        (COLOUR, ["\x1b[B", "\n"], {"a": "blue"}),
        (COLOUR, ["\x1bOA\n"], {"a": "blue"}),
        (COLOUR, ["2\n"], {"a": "blue"}),
        ({**COLOUR, "default": "blue"}, ["\n"], {"a": "blue"}),
        ({**COLOUR, "default": "blue"}, ["\x1b"], {"a": "blue"}),
        (COLOUR, ["\x1b"], "decline"),
        (COLOUR, ["\x04"], "cancel"),
        (MANY, ["\x1b[B \x1b[A \r"], {"a": ["a", "b"]}),
        ({"enum": [str(n) for n in range(30)]}, ["12", "\x1b[B", "\n"], {"a": "12"}),
        # Page Down, Ctrl and an arrow, Home: no key of this list. And one that is held.
        (COLOUR, ["\x1b[6~\x1b[1;5B\x1b[H", "\n"], {"a": "red"}),
        (COLOUR, ["\x1b[B" * 41, "\n"], {"a": "blue"}),
    ],
    ids=range(11),
)
async def test_a_choice_is_a_list_that_one_moves_through(
    monkeypatch: pytest.MonkeyPatch, schema: Any, keys: list[str], answer: Any
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    theirs, ours = os.openpty()
    shown = b""
    with os.fdopen(os.dup(ours)) as stdin, os.fdopen(ours, "w") as stream:
        monkeypatch.setattr("sys.stdin", stdin)
        before = termios.tcgetattr(stdin)
        params = ElicitRequestFormParams(message="What?", requested_schema=form(a=schema))
        ended: list[Any] = []

        async def ask() -> None:
            asked = TerminalQuestions(console(stream), NO_LINE)
            ended.append(await asked(cast(ClientRequestContext, None), params))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                while b"entries." not in shown:
                    await anyio.wait_readable(theirs)
                    shown += os.read(theirs, 65536)
                for some in keys:
                    os.write(theirs, some.encode())
                    await anyio.sleep(0.05)
        shown += os.read(theirs, 65536)
        assert (b"No answer" in shown) is (keys == ["\x1b"]), "it ends with the answer"
        assert termios.tcgetattr(stdin) == before, "the terminal is as it was"
    os.close(theirs)
    assert (ended[0].content if ended[0].action == "accept" else ended[0].action) == answer


def test_a_list_fits_the_terminal_and_cuts_no_entry() -> None:
    screen = io.StringIO()
    out = Console(file=screen, width=50, height=10)
    out.print(_list([f"{'x' * 90} {number}" for number in range(12)], 5, {5}, "Enter", out))
    shown = screen.getvalue()
    assert len(shown.splitlines()) <= 10
    assert "> [x] 6. " in shown
    assert shown.count("x" * 20 + " 5") == 1


async def test_a_question_that_leads_to_a_url_is_declined() -> None:
    shown = io.StringIO()
    questions = TerminalQuestions(console(shown), NO_LINE)
    params = ElicitRequestURLParams(message="Go.\n", url="https://a.example", elicitation_id="1")
    result = await questions(cast(ClientRequestContext, None), params)
    assert result.action == "decline"
    assert 'asks you to open a web page: "Go.\\n". This program declined.' in shown.getvalue()


@pytest.mark.parametrize(("keys", "consents"), [("YES\n", True), ("n\n", False), ("\x04", False)])
async def test_consent_takes_a_yes(
    terminal: Callable[[str], None], keys: str, consents: bool
) -> None:
    # What was typed before the question answers nothing.
    terminal("y\n" if not consents else "n\n")
    with anyio.fail_after(30):
        shown = Shown(terminal, keys)
        questions = TerminalQuestions(console(shown), NO_LINE)
        assert await questions.consents(Tool("burn", {}), trust_hints=True, again=True) is consents
    assert shown.getvalue().endswith(
        "\n   An earlier call of this tool may have taken effect already.\n"
        'The tool "burn" may change or destroy something. Call it? [y/N] '
    )


def test_what_a_tool_may_do_is_said_as_far_as_the_server_is_believed() -> None:
    """What its hints mean is in `tests/cli/test_hostile.py`."""
    tool = Tool("x", {"annotations": {"readOnlyHint": True}})
    assert what_it_may_do(tool, trust_hints=True) == 'The tool "x" only reads'
    assert what_it_may_do(tool, trust_hints=False) == (
        'According to its server, the tool "x" only reads'
    )


def test_a_name_cannot_leave_its_quotes() -> None:
    assert quoted_name('order" was called\ncall        b') == '"order\\" was called call b"'


def text(words: str, *audience: str) -> Json:
    annotations = {"annotations": {"audience": [*audience]}} if audience else {}
    return {"type": "text", "text": words, **annotations}


def test_content_for_the_model_alone_is_not_shown() -> None:
    content = [text("everybody"), text("user", "user"), text("both", "user", "assistant")]
    for_the_model = text("assistant", "assistant")
    hidden = {"hidden": True}
    result = {"content": [for_the_model, *content], "structuredContent": hidden}
    assert shown_to_user(result) == ["everybody", "user", "both"]
    assert shown_to_user({**result, "content": [for_the_model]}) == []
