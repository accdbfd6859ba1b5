"""`$ref`: the earlier spelling of a reference, a JSON Pointer, is still read."""

from typing import Any

import pytest

from banking_server.tools.multiplex.places import ArgumentNotFound
from banking_server.tools.multiplex.references import Expression, Pointer, references

from ..kit.bank import World
from ..kit.words import ACCOUNTS, BALANCE, PREPARE, SAVINGS, TO_SAVINGS
from ..tools.cases import named
from .support import FORM, MULTIPLEX, given, multiplex, ref, request, results, statuses

pytestmark = pytest.mark.anyio

RESULTS: list[Any] = [
    {"a": [10, {"b": "deep"}], "x/y": 1, "m~n": 2, "~1": 3, "": 4, "a b": 5, "%": 6, "0": 7},
    {"ü": None, "flag": False},
]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("#/0", RESULTS[0]),
        ("#/0/a", [10, {"b": "deep"}]),
        ("#/0/a/0", 10),
        ("#/0/a/1/b", "deep"),
        ("#/0/x~1y", 1),
        ("#/0/m~0n", 2),
        ("#/0/~01", 3),
        ("#/0/", 4),
        ("#/0/a%20b", 5),
        ("#/0/a b", 5),
        ("#/0/%25", 6),
        ("#/0/0", 7),
        ("#/1/%C3%BC", None),
        ("#/1/ü", None),
        ("#/1/flag", False),
    ],
)
def test_a_pointer_leads_to_a_value(pointer: str, value: Any) -> None:
    assert Pointer(pointer).value(RESULTS) == value
    assert Pointer(pointer).needed(2) == {int(pointer[2])}


@pytest.mark.parametrize(
    "pointer",
    [
        "#/2",
        "#/0/b",
        "#/0/a/2",
        "#/0/a/-1",
        "#/0/a/-",
        "#/0/a/00",
        "#/0/a/01",
        "#/0/a/+1",
        "#/0/a/ 1",
        "#/0/a/1_0",
        "#/0/a/\u0661",
        "#/0/a/" + "9" * 5000,
        "#/0/a/length",
        "#/0/a/1/b/0",
        "#/0/a/0/0",
        "#/1/ü/x",
        "#/0/x/y",
        "#/0/~2",
        "#/0/a/~",
        "#/0/__class__",
    ],
)
def test_a_pointer_that_leads_nowhere_says_so(pointer: str) -> None:
    with pytest.raises(ArgumentNotFound, match="leads to nothing"):
        Pointer(pointer).value(RESULTS)


NOT_INTO_A_RESULT = [
    "", "#", "/0", "0", "#0", "#0/a", "#/", "#/x", "#/-1/a", "#/01/a", "#//0", "##/0",
    "#/\u0660", " #/0", "http://example.com/#/0", "#/" + "9" * 5000, "PROMPT_ARGUMENT: the id",
    "#/~2",
]  # fmt: skip


@pytest.mark.parametrize("pointer", NOT_INTO_A_RESULT, ids=named(NOT_INTO_A_RESULT))
async def test_a_pointer_into_no_result_is_refused_before_anything_runs(
    world: World, pointer: str
) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me, request(1, ACCOUNTS), request(2, BALANCE, {"accountId": ref(pointer)})
        )
    assert result.is_error
    assert "must lead into an earlier result" in str(result.structured_content)
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


@pytest.mark.parametrize("index", [1, 2, 9])
async def test_a_reference_forward_or_to_itself_is_refused_before_anything_runs(
    world: World, index: int
) -> None:
    pointer = f"#/{index}/structuredContent/accounts/0/accountId"
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": ref(pointer)}),
            request(3, ACCOUNTS),
        )
    said = f"tools.1: {pointer!r} must lead into an earlier result"
    assert said in (result.structured_content or {})["message"]
    assert [tool for tool, _ in world.outcomes()] == [MULTIPLEX]


async def test_an_account_is_found_without_any_model(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as me:
        listed = await me.call(ACCOUNTS)
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": ref("#/0/structuredContent/accounts/1/accountId")}),
        )
    assert statuses(result) == ["done", "done"]
    wanted = (listed.structured_content or {})["accounts"][1]["accountId"]
    assert results(result)[1]["structuredContent"]["accountId"] == wanted


@pytest.mark.usefixtures("with_form")
async def test_references_stand_at_any_depth_and_keep_their_type(world: World, mode: str) -> None:
    first = {
        "count": 7,
        "ratio": 2.5,
        "agreed": True,
        "tags": ["red", "blue"],
        "address": {"street": "Example Street", "number": 12},
        "extra": {"null": None, "$ref": "#/0", "more": 1},
    }
    at = "#/0/structuredContent/given"
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, FORM, first),
            request(
                2,
                FORM,
                {
                    "count": ref(f"{at}/count"),
                    "ratio": ref(f"{at}/ratio"),
                    "agreed": ref(f"{at}/agreed"),
                    "tags": [ref(f"{at}/tags/1"), "green", ref(f"{at}/tags/0")],
                    "address": {"street": "Other Street", "number": ref(f"{at}/address/number")},
                    "people": [ref(f"{at}/address"), {"street": "x", "number": 1}],
                    "extra": {"a": {"b": [[ref(f"{at}/extra")]]}},
                    "colour": ref(f"{at}/tags/1"),
                },
            ),
            request(3, FORM, {"tags": ref("#/1/structuredContent/given/tags")}),
        )
    assert statuses(result) == ["done"] * 3
    assert given(result, 1) == {
        "count": 7,
        "ratio": 2.5,
        "agreed": True,
        "tags": ["blue", "green", "red"],
        "address": {"street": "Other Street", "number": 12},
        "people": [{"street": "Example Street", "number": 12}, {"street": "x", "number": 1}],
        "extra": {"a": {"b": [[first["extra"]]]}},
        "colour": "blue",
    }
    assert given(result, 2) == {"tags": ["blue", "green", "red"]}


@pytest.mark.usefixtures("with_form")
async def test_what_a_reference_leads_to_is_validated_as_if_it_had_been_given(
    world: World,
) -> None:
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, FORM, {"count": ref("#/0/tool")}),
            request(3, BALANCE, {"accountId": ref("#/0/structuredContent")}),
        )
    assert statuses(result) == ["done", "failed", "failed"]
    assert "count: " in results(result)[1]["content"][0]["text"]
    assert "accountId: " in results(result)[2]["content"][0]["text"]


async def test_a_reference_that_leads_nowhere_fails_its_step_by_name(
    world: World, mode: str
) -> None:
    nowhere = "#/0/structuredContent/accounts/99/accountId"
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, ACCOUNTS),
            request(2, BALANCE, {"accountId": ref(nowhere)}),
            request(3, BALANCE, {"accountId": SAVINGS}),
        )
    assert statuses(result) == ["done", "failed", "done"]
    message = results(result)[1]["message"]
    assert message == f"arguments.accountId: {nowhere!r} leads to nothing: there is no '99'."
    assert [tool for tool, _ in world.outcomes()][:2] == [ACCOUNTS, BALANCE]


@pytest.mark.usefixtures("with_form")
async def test_what_depends_on_a_failure_does_not_run_and_the_rest_does(
    world: World, mode: str
) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request("bad", BALANCE, {"accountId": "nonsense"}),
            request("needs bad", FORM, {"note": ref("#/0/structuredContent/status")}),
            request("needs that", FORM, {"tags": [ref("#/1/structuredContent/given/note")]}),
            request("free", FORM, {"note": "free"}),
            request("needs free", FORM, {"note": ref("#/3/structuredContent/given/note")}),
        )
    assert statuses(result) == ["failed", "not_run", "not_run", "done", "done"]
    assert results(result)[1]["message"] == "It needs the result of 'bad', which failed."
    assert results(result)[2]["message"] == "It needs the result of 'needs bad', which was not run."
    assert given(result) == {"note": "free"}
    assert [tool for tool, _ in world.outcomes()] == [BALANCE, FORM, FORM, "multiplex_tools"]


async def test_a_transfer_is_prepared_and_cancelled_by_reference(world: World, mode: str) -> None:
    async with world.customer(mode=mode) as me:
        result = await multiplex(
            me,
            request(1, PREPARE, {**TO_SAVINGS, "amount": 12.34}),
            request(
                2,
                "confirm_or_cancel_money_transfer",
                {"transferId": ref("#/0/structuredContent/transferId"), "action": "cancel"},
            ),
        )
    assert statuses(result) == ["done", "done"]
    assert world.sql("SELECT status FROM transfer") == [("voided",)]


def test_only_an_object_with_nothing_but_a_reference_is_one() -> None:
    arguments = {
        "a": {"$ref": "#/0/x"},
        "b": {"$ref": "#/0/x", "other": 1},
        "c": {"$ref": 5},
        "d": "$ref",
        "e": [{"$ref": "#/1"}, {"f": {"jmespath": "[2]"}}],
        "g": {"jmespath": "[0]", "other": 1},
        "h": {"jmespath": None},
        "i": {"jmespath": "[0]", "$ref": "#/0"},
    }
    assert list(references(arguments)) == [
        (("a",), Pointer("#/0/x")),
        (("e", 0), Pointer("#/1")),
        (("e", 1, "f"), Expression("[2]")),
    ]
