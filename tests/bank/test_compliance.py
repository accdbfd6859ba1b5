"""Compliance reports: for what was posted, under the rule that applies, once."""

import pytest

from banking_server.bank.compliance import ReportRecorded, record_report
from banking_server.bank.location import Location
from banking_server.bank.rules import Argument, NotFound, Refused, excerpt
from banking_server.bank.storage import Bank

from ..kit.words import PAYEE, SAVINGS
from .support import BAD_IDS, HOUR, NOW, call, outcomes, posted, prepared, sql

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

RULE = "external-payee-3000"


async def test_a_report_is_filed_once(bank: Bank, path: Location) -> None:
    transfer_id = (await posted(bank, "3000.00", source=SAVINGS, target=PAYEE)).transfer.transfer_id
    first = await record_report(bank, call("report"), transfer_id, RULE)
    assert isinstance(first, ReportRecorded)
    report = first.report
    assert (report.transfer_id, report.rule, report.customer_id, report.created_at) == (
        transfer_id,
        RULE,
        "CUST001",
        NOW,
    )
    again = await record_report(bank, call("report", at=NOW + HOUR), transfer_id, RULE)
    assert again == ReportRecorded(report)
    assert sql(path, "SELECT count(*) FROM compliance_report") == [(1,)]
    assert outcomes(path)[-2:] == [("report", "report_recorded", report.report_id)] * 2


async def test_where_no_rule_applies_nothing_is_filed(bank: Bank, path: Location) -> None:
    transfer_id = (await posted(bank, "2999.99", source=SAVINGS, target=PAYEE)).transfer.transfer_id
    outcome = await record_report(bank, call(), transfer_id, RULE)
    assert isinstance(outcome, Refused)
    assert outcome.field == "rule"
    assert sql(path, "SELECT count(*) FROM compliance_report") == [(0,)]


async def test_what_is_not_posted_or_not_the_callers_is_not_reported(bank: Bank) -> None:
    pending = (await prepared(bank, "3000.00", source=SAVINGS, target=PAYEE)).transfer.transfer_id
    outcome = await record_report(bank, call(), pending, RULE)
    assert isinstance(outcome, Refused)
    assert outcome.field == Argument.TRANSFER_ID
    for customer, transfer_id in [("CUST002", pending), *(("CUST001", bad) for bad in BAD_IDS)]:
        expected = NotFound(Argument.TRANSFER_ID, excerpt(transfer_id))
        assert await record_report(bank, call(customer=customer), transfer_id, RULE) == expected
