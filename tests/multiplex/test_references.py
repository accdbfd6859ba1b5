"""Values of earlier results, at any depth."""

import pytest

from ..kit.bank import World
from ..kit.words import ACCOUNTS, BALANCE
from .support import FORM, given, multiplex, request, results, statuses, take

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


@pytest.mark.usefixtures("with_form")
async def test_references_stand_at_any_depth_and_keep_their_type(world: World) -> None:
    first = {"count": 7, "ratio": 2.5, "agreed": False, "tags": ["red", "blue"]}
    at = "[0].structuredContent.given"
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, FORM, first),
            request(
                2,
                FORM,
                {
                    "count": take(f"length({at}.tags)"),
                    "ratio": take(f"{at}.ratio"),
                    "agreed": take(f"{at}.agreed"),
                    "tags": [take(f"{at}.tags[-1]"), "green"],
                    "extra": {"a": [[take(f"{at}.{{n: count}}")]], "$ref": "#/0", "more": 1},
                },
            ),
        )
    assert statuses(result) == ["done", "done"]
    assert given(result) == {
        "count": 2,
        "ratio": 2.5,
        "agreed": False,
        "tags": ["blue", "green"],
        "extra": {"a": [[{"n": 7}]], "$ref": "#/0", "more": 1},
    }


@pytest.mark.usefixtures("with_form")
async def test_what_depends_on_a_failure_does_not_run_and_the_rest_does(world: World) -> None:
    other = "[0].structuredContent.accountId || [1].structuredContent.accounts[0].accountId"
    async with world.customer() as me:
        result = await multiplex(
            me,
            request("bad", BALANCE, {"accountId": "nonsense"}),
            request("good", ACCOUNTS),
            request("needs bad", FORM, {"note": take("[0].structuredContent.status")}),
            request("needs that", FORM, {"tags": [take("[2].structuredContent.given.note")]}),
            request("needs one", FORM, {"note": take(other)}),
            request("nowhere", FORM, {"note": take("[1].nowhere")}),
            request("validated", FORM, {"count": take("[1].tool")}),
        )
    assert statuses(result) == [
        *("failed", "done", "not_run", "not_run", "done", "failed", "failed")
    ]
    said = [step.get("message") for step in results(result)]
    assert said[2] == "It needs the result of 'bad', which failed."
    assert said[3] == "It needs the result of 'needs bad', which was not run."
    assert said[5] == "arguments.note: '[1].nowhere' gives nothing."
    assert "count: " in results(result)[6]["content"][0]["text"]
    assert [tool for tool, _ in world.outcomes()] == [
        *(BALANCE, ACCOUNTS, FORM, FORM, "multiplex_tools")
    ]
