"""Words that tests share: protocol eras, the demo data's accounts, the tools, the locked story."""

MODES = ("auto", "legacy")
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How the SDK's client is told which era to speak, and the revision that it then speaks."""

LOCKED = "acc_checking_001"
SAVINGS = "acc_savings_001"
EVERYDAY = "acc_everyday_001"
RETIREMENT = "acc_retirement_001"
DEPOSIT = "acc_deposit_001"
EURO = "acc_euro_001"
PAYEE = "acc_payee_001"
FOREIGN = "acc_checking_002"

LOCKED_TEXT = (
    "I'm sorry, but your Primary Checking account (acc_checking_001) is currently locked. You'll "
    "need to speak with a customer service agent to resolve this issue before you can transfer "
    "funds from this account."
)
LOCKED_REASON = (
    "Customer attempted to transfer from locked account: Primary Checking (acc_checking_001)"
)

PREPARE = "prepare_money_transfer"
CONFIRM = "confirm_or_cancel_money_transfer"
HANDOFF = "request_agent_handoff"
CHOICE = "process_agent_handoff_choice"
APPROVAL = "request_manager_approval"
REPORT = "record_compliance_report"
BALANCE = "get_account_balance"
STATEMENT = "get_account_statement"
ACCOUNTS = "list_accounts"

FROM_LOCKED = {"fromAccountId": LOCKED, "amount": 250}
TO_SAVINGS = {"fromAccountId": EVERYDAY, "toAccountId": SAVINGS}

TO_AN_AGENT = {"tool": HANDOFF, "arguments": {"reason": LOCKED_REASON}}
"""The directive of the locked account."""


def wrong(code: str) -> str:
    """Return another confirmation code than this one."""
    return f"{(int(code) + 1) % 1_000_000:06d}"
