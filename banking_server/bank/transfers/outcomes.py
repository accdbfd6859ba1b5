"""The outcomes of transfers: one small type for each thing that can happen.

`recorded_as` is its word in the audit trail. It is stored, so it stays even if the type is renamed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from banking_server.bank.accounts import AccountView
from banking_server.bank.models import Transfer
from banking_server.bank.rules import Argument, NotFound, Outcome, Refused, TooMany


class TransferView(Transfer):
    """A transfer as its customer sees it; everything a receipt needs.

    A pending transfer past `expires_at` shows as expired. `to_account_holder` is set for external
    payees.
    """

    from_account_name: str
    to_account_name: str
    to_account_holder: str | None


@dataclass(frozen=True)
class AccountLocked(Outcome, recorded_as="account_locked"):
    """The from-account is locked: no money can leave it, and nothing was stored."""

    account: AccountView

    @property
    def subject(self) -> str:
        """The from-account, for the audit trail."""
        return self.account.account_id


@dataclass(frozen=True)
class AccountNeeded(Outcome, recorded_as="account_needed"):
    """The customer has to choose an account. Nothing else is known to be wrong."""

    field: Argument
    accounts: Sequence[AccountView]
    """The accounts to choose from, ordered by id."""


@dataclass(frozen=True)
class _AboutTransfer(Outcome):
    transfer: TransferView

    @property
    def subject(self) -> str:
        """The transfer, for the audit trail."""
        return self.transfer.transfer_id


@dataclass(frozen=True)
class Prepared(_AboutTransfer, recorded_as="prepared"):
    """Pending, its funds reserved. `code` confirms it where the customer cannot be asked."""

    code: str | None
    """None where the bank's desk gives it out."""
    secret: str | None
    """The secret that confirms it from a view; None likewise."""


@dataclass(frozen=True)
class OverThreshold(_AboutTransfer, recorded_as="over_threshold"):
    """Pending like `Prepared`, but a manager has to approve it before it can be confirmed."""

    code: str | None
    """None where the bank's desk gives it out."""


@dataclass(frozen=True)
class Posted(_AboutTransfer, recorded_as="posted"):
    """The money has moved. Every request gets the same receipt.

    `compliance_rule` names the rule that requires a report of the posting, if one applies.
    """

    compliance_rule: str | None


@dataclass(frozen=True)
class Scheduled(_AboutTransfer, recorded_as="scheduled"):
    """Confirmed; the bank posts it on its date and reserves nothing until then."""


@dataclass(frozen=True)
class Expired(_AboutTransfer, recorded_as="expired"):
    """The confirmation came too late; nothing was moved."""


@dataclass(frozen=True)
class Voided(_AboutTransfer, recorded_as="voided"):
    """The transfer was voided earlier, for `transfer.reason`."""


@dataclass(frozen=True)
class TransferFailed(_AboutTransfer, recorded_as="transfer_failed"):
    """A scheduled transfer that could not be paid on its date, for `transfer.reason`."""


@dataclass(frozen=True)
class WrongCode(_AboutTransfer, recorded_as="wrong_code"):
    """The code was wrong; the transfer is still pending."""

    attempts_left: int


@dataclass(frozen=True)
class VoidedForCodes(_AboutTransfer, recorded_as="voided_for_codes"):
    """The last allowed code was wrong; the transfer is void from now on."""


@dataclass(frozen=True)
class SecretRefused(_AboutTransfer, recorded_as="secret_refused"):
    """A view's secret is not (or no longer) that of the transfer; nothing changed."""


@dataclass(frozen=True)
class CodeMissing(_AboutTransfer, recorded_as="code_missing"):
    """Neither the customer's own yes nor a code came with the request."""

    secret: str | None
    """The secret that confirms it from a view; None if the bank's desk gives out the code."""


@dataclass(frozen=True)
class Declined(_AboutTransfer, recorded_as="declined"):
    """The customer was asked and did not confirm, now or before this yes."""


@dataclass(frozen=True)
class ApprovalOutstanding(_AboutTransfer, recorded_as="approval_outstanding"):
    """A manager has not decided yet; `requested` says whether one has been asked."""

    requested: bool


@dataclass(frozen=True)
class ApprovalRefused(_AboutTransfer, recorded_as="approval_refused"):
    """A manager refused the transfer, which voided it."""


@dataclass(frozen=True)
class Seen(_AboutTransfer, recorded_as="transfer_seen"):
    """The transfer, unchanged. `secret` confirms it from a view, if it is pending."""

    secret: str | None


@dataclass(frozen=True)
class Cancelled(_AboutTransfer, recorded_as="cancelled"):
    """The customer cancelled the transfer, now or earlier; nothing was moved."""


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
"""The possible outcomes of a confirmation."""
Preparation = (
    AccountLocked | NotFound | Refused | TooMany | AccountNeeded | Prepared | OverThreshold
)
"""The possible outcomes of preparing a transfer."""
