"""The stories of `banking-server demo`, on the real server, with no language model.

A locked account leads to an agent, with scripted answers of the customer. With `--multiplex`, one
request makes three calls, each of which needs the result of the one before.
"""

import json
import tempfile
from pathlib import Path
from typing import Any, Final

from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from rich.console import Console

from banking_server.bank.audit import list_events
from banking_server.bank.handoffs import list_open_handoffs
from banking_server.cli.listings import show_events, show_handoffs
from banking_server.client.connect import connected, this_server
from banking_server.client.narrator import Narrator
from banking_server.client.printing import say
from banking_server.client.questions import choices
from banking_server.server.open_bank import open_bank, utc_now
from banking_server.server.settings import Settings
from tool_chaining import Follower

_ARGUMENTS: Final = {
    "fromAccountId": "acc_checking_001",
    "toAccountId": "acc_savings_001",
    "amount": 250.00,
}


_EVERYDAY: Final = "[0].structuredContent.accounts[?contains(accountName, 'Everyday')]"

_CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("list_accounts", {}),
    (
        "get_account_statement",
        {"accountId": {"jmespath": f"{_EVERYDAY}.accountId | [0]"}, "days": 3},
    ),
    (
        "prepare_money_transfer",
        {
            "fromAccountId": "acc_savings_001",
            "toAccountId": {"jmespath": "[1].structuredContent.accountId"},
            "amount": 25,
            "memo": {"text": f"{{{_EVERYDAY}.accountName | [0]}}-dup"},
        },
    ),
]
"""List them; read the one about everyday spending; make a duplicate named `${originalName}-dup`."""

PLAN: Final = {
    "tools": [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        for number, (tool, arguments) in enumerate(_CALLS, 1)
    ]
}
"""What `--multiplex` sends: the arguments of `multiplex_tools`."""


async def play(out: Console) -> bool:
    """Play the story on a new database; return whether the chain completed as it should."""
    with tempfile.TemporaryDirectory(prefix="banking-server-demo-") as folder:
        database = Path(folder) / "bank.db"
        _heading(out, "A customer wants to pay from a locked account")
        say(out, "A real server, started over stdio, on a new database. No language model.")
        async with connected(this_server(database), elicitation=_Customer(out)) as (client, _):
            completed = await _customer(out, client)
        await _bank(out, database, handoffs=True)
        return completed


async def play_plan(out: Console) -> bool:
    """Play three calls in one request on a new database; return whether all were made."""
    with tempfile.TemporaryDirectory(prefix="banking-server-demo-") as folder:
        database = Path(folder) / "bank.db"
        _heading(out, "A customer wants three things done, each with the result of the last")
        say(out, "A real server, started over stdio, on a new database. No language model.")
        _heading(out, "One request, to multiplex_tools")
        # Not wrapped, so that it can be copied.
        out.print(json.dumps(PLAN, indent=2), soft_wrap=True)
        out.print()
        say(
            out,
            "In a file, plan.json, it can be sent to any bank of yours: banking-server call "
            "multiplex_tools --arguments @plan.json",
        )
        say(
            out,
            'A model finds a value instead where it says, for instance, "PROMPT_ARGUMENT: the id '
            'of the account for everyday spending".',
        )
        _heading(out, "The results")
        async with connected(this_server(database)) as (client, _):
            result = await client.call_tool("multiplex_tools", dict(PLAN))
        steps = (result.structured_content or {})["results"]
        for step in steps:
            say(out, f"{step['id']}. {step['tool']}: {step['status']}")
            say(out, step["structuredContent"]["message"], indent=3)
        memo = steps[-1]["structuredContent"]["memo"]
        say(out, f"Its memo is {memo!r}.", indent=3)
        await _bank(out, database, handoffs=False)
        return not result.is_error


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
    narrator = Narrator(out, questions=None, trust_hints=True)
    narrator.begin("prepare_money_transfer", _ARGUMENTS)
    follower = Follower(client, consent=narrator, on_step=narrator.show_step)
    result = await follower.call_tool("prepare_money_transfer", dict(_ARGUMENTS))
    narrator.end(result)
    return result.outcome == "completed" and len(result.steps) == 2


async def _bank(out: Console, database: Path, *, handoffs: bool) -> None:
    """Show what the bank recorded."""
    # The defaults, whatever the viewer's environment says.
    settings = Settings.model_construct(database=database)
    async with open_bank(settings, utc_now()) as bank:
        if handoffs:
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
