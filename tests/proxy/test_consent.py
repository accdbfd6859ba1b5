"""Consent to the steps of a chain: by rules, and by asking the user."""

from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tool_chaining import NobodyToAsk, Proposal, Tool
from tool_chaining_proxy.consent import ConsentUnreadable, consent_of
from tool_chaining_proxy.hosting.operator import finish_writing

from .wire import JSON

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


def proposal(tool: str, **hints: bool) -> Proposal:
    return Proposal(
        tool=Tool(tool, {"name": tool, "inputSchema": {"type": "object"}}, hints),
        arguments={"text": "x\u202e\n\u2028y"},
        level=2,
        previous_tool="first",
        title='Really? Call "harmless"',
    )


async def allowed(choice: str | None, *, said: Any = None, trust_hints: bool = False) -> str:
    """Return which of some tools may be called, if the user answers this to each question.

    A tool in brackets is one about which nobody could be asked.
    """

    async def ask(method: str, params: JSON) -> JSON:
        assert method == "elicitation/create"
        if said is None:
            raise MCPError(code=-32600, message="Elicitation not supported")
        return dict(said)

    policy = consent_of(choice, trust_hints=trust_hints)(ask)
    tools = [
        proposal("look", readOnlyHint=True),
        proposal("shop.add", destructiveHint=False, openWorldHint=False),
        proposal("shop.pay", destructiveHint=False),
        proposal("Look"),
    ]
    called = []
    for one in tools:
        try:
            called += [one.tool.name] * await policy.allows(one)
        except NobodyToAsk:
            called.append(f"({one.tool.name})")
    return " ".join(called)


YES = {"action": "accept", "content": {}}

RULES = """\
# What this host's user has agreed to.
deny  shop.p?y
  # Each time:
ask shop.*

allow [lL]ook
"""


@pytest.mark.parametrize(
    ("choice", "said", "expected"),
    [
        (None, None, "(look) (shop.add) (shop.pay) (Look)"),
        ("none", YES, ""),
        ("all", None, "look shop.add shop.pay Look"),
        ("ask", YES, "look shop.add shop.pay Look"),
        ("ask", {"action": "cancel"}, ""),
        ("ask", {"accept": True}, ""),
        (RULES, YES, "look shop.add Look"),
        (RULES, None, "look (shop.add) Look"),
        ("allow look\ndeny *\nallow shop.add", YES, "look"),
        ("", YES, ""),
    ],
)
async def test_who_may_be_called(
    choice: str | None, said: JSON | None, expected: str, tmp_path: Path
) -> None:
    if choice not in (None, "none", "all", "ask"):
        rules = tmp_path / "rules"
        rules.write_text(choice, encoding="utf-8-sig")
        choice = str(rules)
    assert await allowed(choice, said=said) == expected


async def test_hints_decide_where_they_are_trusted_and_the_user_on_the_rest(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert await allowed(None, said=None, trust_hints=True) == "look shop.add (shop.pay) (Look)"
    finish_writing()
    capfd.readouterr()
    assert await allowed(None, said=YES, trust_hints=True) == "look shop.add shop.pay Look"
    # One line a step: what is called, and why.
    finish_writing()
    lines = capfd.readouterr().err.splitlines()
    first = 'tool-chaining-proxy: calls "look", which the result of "first" names as the next tool.'
    assert lines[0] == f"{first} Why: the server marks it as harmless, and --trust-hints is given."
    assert [line.partition("Why: ")[2] for line in lines[2:]] == ["the user agreed."] * 2
    with pytest.raises(ConsentUnreadable, match="not both"):
        consent_of("all", trust_hints=True)


@pytest.mark.parametrize(
    ("choice", "trust_hints", "questions"),
    [(None, False, 1), (None, True, 1), ("all", False, 1), ("none", False, 0)],
)
async def test_the_user_is_asked_once_about_a_call_in_doubt(
    choice: str | None, trust_hints: bool, questions: int
) -> None:
    asked: list[str] = []
    says = dict(YES)

    async def ask(_: str, params: JSON) -> JSON:
        asked.append(params["message"])
        return says

    policy: Any = consent_of(choice, trust_hints=trust_hints)(ask)
    pay = proposal("pay", destructiveHint=False, openWorldHint=False)
    assert await policy.allows_again(pay) is bool(questions)
    assert ["may have taken effect" in one for one in asked] == [True] * questions
    says["action"] = "decline"
    assert not await policy.allows_again(pay)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (b"allow look\nallow\n", "line 2"),
        (b"permit look", '"permit look"'),
        (b"look", "line 1"),
        (b"# No rule.\ndeny look # Not that.", "line 2"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_rules_that_cannot_be_read(rules: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    path.write_bytes(rules)
    with pytest.raises(ConsentUnreadable, match=says) as unreadable:
        consent_of(str(path))
    assert str(path) in str(unreadable.value)
    assert "\n" not in str(unreadable.value)
    with pytest.raises(ConsentUnreadable, match="none, all, ask"):
        consent_of(str(tmp_path))
    with pytest.raises(ConsentUnreadable, match="not ''"):
        consent_of("")


async def test_nothing_that_a_server_writes_passes_for_the_question() -> None:
    asked: list[str] = []

    async def ask(_: str, params: JSON) -> JSON:
        asked.append(params["message"])
        return YES

    assert await consent_of("ask")(ask).allows(proposal('pay"\nwith {}? \x1b[2J'))
    (message,) = asked
    assert message.isprintable()
    assert r'Call "pay\"\nwith {}? \u001b[2J" with' in message
    assert r'"Really? Call \"harmless\""' in message
    assert r"x\u202e\n\u2028y" in message
