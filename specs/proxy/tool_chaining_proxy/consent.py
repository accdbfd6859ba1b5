"""Consent to follow-up calls: `--consent` and `--trust-hints` (TC-C-20, TC-C-21, TC-C-55).

The client's user approved only the first call. So a form asks the user about each follow-up call,
unless the operator chose otherwise. If the client cannot ask, the call is not made. The user is
always asked about a tool in doubt, unless trusted hints of the server mark it as read-only, or a
line `again` agrees beforehand.

The proxy writes one line on standard error for each follow-up call: what it calls, and why.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcp import MCPError

from tool_chaining import ConsentPolicy, NobodyToAsk, Proposal
from tool_chaining.errors import ForPeople
from tool_chaining.operator import write_line
from tool_chaining.text import quoted, read_small
from tool_chaining_proxy import NAME

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a question (method and params) to the client during the call, and returns the answer.

Raises `MCPError` if the client refuses, or cannot be asked.
"""

MakePolicy = Callable[[Ask], ConsentPolicy]
"""Returns the policy for one call. Its argument is the function that asks the user."""

_VERDICTS: Final = ("allow", "ask", "deny", "again")


@dataclass(frozen=True)
class _Rule:
    verdict: str
    pattern: str


class _Asking(ConsentPolicy):
    """Asks the client's user, and reports each allowed follow-up call to the operator."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def allows(self, proposal: Proposal) -> bool:
        return _reported(proposal, await self._reason(proposal))

    async def forbids(self, proposal: Proposal) -> bool:
        return not _reported(proposal, "the rule has ask = false")

    async def allows_again(self, proposal: Proposal) -> bool:
        doubt = " An earlier call of this tool may have taken effect, and this one could repeat it."
        return _reported(proposal, await self._agreed(proposal, doubt))

    async def _reason(self, proposal: Proposal) -> str | None:
        """Return why a follow-up call is allowed, or None if it is not."""
        return await self._agreed(proposal)

    async def _agreed(self, proposal: Proposal, doubt: str = "") -> str | None:
        """Ask the user. Every answer but a yes is a no. Raises NobodyToAsk without an answer."""
        reason = f" Its reason: {quoted(proposal.title)}." if proposal.title is not None else ""
        whose = f"Your rule {proposal.rule.number}" if proposal.rule else "The server"
        question = {
            "mode": "form",
            "message": f"{whose} wants to call {quoted(proposal.tool.name)} after "
            f"{quoted(proposal.previous_tool)}, with {quoted(proposal.arguments)}."
            f"{reason}{doubt} Do you agree?",
            "requestedSchema": {"type": "object", "properties": {}},
        }
        try:
            answer = await self._ask("elicitation/create", question)
        except MCPError:
            raise NobodyToAsk from None
        return "the user agreed" if answer.get("action") == "accept" else None


def _reported(proposal: Proposal, reason: str | None) -> bool:
    """Return whether a follow-up call is allowed. If it is, tell the operator why."""
    if reason is not None:
        tool, previous = quoted(proposal.tool.name), quoted(proposal.previous_tool)
        step = f"calls {tool}, which the result of {previous} names as the next tool"
        if proposal.rule is not None:
            step = f"calls {tool} after {previous}, by rule {proposal.rule.number} of yours"
        write_line(f"{NAME}: {step}. Why: {reason}.")
    return reason is not None


class _ByVerdict(_Asking):
    """One verdict for all tools: `--consent none`, `all` or `ask`."""

    def __init__(self, verdict: str, ask: Ask) -> None:
        super().__init__(ask)
        self._everything = verdict

    def _verdict(self, name: str) -> str:
        return self._everything

    async def _reason(self, proposal: Proposal) -> str | None:
        verdict = self._verdict(proposal.tool.name)
        if verdict == "ask":
            return await self._agreed(proposal)
        return "--consent allows it" if verdict == "allow" else None

    async def forbids(self, proposal: Proposal) -> bool:
        return self._verdict(proposal.tool.name) == "deny" or await super().forbids(proposal)

    async def allows_again(self, proposal: Proposal) -> bool:
        denied = self._verdict(proposal.tool.name) == "deny"
        return not denied and await super().allows_again(proposal)


class _ByFile(_ByVerdict):
    """The first line whose pattern matches the tool's name decides. If none does, it is a no."""

    def __init__(self, rules: Sequence[_Rule], ask: Ask) -> None:
        super().__init__("deny", ask)
        self._again = [rule.pattern for rule in rules if rule.verdict == "again"]
        self._rules = [rule for rule in rules if rule.verdict != "again"]

    def _verdict(self, name: str) -> str:
        matching = (rule.verdict for rule in self._rules if fnmatchcase(name, rule.pattern))
        return next(matching, "deny")

    async def forbids(self, proposal: Proposal) -> bool:
        if self._verdict(proposal.tool.name) == "ask":
            # The line names the tool, so it is stricter than the rule.
            return not await self.allows(proposal)
        return await super().forbids(proposal)

    async def may_repeat(self, proposal: Proposal) -> bool:
        return any(fnmatchcase(proposal.tool.name, pattern) for pattern in self._again)


class _ByHints(_Asking):
    """The server's hints allow calls that they mark as harmless. The user decides on the others."""

    trusts_hints = True

    async def _reason(self, proposal: Proposal) -> str | None:
        if proposal.tool.harmless and proposal.rule is None:
            return "the server marks it as harmless, and --trust-hints is given"
        return await self._agreed(proposal)


def consent_of(choice: str | None, *, trust_hints: bool = False) -> MakePolicy:
    """Return the policy for a value of `--consent`: None is `ask`, an unknown value is a file.

    With `trust_hints` the server's hints decide first, and `choice` must be None. A file has one
    rule on each line, `allow|ask|deny PATTERN`, or `again PATTERN` for tools that may be repeated.
    A line that begins with `#` is a comment. Raises `ForPeople`.
    """
    if trust_hints:
        if choice is not None:
            raise ForPeople("Give either --trust-hints or --consent, not both.")
        return _ByHints
    choice = "ask" if choice is None else choice
    if not choice:
        raise ForPeople("--consent takes none, all, ask, or a file with rules, not ''.")
    everything = {"none": "deny", "all": "allow", "ask": "ask"}.get(choice)
    if everything is not None:
        return partial(_ByVerdict, everything)
    return partial(_ByFile, _read(Path(choice)))


def _read(path: Path) -> list[_Rule]:
    try:
        lines = read_small(path).replace("\r\n", "\n").split("\n")
    except (OSError, ValueError) as error:
        problem = (getattr(error, "strerror", None) or str(error)).lower()
        if isinstance(error, UnicodeDecodeError):
            problem = "not UTF-8"
        raise ForPeople(
            f"Cannot read the rules of --consent in {str(path)!r}: {problem}. "
            "It takes none, all, ask, or a file with rules."
        ) from None
    return [
        _rule(rule, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if (rule := line.strip(" \t")) and not rule.startswith("#")
    ]


def _rule(rule: str, place: str) -> _Rule:
    """Read a line. An ambiguous rule is an error, so that no `deny` is lost."""
    verdict, *pattern = rule.split()
    if verdict not in _VERDICTS or len(pattern) != 1:
        raise ForPeople(
            f"{place}: a rule is allow, ask, deny or again, followed by a pattern of tool names "
            f"without spaces, not {quoted(rule[:60])}."
        )
    return _Rule(verdict, pattern[0])
