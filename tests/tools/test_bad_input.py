"""Bad input: a clear error that names the field, nothing stored, nothing lost."""

import math
from typing import Any

import pytest

from ..kit.bank import World, code_of, refused, structured, words
from ..kit.words import (
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    EURO,
    EVERYDAY,
    FOREIGN,
    HANDOFF,
    PAYEE,
    PREPARE,
    REPORT,
    SAVINGS,
    STATEMENT,
)

pytestmark = pytest.mark.anyio

MEGABYTE = "x" * 1_000_000

TEXT: list[Any] = [5, True, [], {}, 10**5000]
"""What is no text."""

UNFIT = ["\x00", "\ud800", "a\nb", "\u202egnp", MEGABYTE]
"""Texts that nobody can store or read."""

NO_ID: list[Any] = ["", " ", "null", *UNFIT, *TEXT, None, ...]

BAD_ARGUMENTS: dict[tuple[str, str], list[Any]] = {
    (BALANCE, "accountId"): NO_ID,
    (STATEMENT, "days"): [0, 366, 0.5, 10**400, "30", True],
    (STATEMENT, "month"): ["soon", 10],
    (STATEMENT, "cursor"): ["made up", 5],
    (PREPARE, "amount"): [
        *("5", True, None, [], {}, ..., -1, 0, -0.0, 19.999, 1e-300, 1e15, 10**5000, 1850.41)
    ],
    (PREPARE, "fromAccountId"): [*UNFIT, *TEXT, FOREIGN, "acc_equity_usd", PAYEE],
    (PREPARE, "toAccountId"): [*TEXT, FOREIGN, EVERYDAY, EURO],
    (PREPARE, "scheduledDate"): [
        *("tomorrow", "2026-3-5", "20260305", "2026-W10-4", "2026-03-05T10:00:00", "2026-03-05\n"),
        *("2026-02-30", "0000-01-01", "2026-03-01", "2027-03-05", "\ud800", 20260304, MEGABYTE),
        "２０２６-03-05",  # noqa: RUF001
    ],
    (PREPARE, "expiredTransferId"): [*UNFIT, *TEXT, "tr_0"],
    (PREPARE, "memo"): [*UNFIT, *TEXT, "a\tb", "\x85", "\u2028", "x" * 141],
    (CONFIRM, "transferId"): ["", "\ud800", 5, ...],
    (CONFIRM, "action"): ["", "post", 1, None, ..., MEGABYTE],
    (CHOICE, "handoffId"): ["", MEGABYTE, 5, ...],
    (CHOICE, "choice"): ["pigeon", "Callback", None, ..., MEGABYTE],
    (HANDOFF, "reason"): [*TEXT, *UNFIT, "x" * 501],
    (APPROVAL, "transferId"): ["", 5, ...],
    (APPROVAL, "reason"): ["   ", None, ..., *UNFIT, "x" * 501],
    (REPORT, "transferId"): ["", 5, ...],
    (REPORT, "rule"): ["", "external-payee-1", 5, ..., *UNFIT],
}
"""For each argument what it cannot be; `...` where it is left out."""


async def test_bad_arguments_are_refused_by_name_and_store_only_events(
    world: World,
) -> None:
    async with world.customer() as customer:
        from_savings = {"fromAccountId": SAVINGS, "toAccountId": PAYEE}
        large = structured(await customer.prepare(**from_savings, amount=10_001))
        handoff = structured(await customer.call(HANDOFF))["handoffId"]
        paid = await customer.prepare(**from_savings, amount=3000)
        posted = structured(paid)["transferId"]
        await customer.confirm(posted, confirmationCode=code_of(paid))
        good: dict[str, dict[str, Any]] = {
            BALANCE: {"accountId": EVERYDAY},
            STATEMENT: {"accountId": EVERYDAY},
            PREPARE: {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 25},
            CONFIRM: {"transferId": large["transferId"], "action": "cancel"},
            CHOICE: {"handoffId": handoff, "choice": "callback"},
            HANDOFF: {},
            APPROVAL: {"transferId": large["transferId"], "reason": "Please"},
            REPORT: {"transferId": posted, "rule": "external-payee-3000"},
        }
        before, events = world.stored(), len(world.events())
        asked = 0
        for (tool, field), values in BAD_ARGUMENTS.items():
            for value in values:
                arguments = {**good[tool], field: value}
                given = {name: one for name, one in arguments.items() if one is not ...}
                said = refused(await customer.call(tool, **given), field)
                assert len(said) < 400, said[:1000]
                assert said.isprintable()
                asked += 1
    assert world.stored() == before
    assert {event["outcome"] for event in world.events()[events:]} == {
        "invalid_arguments",
        "refused",
        "not_found",
    }
    assert len(world.events()) == events + asked


async def test_an_empty_optional_argument_counts_as_absent(world: World) -> None:
    """Small models write it so."""
    empty = {"scheduledDate": "", "memo": "", "expiredTransferId": ""}
    async with world.customer() as customer:
        given = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 25}
        prepared = structured(await customer.call(PREPARE, **given, **empty))
        assert (prepared["status"], prepared.get("scheduledDate")) == ("pending", None)
        choices = words(await customer.call(PREPARE, amount=25))
        assert words(await customer.call(PREPARE, fromAccountId="", amount=25)) == choices


@pytest.mark.parametrize("value", [math.nan, math.inf])
async def test_nan_and_infinity_are_refused(world: World, value: float) -> None:
    """Our own client writes them as null; other clients, and the wire, let them through."""
    both = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS}
    for tool, field, rest in [
        (PREPARE, "amount", both),
        (STATEMENT, "days", {"accountId": EVERYDAY}),
    ]:
        result = await world.server().call_tool(tool, {**rest, field: value})
        refused(result, field)  # type: ignore[arg-type]


WHAT_TO_WRITE: list[tuple[str, dict[str, Any], str]] = [
    (
        PREPARE,
        {"amount": "25.50"},
        'amount: must be a number such as 25 or 25.50, but was "25.50".',
    ),
    (PREPARE, {}, "amount: is missing, and this tool needs it."),
    (
        PREPARE,
        {"amount": 5, "to": EVERYDAY},
        "to: is not an argument of this tool, which takes amount, fromAccountId, toAccountId, "
        "scheduledDate, memo, expiredTransferId.",
    ),
    (
        BALANCE,
        {"accountId": EVERYDAY, "a\x1b[2J\n\x00\ud800": 1},
        "a\\x1b[2J\\n\\x00\ufffd\ufffd\ufffd: is not an argument of this tool, which takes "
        "accountId.",
    ),
    (
        PREPARE,
        {"amount": 25, "fromAccountId": "acc_x"},
        "fromAccountId: you have nothing with the id 'acc_x'. list_accounts gives the ids: "
        "acc_checking_001 (Primary Checking), acc_euro_001 (Euro Account), "
        "acc_everyday_001 (Everyday Checking), acc_savings_001 (High Yield Savings).",
    ),
    (
        BALANCE,
        {"accountId": 5},
        "accountId: must be a string in quotation marks, but was 5.",
    ),
    (
        CONFIRM,
        {"transferId": "tr_x", "action": "yes"},
        "action: must be 'confirm' or 'cancel', but was \"yes\".",
    ),
    (
        CONFIRM,
        {"transferId": "tr_x", "action": "confirm", "confirmationCode": 123456},
        "confirmationCode: must be a string in quotation marks.",
    ),
]


async def test_an_error_says_what_to_write(world: World) -> None:
    async with world.customer() as customer:
        for tool, arguments, said in WHAT_TO_WRITE:
            result = await customer.call(tool, **arguments)
            assert result.is_error
            assert words(result) == said
            assert said.startswith(structured(result)["field"])


async def test_unknown_tools(world: World) -> None:
    names = ["transfer_everything", "", "LIST_ACCOUNTS", "a\x1b[2J\n\x00", "x" * 100_000]
    async with world.customer() as customer:
        for name in names:
            result = await customer.call(name, amount=5)
            assert result.is_error
            assert structured(result)["status"] == "unknown_tool"
            assert words(result).isprintable()
            assert len(words(result)) < 100
        assert world.outcomes() == [("(unknown tool)", "unknown_tool")] * len(names)
