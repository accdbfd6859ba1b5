"""The commands that need no server: the bank's desks, tokens, the database, and their mistakes."""

import json
import socket
import subprocess
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import anyio
import jwt
import pytest

from banking_server import __version__
from banking_server.bank import approvals, handoffs, transfers
from banking_server.bank.audit import Call
from banking_server.bank.storage import Bank
from banking_server.server.build import open_bank, utc_now
from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens, load_keys

from ..kit.command import Cli, Ended, command, environment, run


def one_line(ended: Ended) -> str:
    """Return the error, which is one line on standard error and nothing else."""
    assert (ended.code, ended.out) == (2, ""), ended
    assert ended.err.count("\n") == 1, ended
    assert ended.err.startswith("banking-server: "), ended
    return ended.err


def at_the_bank(database: Path, work: Callable[[Bank], object]) -> object:
    async def open_and_work() -> object:
        settings = load_settings(database=database)
        bank = await open_bank(settings, utc_now(), load_keys(settings))
        try:
            return await work(bank)  # type: ignore[misc]
        finally:
            await bank.close()

    return anyio.run(open_and_work)


def call(tool: str) -> Call:
    return Call(customer_id="CUST001", tool=tool, at=utc_now(), chain_id="c-1", chain_level=1)


async def wait_for_an_agent(bank: Bank) -> str:
    opened = await handoffs.open_handoff(
        bank, call("request_agent_handoff"), reason="[b]Locked[/b]", choice="callback"
    )
    assert isinstance(opened, handoffs.HandoffOpened)
    return opened.handoff.handoff_id


async def wait_for_a_manager(bank: Bank) -> str:
    prepared = await transfers.prepare_transfer(
        bank,
        call("prepare_money_transfer"),
        from_account_id="acc_savings_001",
        to_account_id="acc_everyday_001",
        amount=Decimal("12000"),
        scheduled_date=None,
        memo=None,
    )
    assert isinstance(prepared, transfers.OverThreshold)
    requested = await approvals.request_approval(
        bank, call("request_manager_approval"), prepared.transfer.transfer_id, reason="A house"
    )
    assert isinstance(requested, approvals.ApprovalRequested)
    return requested.approval.approval_id


async def schedule_for_tomorrow(bank: Bank) -> str:
    prepared = await transfers.prepare_transfer(
        bank,
        call("prepare_money_transfer"),
        from_account_id="acc_savings_001",
        to_account_id="acc_everyday_001",
        amount=Decimal("10"),
        scheduled_date=tomorrow(),
        memo=None,
    )
    assert isinstance(prepared, transfers.Prepared)
    transfer = prepared.transfer.transfer_id
    confirm = call("confirm_or_cancel_money_transfer")
    await transfers.confirm_transfer(bank, confirm, transfer, customer_agreed=True, code=None)
    return transfer


def tomorrow() -> str:
    return (utc_now().date() + timedelta(days=1)).isoformat()


# --- the desks ------------------------------------------------------------------------------------


def test_the_agents_desk(cli: Cli, database: Path) -> None:
    assert cli("handoffs").out == "No customer is waiting for an agent.\n"
    handoff = at_the_bank(database, wait_for_an_agent)
    listed = cli("handoffs")
    assert listed.code == 0
    assert listed.out.startswith(f"{handoff}  open\n  CUST001 wants to be called back, since ")
    assert listed.out.endswith("  [b]Locked[/b]\n")
    claimed = cli("handoffs", "claim", str(handoff), "--agent", "Ada")
    assert (claimed.code, claimed.out.splitlines()[-1]) == (0, "  taken by Ada")
    assert cli("handoffs").out == "No customer is waiting for an agent.\n"
    assert cli("handoffs", "claim", str(handoff), "--agent", "Ada").code == 0
    assert "Ada" in one_line(cli("handoffs", "claim", str(handoff), "--agent", "Bob"))
    assert "'ho_none'" in one_line(cli("handoffs", "claim", "ho_none", "--agent", "Ada"))
    one_line(cli("handoffs", "claim", str(handoff), "--agent", ""))


@pytest.mark.parametrize(("decision", "status"), [("grant", "granted"), ("refuse", "refused")])
def test_the_managers_desk(cli: Cli, database: Path, decision: str, status: str) -> None:
    assert cli("approvals").out == "No transfer is waiting for a manager.\n"
    approval = str(at_the_bank(database, wait_for_a_manager))
    listed = cli("approvals")
    assert listed.out.startswith(f"{approval}  requested\n  CUST001, asked on ")
    assert "12,000.00 USD from High Yield Savings to Everyday Checking" in listed.out
    decided = cli("approvals", decision, approval, "--manager", "Grace")
    assert decided.code == 0
    assert decided.out.startswith(f"{approval}  {status}\n")
    assert f"{status} by Grace" in decided.out
    assert cli("approvals").out == "No transfer is waiting for a manager.\n"
    other = "refuse" if decision == "grant" else "grant"
    one_line(cli("approvals", other, approval, "--manager", "Grace"))
    assert "'ap_none'" in one_line(cli("approvals", decision, "ap_none", "--manager", "Grace"))


def test_the_audit_trail(cli: Cli, database: Path) -> None:
    assert cli("audit").out == "The audit trail is empty.\n"
    assert cli("audit", "--json").out == ""
    handoff = at_the_bank(database, wait_for_an_agent)
    shown = cli("audit").out.splitlines()
    assert shown[0].endswith(f"CUST001  request_agent_handoff  handoff_opened {handoff}")
    assert shown[1] == "  chain c-1, call 1"
    (event,) = [json.loads(line) for line in cli("audit", "--json").out.splitlines()]
    assert event["tool"] == "request_agent_handoff"
    assert (event["chainId"], event["chainLevel"], event["chainPreviousTool"]) == ("c-1", 1, None)
    assert cli("audit", "--customer", "CUST001").out.splitlines() == shown
    assert cli("audit", "--customer", "CUST002").out == "The audit trail is empty.\n"


def test_settling(cli: Cli, database: Path) -> None:
    transfer = at_the_bank(database, schedule_for_tomorrow)
    assert cli("settle").out == "Nothing was due.\n"
    settled = cli("settle", "--as-of", tomorrow())
    assert settled.code == 0
    assert settled.out.startswith(f"{transfer}  posted\n")
    assert cli("settle", "--as-of", tomorrow()).out == "Nothing was due.\n"
    for bad in ("tomorrow", "2026-02-30", "2026-1-1"):
        refused = cli("settle", "--as-of", bad)
        assert refused.code == 2
        assert bad in refused.err


# --- tokens and the database ----------------------------------------------------------------------


def test_token_prints_nothing_but_the_token(cli: Cli, database: Path) -> None:
    minted = cli("token", "--customer", "CUST002", "--scope", "bank:read")
    assert (minted.code, minted.err) == (0, "")
    assert minted.out.count("\n") == 1
    settings = load_settings(database=database)
    access = Tokens.of(settings, load_keys(settings)).read(minted.out.strip())
    assert access is not None
    assert (access.subject, access.scopes) == ("CUST002", ["bank:read"])


def test_a_token_is_for_one_server(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_TOKEN_LIFETIME", "60")
    minted = cli("token", "--customer", "CUST001", "--url", "https://bank.example/mcp")
    claims = jwt.decode(minted.out.strip(), options={"verify_signature": False})
    assert (claims["aud"], claims["iss"]) == ("https://bank.example/mcp", "https://bank.example")
    assert claims["scope"] == "bank:read bank:transfer"
    assert claims["exp"] - claims["iat"] == 60


def test_no_token_for_a_stranger_or_a_scope_that_is_none(cli: Cli) -> None:
    assert "no customer 'CUST999'" in one_line(cli("token", "--customer", "CUST999"))
    refused = cli("token", "--customer", "CUST001", "--scope", "bank:everything")
    assert (refused.code, refused.out) == (2, "")


def test_the_database(
    cli: Cli, database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cli("database", "path").out == f"{database}\n"
    assert cli("--database", str(tmp_path / "x"), "database", "path").out == f"{tmp_path / 'x'}\n"
    assert cli("database", "path", "--database", str(tmp_path / "y")).out == f"{tmp_path / 'y'}\n"
    monkeypatch.delenv("BANKING_DATABASE")
    default = cli("database", "path").out
    assert default.endswith("bank.db\n")
    assert not database.exists()


def test_reset_needs_a_yes_and_starts_anew(cli: Cli, database: Path) -> None:
    at_the_bank(database, wait_for_an_agent)
    assert "--yes" in one_line(cli("database", "reset"))
    assert "open" in cli("handoffs").out
    assert cli("database", "reset", "--yes").code == 0
    assert cli("handoffs").out == "No customer is waiting for an agent.\n"
    database.write_bytes(database.read_bytes()[:2000])  # damaged
    assert "damaged" in one_line(cli("handoffs"))
    assert cli("database", "reset", "--yes").code == 0
    assert cli("handoffs").code == 0


def test_reset_spares_what_is_not_ours_or_in_use(cli: Cli, database: Path, tmp_path: Path) -> None:
    other = tmp_path / "letter.txt"
    other.write_text("Dear Ada, " * 50)
    refused = cli("--database", str(other), "database", "reset", "--yes")
    assert "not a database of this program" in one_line(refused)
    assert other.read_text() == "Dear Ada, " * 50

    async def meanwhile(bank: Bank) -> None:
        await handoffs.list_open_handoffs(bank)
        ended = await anyio.to_thread.run_sync(cli, "database", "reset", "--yes")
        assert "is in use" in one_line(ended)

    at_the_bank(database, meanwhile)


# --- mistakes at the start ------------------------------------------------------------------------


SERVING: tuple[tuple[str, ...], ...] = ((), ("serve",), ("serve", "--http"))


@pytest.mark.parametrize("arguments", SERVING)
def test_a_database_that_cannot_be_opened(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    for path in (tmp_path / "notes.txt", tmp_path / "notes.txt" / "bank.db", tmp_path):
        monkeypatch.setenv("BANKING_DATABASE", str(path))
        assert str(path) in one_line(cli(*arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt"]


@pytest.mark.parametrize("arguments", SERVING)
def test_a_secret_that_others_can_read(
    cli: Cli, database: Path, arguments: tuple[str, ...]
) -> None:
    secret = database.with_name("bank.db.secret")
    secret.write_text("s" * 40)
    secret.chmod(0o644)
    assert "chmod 600" in one_line(cli(*arguments))


@pytest.mark.parametrize("arguments", [*SERVING, ("handoffs",), ("token", "--customer", "CUST001")])
def test_a_bad_setting(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("BANKING_TRANSFER_EXPIRY", "soon")
    assert "BANKING_TRANSFER_EXPIRY" in one_line(cli(*arguments))


def test_an_unknown_customer(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no customer 'CUST999'" in one_line(cli("--customer", "CUST999"))
    monkeypatch.setenv("BANKING_CUSTOMER", "\u001b[2J")
    assert "\x1b" not in one_line(cli())


def test_a_busy_port(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for workers in ("1", "2"):
            refused = cli("serve", "--http", "--port", port, "--workers", workers)
            assert f"port {port}: address already in use" in one_line(refused)


def test_a_host_that_is_not_here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANKING_RESOURCE_URL", "https://bank.example/mcp")
    for host in ("192.0.2.1", "no such host"):
        assert host in one_line(cli("serve", "--http", "--host", host))
    monkeypatch.delenv("BANKING_RESOURCE_URL")
    assert "BANKING_RESOURCE_URL" in one_line(cli("serve", "--http", "--host", "192.0.2.1"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--port", "9000"),
        ("serve", "--http", "--customer", "CUST001"),
        ("call",),
        ("call", "tool", "--arguments", "{"),
        ("call", "tool", "--arguments", "[]"),
        ("call", "tool", "--arguments", '{"amount": NaN}'),
        ("call", "tool", "--max-calls", "0"),
        ("call", "tool", "--url", "http://127.0.0.1:1/mcp", "--", "some-server"),
        ("call", "tool", "--customer", "CUST001", "--", "some-server"),
        ("handoffs", "claim", "ho_1"),
        ("no-such-command",),
        ("--no-such-option",),
    ],
)
def test_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out == f"banking-server {__version__}\n"
    helped = cli("--help").out
    for name in ("serve", "demo", "call", "handoffs", "approvals", "audit", "settle", "token"):
        assert name in helped


def test_a_reader_that_goes_away_is_no_error(database: Path) -> None:
    at_the_bank(database, wait_for_an_agent)
    for arguments in (("audit",), ("audit", "--json")):
        process = subprocess.Popen(
            command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(BANKING_DATABASE=str(database)),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait()


def test_as_a_module_and_with_an_encoding_that_lacks_characters(database: Path) -> None:
    async def strange(bank: Bank) -> None:
        await handoffs.open_handoff(
            bank, call("request_agent_handoff"), reason="Caf\u00e9 \u2192", choice=None
        )

    at_the_bank(database, strange)
    listed = run("handoffs", BANKING_DATABASE=str(database), PYTHONIOENCODING="ascii")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "Caf\\xe9 \\u2192" in listed.stdout
