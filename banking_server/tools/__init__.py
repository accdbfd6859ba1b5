"""The bank's tools: what a client can call, one module per capability.

Each tool asks the bank, looks up the next tool for its outcome in the one table (`next_steps`),
and turns both into a result (`results`). How tools are declared stands in `declaration`, who is
calling in `calling`, how the customer is asked in `asking`. `multiplex` runs several in one call,
with arguments that `inference` finds.
"""

from typing import Final

from mcp.server.mcpserver.tools import Tool

from banking_server.tools.accounts import (
    add_resources,
    get_account_balance,
    get_account_statement,
    list_accounts,
)
from banking_server.tools.approvals import request_manager_approval
from banking_server.tools.calling import (
    READ_SCOPE,
    TRANSFER_SCOPE,
    App,
    BankServer,
    Infer,
    required_scope,
)
from banking_server.tools.compliance import record_compliance_report
from banking_server.tools.handoffs import process_agent_handoff_choice, request_agent_handoff
from banking_server.tools.multiplex import multiplex_tools
from banking_server.tools.transfers import confirm_or_cancel_money_transfer, prepare_money_transfer

TOOLS: Final[tuple[Tool, ...]] = (
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
"""Every tool, in the order in which they are listed."""

__all__ = [
    "READ_SCOPE",
    "TOOLS",
    "TRANSFER_SCOPE",
    "App",
    "BankServer",
    "Infer",
    "add_resources",
    "required_scope",
]
