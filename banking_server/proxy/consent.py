"""Consent to the steps of a chain: what `--consent` chooses (TC-C-20, TC-C-21).

The client's user approved the first call, and nobody the next ones. So by default only tools are
called that the server says destroy nothing; `ask` puts each step to the user, as a form.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from mcp import MCPError

from banking_server.chaining import ConsentPolicy, FollowNonDestructive, Proposal
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


class _ByRules:
    """The first rule decides whose pattern matches the tool's name; without one, it is a no."""

    def __init__(self, rules: Sequence[_Rule], ask: Ask) -> None:
        self._rules = rules
        self._ask = ask

    async def allows(self, proposal: Proposal) -> bool:
        name = proposal.tool.name
        verdict = next(
            (rule.verdict for rule in self._rules if fnmatchcase(name, rule.pattern)), "deny"
        )
        return verdict == "allow" or (verdict == "ask" and await _agreed(self._ask, proposal))


def consent_of(choice: str | None) -> MakePolicy:
    """Return how `--consent` decides: None is the library's default, anything unknown is a file.

    A file has one rule a line, `[allow|ask|deny] PATTERN`. The pattern is all that follows the
    word, blanks and `#` included; one without blanks may stand alone, and is allowed. A line that
    begins with `#` is a comment. Raises `ConsentUnreadable`.
    """
    if choice is None:
        return lambda _: FollowNonDestructive()
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
    verdict, *pattern = rule.split(maxsplit=1)
    if re.search(r"\s#", rule):
        raise ConsentUnreadable(
            f"{place}: a comment has a line of its own, and is not behind {quoted(rule[:60])}."
        )
    if verdict in _VERDICTS and pattern:
        return _Rule(verdict, pattern[0])
    if verdict not in _VERDICTS and not pattern:
        return _Rule("allow", rule)
    raise ConsentUnreadable(
        f"{place}: a rule is allow, ask or deny and then a pattern of tool names, "
        f"not {quoted(rule[:60])}."
    )


async def _agreed(ask: Ask, proposal: Proposal) -> bool:
    """Ask the user. Whatever is not a yes is a no, and so is nobody who could be asked."""
    reason = f" It says why: {quoted(proposal.title)}." if proposal.title is not None else ""
    question = {
        "mode": "form",
        "message": f"After {quoted(proposal.previous_tool)} the server asks for a further call."
        f"{reason} Call {quoted(proposal.tool.name)} with {quoted(proposal.arguments)}?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    try:
        answer = await ask("elicitation/create", question)
    except MCPError:
        return False
    return answer.get("action") == "accept"
