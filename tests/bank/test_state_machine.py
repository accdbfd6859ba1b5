"""Random days at the bank: after every step the books balance and a simple model agrees.

The model is written from the contract, not from the code: a few dictionaries, no database.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from banking_server.bank.accounts import view_account
from banking_server.bank.approvals import decide_approval, request_approval
from banking_server.bank.location import Location
from banking_server.bank.models import Account, Transfer
from banking_server.bank.rules import Rules
from banking_server.bank.transaction import Transaction
from banking_server.bank.transfers.confirm import cancel_transfer, settle
from banking_server.bank.transfers.records import read_parties, view_transfer

from ..kit.postgres import Resettable
from ..kit.words import wrong
from .support import NOW, call, check_books, confirm, open_bank, prepare, sql

RULES = Rules(
    approval_threshold_minor=40_000,
    compliance_threshold_minor=20_000,
    max_wrong_codes_an_hour=1_000,  # `test_limits` has what comes of too many.
)
FILES = {
    "customers.yaml": "- {customer_id: CUST001, name: One}",
    "accounts.yaml": """
- {account_id: acc_a, customer_id: CUST001, account_name: A, account_type: checking, currency: USD,
   can_transfer_from: true, can_transfer_to: true, balance: "900.00"}
- {account_id: acc_b, customer_id: CUST001, account_name: B, account_type: savings, currency: USD,
   can_transfer_from: true, can_transfer_to: true, balance: "500.00"}
- {account_id: acc_p, customer_id: CUST001, account_name: P, account_type: external, currency: USD,
   can_transfer_to: true, account_holder: Payee}
""",
    "history.yaml": "[]",
}


@dataclass
class Expected:
    """What the model knows of one transfer."""

    source: str
    target: str
    cents: int
    day: date | None
    expires: datetime
    code: str
    approval: str
    status: str = "pending"
    wrong: int = 0
    receipt: Any = None
    approval_id: str = ""


def came_before(outcome: Any) -> int:
    order = ["WrongCode", "VoidedForCodes"]
    said = type(outcome).__name__
    return order.index(said) if said in order else len(order)


PARTIES = st.sampled_from(
    [
        *[("acc_a", "acc_b"), ("acc_b", "acc_a"), ("acc_a", "acc_p"), ("acc_b", "acc_p")] * 2,
        *[("acc_p", "acc_a"), ("acc_a", "acc_a")],
    ]
)
CENTS = st.sampled_from([1, 9_999, 10_000, 20_000, 40_001, 40_001])
DAYS = st.sampled_from([None, None, None, 0, 1, 2])


class BankMachine(RuleBasedStateMachine):
    """Everything customers, managers, operators and time can do, in any order."""

    fresh: Callable[[Path], Location]
    """Makes a bank, in this folder if it is a file."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.fresh(self.folder)
        self.runner = asyncio.Runner()
        self.bank = self.runner.run(open_bank(self.path, rules=RULES))
        self.now = NOW
        self.steps = 0
        self.locked = {"acc_a": False, "acc_b": False}
        self.model: dict[str, Expected] = {}
        self.posted = {"acc_a": 90_000, "acc_b": 50_000, "acc_p": 0}

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.bank.close())
            self.runner.close()
            shutil.rmtree(self.folder)

    # --- the model

    def status(self, transfer: Expected) -> str:
        overdue = transfer.status == "pending" and self.now >= transfer.expires
        return "expired" if overdue else transfer.status

    def reserved(self, account: str) -> int:
        return sum(
            each.cents
            for each in self.model.values()
            if each.source == account and self.status(each) == "pending"
        )

    def available(self, account: str) -> int:
        return self.posted[account] - self.reserved(account)

    def move(self, transfer: Expected) -> None:
        transfer.status = "posted"
        self.posted[transfer.source] -= transfer.cents
        self.posted[transfer.target] += transfer.cents

    def pick(self, data: st.DataObject, *, large: bool = False) -> str:
        """Choose a transfer: mostly one that something can still happen to."""
        live = [
            i
            for i, each in self.model.items()
            if self.status(each) in ("pending", "scheduled")
            and (each.approval != "none" or not large)
        ]
        among = live if live and data.draw(st.integers(0, 3)) else list(self.model)
        return data.draw(st.sampled_from(among))

    # --- what can happen

    @rule(parties=PARTIES, cents=CENTS, days=DAYS)
    def prepare_one(self, parties: tuple[str, str], cents: int, days: int | None) -> None:
        self.prepare(parties, cents, days)

    def prepare(self, parties: tuple[str, str], cents: int, days: int | None) -> str | None:
        """Prepare; return the transfer's id if a new one was made."""
        source, to = parties
        day = None if days is None else self.now.date() + timedelta(days=days)
        outcome = self.runner.run(
            prepare(
                self.bank,
                f"{cents // 100}.{cents % 100:02d}",
                source=source,
                target=to,
                on=None if day is None else str(day),
                at=self.now,
            )
        )
        said = type(outcome).__name__
        if self.locked.get(source):
            assert said == "AccountLocked"
            return None
        if source in (to, "acc_p"):
            assert said == "Refused"
            return None
        day = None if day == self.now.date() else day
        same = [
            transfer_id
            for transfer_id, each in self.model.items()
            if self.status(each) == "pending"
            and (each.source, each.target, each.cents, each.day) == (source, to, cents, day)
        ]
        if same:
            expected = self.model[same[0]]
            assert (outcome.transfer.transfer_id, outcome.code) == (same[0], expected.code)
            assert said == (
                "OverThreshold" if expected.approval in ("required", "requested") else "Prepared"
            )
            return None
        if cents > self.available(source):
            assert said == "Refused"
            return None
        over = cents > RULES.approval_threshold_minor
        assert said == ("OverThreshold" if over else "Prepared")
        assert outcome.transfer.transfer_id not in self.model
        self.model[outcome.transfer.transfer_id] = Expected(
            source=source,
            target=to,
            cents=cents,
            day=day,
            expires=self.now + (timedelta(hours=24) if over else timedelta(minutes=10)),
            code=outcome.code,
            approval="required" if over else "none",
        )
        return str(outcome.transfer.transfer_id)

    @precondition(lambda self: bool(self.model))
    @rule(
        data=st.data(),
        agreed=st.booleans(),
        code=st.sampled_from(["right", "wrong", "wrong", "none"]),
        times=st.sampled_from([1, 2, 3]),
    )
    def confirm_one(self, data: st.DataObject, agreed: bool, code: str, times: int) -> None:
        self.confirm(self.pick(data), agreed=agreed, code=code, times=times)

    def confirm(self, transfer_id: str, *, agreed: bool, code: str, times: int) -> None:
        expected = self.model[transfer_id]
        given = {"right": expected.code, "wrong": wrong(expected.code), "none": None}[code]

        async def at_once() -> list[Any]:
            return await asyncio.gather(
                *(
                    confirm(self.bank, transfer_id, agreed=agreed, code=given, at=self.now)
                    for _ in range(times)
                )
            )

        # Those who come at once come in any order.
        for outcome in sorted(self.runner.run(at_once()), key=came_before):
            self.check_confirmation(expected, outcome, agreed=agreed, code=code)

    def check_confirmation(
        self, expected: Expected, outcome: Any, *, agreed: bool, code: str
    ) -> None:
        said = type(outcome).__name__
        expected.status = self.status(expected)
        if expected.status == "posted":
            assert said == "Posted"
            if expected.receipt is not None:
                assert outcome == expected.receipt
            reportable = expected.target == "acc_p" and expected.cents >= 20_000
            assert (outcome.compliance_rule == "external-payee-200") is reportable
            expected.receipt = outcome
        elif expected.status == "voided":
            assert said == ("ApprovalRefused" if expected.approval == "refused" else "Voided")
        elif expected.status != "pending":
            names = {"scheduled": "Scheduled", "expired": "Expired", "failed": "TransferFailed"}
            assert said == names[expected.status]
        elif self.locked[expected.source]:
            assert said == "AccountLocked"
        elif expected.approval in ("required", "requested"):
            assert said == "ApprovalOutstanding"
            assert outcome.requested == (expected.approval == "requested")
        elif code == "wrong":
            expected.wrong += 1
            if expected.wrong == 5:
                expected.status = "voided"
            assert said == ("VoidedForCodes" if expected.wrong == 5 else "WrongCode")
        elif code == "none" and not agreed:
            assert said == "CodeMissing"
        elif expected.day is not None and expected.day > self.now.date():
            assert said == "Scheduled"
            expected.status = "scheduled"
        else:
            assert said == "Posted"
            expected.receipt = outcome
            self.move(expected)

    @rule(parties=PARTIES, cents=CENTS, days=DAYS)
    def prepare_and_confirm(self, parties: tuple[str, str], cents: int, days: int | None) -> None:
        transfer_id = self.prepare(parties, cents, days)
        if transfer_id is not None:
            self.confirm(transfer_id, agreed=True, code="none", times=2)

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        transfer_id = self.pick(data)
        expected = self.model[transfer_id]
        outcome = self.runner.run(cancel_transfer(self.bank, call(at=self.now), transfer_id))
        expected.status = self.status(expected)
        was_cancelled = expected.receipt == "cancelled"
        if expected.status in ("pending", "scheduled") or was_cancelled:
            assert type(outcome).__name__ == "Cancelled"
            expected.status, expected.receipt = "voided", "cancelled"
        else:
            assert type(outcome).__name__ == "Refused"

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def ask_the_manager(self, data: st.DataObject) -> None:
        transfer_id = self.pick(data, large=True)
        expected = self.model[transfer_id]
        outcome = self.runner.run(
            request_approval(self.bank, call(at=self.now), transfer_id, reason="because")
        )
        expected.status = self.status(expected)
        if expected.status != "pending" or expected.approval == "none":
            assert type(outcome).__name__ == "Refused"
        elif expected.approval == "granted":
            assert type(outcome).__name__ == "ApprovalGranted"
        else:
            assert type(outcome).__name__ == "ApprovalRequested"
            approval_id = outcome.approval.approval_id  # type: ignore[union-attr]
            assert expected.approval_id in ("", approval_id)
            expected.approval, expected.approval_id = "requested", approval_id

    @precondition(lambda self: any(each.approval_id for each in self.model.values()))
    @rule(data=st.data(), granted=st.booleans())
    def decide(self, data: st.DataObject, granted: bool) -> None:
        asked = [each for each in self.model.values() if each.approval_id]
        expected = data.draw(st.sampled_from(asked))
        outcome = self.runner.run(
            decide_approval(
                self.bank, expected.approval_id, granted=granted, manager="Mo", now=self.now
            )
        )
        wanted = "granted" if granted else "refused"
        expected.status = self.status(expected)
        if expected.approval == "requested" and expected.status == "pending":
            expected.approval = wanted
            if not granted:
                expected.status = "voided"
        agrees = expected.approval == wanted
        assert type(outcome).__name__ == ("Approval" if agrees else "Refused")

    @rule(account=st.sampled_from(["acc_a", "acc_b"]), lock=st.sampled_from([True, False, False]))
    def lock_or_unlock(self, account: str, lock: bool) -> None:
        self.locked[account] = lock
        sql(self.path, "UPDATE account SET is_locked = ? WHERE account_id = ?", lock, account)

    @rule(
        minutes=st.sampled_from([1, 1, 9, 10, 60, 23 * 60, 24 * 60]),
        restart=st.sampled_from([False, False, True]),
    )
    def time_passes(self, minutes: int, restart: bool) -> None:
        self.now += timedelta(minutes=minutes)
        if restart:
            self.runner.run(self.bank.close())
            self.bank = self.runner.run(open_bank(self.path, rules=RULES))

    @rule()
    def settle(self) -> None:
        views = self.runner.run(settle(self.bank, as_of=self.now.date(), now=self.now))
        changed = {view.transfer_id: view.status for view in views}
        for view in views:
            expected = self.model[view.transfer_id]
            if expected.status == "scheduled":
                assert expected.day is not None
                assert expected.day <= self.now.date()
                payable = (
                    not self.locked[expected.source]
                    and self.available(expected.source) >= expected.cents
                )
                assert view.status == ("posted" if payable else "failed")
                if payable:
                    self.move(expected)
                else:
                    expected.status = "failed"
        for transfer_id, expected in self.model.items():
            expected.status, before = self.status(expected), expected.status
            if before == "pending" and expected.status == "expired":
                assert changed[transfer_id] == "expired"
            is_due = expected.day is not None and expected.day <= self.now.date()
            assert not (expected.status == "scheduled" and is_due)

    # --- what always holds

    @invariant()
    def the_books_balance(self) -> None:
        """Asked after every fifth step: what is wrong with the books once stays wrong."""
        if hasattr(self, "path"):
            self.steps += 1
            if self.steps % 5 == 0:
                check_books(self.path, self.now)

    @invariant()
    def the_model_agrees(self) -> None:
        if hasattr(self, "path"):
            self.runner.run(self.bank.read(self.compare))

    def compare(self, tx: Transaction) -> None:
        for transfer_id, expected in self.model.items():
            transfer = tx.get(Transfer, transfer_id)
            view = view_transfer(transfer, read_parties(tx, transfer), self.now)
            assert (view.status, view.approval) == (self.status(expected), expected.approval)
        for account_id in ("acc_a", "acc_b"):
            found = view_account(tx, tx.get(Account, account_id), self.now)
            assert found.available_minor is not None
            assert found.available_minor >= 0
            assert (found.posted_minor, found.reserved_minor) == (
                self.posted[account_id],
                self.reserved(account_id),
            )


@pytest.fixture
def fresh(engine: str, tmp_path: Path) -> Callable[[Path], Location]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)

    async def fill(location: Location) -> None:
        await (await open_bank(location, data=tmp_path)).close()

    if engine == "postgresql":
        database = Resettable("small_bank", fill)
        return lambda _: database.reset()
    asyncio.run(fill(tmp_path / "bank.db"))
    return lambda folder: Path(shutil.copy(tmp_path / "bank.db", folder))


@pytest.mark.on_each
def test_random_days_at_the_bank(fresh: Callable[[Path], Location], nightly: bool) -> None:
    machine = type("Machine", (BankMachine,), {"fresh": staticmethod(fresh)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=100 if nightly else 15,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
