"""Values of earlier results, at any depth; and `$ref`, the earlier spelling, still read."""

from typing import Any

import pytest

from banking_server.tools.multiplex.expressions import Work
from banking_server.tools.multiplex.places import ArgumentNotFound
from banking_server.tools.multiplex.references import Pointer

from ..kit.bank import World
from ..kit.words import ACCOUNTS, BALANCE
from .support import FORM, given, multiplex, ref, request, results, statuses, take

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

RESULTS: list[Any] = [{"a": [10, {"b": "deep"}], "x/y": 1, "": 4, "a b": 5}, {"ü": None}]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("#/0", RESULTS[0]),
        ("#/0/a/1/b", "deep"),
        ("#/0/x~1y", 1),
        ("#/0/", 4),
        ("#/0/a%20b", 5),
        ("#/1/%C3%BC", None),
    ],
)
def test_a_pointer_leads_to_a_value(pointer: str, value: Any) -> None:
    assert Pointer(pointer).value(RESULTS, Work()) == value
    assert Pointer(pointer).needed(2) == {int(pointer[2])}


@pytest.mark.parametrize("pointer", ["#/0/b", "#/0/a/2", "#/0/a/-1", "#/0/a/01", "#/1/ü/x"])
def test_a_pointer_that_leads_nowhere_says_so(pointer: str) -> None:
    with pytest.raises(ArgumentNotFound, match="leads to nothing: there is no "):
        Pointer(pointer).value(RESULTS, Work())


@pytest.mark.parametrize("pointer", ["", "#", "/0", "#/x", "#/-1/a", "#/01/a", "#/2", "#/0/~2"])
def test_a_pointer_into_no_earlier_result_is_refused(pointer: str) -> None:
    assert "must lead into an earlier result" in (Pointer(pointer).problem(2) or "")


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
                    "ratio": ref("#/0/structuredContent/given/ratio"),
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
            request("needs that", FORM, {"tags": [ref("#/2/structuredContent/given/note")]}),
            request("needs one", FORM, {"note": take(other)}),
            request("nowhere", FORM, {"note": ref("#/1/nowhere")}),
            request("validated", FORM, {"count": ref("#/1/tool")}),
        )
    assert statuses(result) == [
        *("failed", "done", "not_run", "not_run", "done", "failed", "failed")
    ]
    said = [step.get("message") for step in results(result)]
    assert said[2] == "It needs the result of 'bad', which failed."
    assert said[3] == "It needs the result of 'needs bad', which was not run."
    assert said[5] == "arguments.note: '#/1/nowhere' leads to nothing: there is no 'nowhere'."
    assert "count: " in results(result)[6]["content"][0]["text"]
    assert [tool for tool, _ in world.outcomes()] == [
        *(BALANCE, ACCOUNTS, FORM, FORM, "multiplex_tools")
    ]
