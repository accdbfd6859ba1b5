"""The bank's rules, as pure functions in one place.

Nothing here reads a clock, a database or a setting: thresholds come in as `Rules`, the time as an
argument, stored data as records. The other modules load the records, ask here, and carry out the
decision. The order of the checks when a transfer is prepared is in `transfers/prepare.py`, because
data is loaded between them.
"""

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import ClassVar, Final, Literal, NamedTuple

from banking_server.bank.models import (
    Account,
    Approval,
    ApprovalStatus,
    Handoff,
    HandoffChoice,
    Transfer,
    TransferStatus,
)
from banking_server.bank.money import InvalidAmount, format_money, to_decimal, to_minor
from tool_chaining.text import CONTROL, printable

CodeDelivery = Literal["result", "asked", "desk"]
"""Where a customer gets the code that confirms a transfer."""


@dataclass(frozen=True)
class Rules:
    """The bank's settings. Thresholds are minor units of whatever currency is moved."""

    approval_threshold_minor: int = 1_000_000
    """A transfer strictly above this needs a manager's approval."""
    compliance_threshold_minor: int = 300_000
    """A transfer of at least this to an external payee is reported to compliance."""
    transfer_expiry: timedelta = timedelta(minutes=10)
    """How long a prepared transfer waits for its confirmation."""
    approval_expiry: timedelta = timedelta(hours=24)
    """How long a prepared transfer waits if a manager has to approve it first."""
    max_wrong_codes: int = 5
    """Wrong confirmation codes after which the transfer is voided. The tool's texts say "five"."""
    codes: CodeDelivery = "result"
    """Whether the code is in the result of the call that prepares a transfer, where a model may
    read it, or is given out by the bank's desk; with `desk` a view confirms nothing either."""
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
    max_entries_for_spending_total: int = 500
    """The most entries for which a statement separates spending from the customer's own moves."""
    max_pending_transfers: int = 100
    """The most pending transfers of one customer."""
    max_open_handoffs: int = 20
    """Handoffs of one customer that may wait for an agent at once."""
    max_wrong_codes_an_hour: int = 15
    """Wrong confirmation codes of one customer within an hour, whatever the transfer; after that
    no code is checked."""


class Argument(StrEnum):
    """A caller's arguments, by their Python names. `tools/results.py` turns these into the names on
    the wire."""

    ACCOUNT_ID = "account_id"
    AGENT = "agent"
    AMOUNT = "amount"
    APPROVAL_ID = "approval_id"
    CURSOR = "cursor"
    CUSTOMER_ID = "customer_id"
    DAYS = "days"
    EXPIRED_TRANSFER_ID = "expired_transfer_id"
    FROM_ACCOUNT_ID = "from_account_id"
    HANDOFF_ID = "handoff_id"
    MANAGER = "manager"
    MEMO = "memo"
    MONTH = "month"
    REASON = "reason"
    RULE = "rule"
    SCHEDULED_DATE = "scheduled_date"
    TO_ACCOUNT_ID = "to_account_id"
    TRANSFER_ID = "transfer_id"


class Outcome:
    """The result of a bank function: one small type for each thing that can happen.

    `recorded_as` is its word in the audit trail. It is stored, so it never changes.
    """

    recorded_as: ClassVar[str]

    def __init_subclass__(cls, *, recorded_as: str | None = None) -> None:
        if recorded_as is not None:
            cls.recorded_as = recorded_as

    @property
    def subject(self) -> str | None:
        """The id of the record that the outcome concerns, if any."""
        return None


@dataclass(frozen=True)
class Refused(Outcome, recorded_as="refused"):
    """The request breaks a rule, and changed nothing.

    `field` is the argument at fault; `message` tells people what is wrong and what to do.
    `subject` is the id of the record concerned, for the audit trail.
    """

    field: Argument
    message: str
    subject: str | None = None


@dataclass(frozen=True)
class NotFound(Outcome, recorded_as="not_found"):
    """This customer has no such record: unknown ones and other customers' look the same.

    `field` is the argument; `value` is its value, shortened and safe to print. For an account's id,
    `known` lists the possible values: the customer's own accounts, each with its name.
    """

    field: Argument
    value: str
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class TooMany(Outcome, recorded_as="too_many"):
    """The customer has reached a limit of the bank, and nothing changed. `message` says which, and
    what to do."""

    message: str


class TransferDetails(NamedTuple):
    """The checked details of a transfer; a `scheduled_date` of None means immediately."""

    amount_minor: int
    scheduled_date: date | None
    memo: str | None


# --- the four escalations -------------------------------------------------------------------------


def is_debit_blocked(account: Account) -> bool:
    """Escalation 1: a locked account pays nothing out. Money may still come in."""
    return account.is_locked


def needs_approval(rules: Rules, amount_minor: int) -> bool:
    """Escalation 2: strictly above the threshold a manager has to approve.

    The threshold applies to each transfer by itself, as does that of `compliance_rule`: amounts do
    not add up over a day or a payee, so two transfers of half the amount need no approval. The
    documents that this project grew from define it this way.
    """
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
        return Refused(Argument.AMOUNT, str(error))
    day = _check_date(rules, scheduled_date, today)
    if isinstance(day, Refused):
        return day
    if memo is not None:
        refused = _check_text(Argument.MEMO, memo, rules.max_memo_length)
        if refused:
            return refused
    return TransferDetails(amount_minor, day, memo if memo and not memo.isspace() else None)


def check_from_account(from_account: Account) -> Refused | None:
    """Check that money can leave the account at all."""
    if from_account.can_transfer_from:
        return None
    return Refused(
        Argument.FROM_ACCOUNT_ID, f"Nothing can be transferred from {_named(from_account)}."
    )


def check_parties(from_account: Account, to_account: Account) -> Refused | None:
    """Check that money can go from one account to the other, whatever the amount."""
    if from_account.account_id == to_account.account_id:
        return Refused(
            Argument.TO_ACCOUNT_ID, "The two accounts are the same: choose another account."
        )
    refused = check_from_account(from_account)
    if refused:
        return refused
    if not to_account.can_transfer_to:
        return Refused(
            Argument.TO_ACCOUNT_ID, f"Nothing can be transferred to {_named(to_account)}."
        )
    if from_account.currency != to_account.currency:
        return Refused(
            Argument.TO_ACCOUNT_ID,
            f"The currencies differ: {_named(from_account)} is held in {from_account.currency}, "
            f"{_named(to_account)} in {to_account.currency}.",
        )
    return None


def check_available(account: Account, *, amount_minor: int, available_minor: int) -> Refused | None:
    """Check that the account can pay `amount_minor` out of `available_minor`."""
    if amount_minor <= available_minor:
        return None
    return Refused(
        Argument.AMOUNT,
        f"{format_money(amount_minor, account.currency)} is more than the "
        f"{format_money(available_minor, account.currency)} available in {_named(account)}.",
    )


def check_pending_transfers(rules: Rules, pending: int) -> TooMany | None:
    """Check that the customer may have one more transfer beside the `pending` ones."""
    if pending < rules.max_pending_transfers:
        return None
    return TooMany(
        f"You have {pending} unconfirmed transfers, the most that may wait: confirm or cancel one "
        "first."
    )


def confirm_within(rules: Rules, amount_minor: int) -> timedelta:
    """How long a transfer of this amount can be confirmed; its funds are reserved until then."""
    return rules.approval_expiry if needs_approval(rules, amount_minor) else rules.transfer_expiry


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
        return Refused(
            Argument.SCHEDULED_DATE,
            f"{shown} is not a date: write it like 2026-01-31. Today is {today}.",
        )
    if day < today:
        return Refused(Argument.SCHEDULED_DATE, f"{shown} is in the past: today is {today}.")
    if day > today + timedelta(days=rules.max_days_ahead):
        return Refused(
            Argument.SCHEDULED_DATE,
            f"{shown} is more than {rules.max_days_ahead} days from today, {today}.",
        )
    return day if day > today else None


# --- confirming a transfer ------------------------------------------------------------------------

# The stored reasons for voiding a transfer.
CANCELLED_BY_CUSTOMER: Final = "cancelled by the customer"
REFUSED_BY_MANAGER: Final = "refused by a manager"
TOO_MANY_WRONG_CODES: Final = "too many wrong confirmation codes"


@dataclass(frozen=True)
class Yes:
    """The customer was asked and said yes, after declining `after_declines` times.

    A `code` beside it is checked all the same.
    """

    after_declines: int
    code: str | None = None


@dataclass(frozen=True)
class Code:
    """The caller's value for the transfer's confirmation code."""

    text: str


@dataclass(frozen=True)
class ViewSecret:
    """The caller's value for the secret of the view in which the customer said yes."""

    text: str


@dataclass(frozen=True)
class NoConsent:
    """The customer has not agreed yet."""


Consent = Yes | Code | ViewSecret | NoConsent
"""A caller's evidence of the customer's yes. The bank checks it."""


class Decision(Enum):
    """What to do about a confirmation."""

    NOT_PENDING = "nothing: it is over, or scheduled"
    MANAGER_REFUSED = "nothing: a manager has refused it, which voided it"
    DEBIT_BLOCKED = "nothing: the from-account is locked"
    MANAGER_MUST_DECIDE = "nothing before a manager has agreed"
    COUNT_WRONG_CODE = "count the wrong code"
    VOID_FOR_WRONG_CODES = "count the wrong code, which is one too many, and void the transfer"
    CUSTOMER_MUST_AGREE = "nothing before the customer says yes or gives the code"
    DECLINED_SINCE = "nothing: the customer declined it in the meantime"
    SCHEDULE = "let it wait for its date"
    POST = "move the money now"


WRONG_CODES_COUNT_FOR: Final = timedelta(hours=1)
"""The period over which a customer's wrong codes add up."""


def decide_confirmation(
    rules: Rules,
    transfer: Transfer,
    from_account: Account,
    to_account: Account,
    *,
    available_minor: int,
    yes_after_declines: int | None,
    code_is_right: bool | None,
    recent_wrong_codes: int,
    now: datetime,
) -> Decision | Refused | TooMany:
    """Decide what to do when a transfer is confirmed; the first rule that applies wins.

    `code_is_right` is the result of the comparison, which needs the secret; None: there is no code.

    1. A transfer that is no longer pending, or has expired by `now`, stays as it is.
    2. A locked from-account pays nothing out.
    3. A manager has to agree first if the amount is above the threshold.
    4. A code is always checked, even beside a yes, and a wrong one counts. If the customer was
       asked and said no, this is not called. After too many wrong codes within the hour
       (`recent_wrong_codes`), for whatever transfers, even a right one is refused.
    5. It needs the customer's own act: a yes, or the right code. A question takes one answer: when
       they were asked, they had declined `yes_after_declines` times (None: there is no yes). If
       they have declined again since, that stands.
    6. The accounts must still allow it, with `available_minor` to pay from (`check_payable`);
       if they do not, the transfer stays pending.
    7. A transfer dated after today, UTC, is scheduled; any other is posted.
    """
    over = decide_not_pending(transfer, now)
    if over is not None:
        return over
    if is_debit_blocked(from_account):
        return Decision.DEBIT_BLOCKED
    if waits_for_manager(transfer):
        return Decision.MANAGER_MUST_DECIDE
    if code_is_right is not None and recent_wrong_codes >= rules.max_wrong_codes_an_hour:
        return TooMany(
            "Too many confirmation codes were wrong within the last hour, so none is taken for "
            "now. Nothing was moved: please try again in an hour."
        )
    if code_is_right is False:
        return decide_wrong_code(rules, transfer)
    if yes_after_declines not in (None, transfer.declines):
        return Decision.DECLINED_SINCE
    if code_is_right is None and yes_after_declines is None:
        return Decision.CUSTOMER_MUST_AGREE
    refused = check_payable(transfer, from_account, to_account, available_minor=available_minor)
    if refused:
        return refused
    day = transfer.scheduled_date
    is_later = day is not None and day > now.astimezone(UTC).date()
    return Decision.SCHEDULE if is_later else Decision.POST


def decide_not_pending(transfer: Transfer, now: datetime) -> Decision | None:
    """Decide about a transfer that no answer can change any more; None if it is pending."""
    status = status_at(transfer, now)
    if status == "voided" and transfer.approval == "refused":
        return Decision.MANAGER_REFUSED
    return None if status == "pending" else Decision.NOT_PENDING


def decide_wrong_code(rules: Rules, transfer: Transfer) -> Decision:
    """Decide what one more wrong code does: the fifth (`max_wrong_codes`) voids the transfer."""
    is_last = transfer.wrong_codes + 1 >= rules.max_wrong_codes
    return Decision.VOID_FOR_WRONG_CODES if is_last else Decision.COUNT_WRONG_CODE


def status_at(transfer: Transfer, now: datetime) -> TransferStatus:
    """Return the transfer's status at `now`: one stored as pending may have expired."""
    overdue = transfer.status == "pending" and is_expired(transfer.expires_at, now)
    return "expired" if overdue else transfer.status


def waits_for_manager(transfer: Transfer) -> bool:
    """Whether a manager has yet to agree to the transfer, asked or not."""
    return transfer.approval in ("required", "requested")


def may_be_asked_to_confirm(transfer: Transfer, from_account: Account, now: datetime) -> bool:
    """Whether a yes could confirm it: cases 1 to 3 of `decide_confirmation` do not apply."""
    return (
        status_at(transfer, now) == "pending"
        and not is_debit_blocked(from_account)
        and not waits_for_manager(transfer)
    )


def check_payable(
    transfer: Transfer, from_account: Account, to_account: Account, *, available_minor: int
) -> Refused | None:
    """Check again what held when the transfer was prepared: flags, currencies, funds.

    `available_minor` is what the from-account has available; a pending transfer's own reservation
    comes on top of it.
    """
    own_reservation = transfer.amount_minor if transfer.status == "pending" else 0
    refused = check_parties(from_account, to_account) or check_available(
        from_account,
        amount_minor=transfer.amount_minor,
        available_minor=available_minor + own_reservation,
    )
    if refused:
        return replace(refused, subject=transfer.transfer_id)
    return None


# --- what else may happen to a transfer -----------------------------------------------------------


def check_due_payment(
    transfer: Transfer, from_account: Account, to_account: Account, *, available_minor: int
) -> str | None:
    """Return why a scheduled transfer cannot be paid on its date; None if it can."""
    if is_debit_blocked(from_account):
        return f"{_named(from_account)} is locked."
    refused = check_payable(transfer, from_account, to_account, available_minor=available_minor)
    return refused.message if refused else None


def check_cancellation(transfer: Transfer) -> Refused | None:
    """Check that the customer may cancel it: pending, scheduled, or cancelled by them already."""
    cancelled = transfer.status == "voided" and transfer.reason == CANCELLED_BY_CUSTOMER
    if cancelled or transfer.status in ("pending", "scheduled"):
        return None
    return _past_changing(transfer, Argument.TRANSFER_ID)


def check_approval_request(transfer: Transfer) -> Refused | None:
    """Check that the transfer is one that a manager can be asked about."""
    if transfer.status != "pending":
        return _past_changing(transfer, Argument.TRANSFER_ID)
    if transfer.approval == "none":
        return Refused(
            Argument.TRANSFER_ID,
            f"The transfer {transfer.transfer_id} needs no approval: it can be confirmed.",
            subject=transfer.transfer_id,
        )
    return None


def check_still_pending(transfer: Transfer) -> Refused | None:
    """Check that a manager can still decide about the transfer."""
    return None if transfer.status == "pending" else _past_changing(transfer, Argument.APPROVAL_ID)


def check_decision(approval: Approval, decision: ApprovalStatus) -> Refused | None:
    """Check that `decision` is the one already made; it cannot be reversed."""
    if approval.status == decision:
        return None
    return Refused(
        Argument.APPROVAL_ID,
        f"{approval.approval_id} was {approval.status} by {approval.decided_by}.",
        subject=approval.approval_id,
    )


def check_report(
    rules: Rules, transfer: Transfer, to_account: Account, rule: str
) -> Refused | None:
    """Check that the transfer can be reported under `rule`: it is posted, and the rule applies."""
    if transfer.status != "posted":
        return Refused(
            Argument.TRANSFER_ID,
            f"The transfer {transfer.transfer_id} is not posted: there is nothing to report.",
            subject=transfer.transfer_id,
        )
    applies = compliance_rule(rules, amount_minor=transfer.amount_minor, to_account=to_account)
    if rule == applies:
        return None
    return Refused(
        Argument.RULE,
        f'"{excerpt(rule)}" does not apply to the transfer {transfer.transfer_id}: '
        f"{f'{applies} does' if applies else 'no compliance rule does'}.",
        subject=transfer.transfer_id,
    )


def _past_changing(transfer: Transfer, field: Argument) -> Refused:
    why = f" ({transfer.reason})" if transfer.reason else ""
    return Refused(
        field,
        f"The transfer {transfer.transfer_id} is {transfer.status}{why}: "
        "that cannot be changed any more.",
        subject=transfer.transfer_id,
    )


# --- handoffs -------------------------------------------------------------------------------------

DEFAULT_REASON: Final = "Customer asked to speak with an agent"


def check_change_of_choice(handoff: Handoff, choice: HandoffChoice) -> Refused | None:
    """Check that the choice may be recorded: it can be changed until an agent takes the handoff."""
    if handoff.status != "claimed" or handoff.choice == choice:
        return None
    return Refused(
        Argument.HANDOFF_ID,
        f"The handoff {handoff.handoff_id} is with an agent already.",
        subject=handoff.handoff_id,
    )


def check_open_handoffs(rules: Rules, waiting: int) -> TooMany | None:
    """Check that one more handoff may wait for an agent beside the `waiting` ones."""
    if waiting < rules.max_open_handoffs:
        return None
    return TooMany(
        f"You already have {waiting} requests waiting for an agent; those will be handled first."
    )


def check_claim(handoff: Handoff, agent: str) -> Refused | None:
    """Check that `agent` may take the handoff: nobody else has."""
    if handoff.claimed_by in (None, agent):
        return None
    return Refused(
        Argument.HANDOFF_ID,
        f"{handoff.handoff_id} was claimed by {handoff.claimed_by}.",
        subject=handoff.handoff_id,
    )


# --- what a customer may see ----------------------------------------------------------------------


def check_figures_visible(account: Account) -> Refused | None:
    """Check that the account's balance and entries are the customer's own, not a payee's."""
    if account.account_type != "external":
        return None
    return Refused(
        Argument.ACCOUNT_ID,
        f"{_named(account)} is a payee's account: its balance and entries are not yours to see.",
        subject=account.account_id,
    )


@dataclass(frozen=True)
class Period:
    """The days of a statement, UTC, from `first` to `last`.

    `asked` is the request for it: the number of days, `last`, `this` or `2026-10`.
    """

    asked: str
    first: date
    last: date

    @classmethod
    def of(cls, asked: str, first: date) -> "Period":
        """Return the period that begins on a day. Raises ValueError or OverflowError if its end is
        beyond the calendar."""
        if asked.isdecimal():
            return cls(asked, first, first + timedelta(days=int(asked)))
        return cls(asked, first, _month_after(first) - timedelta(days=1))

    @property
    def is_month(self) -> bool:
        """Whether it is a calendar month, and not a number of days up to today."""
        return not self.asked.isdecimal()


def check_statement_period(
    rules: Rules, account: Account, *, days: int, month: str | None, today: date
) -> Period | Refused:
    """Return the period of a statement: a calendar month if one is given, else the last days.

    A month is written `last`, `this` or `2026-10`.
    """
    if month is not None:
        this = today.replace(day=1)
        # As many months back as the days make, so that the same month of last year is the first.
        back = rules.max_statement_days * 12 // 365
        year, month_before = divmod(this.year * 12 + this.month - 1 - back, 12)
        oldest = date(year, month_before + 1, 1)
        asked = _month_asked(month, this)
        if asked is not None and oldest <= asked[1] <= this:
            return Period.of(*asked)
        return Refused(
            Argument.MONTH,
            f'There is no statement for "{excerpt(month, 30)}": write last, this, or a month from '
            f"{oldest:%Y-%m} to {this:%Y-%m}.",
            subject=account.account_id,
        )
    if 1 <= days <= rules.max_statement_days:
        return Period.of(str(days), today - timedelta(days=days))
    return Refused(
        Argument.DAYS,
        f"The number of days must be from 1 to {rules.max_statement_days}.",
        subject=account.account_id,
    )


def _month_asked(text: str, this: date) -> tuple[str, date] | None:
    """Return the normalized name of a month, and its first day; None if the text names no month.

    `this` is the first day of the current month.
    """
    words = text.strip().lower().removesuffix(" month")
    if words in ("this", "current"):
        return "this", this
    if words in ("last", "previous"):
        return "last", (this - timedelta(days=1)).replace(day=1)
    try:
        return words, date.fromisoformat(f"{words}-01")
    except ValueError:
        return None


def _month_after(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


# --- texts ----------------------------------------------------------------------------------------


def excerpt(text: str, limit: int = 60) -> str:
    """Return a caller's text safe to print and store: escaped if unprintable, and shortened."""
    shown = printable(text[:limit], lines=False)
    return shown if max(len(text), len(shown)) <= limit else f"{shown[: limit - 1]}…"


def check_required_text(rules: Rules, field: Argument, text: str) -> Refused | None:
    """Check a required reason or name: not blank, and valid to store."""
    if not text or text.isspace():
        return Refused(field, "The text is empty: say it in a few words.")
    return _check_text(field, text, rules.max_reason_length)


def check_reason(rules: Rules, reason: str | None) -> Refused | str:
    """Return the reason to record, if it is fit: the given one, or `DEFAULT_REASON` for none."""
    if reason is None or not reason.strip():
        return DEFAULT_REASON
    return _check_text(Argument.REASON, reason, rules.max_reason_length) or reason


def _check_text(field: Argument, text: str, limit: int) -> Refused | None:
    if len(text) > limit:
        return Refused(field, f"The text has {len(text)} characters: at most {limit} are allowed.")
    if found := CONTROL.search(text):
        return Refused(
            field, f"The text contains a control character (U+{ord(found[0]):04X}): remove it."
        )
    return None
