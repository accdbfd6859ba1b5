"""Consent to the steps of a chain: by rules, and by asking the user."""

from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tool_chaining import NobodyToAsk, Proposal, Tool
from tool_chaining.errors import ForPeople
from tool_chaining_proxy.consent import consent_of

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
    ("choice", "answer", "expected"),
    [
        (None, None, "(look) (shop.add) (shop.pay) (Look)"),
        ("none", YES, ""),
        ("all", None, "look shop.add shop.pay Look"),
        ("ask", YES, "look shop.add shop.pay Look"),
        ("ask", {"action": "cancel"}, ""),
        ("ask", {"accept": True}, ""),
        ("trust hints", None, "look shop.add (shop.pay) (Look)"),
        ("trust hints", YES, "look shop.add shop.pay Look"),
        (RULES, YES, "look shop.add Look"),
        (RULES, None, "look (shop.add) Look"),
        ("allow look\ndeny *\nallow shop.add", YES, "look"),
        ("", YES, ""),
    ],
)
async def test_which_steps_are_allowed(
    choice: str | None, answer: JSON | None, expected: str, tmp_path: Path
) -> None:
    trusts = choice == "trust hints"
    if choice is not None and choice not in ("none", "all", "ask", "trust hints"):
        rules = tmp_path / "rules"
        rules.write_text(choice, encoding="utf-8-sig")
        choice = str(rules)
    choice = None if trusts else choice
    assert await allowed(choice, said=answer, trust_hints=trusts) == expected


async def test_a_repetition_needs_the_users_yes_and_no_rule_against_it() -> None:
    async def ask(_: str, params: JSON) -> JSON:
        assert "may have taken effect" in params["message"]
        return YES

    pay = proposal("pay", destructiveHint=False, openWorldHint=False)
    for choice, trusts, may in ((None, True, True), ("all", False, True), ("none", False, False)):
        policy: Any = consent_of(choice, trust_hints=trusts)(ask)
        assert await policy.allows_again(pay) is may


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
def test_an_invalid_consent_file_is_refused_with_its_line(
    rules: bytes, says: str, tmp_path: Path
) -> None:
    path = tmp_path / "rules"
    path.write_bytes(rules)
    with pytest.raises(ForPeople, match=says) as unreadable:
        consent_of(str(path))
    assert str(path) in str(unreadable.value)
    assert "\n" not in str(unreadable.value)
    with pytest.raises(ForPeople, match="none, all, ask"):
        consent_of(str(tmp_path))
    with pytest.raises(ForPeople, match="not ''"):
        consent_of("")


async def test_server_text_is_escaped_in_the_question() -> None:
    asked: list[str] = []

    async def ask(_: str, params: JSON) -> JSON:
        asked.append(params["message"])
        return YES

    assert await consent_of("ask")(ask).allows(proposal('pay"\nwith {}? \x1b[2J'))
    (message,) = asked
    assert message.isprintable()
    assert r'wants to call "pay\"\nwith {}? \u001b[2J" after' in message
    assert r'"Really? Call \"harmless\""' in message
    assert r"x\u202e\n\u2028y" in message
