"""A bank to be tried, with its server in memory: its file, its clock, its customers' clients."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema.validators import Draft202012Validator
from mcp import Client
from mcp.server import MCPServer
from mcp.types import (
    CallToolResult,
    CreateMessageResult,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from pydantic import SecretStr

from banking_server.bank.approvals import decide_approval
from banking_server.bank.location import Location
from banking_server.bank.rules import CodeDelivery
from banking_server.bank.storage import Bank
from banking_server.bank.transfers.records import confirmation_code
from banking_server.server.build import build_server
from banking_server.server.keys import Keys, load_keys
from banking_server.server.open_bank import open_bank
from banking_server.server.settings import Settings
from banking_server.tools import FOR_VIEWS, TOOLS
from tool_chaining import ChainResult, Follower, TrustHints

from ..bank.support import sql
from .words import CONFIRM, EVERYDAY, PREPARE, SAVINGS, VERSIONS

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
"""A Monday, within branch hours."""

SECRET = "for-tests-only-0123456789abcdef0123456789abcdef"

TABLES = (
    "account",
    "transfer",
    "posting",
    "entry",
    "handoff",
    "approval",
    "compliance_report",
)
"""Everything that a call can store, but for the audit trail."""


def settings(path: Location) -> Settings:
    return Settings(database=path, secret=SecretStr(SECRET))


async def fill(path: Location, now: datetime) -> None:
    async with open_for_staff(path, now):
        pass


def open_for_staff(path: Location, now: datetime) -> AbstractAsyncContextManager[Bank]:
    chosen = settings(path)
    return open_bank(chosen, now, load_keys(chosen), create=True)


class Clock:
    """The bank's clock, which the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


class Question:
    """A question that was put to the customer."""

    def __init__(self, params: Any) -> None:
        self.message: str = params.message
        self.schema: dict[str, Any] = dict(params.requested_schema)

    @property
    def field(self) -> dict[str, Any]:
        """The form's one field."""
        (only,) = self.schema["properties"].values()
        return dict(only)

    @property
    def options(self) -> dict[str, str]:
        """The values to pick from, with their titles."""
        return {option["const"]: option["title"] for option in self.field["oneOf"]}


Answer = dict[str, Any] | str
"""The form's content, or `decline` or `cancel`."""


class Customer:
    """A customer's connected client, the answers they will give, and what they were asked."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.client: Client
        self.answers: list[Answer | Callable[[Question], Answer]] = []
        self.asked: list[Question] = []

    async def on_question(self, context: Any, params: Any) -> ElicitResult:
        question = Question(params)
        self.asked.append(question)
        assert self.answers, f"nobody expected to be asked: {question.message}"
        answer = self.answers.pop(0)
        if callable(answer):
            answer = answer(question)
        if isinstance(answer, str):
            return ElicitResult(action=answer)  # type: ignore[arg-type]
        return ElicitResult(action="accept", content=answer)

    async def call(
        self, tool: str, /, *, meta: dict[str, Any] | None = None, **arguments: Any
    ) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments, meta=meta)  # type: ignore[arg-type]
        keeps_to_its_schema(tool, result)
        return result

    async def chain(self, tool: str, /, **arguments: Any) -> ChainResult:
        """Call a tool and what its result names, as a client whose user trusts the bank's hints."""
        return await Follower(self.client, consent=TrustHints()).call_tool(tool, arguments)

    async def prepare(self, **arguments: Any) -> CallToolResult:
        """Prepare a small transfer that nothing stands against, but for what is given."""
        details = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 25, **arguments}
        given = {name: value for name, value in details.items() if value is not ...}
        return await self.call(PREPARE, **given)

    async def confirm(self, transfer_id: str, **arguments: Any) -> CallToolResult:
        return await self.call(CONFIRM, transferId=transfer_id, action="confirm", **arguments)

    async def cancel(self, transfer_id: str) -> CallToolResult:
        return await self.call(CONFIRM, transferId=transfer_id, action="cancel")


@cache
def output_schemas() -> dict[str, Draft202012Validator]:
    """What each of the bank's tools promises of its structured content."""
    return {
        tool.name: Draft202012Validator(tool.output_schema or False)
        for tool in (*TOOLS, *FOR_VIEWS)
    }


def keeps_to_its_schema(tool: str, result: CallToolResult) -> None:
    """Check structured content, of an error too: some clients hold those to the schema as well."""
    if tool in output_schemas():
        content = structured(result)
        output_schemas()[tool].validate(content)
        assert None not in content.values()


def copy_of(filled: Path, folder: Path) -> Path:
    return Path(shutil.copy(filled, folder / "bank.db"))


class World:
    """One bank."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.clock = Clock()
        self.codes: CodeDelivery = "result"

    def server(self, customer: str = "CUST001") -> MCPServer[Any]:
        chosen = settings(self.location).model_copy(update={"codes": self.codes})
        return build_server(chosen, customer=customer, clock=self.clock)

    @asynccontextmanager
    async def customer(
        self,
        customer: str = "CUST001",
        *,
        mode: str = "auto",
        can_be_asked: bool = False,
        answers: list[Any] | None = None,
        **options: Any,
    ) -> AsyncIterator[Customer]:
        """Connect a customer; with `answers`, their client can put questions to them."""
        person = Customer(mode)
        person.answers = list(answers or [])
        if can_be_asked or answers is not None:
            options["elicitation_callback"] = person.on_question
        async with Client(self.server(customer), mode=mode, **options) as person.client:
            assert person.client.protocol_version == VERSIONS[mode]
            yield person
        assert not person.answers, "these answers were not asked for"

    def sql(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Read or change what is stored behind the server's back."""
        return sql(self.location, statement, *parameters)

    def drop(self, table: str) -> None:
        """Let a table be gone, so that what needs it fails."""
        self.sql(f"ALTER TABLE {table} RENAME TO gone_{table}")

    def stored(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that is stored, but for the audit trail."""
        return {table: self.sql(f"SELECT * FROM {table} ORDER BY 1") for table in TABLES}

    def events(self) -> list[dict[str, Any]]:
        """The audit trail."""
        names = ("customer_id", "tool", "outcome", "subject")
        chain = ("chain_id", "chain_level", "chain_previous_tool")
        rows = self.sql(f"SELECT {', '.join((*names, *chain))} FROM audit_event ORDER BY event_id")
        return [dict(zip((*names, *chain), row, strict=True)) for row in rows]

    def outcomes(self) -> list[tuple[str, str]]:
        """The audit trail in short: tool and outcome."""
        return [(event["tool"], event["outcome"]) for event in self.events()]

    def funds(self, account_id: str) -> int:
        """The posted balance in minor units, added up by hand."""
        rows = self.sql("SELECT sum(amount_minor) FROM entry WHERE account_id = ?", account_id)
        return int(rows[0][0] or 0)

    def books_balance(self) -> None:
        """Whatever a test did, the books have to balance."""
        sums = self.sql("SELECT currency, sum(amount_minor) FROM entry GROUP BY currency")
        assert all(total == 0 for _, total in sums), sums

    def desk(self) -> AbstractAsyncContextManager[Bank]:
        """Open the bank for those who work there."""
        return open_for_staff(self.location, self.clock())

    async def grant(self) -> None:
        """Grant the one approval that is open, as a manager."""
        ((approval_id,),) = self.sql("SELECT approval_id FROM approval WHERE status = 'requested'")
        async with self.desk() as bank:
            await decide_approval(
                bank, approval_id, granted=True, manager="Morgan Example", now=self.clock()
            )


def structured(result: CallToolResult) -> dict[str, Any]:
    assert result.structured_content is not None, words(result)
    return dict(result.structured_content)


def facts(result: CallToolResult) -> dict[str, Any]:
    """Structured content but for what tells the story: `message`, which is text too, and the step.

    Without a directive, or for a client that follows it, there is no `nextStep`.
    """
    content = structured(result)
    assert content.pop("message") in words(result)
    step, directive = content.pop("nextStep", None), next_tool(result)
    told = any(isinstance(block, TextContent) and block.meta for block in result.content)
    expected = {"tool": directive["tool"], "arguments": directive["arguments"]} if told else None
    assert step == expected
    return content


def words(result: CallToolResult, audience: str | None = None) -> str:
    """All text of a result, or all that is for one audience only."""
    return "\n".join(
        block.text
        for block in result.content
        if isinstance(block, TextContent) and (audience is None or audiences(block) == [audience])
    )


def audiences(block: Any) -> list[str] | None:
    return None if block.annotations is None else block.annotations.audience


def next_tool(result: CallToolResult) -> dict[str, Any] | None:
    return (result.meta or {}).get("nextTool")


def code_of(prepared: CallToolResult) -> str:
    """The confirmation code, as the customer reads it."""
    (code,) = {
        word.strip(".")
        for word in words(prepared, "user").split()
        if len(word.strip(".")) == 6 and word.strip(".").isdigit()
    }
    return code


def code_at_desk(prepared: CallToolResult, keys: Keys | None = None) -> str:
    """The confirmation code of a customer whose client can ask them, and who is shown none."""
    assert not re.search(r"\b\d{6}\b", words(prepared))
    key = (keys or load_keys(settings(Path("bank.db")))).confirmation_codes
    return confirmation_code(key, structured(prepared)["transferId"])


def refused(result: CallToolResult, field: str) -> str:
    """Check that a call was refused because of `field`, and return what it says."""
    assert result.is_error, words(result)
    assert structured(result)["field"] == field, structured(result)
    assert next_tool(result) is None
    said = words(result)
    assert said.startswith(f"{field}: "), said
    assert structured(result)["message"] == said
    return said


def everything(result: CallToolResult) -> str:
    """The whole result as it goes over the wire."""
    return json.dumps(result.model_dump(mode="json", by_alias=True, exclude_none=True))


async def one_round(
    person: Customer, tool: str, arguments: dict[str, Any], **more: Any
) -> CallToolResult | InputRequiredResult:
    """Make one request of a call, as a client that holds the state in its own hands does."""
    result = await person.client.session.call_tool(
        tool, arguments, allow_input_required=True, **more
    )
    assert isinstance(result, CallToolResult | InputRequiredResult)
    return result


def answered(
    asked: CallToolResult | InputRequiredResult, answer: ElicitResult | CreateMessageResult
) -> dict[str, Any]:
    """What a client sends to answer all that it was asked."""
    assert isinstance(asked, InputRequiredResult)
    responses = dict.fromkeys(asked.input_requests or (), answer)
    return {"input_responses": responses, "request_state": asked.request_state}
