"""Consent to the steps of a chain: `--consent` and `--trust-hints` (TC-C-20, TC-C-21, TC-C-55).

The client's user approved the first call, and nobody the next ones. So each step is put to the user
as a form, unless the operator has chosen something else. Where the client can ask nobody, it is a
no. A call that was started before, and whose effect is unknown, is put to the user in any case.

What is followed, and why, is told to the operator: one line a step on standard error.
"""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from mcp import MCPError

from banking_server.chaining import ConsentPolicy, FollowNonDestructive, Proposal
from banking_server.proxy import NAME
from banking_server.text import quoted

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the client a question (method and params) within the running call; returns its answer.

It raises `MCPError` if the client refuses, or cannot be asked.
"""

MakePolicy = Callable[[Ask], ConsentPolicy]
"""Makes the policy of one call, given how its user is asked."""

_VERDICTS: Final = ("allow", "ask", "deny")


class ConsentUnreadable(Exception):
    """The rules of `--consent` cannot be read; the message is one line for people."""


@dataclass(frozen=True)
class _Rule:
    verdict: str
    pattern: str


class _Asking:
    """Asks the client's user, and tells the operator of each step that is taken."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def allows(self, proposal: Proposal) -> bool:
        return _told(proposal, await self._reason(proposal))

    async def allows_again(self, proposal: Proposal) -> bool:
        doubt = (
            " The same call was started before, and whether it took effect is not known: it may "
            "take effect a second time."
        )
        return _told(proposal, await self._agreed(proposal, doubt))

    async def _reason(self, proposal: Proposal) -> str | None:
        """Return why a step is taken, or None if it is not."""
        return await self._agreed(proposal)

    async def _agreed(self, proposal: Proposal, doubt: str = "") -> str | None:
        """Ask. Whatever is not a yes is a no, and so is nobody who could be asked."""
        reason = f" It says why: {quoted(proposal.title)}." if proposal.title is not None else ""
        question = {
            "mode": "form",
            "message": f"After {quoted(proposal.previous_tool)} the server asks for a further call."
            f"{reason}{doubt} Call {quoted(proposal.tool.name)} with {quoted(proposal.arguments)}?",
            "requestedSchema": {"type": "object", "properties": {}},
        }
        try:
            answer = await self._ask("elicitation/create", question)
        except MCPError:
            return None
        return "the user agreed" if answer.get("action") == "accept" else None


def _told(proposal: Proposal, reason: str | None) -> bool:
    """Tell the operator why a step is taken, if it is; return whether it is."""
    if reason is not None:
        tool, previous = quoted(proposal.tool.name), quoted(proposal.previous_tool)
        step = f"calls {tool}, which the result of {previous} names as the next tool"
        print(f"{NAME}: {step}. Why: {reason}.", file=sys.stderr, flush=True)
    return reason is not None


class _ByRules(_Asking):
    """The first rule decides whose pattern matches the tool's name; without one, it is a no."""

    def __init__(self, rules: Sequence[_Rule], ask: Ask) -> None:
        super().__init__(ask)
        self._rules = rules

    def _verdict(self, name: str) -> str:
        fitting = (rule.verdict for rule in self._rules if fnmatchcase(name, rule.pattern))
        return next(fitting, "deny")

    async def _reason(self, proposal: Proposal) -> str | None:
        verdict = self._verdict(proposal.tool.name)
        if verdict == "ask":
            return await self._agreed(proposal)
        return "--consent allows it" if verdict == "allow" else None

    async def allows_again(self, proposal: Proposal) -> bool:
        denied = self._verdict(proposal.tool.name) == "deny"
        return not denied and await super().allows_again(proposal)


class _ByHints(_Asking):
    """The server's hints allow a call that they call harmless; the user decides on any other."""

    async def _reason(self, proposal: Proposal) -> str | None:
        if await FollowNonDestructive().allows(proposal):
            return "the server marks it as harmless, and --trust-hints is given"
        return await self._agreed(proposal)


def consent_of(choice: str | None, *, trust_hints: bool = False) -> MakePolicy:
    """Return how `--consent` decides: None is the same as `ask`, anything unknown is a file.

    With `trust_hints` the server's hints decide first; there is no other choice then. A file has
    one rule a line, `allow|ask|deny PATTERN`, and comments on lines of their own that begin with
    `#`. Raises `ConsentUnreadable`.
    """
    if trust_hints:
        if choice is not None:
            raise ConsentUnreadable("Give either --trust-hints or --consent, not both.")
        return _ByHints
    choice = "ask" if choice is None else choice
    if not choice:
        raise ConsentUnreadable("--consent takes none, all, ask, or a file with rules, not ''.")
    everything = {"none": "deny", "all": "allow", "ask": "ask"}.get(choice)
    rules = [_Rule(everything, "*")] if everything else _read(Path(choice))
    return lambda ask: _ByRules(rules, ask)


def _read(path: Path) -> list[_Rule]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise ConsentUnreadable(
            f"Cannot read the rules of --consent in {str(path)!r}: {problem}. "
            "It takes none, all, ask, or a file with rules."
        ) from None
    except ValueError:
        raise ConsentUnreadable(
            f"Cannot read the rules of --consent in {str(path)!r}: not UTF-8."
        ) from None
    return [
        _rule(rule, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if (rule := line.strip(" \t")) and not rule.startswith("#")
    ]


def _rule(rule: str, place: str) -> _Rule:
    """Read a line. What could be meant otherwise is refused, so that no `deny` is lost."""
    verdict, *pattern = rule.split()
    if verdict not in _VERDICTS or len(pattern) != 1:
        raise ConsentUnreadable(
            f"{place}: a rule is allow, ask or deny and then a pattern of tool names without "
            f"blanks, not {quoted(rule[:60])}."
        )
    return _Rule(verdict, pattern[0])
