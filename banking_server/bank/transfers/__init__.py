"""Two-phase transfers: prepare reserves, confirm posts or schedules, cancel voids.

Time lets expire what nobody confirms.

Each function runs in one write transaction, with its audit event, and returns an outcome: one small
type for each thing that can happen (`outcomes`). What is decided stands in `bank/rules.py`;
`prepare`, `confirm`, `cancel` and `settle` load what the decision needs, and do what it says.
`look` shows a transfer as it stands. `records` reads and writes the transfer itself; `codes` are
the confirmation codes and the views' secrets, and `desk` lists the codes for the bank's own side.
"""

from banking_server.bank.transfers.cancel import cancel_transfer
from banking_server.bank.transfers.codes import confirmation_code
from banking_server.bank.transfers.confirm import confirm_transfer, decline_transfer
from banking_server.bank.transfers.desk import PendingCode, list_codes
from banking_server.bank.transfers.look import look_at_transfer
from banking_server.bank.transfers.outcomes import (
    AccountLocked,
    ApprovalOutstanding,
    ApprovalRefused,
    Cancelled,
    CodeMissing,
    Confirmation,
    Declined,
    Expired,
    OverThreshold,
    Posted,
    Preparation,
    Prepared,
    Scheduled,
    SecretRefused,
    Seen,
    ToAccountMissing,
    TransferFailed,
    TransferView,
    Voided,
    VoidedForCodes,
    WrongCode,
)
from banking_server.bank.transfers.prepare import prepare_transfer, record_locked_attempt
from banking_server.bank.transfers.records import (
    Parties,
    expire_if_due,
    find_confirmable,
    read_parties,
    set_status,
    view_transfer,
)
from banking_server.bank.transfers.settle import settle

__all__ = [
    "AccountLocked",
    "ApprovalOutstanding",
    "ApprovalRefused",
    "Cancelled",
    "CodeMissing",
    "Confirmation",
    "Declined",
    "Expired",
    "OverThreshold",
    "Parties",
    "PendingCode",
    "Posted",
    "Preparation",
    "Prepared",
    "Scheduled",
    "SecretRefused",
    "Seen",
    "ToAccountMissing",
    "TransferFailed",
    "TransferView",
    "Voided",
    "VoidedForCodes",
    "WrongCode",
    "cancel_transfer",
    "confirm_transfer",
    "confirmation_code",
    "decline_transfer",
    "expire_if_due",
    "find_confirmable",
    "list_codes",
    "look_at_transfer",
    "prepare_transfer",
    "read_parties",
    "record_locked_attempt",
    "set_status",
    "settle",
    "view_transfer",
]
