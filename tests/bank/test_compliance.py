"""Compliance reports: for what was posted, under the rule that applies, once."""

import pytest

from banking_server.bank.compliance import ReportRecorded, record_report
from banking_server.bank.location import Location
from banking_server.bank.storage import Bank

from ..kit.words import PAYEE, SAVINGS
from .support import HOUR, NOW, call, outcomes, posted, sql

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
