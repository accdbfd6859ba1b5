"""The story of `banking-server demo`: a locked account, the real server, a customer by script."""

import tempfile
from pathlib import Path
from typing import Final

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from rich.console import Console

from banking_server.bank.audit import list_events
from banking_server.bank.handoffs import list_open_handoffs
from banking_server.chaining import call_tool_with_chaining
from banking_server.cli.listings import show_events, show_handoffs
from banking_server.host.connect import connected, this_server
from banking_server.host.narrator import Narrator
from banking_server.host.printing import say
from banking_server.host.questions import choices
from banking_server.server.build import open_bank, utc_now
from banking_server.server.settings import Settings

_ARGUMENTS: Final = {
    "fromAccountId": "acc_checking_001",
    "toAccountId": "acc_savings_001",
    "amount": 250.00,
}


async def play(out: Console) -> bool:
    """Play the story in a database of its own; return whether the chain completed as it should."""
    with tempfile.TemporaryDirectory(prefix="banking-server-demo-") as folder:
        database = Path(folder) / "bank.db"
        _heading(out, "A customer wants to pay from a locked account")
        say(out, "A real server, started over stdio, on a new database. No language model.")
        async with connected(this_server(database), elicitation=_Customer(out)) as (client, _):
            completed = await _customer(out, client)
        await _bank(out, database)
        return completed


async def _customer(out: Console, client: Client) -> bool:
    """Play the customer's side: look at the accounts, then try to pay from the locked one."""
    _heading(out, "The customer's accounts")
    accounts = await client.call_tool("list_accounts")
    for account in (accounts.structured_content or {})["accounts"]:
        if "balance" in account:
            locked = "  LOCKED" if account["isLocked"] else ""
            amount = f"{account['balance']:,.2f} {account['currency']}"
            say(out, f"{account['accountId']}  {account['accountName']}  {amount}{locked}")
    _heading(out, "The customer asks for a transfer, and the chain takes over")
    narrator = Narrator(out, questions=None)
    narrator.begin("prepare_money_transfer", _ARGUMENTS)
    result = await call_tool_with_chaining(
        client,
        "prepare_money_transfer",
        dict(_ARGUMENTS),
        consent=narrator,
        on_step=narrator.told,
        on_proposal=narrator.proposed,
    )
    narrator.end(result)
    return result.outcome == "completed" and len(result.steps) == 2


async def _bank(out: Console, database: Path) -> None:
    """Show what the bank knows of it afterwards."""
    # The defaults, whatever the environment of the person who watches says.
    settings = Settings.model_construct(database=database)
    async with open_bank(settings, utc_now()) as bank:
        _heading(out, "The agent's desk (banking-server handoffs)")
        show_handoffs(out, await list_open_handoffs(bank))
        _heading(out, "The audit trail (banking-server audit)")
        show_events(out, await list_events(bank))


class _Customer:
    """Answers the bank's question with the first choice."""

    def __init__(self, out: Console) -> None:
        self._out = out

    async def __call__(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        self._out.print()
        say(self._out, f"The bank asks: {params.message}", indent=3)
        ((name, schema),) = params.requested_schema["properties"].items()
        offered = choices(schema)
        for number, title in enumerate(offered.values(), start=1):
            say(self._out, f"{number}. {title}", indent=5)
        say(self._out, "The customer answers: 1", indent=3)
        return ElicitResult(action="accept", content={name: next(iter(offered))})


def _heading(out: Console, text: str) -> None:
    out.print()
    say(out, f"== {text} ==", style="bold")
