"""A token is good for the tools whose scope it carries; a call refused for that is audited."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ..kit.bank import copy_of
from ..kit.servers import tool_call
from ..kit.words import PREPARE
from .in_memory import LIST_TOOLS, LOOK, METADATA, Bank, Talk, bank_in_memory

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

ENCODED = f"=?base64?{b64encode(PREPARE.encode()).decode()}?="
"""The name of a tool, as a header may have it that is not plain ASCII."""

READ = {**LIST_TOOLS, "method": "resources/read", "params": {"name": PREPARE}}


@pytest.fixture(scope="module")
async def bank(filled: Path, tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Any:
    async with bank_in_memory(copy_of(filled, tmp_path_factory.mktemp("bank"))) as bank:
        yield bank


def refused(tool: str, customer: str = "CUST001") -> tuple[Any, ...]:
    """The event of a call that was refused for its scope, and said nothing of a chain."""
    return (customer, tool, "scope_missing", None, None, None)


REFUSED: list[tuple[dict[str, Any], str, str, str | None]] = [
    # What is sent, the token's only scope, the scope that it needs, and the tool of the event.
    (tool_call(PREPARE), "bank:read", "bank:transfer", PREPARE),
    (LOOK, "bank:transfer", "bank:read", "list_accounts"),
    (tool_call("make_rich"), "bank:transfer", "bank:read", "(unknown tool)"),
    (LIST_TOOLS, "bank:transfer", "bank:read", None),
    (READ, "bank:transfer", "bank:read", None),
]


@pytest.mark.parametrize(("message", "scope", "missing", "tool"), REFUSED)
async def test_a_request_without_its_scope_is_refused_and_a_call_audited(
    bank: Bank, message: dict[str, Any], scope: str, missing: str, tool: str | None
) -> None:
    with bank.events() as events:
        answer = await bank.send(message, bank.token("CUST002", scope))
    assert answer.status_code == 403
    assert answer.headers["WWW-Authenticate"] == (
        f'Bearer error="insufficient_scope", error_description="Required scope: {missing}", '
        f'resource_metadata="{METADATA}"'
    )
    assert events == ([refused(tool, "CUST002")] if tool else [])


async def test_a_token_without_the_scope_for_reading_ends_no_session(bank: Bank) -> None:
    answer = await bank.send(LIST_TOOLS, bank.token("CUST001", "bank:transfer"), "DELETE")
    assert (answer.status_code, "Required scope: bank:read" in answer.text) == (403, True)


@pytest.mark.parametrize("message", [LIST_TOOLS, LOOK, tool_call("request_agent_handoff")])
async def test_a_token_for_reading_reads(bank: Bank, message: dict[str, Any]) -> None:
    with bank.events() as events:
        answer = await bank.send(message, bank.token("CUST001", "bank:read"))
    assert answer.status_code == 200
    assert "scope_missing" not in [outcome for _, _, outcome, *_ in events]


async def test_a_header_that_names_another_tool_gets_nothing_past_the_scopes(bank: Bank) -> None:
    """The SDK holds the headers to the body; where there are none, the tool's own check answers."""
    token, call = bank.token("CUST001", "bank:read"), tool_call(PREPARE)
    with bank.events() as events:
        answer = await bank.send(call, token, Mcp_Name="list_accounts")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        answer = await bank.send(call, token, Mcp_Name=ENCODED)
        assert "needs a token with the scope bank:transfer" in answer.text
    assert events == [refused(PREPARE)]


async def test_in_a_session_the_tool_asks_for_its_scope(bank: Bank) -> None:
    talk = Talk(bank, "CUST001", "bank:read")
    await talk.open()
    with bank.events() as events:
        answer = await talk.send(tool_call(PREPARE))
    assert "needs a token with the scope bank:transfer" in answer.text
    assert events == [refused(PREPARE)]
