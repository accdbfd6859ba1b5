"""Bad input: a clear error that names the field, nothing stored, nothing lost."""

import math
from typing import Any

import pytest

from ..kit.bank import World, refused, structured, words
from ..kit.words import (
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    DEPOSIT,
    EURO,
    EVERYDAY,
    FOREIGN,
    HANDOFF,
    PAYEE,
    PREPARE,
    REPORT,
    RETIREMENT,
    SAVINGS,
    STATEMENT,
)

pytestmark = pytest.mark.anyio

MEGABYTE = "x" * 1_000_000
TYPES: list[Any] = ["5", True, False, None, [], [5], {}, {"amount": 5}]
"""What is no number."""

ODD_TEXTS = ["", " ", "\x00", "a\x00b", "\ud800", "\n", "null", "5", "[]", "{}", "%s", MEGABYTE]
"""Texts that are no id of ours."""

NO_TEXTS: list[Any] = [5, 5.5, True, [], ["acc_savings_001"], {}, {"id": 1}, 10**5000]

PREPARATIONS: list[tuple[dict[str, Any], str]] = [
    *[({"amount": value}, "amount") for value in TYPES],
    *[({"amount": value}, "amount") for value in (..., -1, -0.01, 0, 0.0, -0.0)],
    *[({"amount": value}, "amount") for value in (0.001, 19.999, 25.005, 0.009, 1e-300)],
    *[({"amount": value}, "amount") for value in (1e15, 1e308, 10**15, 10**400, 10**5000)],
    *[({"amount": value}, "amount") for value in (1_000_000_000, 1850.41, 999_999_999.99)],
    ({"amount": "NaN"}, "amount"),
    ({"amount": "1e3"}, "amount"),
    ({"amount": MEGABYTE}, "amount"),
    *[({"fromAccountId": value}, "fromAccountId") for value in (*ODD_TEXTS, *NO_TEXTS)],
    *[({"toAccountId": value}, "toAccountId") for value in (*ODD_TEXTS, *NO_TEXTS)],
    *[({name: FOREIGN}, name) for name in ("fromAccountId", "toAccountId")],
    *[({name: "acc_equity_usd"}, name) for name in ("fromAccountId", "toAccountId")],
    ({"toAccountId": EVERYDAY}, "toAccountId"),
    ({"fromAccountId": RETIREMENT}, "fromAccountId"),
    ({"fromAccountId": DEPOSIT}, "fromAccountId"),
    ({"fromAccountId": PAYEE}, "fromAccountId"),
    ({"toAccountId": DEPOSIT}, "toAccountId"),
    ({"toAccountId": EURO}, "toAccountId"),
    ({"fromAccountId": EURO}, "toAccountId"),
    *[
        ({"scheduledDate": value}, "scheduledDate")
        for value in (
            "",
            "null",
            "tomorrow",
            "2026-02-30",
            "2026-13-01",
            "2026-3-4",
            "20260304",
            "2026-W10-3",
            "03/04/2026",
            "2026-03-04T00:00:00Z",
            " 2026-03-04",
            "2026-03-04\n",
            "\uff12\uff10\uff12\uff16-03-04",
            "2026-03-01",
            "2025-03-02",
            "0001-01-01",
            "2027-03-03",
            "9999-12-31",
            "\x00",
            "\ud800",
            MEGABYTE,
            20260304,
            1772582400,
            True,
            [],
            {},
        )
    ],
    *[
        ({"memo": value}, "memo")
        for value in (
            "x" * 141,
            MEGABYTE,
            "a\x00b",
            "a\nb",
            "a\tb",
            "\x1b[31m",
            "\x7f",
            "\x85",
            "\u2028",
            "\u202egnp",
            "\ud800",
            5,
            True,
            [],
            {},
        )
    ],
]


async def test_what_cannot_be_prepared(world: World, mode: str) -> None:
    before = world.stored()
    async with world.customer(mode=mode) as customer:
        for arguments, field in PREPARATIONS:
            result = await customer.prepare(**arguments)
            said = refused(result, field)
            assert len(said) < 400, said[:1000]
            assert said.isprintable(), arguments
            assert world.sql("SELECT count(*) FROM transfer") == [(0,)], arguments
    assert world.stored() == before
    outcomes = world.outcomes()
    assert len(outcomes) == len(PREPARATIONS)
    assert set(outcomes) == {
        (PREPARE, "invalid_arguments"),
        (PREPARE, "refused"),
        (PREPARE, "not_found"),
    }


async def test_what_is_only_just_right(world: World) -> None:
    good: list[dict[str, Any]] = [
        {"amount": 0.01},
        {"amount": 5.10},
        {"amount": 5.0},
        {"memo": "x" * 140},
        {"memo": "null"},
        {"memo": '{"a": 1}'},
        {"memo": "Zoë's café 🎸"},
        {"scheduledDate": "2027-03-02"},
        {"scheduledDate": "2026-03-03"},
        {"scheduledDate": None, "memo": None},
    ]
    async with world.customer() as customer:
        for arguments in good:
            result = await customer.prepare(**arguments)
            assert not result.is_error, words(result)
            stored = structured(result)
            for name, value in arguments.items():
                assert stored.get(name) == value
            await customer.cancel(stored["transferId"])
        today = structured(await customer.prepare(scheduledDate="2026-03-02", memo="   "))
    assert "scheduledDate" not in today
    assert "memo" not in today


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
async def test_numbers_that_json_has_not(world: World, value: float) -> None:
    """Our own client writes them as null; other clients, and the wire, let them through."""
    for tool, field in [(PREPARE, "amount"), (STATEMENT, "days")]:
        arguments = {"accountId": EVERYDAY} if tool == STATEMENT else {"toAccountId": SAVINGS}
        result = await world.server().call_tool(tool, {**arguments, field: value})
        refused(result, field)  # type: ignore[arg-type]


async def test_ids_that_are_none(world: World, mode: str) -> None:
    tools: list[tuple[str, str, dict[str, Any]]] = [
        (BALANCE, "accountId", {}),
        (STATEMENT, "accountId", {}),
        (CONFIRM, "transferId", {"action": "confirm"}),
        (CONFIRM, "transferId", {"action": "cancel"}),
        (CHOICE, "handoffId", {"choice": "callback"}),
        (APPROVAL, "transferId", {"reason": "Please"}),
        (REPORT, "transferId", {"rule": "external-payee-3000"}),
    ]
    before = world.stored()
    async with world.customer(mode=mode) as customer:
        for tool, field, rest in tools:
            for value in (*ODD_TEXTS, *NO_TEXTS, None, ...):
                given = {} if value is ... else {field: value}
                said = refused(await customer.call(tool, **given, **rest), field)
                assert len(said) < 400
                assert said.isprintable(), (tool, value)
    assert world.stored() == before
    assert len(world.events()) == len(tools) * (len(ODD_TEXTS) + len(NO_TEXTS) + 2)
    assert {event["subject"] for event in world.events()} == {None}


async def test_the_text_null_is_a_text(world: World) -> None:
    async with world.customer() as customer:
        said = refused(await customer.call(BALANCE, accountId="null"), "accountId")
        assert "'null'" in said
        stored = structured(await customer.call(HANDOFF, reason="null"))
        assert stored["reason"] == "null"
        stored = structured(await customer.call(HANDOFF, reason='["a"]'))
        assert stored["reason"] == '["a"]'


async def test_other_arguments(world: World) -> None:
    async with world.customer() as customer:
        transfer_id = structured(await customer.prepare())["transferId"]
        handoff_id = structured(await customer.call(HANDOFF))["handoffId"]
        large = await customer.prepare(fromAccountId=SAVINGS, amount=10_001, toAccountId=PAYEE)
        large_id = structured(large)["transferId"]
        before = world.stored()
        cases: list[tuple[str, dict[str, Any], str, list[Any]]] = [
            (
                CONFIRM,
                {"transferId": transfer_id},
                "action",
                ["", "post", "CONFIRM", 1, True, None, ..., ["confirm"], MEGABYTE],
            ),
            (
                CHOICE,
                {"handoffId": handoff_id},
                "choice",
                ["", "pigeon", "Callback", 1, None, ..., [], {}, MEGABYTE, "\ud800"],
            ),
            (
                HANDOFF,
                {},
                "reason",
                [5, True, [], {}, "x" * 501, MEGABYTE, "a\x00", "\ud800", "\n\x07"],
            ),
            (
                APPROVAL,
                {"transferId": large_id},
                "reason",
                ["", "   ", 5, None, ..., [], "x" * 501, MEGABYTE, "a\x1bb", "\ud800"],
            ),
            (REPORT, {"transferId": transfer_id}, "rule", [5, None, ..., [], {}]),
        ]
        for tool, rest, field, values in cases:
            for value in values:
                given = {} if value is ... else {field: value}
                said = refused(await customer.call(tool, **rest, **given), field)
                assert len(said) < 400
                assert said.isprintable(), (tool, value)
    assert world.stored() == before


async def test_several_mistakes_are_all_named(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.call(PREPARE, amount="5", memo=5, fromAccountId=[], bogus=1)
    assert result.is_error
    lines = words(result).splitlines()
    assert {line.split(":")[0] for line in lines} == {"amount", "memo", "fromAccountId", "bogus"}


async def test_unknown_tools(world: World, mode: str) -> None:
    names = ["transfer_everything", "", "LIST_ACCOUNTS", "a\x1b[2J\n\x00", "x" * 100_000]
    async with world.customer(mode=mode) as customer:
        for name in names:
            result = await customer.call(name, amount=5)
            assert result.is_error
            assert structured(result)["status"] == "unknown_tool"
            assert words(result).isprintable()
            assert len(words(result)) < 100
    assert world.outcomes() == [("(unknown tool)", "unknown_tool")] * len(names)
