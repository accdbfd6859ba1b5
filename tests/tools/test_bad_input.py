"""Bad input: a clear error that names the field, nothing stored, nothing lost."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult

from banking_server.tools import TOOLS

from ..kit.bank import World, copy_of, refused, structured, words
from ..kit.words import (
    ACCOUNTS,
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    DEPOSIT,
    EURO,
    EVERYDAY,
    FOREIGN,
    HANDOFF,
    MODES,
    PAYEE,
    PREPARE,
    REPORT,
    RETIREMENT,
    SAVINGS,
    STATEMENT,
)
from .cases import named

pytestmark = pytest.mark.anyio

MEGABYTE = "x" * 1_000_000
MANY = "multiplex_tools"
TYPES: list[Any] = ["5", True, False, None, [], [5], {}, {"amount": 5}]
"""What is not a number."""

ODD_TEXTS = ["", " ", "\x00", "a\x00b", "\ud800", "\n", "null", "5", "[]", "{}", "%s", MEGABYTE]
"""Texts that are no id of ours."""

ONE_OF_MANY = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": ACCOUNTS},
}

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


@dataclass
class Tried:
    """What a list of bad calls was answered, all made over one connection, and what it left."""

    results: list[CallToolResult]
    outcomes: list[tuple[str, str]]
    subjects: set[str | None]
    stored_nothing: bool


def tried(folder: Path, filled: Path, mode: str, calls: list[tuple[str, dict[str, Any]]]) -> Tried:
    world = World(copy_of(filled, folder))
    before = world.stored()

    async def run() -> list[CallToolResult]:
        async with world.customer(mode=mode) as customer:
            return [await customer.call(tool, **arguments) for tool, arguments in calls]

    results = anyio.run(run)
    world.books_balance()
    events = world.events()
    return Tried(
        results,
        [(event["tool"], event["outcome"]) for event in events],
        {event["subject"] for event in events},
        world.stored() == before,
    )


def assert_refused_clearly(result: CallToolResult, field: str) -> None:
    said = refused(result, field)
    assert len(said) < 400, said[:1000]
    assert said.isprintable()


@pytest.fixture(scope="module")
def unprepared(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, Tried]:
    """What became of `PREPARATIONS`, in each era."""
    good = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 25}
    calls = [
        (PREPARE, {name: value for name, value in {**good, **bad}.items() if value is not ...})
        for bad, _ in PREPARATIONS
    ]
    return {mode: tried(tmp_path_factory.mktemp(mode), filled, mode, calls) for mode in MODES}


@pytest.mark.parametrize("number", range(len(PREPARATIONS)), ids=named(PREPARATIONS))
def test_what_cannot_be_prepared(unprepared: dict[str, Tried], mode: str, number: int) -> None:
    _, field = PREPARATIONS[number]
    assert_refused_clearly(unprepared[mode].results[number], field)
    tool, outcome = unprepared[mode].outcomes[number]
    assert tool == PREPARE
    assert outcome in ("invalid_arguments", "refused", "not_found")


def test_what_cannot_be_prepared_leaves_nothing_but_events(
    unprepared: dict[str, Tried], mode: str
) -> None:
    assert unprepared[mode].stored_nothing
    assert len(unprepared[mode].outcomes) == len(PREPARATIONS)
    assert {outcome for _, outcome in unprepared[mode].outcomes} == {
        "invalid_arguments",
        "refused",
        "not_found",
    }


JUST_RIGHT: list[dict[str, Any]] = [
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


@pytest.mark.parametrize("arguments", JUST_RIGHT, ids=named(JUST_RIGHT))
async def test_what_is_only_just_right(world: World, arguments: dict[str, Any]) -> None:
    async with world.customer() as customer:
        result = await customer.prepare(**arguments)
    assert not result.is_error, words(result)
    stored = structured(result)
    for name, value in arguments.items():
        assert stored.get(name) == value


async def test_today_and_a_blank_memo_are_the_same_as_none(world: World) -> None:
    async with world.customer() as customer:
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


NEEDS_AN_ID: list[tuple[str, str, dict[str, Any]]] = [
    (BALANCE, "accountId", {}),
    (STATEMENT, "accountId", {}),
    (CONFIRM, "transferId", {"action": "confirm"}),
    (CONFIRM, "transferId", {"action": "cancel"}),
    (CHOICE, "handoffId", {"choice": "callback"}),
    (APPROVAL, "transferId", {"reason": "Please"}),
    (REPORT, "transferId", {"rule": "external-payee-3000"}),
]
BAD_IDS: list[tuple[str, dict[str, Any], str, Any]] = [
    (tool, rest, field, value)
    for tool, field, rest in NEEDS_AN_ID
    for value in (*ODD_TEXTS, *NO_TEXTS, None, ...)
]


@pytest.fixture(scope="module")
def unknown_ids(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, Tried]:
    """What became of `BAD_IDS`, in each era."""
    calls = [
        (tool, {**rest, **({} if value is ... else {field: value})})
        for tool, rest, field, value in BAD_IDS
    ]
    return {mode: tried(tmp_path_factory.mktemp(mode), filled, mode, calls) for mode in MODES}


@pytest.mark.parametrize("number", range(len(BAD_IDS)), ids=named(BAD_IDS))
def test_ids_that_are_none(unknown_ids: dict[str, Tried], mode: str, number: int) -> None:
    tool, _, field, _ = BAD_IDS[number]
    assert_refused_clearly(unknown_ids[mode].results[number], field)
    assert unknown_ids[mode].outcomes[number][0] == tool


def test_ids_that_are_none_leave_nothing_but_events(
    unknown_ids: dict[str, Tried], mode: str
) -> None:
    assert unknown_ids[mode].stored_nothing
    assert unknown_ids[mode].subjects == {None}
    assert len(unknown_ids[mode].outcomes) == len(BAD_IDS)


async def test_the_text_null_is_a_text(world: World) -> None:
    async with world.customer() as customer:
        said = refused(await customer.call(BALANCE, accountId="null"), "accountId")
        assert "'null'" in said
        stored = structured(await customer.call(HANDOFF, reason="null"))
        assert stored["reason"] == "null"
        stored = structured(await customer.call(HANDOFF, reason='["a"]'))
        assert stored["reason"] == '["a"]'


OTHER_ARGUMENTS: list[tuple[str, str, Any]] = [
    *[
        (CONFIRM, "action", value)
        for value in ("", "post", "CONFIRM", 1, True, None, ..., ["confirm"], MEGABYTE)
    ],
    *[
        (CHOICE, "choice", value)
        for value in ("", "pigeon", "Callback", 1, None, ..., [], {}, MEGABYTE, "\ud800")
    ],
    *[
        (HANDOFF, "reason", value)
        for value in (5, True, [], {}, "x" * 501, MEGABYTE, "a\x00", "\ud800", "\n\x07")
    ],
    *[
        (APPROVAL, "reason", value)
        for value in ("", "   ", 5, None, ..., [], "x" * 501, MEGABYTE, "a\x1bb", "\ud800")
    ],
    *[(REPORT, "rule", value) for value in (5, None, ..., [], {})],
]


@pytest.mark.parametrize(("tool", "field", "value"), OTHER_ARGUMENTS, ids=named(OTHER_ARGUMENTS))
async def test_other_arguments(world: World, tool: str, field: str, value: Any) -> None:
    async with world.customer() as customer:
        rest: dict[str, Any] = {}
        if tool in (CONFIRM, REPORT):
            rest["transferId"] = structured(await customer.prepare())["transferId"]
        elif tool == CHOICE:
            rest["handoffId"] = structured(await customer.call(HANDOFF))["handoffId"]
        elif tool == APPROVAL:
            large = await customer.prepare(fromAccountId=SAVINGS, amount=10_001, toAccountId=PAYEE)
            rest["transferId"] = structured(large)["transferId"]
        before = world.stored()
        given = {} if value is ... else {field: value}
        assert_refused_clearly(await customer.call(tool, **rest, **given), field)
    assert world.stored() == before


WHAT_TO_WRITE: list[tuple[str, dict[str, Any], str]] = [
    (
        PREPARE,
        {"amount": "25.50"},
        'amount: must be a number such as 25 or 25.50, but was "25.50": write 25.50, without '
        "quotation marks.",
    ),
    (PREPARE, {"amount": None}, "amount: must be a number such as 25 or 25.50, but was null."),
    (PREPARE, {}, "amount: is missing, and this tool cannot do without it."),
    (
        PREPARE,
        {"amount": 5, "to": EVERYDAY},
        "to: is not an argument of this tool, which takes amount, fromAccountId, toAccountId, "
        "scheduledDate, memo.",
    ),
    (
        PREPARE,
        {"amount": 5, "fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "scheduledDate": "now"},
        'scheduledDate: "now" is not a date: write it like 2026-01-31. Today is 2026-03-02.',
    ),
    (
        PREPARE,
        {"amount": 25, "fromAccountId": "acc_x"},
        "fromAccountId: you have nothing with the id 'acc_x'. list_accounts gives the ids: "
        "acc_checking_001 (Primary Checking), acc_euro_001 (Euro Account), "
        "acc_everyday_001 (Everyday Checking), acc_savings_001 (High Yield Savings).",
    ),
    (
        STATEMENT,
        {"accountId": EVERYDAY, "days": "x" * 50},
        f'days: must be a whole number such as 30, but was "{"x" * 50}".',
    ),
    (
        STATEMENT,
        {"accountId": EVERYDAY, "days": "3" * 50},
        f'days: must be a whole number such as 30, but was "{"3" * 50}": write it, without '
        "quotation marks.",
    ),
    (
        STATEMENT,
        {"accountId": EVERYDAY, "days": None},
        "days: must be a whole number such as 30, but was null: leave it out.",
    ),
    (
        BALANCE,
        {"accountId": 5},
        'accountId: must be a text in quotation marks, but was 5: write "5".',
    ),
    (
        CONFIRM,
        {"transferId": "tr_x", "action": "confirm", "confirmationCode": 123456},
        "confirmationCode: must be a text in quotation marks.",
    ),
    (
        CONFIRM,
        {"transferId": "tr_x", "action": "yes"},
        "action: must be 'confirm' or 'cancel', but was \"yes\".",
    ),
    (
        CONFIRM,
        {"transferId": "tr_x", "action": "confirm"},
        "transferId: you have nothing with the id 'tr_x'. prepare_money_transfer gives the id.",
    ),
    (
        CHOICE,
        {"handoffId": "ho_x", "choice": "callback"},
        "handoffId: you have nothing with the id 'ho_x'. request_agent_handoff gives the id.",
    ),
    (
        MANY,
        {"tools": "[]"},
        'tools: must be a list, but was "[]": write [], without quotation marks.',
    ),
    (
        MANY,
        {"tools": [{**ONE_OF_MANY, "params": {"name": ACCOUNTS, "args": {}}}]},
        "tools.0.params.args: is not known here, beside name, arguments.",
    ),
    (
        MANY,
        {"tools": [{**ONE_OF_MANY, "when": {"exist": True}}]},
        "tools.0.when.exist: is not known here, beside jmespath, equals, notEquals, exists.",
    ),
    (
        MANY,
        {"tools": [{**ONE_OF_MANY, "when": {"exists": "true"}}]},
        'tools.0.when.exists: must be true or false, but was "true": write true, without '
        "quotation marks.",
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "said"), WHAT_TO_WRITE, ids=named(WHAT_TO_WRITE))
async def test_an_error_says_what_to_write(
    world: World, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with world.customer() as customer:
        result = await customer.call(tool, **arguments)
    assert result.is_error
    assert words(result) == said


NESTED: list[Any] = ["5", 5.5, True, None, [[]], {"x": 1}]
"""What may stand where something else is wanted."""

PYDANTIC = ("function-", "Input should", "validation", "Field required", "valid ", "instance")
"""Words of the validator's own; no message of ours has them, values apart."""


async def test_no_word_of_the_validators_gets_out(world: World, mode: str) -> None:
    """Every argument of every tool, and every place in a list of requests."""
    wrong: list[tuple[str, dict[str, Any]]] = [
        (tool.name, {name: value})
        for tool in TOOLS
        for name in tool.parameters["properties"]
        for value in NESTED
    ]
    whole = {**ONE_OF_MANY, "when": {"jmespath": "[0]"}}
    for value in NESTED:
        steps: list[Any] = [value, *({**whole, name: value} for name in whole)]
        steps += [
            {**whole, "params": {"name": ACCOUNTS, name: value}}
            for name in ("name", "arguments", "x")
        ]
        steps += [
            {**whole, "when": {"jmespath": "[0]", name: value}}
            for name in ("jmespath", "equals", "notEquals", "exists", "$ref", "x")
        ]
        wrong += [(MANY, {"tools": [step]}) for step in steps]
    async with world.customer(mode=mode) as customer:
        for tool, arguments in wrong:
            result = await customer.call(tool, **arguments)
            told = result.is_error and structured(result)["status"] == "invalid_arguments"
            for line in words(result).splitlines() if told else ():
                rule = line.partition("but was ")[0]
                assert not any(word in rule for word in PYDANTIC), (tool, arguments, line)


async def test_several_mistakes_are_all_named(world: World) -> None:
    async with world.customer() as customer:
        result = await customer.call(PREPARE, amount="5", memo=5, fromAccountId=[], bogus=1)
    assert result.is_error
    lines = words(result).splitlines()
    assert {line.split(":")[0] for line in lines} == {"amount", "memo", "fromAccountId", "bogus"}


UNKNOWN_TOOLS = ["transfer_everything", "", "LIST_ACCOUNTS", "a\x1b[2J\n\x00", "x" * 100_000]


@pytest.mark.parametrize("name", UNKNOWN_TOOLS, ids=named(UNKNOWN_TOOLS))
async def test_unknown_tools(world: World, mode: str, name: str) -> None:
    async with world.customer(mode=mode) as customer:
        result = await customer.call(name, amount=5)
    assert result.is_error
    assert structured(result)["status"] == "unknown_tool"
    assert words(result).isprintable()
    assert len(words(result)) < 100
    assert world.outcomes() == [("(unknown tool)", "unknown_tool")]
