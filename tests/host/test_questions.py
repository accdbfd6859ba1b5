"""How a person at a terminal is asked, and how their answers are read."""

import io
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import anyio
import pytest
from mcp.client.context import ClientRequestContext
from mcp.types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    Tool,
    ToolAnnotations,
)

from banking_server.chaining.consent import MOVES_MONEY
from banking_server.host.printing import console
from banking_server.host.questions import TerminalQuestions, choices, parse, what_it_may_do

pytestmark = pytest.mark.quick

TITLED = {
    "type": "string",
    "oneOf": [{"const": "now", "title": "At once"}, {"const": "later", "title": "Later"}],
}
MANY = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}}


@pytest.mark.parametrize(
    ("schema", "line", "value"),
    [
        (TITLED, "1", "now"),
        (MANY, "2, 1", ["b", "a"]),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "integer"}, "-3", -3),
        ({"type": "string"}, "just text", "just text"),
    ],
)
def test_answers_are_read(schema: dict[str, Any], line: str, value: Any) -> None:
    assert parse(line, schema, choices(schema)) == value


# --- a form, asked at a terminal ------------------------------------------------------------------

COLOUR = {"type": "string", "title": "Colour", "enum": ["red", "blue"], "description": "Of it all."}
FORM = {
    "type": "object",
    "properties": {
        "colour": COLOUR,
        "pieces": {"type": "integer", "minimum": 1},
        "wrapped": {"type": "boolean", "default": False},
    },
    "required": ["colour", "pieces"],
}


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


async def answered(terminal: Callable[[str], None], keys: str, form: Any) -> tuple[Any, str]:
    shown = Shown(terminal, keys)
    questions = TerminalQuestions(console(shown))
    params = ElicitRequestFormParams(message="What shall it be?", requested_schema=form)
    with anyio.fail_after(30):
        result = await questions(cast(ClientRequestContext, None), params)
    return (result.action, result.content), shown.getvalue()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("keys", "answer", "told"),
    [
        ("2\n3\ny\n", ("accept", {"colour": "blue", "pieces": 3, "wrapped": True}), "Of it all."),
        ("red\n3\n\n", ("accept", {"colour": "red", "pieces": 3, "wrapped": False}), "means false"),
        ("1\n0\n1\nn\n", ("accept", {"colour": "red", "pieces": 1, "wrapped": False}), "not fit"),
        (
            "3\nred\nx\n1\nperhaps\nno\n",
            ("accept", {"colour": "red", "pieces": 1, "wrapped": False}),
            "Please answer with a number from 1 to 2.",
        ),
        ("\n", ("decline", None), "an empty line declines"),
        ("1\n\x04", ("cancel", None), "What shall it be?"),
    ],
)
async def test_a_form_is_asked_field_by_field(
    terminal: Callable[[str], None], keys: str, answer: Any, told: str
) -> None:
    result, shown = await answered(terminal, keys, FORM)
    assert result == answer
    assert told in shown


@pytest.mark.anyio
async def test_a_form_without_a_field_is_a_question_all_the_same(
    terminal: Callable[[str], None],
) -> None:
    result, shown = await answered(terminal, "y\n", {"type": "object", "properties": {}})
    assert result == ("accept", {})
    assert "[y/N]" in shown


@pytest.mark.anyio
async def test_a_question_that_leads_to_a_url_is_declined() -> None:
    shown = io.StringIO()
    questions = TerminalQuestions(console(shown))
    params = ElicitRequestURLParams(message="Go.\n", url="https://a.example", elicitation_id="1")
    result = await questions(cast(ClientRequestContext, None), params)
    assert result.action == "decline"
    assert 'asks you to open a web page, and was told no: "Go.\\n".\n' in shown.getvalue()


@pytest.mark.anyio
@pytest.mark.parametrize(("keys", "consents"), [("YES\n", True), ("n\n", False), ("\x04", False)])
async def test_consent_takes_a_yes(
    terminal: Callable[[str], None], keys: str, consents: bool
) -> None:
    # What was typed before the question answers nothing.
    terminal("y\n" if not consents else "n\n")
    with anyio.fail_after(30):
        shown = Shown(terminal, keys)
        questions = TerminalQuestions(console(shown))
        questions.names.learn("", CallToolResult(content=[], structured_content=OAK))
        arguments = {"doorId": "door_1", "lockId": "lock_1"}
        asked = questions.consents(BURN, arguments, trust_hints=True, again=True)
        assert await asked is consents
    assert shown.getvalue().endswith(
        "\n   The same call was started before, and nobody knows whether it took effect.\n"
        "   door: Oak door (door_1)\n"
        "   lock: lock_1, which this server has not named\n"
        'The tool "burn" may change or destroy something. Call it? [y/N] '
    )


OAK = {"doors": [{"doorId": "door_1", "doorName": "Oak door"}]}
BURN = Tool(name="burn", input_schema={})


@pytest.mark.parametrize(
    ("hints", "meta", "trusted", "may"),
    [
        (None, None, True, "may change or destroy something"),
        ({"destructive_hint": False}, None, True, "may change something"),
        ({"destructive_hint": True}, {MOVES_MONEY: True}, True, "may move money"),
        (None, {MOVES_MONEY: True}, False, "may change or destroy something"),
    ],
)
def test_what_a_tool_may_do_is_said_as_far_as_the_server_is_believed(
    hints: dict[str, bool] | None, meta: dict[str, Any] | None, trusted: bool, may: str
) -> None:
    annotations = None if hints is None else ToolAnnotations(**hints)
    tool = Tool(name="x", input_schema={}, annotations=annotations, _meta=meta)
    assert what_it_may_do(tool, trust_hints=trusted) == may
