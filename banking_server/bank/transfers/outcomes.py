"""What can come of a transfer: one small type for each thing that can happen.

`recorded_as` is the word for it in the audit trail. The words are stored: they stay as they are
whatever becomes of a type's name.
"""

from dataclasses import dataclass
from typing import ClassVar

from banking_server.bank.accounts import AccountView
from banking_server.bank.models import Transfer
from banking_server.bank.rules import NotFound, Refused, TooMany


class TransferView(Transfer):
    """A transfer as its customer sees it; everything a receipt needs.

    A pending transfer past `expires_at` shows as expired. `to_account_holder` is set for external
    payees.
    """

    from_account_name: str
    to_account_name: str
    to_account_holder: str | None


@dataclass(frozen=True)
class _AboutFromAccount:
    account: AccountView

    @property
    def subject(self) -> str:
        """The from-account, for the audit trail."""
        return self.account.account_id


@dataclass(frozen=True)
class AccountLocked(_AboutFromAccount):
    """The from-account is locked: nothing may be taken from it, and nothing was stored."""

    recorded_as: ClassVar[str] = "account_locked"


@dataclass(frozen=True)
class ToAccountMissing(_AboutFromAccount):
    """The details are right, but no to-account is given."""

    recorded_as: ClassVar[str] = "account_needed"


@dataclass(frozen=True)
class _AboutTransfer:
    transfer: TransferView

    @property
    def subject(self) -> str:
        """The transfer, for the audit trail."""
        return self.transfer.transfer_id


@dataclass(frozen=True)
class Prepared(_AboutTransfer):
    """Pending, its funds reserved. `code` confirms it where the customer cannot be asked."""

    recorded_as: ClassVar[str] = "prepared"

    code: str | None
    """None where the bank's desk gives it out."""
    secret: str | None
    """What confirms it from a view; None likewise."""


@dataclass(frozen=True)
class OverThreshold(_AboutTransfer):
    """Pending like `Prepared`, but a manager has to approve it before it can be confirmed."""

    recorded_as: ClassVar[str] = "over_threshold"

    code: str | None
    """None where the bank's desk gives it out."""


@dataclass(frozen=True)
class Posted(_AboutTransfer):
    """The money has moved. The same receipt every time it is asked for.

    `compliance_rule` names the rule under which the posting has to be reported, if one applies.
    """

    recorded_as: ClassVar[str] = "posted"

    compliance_rule: str | None


@dataclass(frozen=True)
class Scheduled(_AboutTransfer):
    """Confirmed, and to be posted on its date. Nothing is reserved meanwhile."""

    recorded_as: ClassVar[str] = "scheduled"


@dataclass(frozen=True)
class Expired(_AboutTransfer):
    """The confirmation came too late; nothing was moved."""

    recorded_as: ClassVar[str] = "expired"


@dataclass(frozen=True)
class Voided(_AboutTransfer):
    """The transfer was voided earlier, for `transfer.reason`."""

    recorded_as: ClassVar[str] = "voided"


@dataclass(frozen=True)
class TransferFailed(_AboutTransfer):
    """A scheduled transfer that could not be paid on its date, for `transfer.reason`."""

    recorded_as: ClassVar[str] = "transfer_failed"


@dataclass(frozen=True)
class WrongCode(_AboutTransfer):
    """The code was wrong; the transfer is still pending."""

    recorded_as: ClassVar[str] = "wrong_code"

    attempts_left: int


@dataclass(frozen=True)
class VoidedForCodes(_AboutTransfer):
    """The last allowed code was wrong; the transfer is void from now on."""

    recorded_as: ClassVar[str] = "voided_for_codes"


@dataclass(frozen=True)
class SecretRefused(_AboutTransfer):
    """A view's secret is not the transfer's, or not any more; nothing was changed."""

    recorded_as: ClassVar[str] = "secret_refused"


@dataclass(frozen=True)
class CodeMissing(_AboutTransfer):
    """Neither the customer's own yes nor a code came with the request."""

    recorded_as: ClassVar[str] = "code_missing"

    secret: str | None
    """What confirms it from a view; None where the bank's desk gives out what confirms."""


@dataclass(frozen=True)
class Declined(_AboutTransfer):
    """The customer was asked and did not confirm; or had not, before this yes was given."""

    recorded_as: ClassVar[str] = "declined"


@dataclass(frozen=True)
class ApprovalOutstanding(_AboutTransfer):
    """A manager has not decided yet; `requested` says whether one has been asked."""

    recorded_as: ClassVar[str] = "approval_outstanding"

    requested: bool


@dataclass(frozen=True)
class ApprovalRefused(_AboutTransfer):
    """A manager refused the transfer, which voided it."""

    recorded_as: ClassVar[str] = "approval_refused"


@dataclass(frozen=True)
class Seen(_AboutTransfer):
    """The transfer as it stands. `secret` confirms it from a view, if that is what it waits for."""

    recorded_as: ClassVar[str] = "transfer_seen"

    secret: str | None


@dataclass(frozen=True)
class Cancelled(_AboutTransfer):
    """The customer cancelled the transfer, now or earlier; nothing was moved."""

    recorded_as: ClassVar[str] = "cancelled"


Confirmation = (
    Posted
    | Scheduled
    | NotFound
    | Expired
    | Voided
    | TransferFailed
    | WrongCode
    | VoidedForCodes
    | SecretRefused
    | CodeMissing
    | Declined
    | ApprovalOutstanding
    | ApprovalRefused
    | AccountLocked
    | Refused
    | TooMany
)
"""What can come of a confirmation."""
Preparation = (
    AccountLocked | NotFound | Refused | TooMany | ToAccountMissing | Prepared | OverThreshold
)
"""What can come of preparing a transfer."""
