"""`when`: a step runs only if an earlier result is as it says, so that a sequence can branch."""

from typing import Any

import pytest

from ..kit.bank import World
from ..kit.words import ACCOUNTS, BALANCE, LOCKED, SAVINGS
from .support import FORM, given, multiplex, prompt, request, results, statuses, take

pytestmark = [pytest.mark.anyio, pytest.mark.quick, pytest.mark.usefixtures("with_form")]

FORM_ARGUMENTS: dict[str, Any] = {
    "count": 1,
    "ratio": 2.0,
    "agreed": True,
    "note": "1",
    "extra": {"list": [1]},
}
AT = "[0].structuredContent.given"

CONDITIONS: list[tuple[dict[str, Any], bool]] = [
    (take(f"{AT}.{place}") | comparison, holds)
    for place, comparison, holds in [
        ("count", {"equals": 1.0}, True),
        ("count", {"equals": "1"}, False),
        ("count", {"equals": True}, False),
        ("count", {"notEquals": 1.0}, False),
        ("agreed", {"equals": 1}, False),
        ("extra.list", {"equals": 1}, False),
    ]
] + [
    ({**take("[0].status"), "equals": "done"}, True),
    ({**take("[0].status"), "notEquals": "done"}, False),
    ({**take("length([0].structuredContent.given.extra.list) > `0`"), "equals": True}, True),
    ({**take("[0].nothing"), "exists": False}, True),
    ({**take("[0].nothing"), "exists": True}, False),
    # Null is nothing in this language, and this is how one asks for it.
    ({**take("[0].nothing"), "equals": None}, True),
    ({**take("[0].nothing"), "notEquals": "x"}, False),
]


async def test_conditions_compare_json_values(world: World) -> None:
    found = []
    async with world.customer() as me:
        for start in range(0, len(CONDITIONS), 9):
            steps = [
                request(number, FORM, when=when)
                for number, (when, _) in enumerate(CONDITIONS[start : start + 9])
            ]
            result = await multiplex(me, request("form", FORM, FORM_ARGUMENTS), *steps)
            assert not result.is_error
            found += statuses(result)[1:]
    expected = ["done" if holds else "skipped" for _, holds in CONDITIONS]
    assert list(zip(found, CONDITIONS, strict=True)) == list(zip(expected, CONDITIONS, strict=True))


@pytest.mark.parametrize("account", [SAVINGS, LOCKED])
async def test_a_sequence_branches(world: World, account: str) -> None:
    """List the accounts, and go one of two ways by what is found. What is skipped leaves no event.

    A condition is looked at before any model is asked.
    """
    locked = f"[0].structuredContent.accounts[?accountId == '{account}'].isLocked | [0]"
    reason = {"reason": "The account is locked"}
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, "request_agent_handoff", reason, when={**take(locked), "equals": True}),
            request(3, BALANCE, {"accountId": account}, when={**take(locked), "notEquals": True}),
            request(4, FORM, {"note": take("[1].structuredContent.handoffId")}),
            request(5, FORM, {"ratio": take("[2].structuredContent.available")}),
            request(6, FORM, {"note": prompt("?")}, when={**take("[0].isError"), "equals": True}),
        )
    if account == LOCKED:
        assert statuses(result) == ["done", "done", "skipped", "done", "not_run", "skipped"]
        assert results(result)[4]["message"] == "It needs the result of 3, which was skipped."
        assert given(result, 3)["note"].startswith("ho_")
    else:
        assert statuses(result) == ["done", "skipped", "done", "not_run", "done", "skipped"]
        assert results(result)[1] == {
            "id": 2,
            "tool": "request_agent_handoff",
            "status": "skipped",
            "message": "Its condition does not hold.",
            "isError": False,
        }
    assert len(world.stored()["handoff"]) == (account == LOCKED)
    assert len(world.outcomes()) == 4
