"""The tool that records a compliance report about a large payment to an external payee."""

from datetime import datetime
from typing import Annotated, Literal

from mcp.types import CallToolResult
from pydantic import Field

from banking_server.bank import compliance as bank_compliance
from banking_server.bank.compliance import ReportRecorded
from banking_server.tools.calling import current_call
from banking_server.tools.declaration import bank_tool
from banking_server.tools.next_steps import next_step
from banking_server.tools.results import Structured, refusal_of, result
from banking_server.tools.scopes import TRANSFER_SCOPE


class ReportOut(Structured):
    """A recorded compliance report."""

    status: Literal["recorded"]
    report_id: str
    transfer_id: str
    rule: str
    created_at: datetime


@bank_tool(title="Record Compliance Report", scope=TRANSFER_SCOPE)
async def record_compliance_report(
    transferId: Annotated[str, Field(description="The transferId of a posted transfer.")],
    rule: Annotated[
        str, Field(description="The compliance rule that the posting met, as the server named it.")
    ],
) -> Annotated[CallToolResult, ReportOut]:
    """Record that a posted transfer met a compliance rule. The server names the transfer and the
    rule; recording the same again changes nothing."""
    bank, call = current_call()
    outcome = await bank_compliance.record_report(bank, call, transferId, rule)
    if not isinstance(outcome, ReportRecorded):
        return refusal_of(outcome)
    report = outcome.report
    return result(
        f"Transfer {report.transfer_id} is reported to compliance under rule {report.rule}.",
        ReportOut(
            status="recorded",
            report_id=report.report_id,
            transfer_id=report.transfer_id,
            rule=report.rule,
            created_at=report.created_at,
        ),
        then=next_step(outcome),
    )
