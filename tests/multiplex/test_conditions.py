"""`when`: a step runs only if an earlier result is as it says, so that a sequence can branch."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from banking_server.tools import TOOLS

from ..kit.bank import World, copy_of
from ..kit.words import ACCOUNTS, BALANCE, LOCKED, MODES, SAVINGS
from ..tools.cases import named
from .support import FORM, fill_form, given, multiplex, prompt, ref, request, results, statuses

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("with_form")]

AT = "#/0/structuredContent/given"

FORM_ARGUMENTS: dict[str, Any] = {
    "count": 1,
    "ratio": 2.0,
    "agreed": True,
    "note": "1",
    "extra": {"null": None, "list": [1, {"a": 1.0}], "empty": ""},
}

CONDITIONS: list[tuple[str, dict[str, Any], bool]] = [
    ("count", {"equals": 1}, True),
    ("count", {"equals": 1.0}, True),
    ("count", {"equals": 2}, False),
    ("count", {"equals": "1"}, False),
    ("count", {"equals": True}, False),
    ("count", {"notEquals": True}, True),
    ("count", {"notEquals": 1}, False),
    ("count", {"notEquals": 1.0}, False),
    ("ratio", {"equals": 2}, True),
    ("agreed", {"equals": True}, True),
    ("agreed", {"equals": 1}, False),
    ("agreed", {"notEquals": False}, True),
    ("note", {"equals": "1"}, True),
    ("note", {"equals": 1}, False),
    ("extra/null", {"equals": None}, True),
    ("extra/null", {"notEquals": None}, False),
    ("extra/null", {"equals": False}, False),
    ("extra/null", {"exists": True}, True),
    ("extra/null", {"exists": False}, False),
    ("extra/empty", {"exists": True}, True),
    ("extra/list", {"exists": True}, True),
    ("extra/list", {"equals": 1}, False),
    ("extra", {"notEquals": "x"}, True),
    ("missing", {"exists": True}, False),
    ("missing", {"exists": False}, True),
    ("missing", {"equals": None}, False),
    # Of what is not there nothing can be said.
    ("missing", {"notEquals": 1}, False),
]


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, list[str]]:
    """What became of a step under each condition, in each era: all tried over one connection."""
    world = World(copy_of(filled, tmp_path_factory.mktemp("bank")))

    async def run(mode: str) -> list[str]:
        found: list[str] = []
        async with world.customer(mode=mode) as me:
            for start in range(0, len(CONDITIONS), 9):
                some = CONDITIONS[start : start + 9]
                result = await multiplex(
                    me,
                    request("form", FORM, FORM_ARGUMENTS),
                    *(
                        request(number, FORM, when={"$ref": f"{AT}/{place}", **comparison})
                        for number, (place, comparison, _) in enumerate(some)
                    ),
                )
                assert not result.is_error
                found += statuses(result)[1:]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banking_server.server.build.TOOLS", (*TOOLS, fill_form))
        return {mode: anyio.run(run, mode) for mode in MODES}


@pytest.mark.parametrize("number", range(len(CONDITIONS)), ids=named(CONDITIONS))
def test_conditions_compare_json_values(
    tried: dict[str, list[str]], mode: str, number: int
) -> None:
    _, _, holds = CONDITIONS[number]
    assert tried[mode][number] == ("done" if holds else "skipped")


async def test_a_step_that_is_skipped_says_so_and_leaves_no_event(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, FORM, when={"$ref": "#/0/status", "equals": "failed"}),
        )
    assert results(result)[1] == {
        "id": 2,
        "tool": FORM,
        "status": "skipped",
        "message": "Its condition does not hold.",
        "isError": False,
    }
    assert [tool for tool, _ in world.outcomes()] == [ACCOUNTS, "multiplex_tools"]


async def test_conditions_on_steps_that_failed_were_skipped_or_did_not_run(
    world: World, mode: str
) -> None:
    checks = [
        # The step that failed.
        ("#/0/status", {"equals": "failed"}, True),
        ("#/0/isError", {"equals": True}, True),
        ("#/0/structuredContent/status", {"equals": "not_found"}, True),
        # The one that was skipped: it has no result, not an empty one.
        ("#/1/status", {"equals": "skipped"}, True),
        ("#/1/structuredContent", {"exists": True}, False),
        ("#/1/structuredContent", {"exists": False}, True),
        ("#/1/structuredContent/given", {"notEquals": 1}, False),
    ]
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request("failed", BALANCE, {"accountId": "nonsense"}),
            request("skipped", FORM, when={"$ref": "#/0/status", "equals": "done"}),
            request("not run", FORM, {"note": ref("#/0/tool")}),
            *(
                request(number, FORM, when={"$ref": pointer, **comparison})
                for number, (pointer, comparison, _) in enumerate(checks)
            ),
        )
    assert statuses(result)[:3] == ["failed", "skipped", "not_run"]
    for step, check in zip(results(result)[3:], checks, strict=True):
        assert step["status"] == ("done" if check[2] else "skipped"), check


async def test_a_message_exists_only_where_there_is_one(world: World) -> None:
    """Pointers lead into the results as they are given back: nothing stands for nothing."""
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, FORM, when={"$ref": "#/0/message", "exists": True}),
            request(3, FORM, {"note": ref("#/0/message")}),
        )
    assert "message" not in results(result)[0]
    assert statuses(result) == ["done", "skipped", "failed"]


@pytest.mark.parametrize("account", [SAVINGS, LOCKED])
async def test_a_sequence_branches(world: World, mode: str, account: str) -> None:
    """List the accounts, and go one of two ways by what is found."""
    async with world.customer(mode=mode) as me:
        listed = (await me.call(ACCOUNTS)).structured_content or {}
        place = [one["accountId"] for one in listed["accounts"]].index(account)
        locked = f"#/0/structuredContent/accounts/{place}/isLocked"
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(
                2,
                "request_agent_handoff",
                {"reason": "The account is locked"},
                when={"$ref": locked, "equals": True},
            ),
            request(3, BALANCE, {"accountId": account}, when={"$ref": locked, "notEquals": True}),
            request(4, FORM, {"note": ref("#/1/structuredContent/handoffId")}),
            request(5, FORM, {"ratio": ref("#/2/structuredContent/available")}),
        )
    if account == LOCKED:
        assert statuses(result) == ["done", "done", "skipped", "done", "not_run"]
        assert results(result)[4]["message"] == "It needs the result of 3, which was skipped."
    else:
        assert statuses(result) == ["done", "skipped", "done", "not_run", "done"]
    assert len(world.stored()["handoff"]) == (account == LOCKED)


async def test_a_condition_is_looked_at_before_any_model_is_asked(world: World) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, FORM, {"note": prompt("?")}, when={"$ref": "#/0/isError", "equals": True}),
            request(3, FORM, {"note": "x"}, when={"$ref": "#/1/status", "equals": "skipped"}),
        )
    assert statuses(result) == ["done", "skipped", "done"]
    assert given(result) == {"note": "x"}
