"""The bank's own desks, the audit trail and settlement."""

import json
import re
from pathlib import Path

import pytest

from ..kit.command import Cli
from .support import (
    at_the_bank,
    one_line,
    schedule_for_tomorrow,
    tomorrow,
    wait_for_a_manager,
    wait_for_an_agent,
)

pytestmark = pytest.mark.usefixtures("created")

IN_WORDS = "12,000.00 USD from High Yield Savings to Everyday Checking"


def test_the_agents_desk(cli: Cli, database: Path) -> None:
    nobody = "No customer is waiting for an agent.\n"
    assert cli("handoffs").out == nobody
    handoff = at_the_bank(database, wait_for_an_agent)
    listed = cli("handoffs").out
    assert listed.startswith(f"{handoff}  open\n  CUST001 wants to be called back, since ")
    assert listed.endswith("  [b]Locked[/b]\n")
    told = json.loads(cli("handoffs", "--json").out)
    assert (told["handoffId"], told["choice"], told["status"]) == (handoff, "callback", "open")
    claim = ("handoffs", "claim", handoff, "--agent")
    claimed = cli(*claim, "Ada")
    assert (claimed.code, claimed.out.splitlines()[-1]) == (0, "  taken by Ada")
    assert cli("handoffs").out == nobody
    assert cli(*claim, "Ada") == claimed
    assert "Ada" in one_line(cli(*claim, "Bob"))
    assert "'ho_none'" in one_line(cli("handoffs", "claim", "ho_none", "--agent", "Ada"))


@pytest.mark.parametrize(("decision", "status"), [("grant", "granted"), ("refuse", "refused")])
def test_the_managers_desk(cli: Cli, database: Path, decision: str, status: str) -> None:
    assert cli("approvals").out == "No transfer is waiting for a manager.\n"
    approval = at_the_bank(database, wait_for_a_manager)
    listed = cli("approvals").out
    assert listed.startswith(f"{approval}  requested\n  CUST001, asked on ")
    assert IN_WORDS in listed
    told = json.loads(cli("approvals", "--json").out)
    assert (told["approvalId"], told["amount"], told["currency"]) == (approval, 12_000, "USD")
    decided = cli("approvals", decision, approval, "--manager", "Grace")
    assert decided.code == 0
    assert decided.out.startswith(f"{approval}  {status}\n")
    assert f"{status} by Grace" in decided.out
    assert cli("approvals").out == "No transfer is waiting for a manager.\n"
    other = "refuse" if decision == "grant" else "grant"
    one_line(cli("approvals", other, approval, "--manager", "Grace"))


def test_the_codes_of_what_waits_to_be_confirmed(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKING_CODES", "desk")
    assert cli("codes").out == "No transfer is waiting to be confirmed.\n"
    at_the_bank(database, wait_for_a_manager)
    first, until, what = cli("codes").out.splitlines()
    assert re.fullmatch(r"tr_[0-9a-f]{16}  \d{6}", first)
    assert re.fullmatch(r"  CUST001, until .* UTC, after a manager has approved it", until)
    assert IN_WORDS in what
    told = json.loads(cli("codes", "--json").out)
    assert f"{told['transferId']}  {told['code']}" == first
    assert told["needsManager"] is True
    assert cli("codes", "--customer", "CUST002").out.startswith("No transfer")
    assert "'CUST999'" in one_line(cli("codes", "--customer", "CUST999"))
    # They are of the servers' secret, or none.
    secret = database.with_name("bank.db.secret")
    secret.unlink()
    assert "bank.db.secret cannot be used" in one_line(cli("codes"))
    assert not secret.exists()


def test_the_audit_trail(cli: Cli, database: Path) -> None:
    assert cli("audit").out == "There are no events of anybody.\n"
    handoff = at_the_bank(database, wait_for_an_agent)
    shown = cli("audit").out.splitlines()
    assert shown[0].endswith(f"CUST001  request_agent_handoff  handoff_opened {handoff}")
    assert shown[1] == "  chain c-1, call 1"
    event = json.loads(cli("audit", "--json").out)
    assert event["tool"] == "request_agent_handoff"
    assert (event["chainId"], event["chainLevel"], event["chainPreviousTool"]) == ("c-1", 1, None)
    assert cli("audit", "--customer", "CUST001").out.splitlines() == shown
    assert cli("audit", "--customer", "CUST002").out == "There are no events of CUST002.\n"


def test_settling(cli: Cli, database: Path) -> None:
    transfer = at_the_bank(database, schedule_for_tomorrow)
    assert cli("settle").out == "Nothing was due.\n"
    assert cli("settle", "--as-of", tomorrow()).out.startswith(f"{transfer}  posted\n")
    assert cli("settle", "--as-of", tomorrow()).out == "Nothing was due.\n"
