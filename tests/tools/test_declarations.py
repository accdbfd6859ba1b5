"""What `tools/list` says of the bank's tools, and that they keep to it."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema.validators import Draft202012Validator
from mcp.types import CallToolResult, Tool
from pydantic import ValidationError
from referencing import Registry

from banking_server.chaining.consent import MOVES_MONEY
from banking_server.tools import TOOLS, required_scope
from banking_server.tools.declaration import bank_tool

from ..kit.bank import World, code_of, copy_of, refused, structured, words
from ..kit.words import (
    ACCOUNTS,
    APPROVAL,
    BALANCE,
    CHOICE,
    CONFIRM,
    EVERYDAY,
    HANDOFF,
    LOCKED,
    MODES,
    PAYEE,
    PREPARE,
    REPORT,
    SAVINGS,
    STATEMENT,
    wrong,
)

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

NINE = [ACCOUNTS, BALANCE, STATEMENT, PREPARE, CONFIRM, HANDOFF, CHOICE, APPROVAL, REPORT]

ARGUMENTS = {
    ACCOUNTS: ([], []),
    BALANCE: (["accountId"], ["accountId"]),
    STATEMENT: (["accountId", "days", "month", "cursor"], ["accountId"]),
    PREPARE: (["fromAccountId", "toAccountId", "amount", "scheduledDate", "memo"], ["amount"]),
    CONFIRM: (["transferId", "action", "confirmationCode"], ["transferId", "action"]),
    HANDOFF: (["reason"], []),
    CHOICE: (["handoffId", "choice"], ["handoffId", "choice"]),
    APPROVAL: (["transferId", "reason"], ["transferId", "reason"]),
    REPORT: (["transferId", "rule"], ["transferId", "rule"]),
}
"""Each tool's arguments, and those that are required."""

HINTS = {
    ACCOUNTS: (True, False, True),
    BALANCE: (True, False, True),
    STATEMENT: (True, False, True),
    PREPARE: (False, False, True),
    CONFIRM: (False, True, True),
    HANDOFF: (False, False, True),
    CHOICE: (False, False, True),
    APPROVAL: (False, False, True),
    REPORT: (False, False, True),
}
"""readOnlyHint, destructiveHint, idempotentHint."""


async def listed(world: World, mode: str = "auto") -> dict[str, Tool]:
    async with world.customer(mode=mode) as customer:
        tools = (await customer.client.list_tools()).tools
        again = (await customer.client.list_tools(cache_mode="refresh")).tools
    assert tools == again
    return {tool.name: tool for tool in tools}


async def test_the_order_is_always_the_same_in_both_eras(world: World) -> None:
    names, others = [list(await listed(world, mode)) for mode in MODES]
    assert names == others == [tool.name for tool in TOOLS]
    assert names[: len(NINE)] == NINE


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> dict[str, Tool]:
    """The tools as a client sees them."""
    return anyio.run(listed, World(copy_of(filled, tmp_path_factory.mktemp("bank"))))


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS])
def test_every_tool_says_what_a_model_has_to_know(tools: dict[str, Tool], name: str) -> None:
    tool = tools[name]
    assert tool.title
    assert tool.title != tool.name
    assert len((tool.description or "").split()) >= 10
    assert "\n" not in (tool.description or "")
    schema = tool.input_schema
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for argument_name, argument in schema["properties"].items():
        assert len(argument.get("description", "")) >= 20, argument_name
        assert "customer" not in argument_name.lower()
    assert tool.output_schema is not None
    Draft202012Validator.check_schema(tool.output_schema)
    assert tool.output_schema["type"] == "object"
    hints = tool.annotations
    assert hints is not None
    assert None not in (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
        hints.open_world_hint,
    )


@pytest.mark.parametrize("name", NINE)
def test_arguments_and_hints_are_those_of_the_contract(tools: dict[str, Tool], name: str) -> None:
    schema = tools[name].input_schema
    all_of_them, required = ARGUMENTS[name]
    assert sorted(schema["properties"]) == sorted(all_of_them)
    assert sorted(schema.get("required", [])) == sorted(required)
    hints = tools[name].annotations
    assert hints is not None
    assert (
        hints.read_only_hint,
        hints.destructive_hint,
        hints.idempotent_hint,
    ) == HINTS[name]


def test_an_amount_is_a_number_of_at_least_a_cent(tools: dict[str, Tool]) -> None:
    amount = tools[PREPARE].input_schema["properties"]["amount"]
    assert (amount["type"], amount["minimum"]) == ("number", 0.01)


def test_each_tool_needs_the_scope_that_it_should() -> None:
    reading = {ACCOUNTS, BALANCE, STATEMENT, HANDOFF, CHOICE}
    for name in NINE:
        assert required_scope(name) == ("bank:read" if name in reading else "bank:transfer")
    assert required_scope("no such tool") is None


def test_the_tools_that_may_move_money_say_so_and_no_others(tools: dict[str, Tool]) -> None:
    saying = {name for name, tool in tools.items() if (tool.meta or {}).get(MOVES_MONEY) is True}
    assert saying == {CONFIRM, "multiplex_tools"}


def test_no_tool_can_be_declared_without_its_scope() -> None:
    with pytest.raises(TypeError, match="scope"):
        bank_tool(title="Give Away Money")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="scope"):
        bank_tool(title="Give Away Money", scope="bank:everything")(unscoped)  # type: ignore[arg-type]


async def unscoped() -> CallToolResult:
    """Never called."""
    raise AssertionError


GOOD: dict[str, dict[str, Any]] = {
    ACCOUNTS: {},
    BALANCE: {"accountId": EVERYDAY},
    STATEMENT: {"accountId": EVERYDAY},
    PREPARE: {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 5},
    CONFIRM: {"transferId": "tr_1", "action": "cancel"},
    HANDOFF: {"reason": "Lost card"},
    CHOICE: {"handoffId": "ho_1", "choice": "callback"},
    APPROVAL: {"transferId": "tr_1", "reason": "Please"},
    REPORT: {"transferId": "tr_1", "rule": "x"},
}
UNKNOWN = [
    "customerId",
    "from_account_id",
    "FromAccountId",
    "amount ",
    "ctx",
    "chosen_from",
    "agreement",
    "connection",
    "x" * 1_000_000,
]


async def test_an_unknown_argument_is_refused_by_name(world: World) -> None:
    before = world.stored()
    async with world.customer() as customer:
        for name, extra in zip(NINE, UNKNOWN, strict=True):
            result = await customer.call(name, **GOOD[name], **{extra: "CUST002"})
            said = refused(result, f"{extra[:59]}…" if len(extra) > 60 else extra)
            assert "is not an argument of this tool" in said, name
            assert "CUST002" not in said, name
            assert all(argument in said for argument in ARGUMENTS[name][0]), name
    assert world.stored() == before
    assert world.outcomes() == [(name, "invalid_arguments") for name in NINE]


async def test_a_strange_argument_is_named_printably(world: World) -> None:
    async with world.customer() as customer:
        odd = await customer.call(BALANCE, accountId=EVERYDAY, **{"a\x1b[2J\n\x00\ud800": 1})
    assert words(odd).isprintable()
    assert structured(odd)["field"].isprintable()
    assert world.outcomes() == [(BALANCE, "invalid_arguments")]


# --- structured content against the schema, for every status --------------------------------------


class Seen:
    """Holds every result to its tool's published output schema, and keeps the statuses."""

    def __init__(self, tools: dict[str, Tool]) -> None:
        self.validators = {
            name: Draft202012Validator(tool.output_schema or False, registry=Registry())
            for name, tool in tools.items()
        }
        self.statuses: set[tuple[str, str]] = set()

    def __call__(self, tool: str, result: CallToolResult) -> CallToolResult:
        content = structured(result)
        self.validators[tool].validate(content)
        assert None not in content.values()
        self.statuses.add((tool, content.get("status", "ok")))
        return result


async def test_structured_content_keeps_to_the_schema_whatever_the_status(world: World) -> None:
    """Errors too: some clients hold those to the schema as well."""
    async with world.customer() as me, world.customer(answers=[]) as asked:
        seen = Seen({tool.name: tool for tool in (await me.client.list_tools()).tools})

        async def call(tool: str, **arguments: Any) -> CallToolResult:
            return seen(tool, await me.call(tool, **arguments))

        async def prepare(**arguments: Any) -> tuple[str, str]:
            result = seen(PREPARE, await me.prepare(**arguments))
            return structured(result)["transferId"], code_of(result)

        async def confirm(transfer_id: str, code: str | None = None) -> CallToolResult:
            more = {} if code is None else {"confirmationCode": code}
            return await call(CONFIRM, transferId=transfer_id, action="confirm", **more)

        await call(ACCOUNTS)
        await call(ACCOUNTS, bogus=1)
        for account_id in (EVERYDAY, PAYEE, "acc_nowhere", 5):
            await call(BALANCE, accountId=account_id)
            await call(STATEMENT, accountId=account_id)
        await call(STATEMENT, accountId=EVERYDAY, cursor="x")
        await call(PREPARE, amount=5)
        await call(PREPARE, amount=5, fromAccountId=LOCKED)
        await call(PREPARE, amount="5")
        await call(PREPARE, amount=5, fromAccountId="acc_nowhere")
        asked.answers.append("decline")
        seen(PREPARE, await asked.call(PREPARE, amount=5))

        posted, code = await prepare(amount=1)
        await confirm(posted)
        await confirm(posted, wrong(code))
        await confirm(posted, code)
        await call(CONFIRM, transferId=posted, action="cancel")
        scheduled, code = await prepare(amount=2, scheduledDate="2026-03-09")
        await confirm(scheduled, code)
        cancelled, code = await prepare(amount=3, memo="Note")
        asked.answers.append("decline")
        seen(CONFIRM, await asked.confirm(cancelled))
        asked.answers.append({"agreed": "?"})
        seen(CONFIRM, await asked.confirm(cancelled))
        await call(CONFIRM, transferId=cancelled, action="cancel")
        await confirm(cancelled, code)
        guessed, code = await prepare(amount=4)
        for _ in range(6):
            await confirm(guessed, wrong(code))
        failed, code = await prepare(amount=6)
        world.sql("UPDATE transfer SET status='failed', reason='x' WHERE transfer_id=?", failed)
        await confirm(failed, code)
        locked_meanwhile, code = await prepare(amount=7)
        world.sql("UPDATE account SET is_locked = true WHERE account_id = ?", EVERYDAY)
        await confirm(locked_meanwhile, code)
        world.sql("UPDATE account SET is_locked = false WHERE account_id = ?", EVERYDAY)

        large, code = await prepare(fromAccountId=SAVINGS, toAccountId=PAYEE, amount=12_000)
        await confirm(large, code)
        await call(APPROVAL, transferId=large, reason="")
        await call(APPROVAL, transferId=large, reason="Kitchen")
        await world.decide()
        await call(APPROVAL, transferId=large, reason="Kitchen")
        await confirm(large, code)
        await call(REPORT, transferId=large, rule="external-payee-3000")
        await call(REPORT, transferId=large, rule="x")
        await call(REPORT, transferId="tr_x", rule="x")
        expired, code = await prepare(amount=8)
        world.clock.move(minutes=10)
        await confirm(expired, code)

        opened = await call(HANDOFF, reason="Lost card")
        handoff_id = structured(opened)["handoffId"]
        await call(CHOICE, handoffId=handoff_id, choice="realtime")
        await call(CHOICE, handoffId="ho_x", choice="realtime")
        await call(CHOICE, handoffId=handoff_id, choice="pigeon")
        world.sql("UPDATE handoff SET status='claimed', claimed_by='A', claimed_at=created_at")
        await call(CHOICE, handoffId=handoff_id, choice="realtime")
        await call(HANDOFF, reason="\x00")
        world.drop("compliance_report")
        await call(REPORT, transferId=large, rule="external-payee-3000")

    of_transfers = {status for tool, status in seen.statuses if tool in (PREPARE, CONFIRM)}
    assert of_transfers == {
        "pending",
        "scheduled",
        "posted",
        "voided",
        "expired",
        "failed",
        "account_locked",
        "account_needed",
        "confirmation_needed",
        "declined",
        "invalid_arguments",
        "invalid_answer",
        "not_found",
        "refused",
        "wrong_code",
    }
    assert {(CHOICE, "claimed"), (APPROVAL, "granted"), (APPROVAL, "requested")} <= seen.statuses
    assert {(REPORT, "recorded"), (REPORT, "unavailable")} <= seen.statuses
