"""The bank's own side: the desks, the audit trail, settlement, and tokens for a trial."""

import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from banking_server.cli.bank_session import accepted, run_on_bank
from banking_server.cli.messages import CommandFailed, unknown_customer
from banking_server.cli.options import JsonLinesOption, example, settings_of

if TYPE_CHECKING:
    from banking_server.bank.storage import Bank

handoffs_app = typer.Typer()
approvals_app = typer.Typer()

ApprovalId = Annotated[str, typer.Argument(metavar="ID", hidden=True)]
ManagerOption = Annotated[str, typer.Option(metavar="NAME", help="The manager who decides.")]


@handoffs_app.callback(invoke_without_command=True)
def handoffs(ctx: typer.Context, as_json: JsonLinesOption = False) -> None:
    """List the customers waiting for an agent, or claim one."""
    from banking_server.bank.handoffs import list_open_handoffs
    from banking_server.cli.listings import handoff_as_json, show_handoffs
    from banking_server.client.printing import console

    if ctx.invoked_subcommand is None:
        waiting = run_on_bank(settings_of(ctx), list_open_handoffs)
        if as_json:
            print_lines(map(handoff_as_json, waiting))
        else:
            show_handoffs(console(sys.stdout), waiting)


@handoffs_app.command("claim", epilog=example("handoffs claim ID --agent Ada"))
def claim_handoff(
    ctx: typer.Context,
    handoff_id: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent who claims the customer.")],
) -> None:
    """Claim the handoff ID of a waiting customer."""
    from banking_server.bank import handoffs as bank_handoffs
    from banking_server.cli.listings import show_handoffs
    from banking_server.client.printing import console
    from banking_server.server.open_bank import utc_now

    outcome = run_on_bank(
        settings_of(ctx),
        lambda bank: bank_handoffs.claim_handoff(bank, handoff_id, agent=agent, now=utc_now()),
    )
    show_handoffs(console(sys.stdout), [accepted(outcome, "handoff")])


@approvals_app.callback(invoke_without_command=True)
def approvals(ctx: typer.Context, as_json: JsonLinesOption = False) -> None:
    """List the transfers that need approval, or decide on one."""
    from banking_server.bank.approvals import list_open_approvals
    from banking_server.cli.listings import approval_as_json, show_open_approvals
    from banking_server.client.printing import console
    from banking_server.server.open_bank import utc_now

    if ctx.invoked_subcommand is None:
        waiting = run_on_bank(settings_of(ctx), lambda bank: list_open_approvals(bank, utc_now()))
        if as_json:
            print_lines(map(approval_as_json, waiting))
        else:
            show_open_approvals(console(sys.stdout), waiting)


@approvals_app.command("grant", epilog=example("approvals grant ID --manager Grace"))
def grant_approval(ctx: typer.Context, approval_id: ApprovalId, manager: ManagerOption) -> None:
    """Grant approval ID. The customer still has to confirm."""
    _decide(ctx, approval_id, manager, granted=True)


@approvals_app.command("refuse", epilog=example("approvals refuse ID --manager Grace"))
def refuse_approval(ctx: typer.Context, approval_id: ApprovalId, manager: ManagerOption) -> None:
    """Refuse approval ID. The transfer is then void."""
    _decide(ctx, approval_id, manager, granted=False)


def _decide(ctx: typer.Context, approval_id: str, manager: str, *, granted: bool) -> None:
    from banking_server.bank.approvals import decide_approval
    from banking_server.cli.listings import show_approval
    from banking_server.client.printing import console
    from banking_server.server.open_bank import utc_now

    outcome = run_on_bank(
        settings_of(ctx),
        lambda bank: decide_approval(
            bank, approval_id, granted=granted, manager=manager, now=utc_now()
        ),
    )
    show_approval(console(sys.stdout), accepted(outcome, "approval"))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for a program, and nothing if there are none."""
    for line in lines:
        print(line)


def codes(
    ctx: typer.Context,
    customer: Annotated[
        str | None, typer.Option(metavar="ID", help="List only this customer's codes.")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """List the confirmation codes of pending transfers.

    Only the bank may run this command: whoever sees a code can confirm the transfer. Keep it out
    of reach of the host that the model runs in.
    """
    from banking_server.bank.accounts import list_customers
    from banking_server.bank.transfers.records import PendingCode, list_codes
    from banking_server.cli.listings import code_as_json, show_codes
    from banking_server.client.printing import console
    from banking_server.server.keys import load_keys
    from banking_server.server.open_bank import utc_now

    settings = settings_of(ctx)

    async def read(bank: "Bank") -> "list[PendingCode]":
        # A new secret would give codes that no server accepts.
        key = load_keys(settings, may_make=False).confirmation_codes
        if customer is not None and customer not in await list_customers(bank):
            raise unknown_customer(customer)
        return await list_codes(bank, key, utc_now(), customer)

    waiting = run_on_bank(settings, read)
    if as_json:
        print_lines(map(code_as_json, waiting))
    else:
        show_codes(console(sys.stdout), waiting)


def audit(
    ctx: typer.Context,
    customer: Annotated[
        str | None, typer.Option(metavar="ID", help="List only this customer's calls.")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print the audit trail, oldest event first."""
    from banking_server.bank.accounts import list_customers
    from banking_server.bank.audit import list_events
    from banking_server.cli.listings import event_as_json, show_events
    from banking_server.client.printing import console, say

    out = console(sys.stdout)

    async def show(bank: "Bank") -> None:
        if customer is not None and customer not in await list_customers(bank):
            raise unknown_customer(customer)
        last = 0
        while events := await list_events(bank, customer, after=last):
            last = events[-1].event_id
            if as_json:
                print_lines(map(event_as_json, events))
            else:
                show_events(out, events)
        if not (last or as_json):
            say(out, f"There are no events of {customer or 'anybody'}.")

    run_on_bank(settings_of(ctx), show)


def settle(
    ctx: typer.Context,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="Post what is due on this day. Default: today, in UTC.",
        ),
    ] = None,
) -> None:
    """Post the scheduled transfers that are due.

    The HTTP server does the same once a minute.
    """
    from banking_server.bank.transfers.confirm import settle as settle_due
    from banking_server.cli.listings import show_settled
    from banking_server.client.printing import console
    from banking_server.server.open_bank import utc_now

    now = utc_now()
    day = (as_of or now).date()
    settled = run_on_bank(settings_of(ctx), lambda bank: settle_due(bank, as_of=day, now=now))
    show_settled(console(sys.stdout), settled)


def token(
    ctx: typer.Context,
    customer: Annotated[
        str, typer.Option(metavar="ID", help="The customer in whose name the token acts.")
    ],
) -> None:
    """Print a bearer token for a local trial over HTTP.

    For one hour, it is valid for reading and for moving money. Nothing else is printed.
    """
    from datetime import timedelta

    from banking_server.bank.accounts import list_customers
    from banking_server.server.keys import load_keys
    from banking_server.server.open_bank import utc_now
    from banking_server.server.tokens import Tokens
    from banking_server.tools.scopes import READ_SCOPE, TRANSFER_SCOPE

    settings = settings_of(ctx)
    if settings.issuer is not None:
        raise CommandFailed(
            f"This server accepts only the tokens of {settings.issuer}: get one there. To use "
            "tokens of this command for a local trial, unset BANKING_ISSUER."
        )
    if customer not in run_on_bank(settings, list_customers):
        raise unknown_customer(customer)
    scopes = [READ_SCOPE, TRANSFER_SCOPE]
    tokens = Tokens.of(settings, load_keys(settings))
    print(tokens.mint(customer, scopes, now=utc_now(), lifetime=timedelta(hours=1)))
