"""The bank's MCP tools, one module per capability.

Each tool calls the bank, looks up the next tool for its outcome in one table (`next_steps`), and
makes a result of both (`results`). `declaration` declares tools, `scopes` checks the scope of a
call, `calling` finds the caller, and `asking` asks the customer. The package `multiplex` runs
several calls in one, and `views` has the cards that some hosts show. `sdk` has the internal parts
of the SDK that the tools use.
"""

from typing import Final

from banking_server.tools.accounts import get_account_balance, get_account_statement, list_accounts
from banking_server.tools.approvals import request_manager_approval
from banking_server.tools.compliance import record_compliance_report
from banking_server.tools.declaration import BankTool
from banking_server.tools.handoffs import (
    look_at_handoff,
    process_agent_handoff_choice,
    request_agent_handoff,
)
from banking_server.tools.multiplex.sequence import multiplex_tools
from banking_server.tools.scopes import Scope
from banking_server.tools.transfers.confirm import confirm_or_cancel_money_transfer
from banking_server.tools.transfers.prepare import prepare_money_transfer
from banking_server.tools.transfers.view import confirm_in_view, look_at_transfer

TOOLS: Final[tuple[BankTool, ...]] = (
    list_accounts,
    get_account_balance,
    get_account_statement,
    prepare_money_transfer,
    confirm_or_cancel_money_transfer,
    request_agent_handoff,
    process_agent_handoff_choice,
    request_manager_approval,
    record_compliance_report,
    multiplex_tools,
)
"""All tools, in the order of the tool list."""

FOR_VIEWS: Final[tuple[BankTool, ...]] = (confirm_in_view, look_at_transfer, look_at_handoff)
"""Further tools, which only views call. Only clients that show views have them, without a model."""

_SCOPES: Final = {tool.name: tool.scope for tool in (*TOOLS, *FOR_VIEWS)}


def required_scope(tool: str) -> Scope | None:
    """Return the OAuth scope that a call of `tool` needs; None if there is no such tool."""
    return _SCOPES.get(tool)
