"""Every rule of the bank, pure and in one place.

Nothing here reads a clock, a database or a setting: thresholds come in as `Rules`, the time as an
argument. The other modules ask; this one decides. The four escalations of the product are
`is_debit_blocked`, `needs_approval` with `is_branch_open`, `is_expired` and
`compliance_rule`.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from banking_server.bank.models import Account
from banking_server.bank.money import InvalidAmount, format_money, to_decimal, to_minor


@dataclass(frozen=True)
class Rules:
    """The bank's settings. Thresholds are minor units of whatever currency is moved."""

    approval_threshold_minor: int = 1_000_000
    """A transfer strictly above this needs a manager's approval."""
    compliance_threshold_minor: int = 300_000
    """A transfer to an external payee of at least this is reported to compliance."""
    transfer_expiry: timedelta = timedelta(minutes=10)
    """How long a prepared transfer waits for its confirmation."""
    approval_expiry: timedelta = timedelta(hours=24)
    """How long a prepared transfer waits when a manager has to approve it first."""
    max_wrong_codes: int = 5
    """The wrong confirmation code that voids the transfer."""
    branch_opens: time = time(8)
    """Opening time, UTC, Monday to Friday; inclusive."""
    branch_closes: time = time(18)
    """Closing time, UTC; exclusive."""
    max_memo_length: int = 140
    """Characters in a transfer's memo."""
    max_reason_length: int = 500
    """Characters in the reason of a handoff or an approval request, and in an agent's name."""
    max_days_ahead: int = 365
    """How far in the future a transfer may be scheduled, in days."""
    max_statement_days: int = 365
    """How far back a statement may reach, in days."""
    statement_page: int = 50
    """Lines on one page of a statement."""


@dataclass(frozen=True)
class Refused:
    """The request breaks a rule; nothing was changed by it.

    `field` is the argument at fault under its wire name, `message` says to people what is wrong
    and what to do. `subject` is the id of the record concerned, for the audit trail.
    """

    field: str
    message: str
    subject: str | None = None


@dataclass(frozen=True)
class NotFound:
    """There is no such record *for this customer*: unknown and somebody else's look the same.

    `field` is the argument's wire name; `value` what was asked for, made safe to print and cut.
    """

    field: str
    value: str

    @property
    def subject(self) -> None:
        """Never an id: what was asked for is the caller's text."""
        return None


@dataclass(frozen=True)
class TransferDetails:
    """The checked details of a transfer; a `scheduled_date` of None means immediately."""

    amount_minor: int
    scheduled_date: date | None
    memo: str | None


def excerpt(text: str, limit: int = 60) -> str:
    """Return a caller's text safe to print and store: unprintable characters escaped, and cut."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown if len(text) <= limit >= len(shown) else f"{shown[: limit - 1]}…"


# --- the four escalations -------------------------------------------------------------------------


def is_debit_blocked(account: Account) -> bool:
    """Escalation 1: a locked account pays nothing out. Money may still come in."""
    return account.is_locked


def needs_approval(rules: Rules, amount_minor: int) -> bool:
    """Escalation 2: strictly above the threshold a manager has to approve."""
    return amount_minor > rules.approval_threshold_minor


def is_branch_open(rules: Rules, now: datetime) -> bool:
    """Escalation 2, second half: whether a manager can be reached, Monday to Friday, UTC."""
    local = now.astimezone(UTC)
    return local.weekday() < 5 and rules.branch_opens <= local.time() < rules.branch_closes


def is_expired(expires_at: datetime, now: datetime) -> bool:
    """Escalation 3: a pending transfer can be confirmed before `expires_at`, not at it."""
    return now >= expires_at


def compliance_rule(rules: Rules, *, amount_minor: int, to_account: Account) -> str | None:
    """Escalation 4: the compliance rule a posting meets, named like `external-payee-3000`."""
    if to_account.account_type != "external" or amount_minor < rules.compliance_threshold_minor:
        return None
    threshold = f"{to_decimal(rules.compliance_threshold_minor)}".removesuffix(".00")
    return f"external-payee-{threshold}"


# --- what may be transferred ----------------------------------------------------------------------


def check_details(
    rules: Rules, *, amount: Decimal, scheduled_date: str | None, memo: str | None, today: date
) -> Refused | TransferDetails:
    """Check what the customer typed: the amount, then the date, then the memo."""
    try:
        amount_minor = to_minor(amount)
    except InvalidAmount as error:
        return Refused("amount", str(error))
    day = _check_date(rules, scheduled_date, today)
    if isinstance(day, Refused):
        return day
    if memo is not None:
        refused = _check_text("memo", memo, rules.max_memo_length)
        if refused:
            return refused
    return TransferDetails(amount_minor, day, memo if memo and not memo.isspace() else None)


def check_parties(from_account: Account, to_account: Account) -> Refused | None:
    """Check that money can go from the one account to the other, whatever the amount."""
    if from_account.account_id == to_account.account_id:
        return Refused("toAccountId", "The two accounts are the same: choose another account.")
    if not from_account.can_transfer_from:
        return Refused("fromAccountId", f"Nothing can be transferred from {_named(from_account)}.")
    if not to_account.can_transfer_to:
        return Refused("toAccountId", f"Nothing can be transferred to {_named(to_account)}.")
    if from_account.currency != to_account.currency:
        return Refused(
            "toAccountId",
            f"The currencies differ: {_named(from_account)} is held in {from_account.currency}, "
            f"{_named(to_account)} in {to_account.currency}.",
        )
    return None


def check_available(account: Account, *, amount_minor: int, available_minor: int) -> Refused | None:
    """Check that the account can pay `amount_minor` out of `available_minor`."""
    if amount_minor <= available_minor:
        return None
    return Refused(
        "amount",
        f"{format_money(amount_minor, account.currency)} is more than the "
        f"{format_money(available_minor, account.currency)} available in {_named(account)}.",
    )


def check_required_text(rules: Rules, field: str, text: str) -> Refused | None:
    """Check a reason or a name that must be given: not blank, and fit to be stored."""
    if not text or text.isspace():
        return Refused(field, f"{field} is empty: say it in a few words.")
    return _check_text(field, text, rules.max_reason_length)


def check_reason(rules: Rules, reason: str | None, *, default: str) -> Refused | str:
    """Return the reason to record: the given one if it is fit, `default` if there is none."""
    if reason is None or not reason.strip():
        return default
    return _check_text("reason", reason, rules.max_reason_length) or reason


def _named(account: Account) -> str:
    return f"{account.account_name} ({account.account_id})"


def _check_date(rules: Rules, text: str | None, today: date) -> Refused | date | None:
    if text is None:
        return None
    shown = f'"{excerpt(text, 30)}"'
    try:
        # The pattern comes first: fromisoformat also reads 20260103 and 2026-W01-6.
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            raise ValueError
        day = date.fromisoformat(text)
    except ValueError:
        return Refused("scheduledDate", f"{shown} is not a date: write it like 2026-01-31.")
    if day < today:
        return Refused("scheduledDate", f"{shown} is in the past: today is {today}.")
    if day > today + timedelta(days=rules.max_days_ahead):
        return Refused(
            "scheduledDate",
            f"{shown} is more than {rules.max_days_ahead} days from today, {today}.",
        )
    return day if day > today else None


_UNFIT_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
"""Control characters, lone surrogates (SQLite cannot store them), line and paragraph separators."""
_BIDI_CONTROLS = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""They make a text read otherwise than it is stored."""


def _check_text(field: str, text: str, limit: int) -> Refused | None:
    if len(text) > limit:
        return Refused(field, f"{field} has {len(text)} characters: at most {limit} are allowed.")
    for character in text:
        if unicodedata.category(character) in _UNFIT_CATEGORIES or character in _BIDI_CONTROLS:
            return Refused(
                field, f"{field} contains a control character (U+{ord(character):04X}): remove it."
            )
    return None
