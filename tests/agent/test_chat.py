"""A conversation at the terminal: what is shown, asked, and stopped."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult

from banking_server.agent import OfferedTool, Run, Terminal, chat, endpoint
from banking_server.chaining import CLIENT_EXTENSION, Proposal, Step

from ..kit.model import Script, ScriptedModel, call, error, scripted_model
from .shop_server import Log, fresh_shop, unadvertised
from .support import settings

Line = str | type[BaseException] | Callable[[], str]


class User:
    """Types these lines, and sees everything; a narrator too."""

    def __init__(self, lines: Sequence[Line], refuses: Collection[str] = ()) -> None:
        self._lines = iter(lines)
        self._refuses = refuses
        self.screen = ""
        self.learnt: list[tuple[str, CallToolResult]] = []
        self.waits: list[str] = []
        self.kept: list[tuple[str, Run]] = []
        self.answered: bool | None = None
        self._said = ""

    def read(self, prompt: str) -> str:
        line = next(self._lines, EOFError)
        self.screen += prompt
        if isinstance(line, type):
            raise line
        return line if isinstance(line, str) else line()

    def say(self, piece: str) -> None:
        self._said += piece

    def end(self) -> None:
        self.screen += f"SAID {self._said}\n" if self._said else ""
        self._said = ""

    def tell(self, text: str, *, indent: int = 0) -> None:
        assert not self._said, "what the model says was broken into"
        self.screen += f"{' ' * indent}{text}\n"

    def on(self, what: str) -> None:
        self.waits.append(what)

    def retrying(self, seconds: float) -> None:
        self.waits.append(f"retrying in {seconds:g}")

    def over(self) -> None:
        self.waits.append("")

    def add(self, request: str, run: Run) -> None:
        self.kept.append((request, run))

    def save(self, file: str) -> str:
        if file == "there":
            raise ValueError("Not saved: there is there already.")
        return f"Saved to {file}."

    async def consents(self, tool: OfferedTool, arguments: dict[str, Any]) -> bool:
        self.screen += f"Call {tool.name}?\n"
        return tool.name not in self._refuses

    def learns(self, server: str, said: CallToolResult) -> None:
        self.learnt.append((server, said))

    def terminal(self, is_typed: bool = True) -> Terminal:
        return Terminal(
            speech=self,
            tell=self.tell,
            consents=self.consents,
            learns=self.learns,
            read=self.read,
            waiting=self,
            record=self,
            is_typed=is_typed,
        )

    def told(self, step: Step) -> None:
        for block in step.result.content:
            self.screen += f"TOLD {getattr(block, 'text', '?')}\n"

    def proposed(self, proposal: Proposal) -> None:
        self.screen += f"DIRECTIVE to {proposal.tool.name}\n"


def converse(
    script: Script,
    lines: Sequence[Line],
    refuses: Collection[str] = (),
    trust_hints: bool = True,
    follow_unadvertised: bool = False,
    server: MCPServer[Any] | None = None,
    user: User | None = None,
    prompt: str | None = None,
    is_typed: bool = True,
    **more: Any,
) -> tuple[str, ScriptedModel, Log]:
    (shop, log), user = fresh_shop(), user or User(lines, refuses)

    @asynccontextmanager
    async def connect() -> AsyncIterator[Mapping[str, Client]]:
        async with Client(server or shop, extensions=[CLIENT_EXTENSION]) as client:
            yield {"shop": client}

    with scripted_model(script) as model:
        user.answered = chat(
            settings(model.url, **more),
            connect,
            user.terminal(is_typed),
            user,
            prompt=prompt,
            trust_hints=trust_hints,
            follow_unadvertised=follow_unadvertised,
        )
    return user.screen, model, log


def test_an_answer_is_streamed_and_its_cost_shown() -> None:
    user = User(["Hi", "/quit", "never read"])
    screen, model, _ = converse(["Hello there!\n\nBye."], [], user=user)
    assert model.requests[0]["stream"] is True
    assert len(model.requests) == 1
    assert screen.startswith("Model: scripted, with 16 tools.\n/help shows what you can type.")
    assert "you> SAID Hello there!\n\nBye.\n[0 calls by the model, 0 calls by directive; " in screen
    assert "1 reply, 100 + 10 tokens, " in screen
    assert user.answered is True
    assert [(request, run.answer) for request, run in user.kept] == [("Hi", "Hello there!\n\nBye.")]


def test_what_is_waited_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "RETRIES", 1)
    script = [error(503, retry_after_ms="1"), call("reserve", door="oak"), "Ordered."]
    user = User(["Reserve oak."])
    converse(script, [], user=user)
    assert user.waits == [
        *("Connecting", ""),
        *("Thinking", "retrying in 0.001", "Waiting for reserve", "Thinking"),
        *("Waiting for order", "Thinking", "", ""),
    ]


def test_commands_are_carried_out_and_are_not_for_the_model() -> None:
    lines = ["/help", "/tools", "/save", "/save there", "/save a file ", "/nothing at all", "Hi"]
    user = User(lines)
    screen, model, _ = converse(["Hello."], [], user=user)
    assert [request["messages"][-1]["content"] for request in model.requests] == ["Hi"]
    shown = screen.split("you> ")
    assert "   /help       show this\n" in shown[1]
    assert "   /save FILE  write the conversation to a new file, as Markdown\n" in shown[1]
    assert "   price: Price of a Door\n   buy: Buy a door. (you are asked first)\n" in shown[2]
    assert shown[3:7] == [
        "/save needs the name of a file to write to.\n",
        "Not saved: there is there already.\n",
        "Saved to a file.\n",
        "There is no /nothing at all: there are /help, /tools, /save FILE and /quit.\n",
    ]
    assert user.answered is False, "some were not carried out"
    good = User(["/tools", "/quit"])
    screen, _, _ = converse([], [], user=good, server=MCPServer("empty"))
    assert "   The model has no tools.\n" in screen
    assert good.answered is True


def test_where_no_person_types_ctrl_c_ends_it_all() -> None:
    user = User(["Hi", KeyboardInterrupt, "never read"])
    with pytest.raises(KeyboardInterrupt):
        converse(["Hello."], [], user=user, is_typed=False)
    assert "SAID Hello.\n" in user.screen
    assert user.screen.count("you> ") == 2
    assert user.waits[-1] == ""


def test_calls_are_shown_and_whose_they_were() -> None:
    script = ["I'll see.\n" + call("reserve", door="oak"), "Ordered."]
    user = User(["Reserve oak."])
    screen, _, log = converse(script, [], user=user)
    assert [tool for tool, _ in log.calls] == ["reserve", "order"]
    # What the server returned is noted for the questions, under the host's name for it.
    assert [server for server, _ in user.learnt] == ["shop", "shop"]
    shown = [
        "SAID I'll see.",
        "reserve",
        '   with     {"door": "oak"}',
        "   because  the model asked for it",
        "TOLD I'm sorry: oak is out of stock.",
        "DIRECTIVE to order",
        "Call order?",
        "TOLD ordered oak: no. 77",
        "SAID Ordered.",
        "[1 call by the model, 1 call by directive; 2 replies, 200 + 20 tokens, ",
    ]
    at = -1
    for line in shown:
        at = screen.index(line, at + 1)
    assert '{"tool"' not in screen


@pytest.mark.parametrize("consent", [True, False])
def test_consent_is_asked_for_what_is_not_read_only(consent: bool) -> None:
    script = [call("price", door="oak"), call("buy", door="oak"), "So be it."]
    screen, model, log = converse(script, ["Buy oak."], () if consent else ["buy"])
    assert [tool for tool, _ in log.calls] == (["price", "buy"] if consent else ["price"])
    assert "Call price?" not in screen
    with_it, question = screen.index('with     {"door": "oak"}'), screen.index("Call buy?")
    assert with_it < question
    assert screen.count("because  the model asked for it") == 2
    assert ("(Not called: buy." in screen) is not consent
    assert ("declined" in model.last_message()) is not consent


@pytest.mark.parametrize("first", [[], [call("reserve", door="oak")]])
def test_what_the_user_refused_is_not_asked_for_again(first: list[str]) -> None:
    """Whoever asked for it the first time: the model, or a directive."""
    order = call("order", door="oak", reason="out of stock")
    screen, model, log = converse([*first, *[order] * 3], ["Order."], ["order"])
    assert screen.count("Call order?") == 1
    assert "order" not in [tool for tool, _ in log.calls]
    assert "the user has refused this call of order" in screen
    assert "declined" in model.told or first
    assert "asked again for a call that was made before, and gave no answer" in screen
    # Another request is the user's own.
    again, _, _ = converse([order, "No."] * 2, ["Do.", "Do it."], ["order"])
    assert again.count("Call order?") == 2


@pytest.mark.parametrize("follow", [True, False])
def test_a_server_that_does_not_advertise_is_followed_if_the_user_says_so(follow: bool) -> None:
    screen, model, _ = converse(
        [call("begin"), "So be it."],
        ["Begin."],
        follow_unadvertised=follow,
        server=unadvertised(),
    )
    assert ("TOLD gone on" in screen) is follow
    assert ("was not made" in model.last_message()) is not follow


def test_the_conversation_goes_on_after_whatever_went_wrong() -> None:
    script = [
        call("sell"),
        call("buy", door="oak"),
        call("clear_out"),
        error(500),
        "Still here.",
    ]
    lines: list[Line] = [KeyboardInterrupt, "  ", "Go.", "Are you there?", EOFError]
    screen, model, _ = converse(script, lines, ["burn"])
    assert "(Ctrl-D or /quit ends the conversation.)" in screen
    assert "(No call was made: there is no tool 'sell'" in screen
    assert "(The chain ended: the host did not consent to the call of 'burn'.)" in screen
    assert "HTTP 500" in screen
    assert "Done so far: buy (by the model); clear_out (by the model)." in screen
    assert screen.count("you> ") == 5
    assert "Still here." in screen
    assert len(model.requests) == 5
