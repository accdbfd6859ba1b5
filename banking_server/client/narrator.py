"""Shows a person at a terminal what happens in a chain: each call, its reason, its result."""

import io
import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from rich.console import Console

from banking_server.client.plain import LINE, NAME, SHOWN
from banking_server.client.printing import compact, say
from banking_server.client.questions import TerminalQuestions
from banking_server.client.status_line import StatusLine
from tool_chaining import (
    META_KEY,
    ChainResult,
    ConsentPolicy,
    FollowUpStatus,
    NobodyToAsk,
    Outcome,
    Proposal,
    Step,
    Tool,
)
from tool_chaining.content import Json, content_of, for_user, in_text, member
from tool_chaining.text import cut, one_line

NOBODY_ASKED: Final = (
    "Nobody could be asked, because this is not a terminal. --trust-hints makes the calls that the "
    "server marks as read-only, or as neither destructive nor open to the world, and --consent all "
    "makes every call. A rule of yours with ask = false needs neither."
)

_PARTICIPLES: Final = (Outcome.COMPLETED, Outcome.DECLINED, Outcome.FAILED, Outcome.CANCELLED)
"""The outcomes that end a sentence; the others, such as `cycle`, are in the detail."""


class Narrator(ConsentPolicy):
    """Shows a chain as it happens: each call, its reason, and its result for the user.

    Pass it as the follower's `consent` and `show_step` as its `on_step`. It allows a tool that
    trusted hints mark as harmless, and any other only if the person at the terminal says yes.
    Without `questions` nobody is asked. Instead of asking, `follows` can be "all" or "none".
    `waiting` shows the running call. With `for_model`, a model chooses the first calls: it is asked
    about them too, and only a tool that reads is harmless.
    """

    def __init__(
        self,
        out: Console,
        *,
        questions: TerminalQuestions | None,
        follows: Literal["ask", "all", "none"] = "ask",
        trust_hints: bool = False,
        waiting: StatusLine | None = None,
        for_model: bool = False,
    ) -> None:
        self.trusts_hints = trust_hints
        self.allowed: set[str] | None = None
        """The tools that may be called; None means all."""
        self._waiting = waiting or StatusLine(io.StringIO())
        self._out = out
        self._questions = questions if follows == "ask" else None
        self._follows = follows
        self._for_model = for_model
        self._nobody_asked = False
        self._last: Step | None = None

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Show the first call, which is made."""
        self._announce(1, tool, arguments, "you asked for it")
        self._waiting.show(f"Waiting for {tool}")

    def show_step(self, step: Step) -> None:
        """Show the result of a step; an `on_step` of the chain."""
        self._waiting.remove()
        self._last = step
        for line in shown_to_user(step.result):
            self._out.print()
            say(self._out, line, indent=3)
        if step.is_error:
            say(self._out, "(The tool reports this as an error.)", indent=3, style="red")
        if self._for_model:
            self._waiting.show("Thinking")

    def propose(self, proposal: Proposal) -> None:
        """Show a call that needs consent: its directive, and the server's title."""
        self._waiting.remove()
        self._out.print()
        if proposal.level == 1:
            tool, arguments = proposal.tool.name, proposal.arguments
            self._announce(1, tool, arguments, "the model asked for it")
            return
        directive = member(member(self._last and self._last.result, "_meta"), META_KEY)
        previous, rule = one_line(proposal.previous_tool, NAME), proposal.rule
        why = f"{previous} said so: _meta.{META_KEY} = {cut(compact(directive), LINE)}"
        if rule is not None:
            why = f"your rule {rule.number} says so, after {previous}"
        self._announce(proposal.level, proposal.tool.name, proposal.arguments, why)
        if proposal.title is not None:
            # As JSON, so that a line break in the server's text cannot forge a line of ours.
            whose = "your rule" if rule is not None else "the server"
            say(self._out, f"{whose} says: {cut(compact(proposal.title), SHOWN)}", indent=3)

    async def allows(self, proposal: Proposal) -> bool:
        """Allow a harmless tool, else ask the person. Raises NobodyToAsk."""
        self.propose(proposal)
        tool = proposal.tool
        harmless = tool.read_only if self._for_model else tool.harmless and proposal.rule is None
        spared = self.trusts_hints and harmless and self._follows == "ask"
        if (spared or self._follows == "all") and self._may_call(tool):
            return self._made(tool)
        return await self._agrees(proposal, again=False)

    async def forbids(self, proposal: Proposal) -> bool:
        """Show a call that the user's rule makes unasked; `--consent none` forbids even that."""
        self.propose(proposal)
        return self._follows == "none" or not self._made(proposal.tool)

    async def allows_again(self, proposal: Proposal) -> bool:
        """The same for a call in doubt: only the person can agree, whatever `follows` says."""
        self.propose(proposal)
        return await self._agrees(proposal, again=True)

    async def _agrees(self, proposal: Proposal, *, again: bool) -> bool:
        ask, trusted = self._questions, self.trusts_hints
        may = self._may_call(proposal.tool)
        if may and ask and await ask.consents(proposal.tool, trust_hints=trusted, again=again):
            return self._made(proposal.tool)
        nobody_to_ask = may and self._follows == "ask" and ask is None
        # `end` explains it after a chain that a person began.
        unasked = nobody_to_ask and self._for_model
        why = "nobody can be asked without a terminal" if unasked else "nobody agreed"
        say(self._out, f"not called: {why}", indent=3)
        if self._for_model:
            self._waiting.show("Thinking")
        if nobody_to_ask:
            self._nobody_asked = not again
            raise NobodyToAsk
        return False

    def _made(self, tool: Tool) -> bool:
        """Show that the answer of a call is waited for."""
        self._waiting.show(f"Waiting for {tool.name}")
        return True

    def _may_call(self, tool: Tool) -> bool:
        return self.allowed is None or tool.name in self.allowed

    def end(self, result: ChainResult) -> None:
        """Show how the chain ended."""
        self._out.print()
        calls = f"{len(result.steps)} call{'' if len(result.steps) == 1 else 's'}"
        good = result.outcome is Outcome.COMPLETED
        if good and result.steps[-1].is_error:
            good, words = False, f"Stopped after {calls}: the tool reported an error."
        else:
            how = result.outcome if result.outcome in _PARTICIPLES else "stopped"
            words = f"Chain {how} after {calls}: {result.detail}."
        style = "bold" if good else "bold red"
        say(self._out, cut(one_line(words), SHOWN), style=style)
        if self._nobody_asked:
            say(self._out, NOBODY_ASKED)
        unknown = [one.tool for one in result.follow_ups if one.status is FollowUpStatus.UNKNOWN]
        if result.outcome is Outcome.CANCELLED and not result.steps:
            unknown = ["the call"]
        for tool in unknown:
            say(self._out, f"Whether {one_line(tool, NAME)} took effect is not known.", style="red")

    def _announce(self, level: int, tool: str, arguments: Mapping[str, Any], why: str) -> None:
        say(self._out, f"{level}. {one_line(tool, NAME)}", style="bold cyan")
        say(self._out, f"with     {cut(compact(arguments), SHOWN)}", indent=3)
        say(self._out, f"because  {one_line(why)}", indent=3)


def shown_to_user(result: Json) -> list[str]:
    """Return the texts of a result that are meant for the user, in order.

    Content for another audience is left out. If a result has no content at all, its structured
    content is shown instead.
    """
    items, structured = content_of(result), result.get("structuredContent")
    if not items and structured is not None:
        return [json.dumps(structured, ensure_ascii=False, indent=2)]
    return [in_text(item) for item in items if for_user(item)]
