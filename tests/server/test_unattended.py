"""Which calls move money without a person: each cell of the page's table, by a real client.

The program behind the client reads all of each result, as no honest host lets a model do. A person
who is asked says no.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ElicitResult

from banking_server.tools.views.offering import DATA

from ..kit.bank import copy_of, everything, structured
from ..kit.command import command, environment
from ..kit.pages import PAGES
from ..kit.words import CONFIRM, EVERYDAY, PREPARE, SAVINGS
from ..views.mini_host import SHOWS_VIEWS

pytestmark = [pytest.mark.anyio, pytest.mark.ci]

CODES = ("result", "asked", "desk")


async def says_no(*_: Any) -> ElicitResult:
    return ElicitResult(action="decline")


CLIENTS: dict[str, dict[str, Any]] = {
    "can ask": {"elicitation_callback": says_no},
    "cannot ask": {},
    "shows cards": {"extensions": [SHOWS_VIEWS]},
}


def table() -> dict[tuple[str, str], str]:
    """Return what the page says for each mode of the codes and each kind of client."""
    page = PAGES["banking_server/server/README.md"].text.split("<!-- unattended -->")[1]
    rows = [line.strip("| ").split(" | ") for line in page.strip().splitlines() if "|" in line]
    heads = [next(kind for kind in CLIENTS if kind in head) for head in rows[0][1:]]
    return {
        (codes, kind): cell
        for codes, *cells in ((row[0].split("`")[1], *row[1:]) for row in rows[2:5])
        for kind, cell in zip(heads, cells, strict=True)
    }


@asynccontextmanager
async def connected(database: Path, codes: str, kind: str, *, proxy: bool) -> AsyncIterator[Client]:
    bank = command("--customer", "CUST001", "--database", str(database), "--codes", codes)
    through = [bank[0], "-m", "tool_chaining_proxy", "--trust-hints", "--"] if proxy else []
    words = [*through, *bank]
    server = StdioServerParameters(command=words[0], args=words[1:], env=environment())
    async with Client(server, **CLIENTS[kind]) as client:
        yield client


Results = AsyncIterator[CallToolResult]
Attempt = Callable[[Client, str, CallToolResult], Results]


async def with_its_code(client: Client, transfer: str, prepared: CallToolResult) -> Results:
    """Confirm with each number of the result that has the form of a code."""
    for code in {*re.findall(r"\b\d{6}\b", everything(prepared))}:
        sent = {"transferId": transfer, "action": "confirm", "confirmationCode": code}
        yield await client.call_tool(CONFIRM, sent)


async def without_a_code(
    client: Client, transfer: str, _: CallToolResult
) -> AsyncIterator[CallToolResult]:
    yield await client.call_tool(CONFIRM, {"transferId": transfer, "action": "confirm"})


async def as_its_card(
    client: Client, transfer: str, prepared: CallToolResult
) -> AsyncIterator[CallToolResult]:
    """Confirm as the card does, by the secret that only the card gets."""
    if secret := (prepared.meta or {}).get(DATA, {}).get("secret"):
        sent = {"transferId": transfer, "secret": secret}
        yield await client.call_tool("confirm_in_view", sent)


ATTEMPTS: dict[str, Attempt] = {
    "code": with_its_code,
    "without": without_a_code,
    "card": as_its_card,
}


@pytest.mark.parametrize("proxy", [False, True], ids=["direct", "proxy"])
@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("codes", CODES)
async def test_what_moves_money_without_a_person(
    filled: Path, tmp_path: Path, codes: str, kind: str, proxy: bool
) -> None:
    moved = []
    async with connected(copy_of(filled, tmp_path), codes, kind, proxy=proxy) as client:
        for name, attempt in ATTEMPTS.items():
            money = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS, "amount": 1, "memo": name}
            prepared = await client.call_tool(PREPARE, money)
            transfer = structured(prepared)["transferId"]
            async for result in attempt(client, transfer, prepared):
                if structured(result)["status"] == "posted":
                    moved.append(name)
    assert (" ".join(moved) or "nothing") == table()[codes, kind]
