"""Compliance: large postings to external payees are reported, each once per rule."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from banking_server.bank.audit import Call, write_and_audit
from banking_server.bank.models import TABLES, Account, ComplianceReport, Transfer, new_id
from banking_server.bank.rules import Argument, NotFound, Outcome, Refused, check_report, excerpt
from banking_server.bank.storage import Bank, find_owned
from banking_server.bank.transaction import Transaction, records


@dataclass(frozen=True)
class ReportRecorded(Outcome, recorded_as="report_recorded"):
    """The posting is reported, now or earlier."""

    report: ComplianceReport

    @property
    def subject(self) -> str:
        """The report, for the audit trail."""
        return self.report.report_id


async def record_report(
    bank: Bank, call: Call, transfer_id: str, rule: str
) -> ReportRecorded | NotFound | Refused:
    """Report one of the customer's posted transfers under `rule`, which must apply to it.

    Posting already filed the report (`transfers.records.post`); this shows it. It files one only
    for a posting under another threshold.
    """

    def file(tx: Transaction) -> ReportRecorded | NotFound | Refused:
        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)
        if transfer is None:
            return NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        to_account = tx.get(Account, transfer.to_account_id)
        refused = check_report(bank.rules, transfer, to_account, rule)
        return refused or add_report(tx, transfer, rule, call.at)

    return await write_and_audit(bank, call, file)


_reports = TABLES[ComplianceReport].c
_UNDER_RULE = records(
    ComplianceReport,
    _reports.transfer_id == sa.bindparam("transfer_id"),
    _reports.rule == sa.bindparam("rule"),
)


def add_report(tx: Transaction, transfer: Transfer, rule: str, now: datetime) -> ReportRecorded:
    """File the report in the caller's transaction, unless it has been filed."""
    report = tx.first(_UNDER_RULE, transfer_id=transfer.transfer_id, rule=rule)
    if report is None:
        report = ComplianceReport(
            report_id=new_id("cr"),
            transfer_id=transfer.transfer_id,
            rule=rule,
            customer_id=transfer.customer_id,
            created_at=now,
        )
        tx.add(report)
    return ReportRecorded(report)
