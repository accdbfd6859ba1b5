"""The fault run names what a bank loses that was made worse on purpose."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..kit import postgres
from ..kit.pages import ROOT
from . import runs
from .__main__ import main
from .runs import NO_DISK
from .test_faults import columns

SQLITE, BACKUP = "bank/sqlite.py", "bank/backup.py"
CONFIRM, RECORDS, MODELS = (
    "bank/transfers/confirm.py",
    "bank/transfers/records.py",
    "bank/models.py",
)
ONE, WORKERS, SHARED = (
    "one server on SQLite",
    "one server with two workers",
    "three servers on PostgreSQL",
)


@dataclass(frozen=True)
class Sabotage:
    """What is replaced in files of the bank, and the row of the table that then is not 0."""

    where: str
    loses: str
    edits: tuple[tuple[str, str, str], ...]
    kills_only: bool = False
    """Whether the disk works: whoever acknowledges before a commit also loses each that fails."""


SYNCED = "PRAGMA synchronous = FULL"
UNIQUE = 'foreign_key="transfer.transfer_id", unique=True, sa_type=_TEXT'
THEN = "\n    )\n\n\n_table(\n    Posting"
POSTS_TWICE = (MODELS, UNIQUE + THEN, UNIQUE.replace(" unique=True,", "") + THEN)
FRESH_RESERVE = (
    RECORDS,
    'transfer.amount_minor if transfer.status == "pending" else 0',
    "transfer.amount_minor if tx.find(Transfer, transfer.transfer_id).status == 'pending' else 0",
)
SABOTAGES = {
    "a sync at checkpoints only": Sabotage(
        ONE, "acknowledged and lost", ((SQLITE, SYNCED, "PRAGMA synchronous = NORMAL"),)
    ),
    "acknowledged before the commit": Sabotage(
        ONE,
        "acknowledged and lost",
        (
            (
                SQLITE,
                "await asyncio.shield(group)\n            if",
                "while waiting.result is None and not group.done():\n"
                "                await asyncio.sleep(0.001)\n"
                "            waiting.committed()\n            if",
            ),
            (SQLITE, 'connection.execute("COMMIT")', 'wait(0.05); connection.execute("COMMIT")'),
            (SQLITE, "import asyncio\n", "import asyncio\nfrom time import sleep as wait\n"),
        ),
        kills_only=True,
    ),
    "a repeated confirmation posts again": Sabotage(
        ONE,
        "doubled",
        (
            POSTS_TWICE,
            (
                CONFIRM,
                'case "posted":\n',
                'case "posted":\n                    post(tx, bank.rules, stored, parties, now)\n',
            ),
        ),
    ),
    "an old balance": Sabotage(
        ONE,
        "wrong reads",
        (
            (
                "bank/accounts.py",
                "    return await read_and_audit(bank, call, lambda tx: _balance(",
                "    kept = _kept.get(account_id)\n"
                "    if kept is None or (call.at - kept[0]).total_seconds() > 0.3:\n"
                "        kept = _kept[account_id] = call.at, await _read(bank, call, account_id)\n"
                "    return kept[1]\n\n"
                "_kept = {}\n"
                "async def _read(bank, call, account_id):\n"
                "    return await read_and_audit(bank, call, lambda tx: _balance(",
            ),
        ),
    ),
    "a backup without the log": Sabotage(
        ONE,
        "acknowledged and lost",
        (
            (
                BACKUP,
                "            _copy(path, draft)\n            _check(draft, path)",
                "            shutil.copyfile(path, draft)\n            _check(draft, path)",
            ),
            (BACKUP, "import os\n", "import os\nimport shutil\n"),
        ),
    ),
    "two workers that decide on an old read": Sabotage(
        WORKERS,
        "doubled",
        (
            POSTS_TWICE,
            FRESH_RESERVE,
            (
                RECORDS,
                "    def work(tx: Transaction) -> _Outcome | NotFound:\n"
                "        transfer = find_owned(tx, Transfer, transfer_id, call.customer_id)\n",
                "    old = await bank.read(\n"
                "        lambda tx: find_owned(tx, Transfer, transfer_id, call.customer_id)\n"
                "    )\n"
                "    await asyncio.sleep(0.3)\n\n"
                "    def work(tx: Transaction) -> _Outcome | NotFound:\n"
                "        transfer = old\n",
            ),
            (RECORDS, "from collections.abc", "import asyncio\nfrom collections.abc"),
        ),
    ),
    "PostgreSQL without the customer's lock": Sabotage(
        SHARED,
        "doubled",
        (
            POSTS_TWICE,
            FRESH_RESERVE,
            (
                RECORDS,
                "        return rule(tx, transfer, read_parties(tx, transfer))",
                "        time.sleep(0.3)\n"
                "        return rule(tx, transfer, read_parties(tx, transfer))",
            ),
            (RECORDS, "from collections.abc", "import time\nfrom collections.abc"),
            ("bank/transaction.py", "    .with_for_update(key_share=True),\n", ",\n"),
        ),
    ),
}


@pytest.mark.nightly
@pytest.mark.needs_program(NO_DISK)
@pytest.mark.parametrize("name", SABOTAGES)
def test_the_fault_run_names_the_loss(
    name: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sabotage = SABOTAGES[name]
    if sabotage.where == SHARED and postgres.MISSING:
        pytest.skip(postgres.MISSING)
    for folder in ("banking_server", "data"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for file, old, new in sabotage.edits:
        path = tmp_path / "banking_server" / file
        text = path.read_text()
        assert old in text, f"{name}: {file} has changed"
        path.write_text(text.replace(old, new, 1))
    # There `python -m banking_server` finds it.
    monkeypatch.chdir(tmp_path)
    if sabotage.kills_only:
        monkeypatch.setattr(runs, "DISK_FAULTS", ())
    only, folder = f"--only={sabotage.where}", f"--folder={tmp_path / 'run'}"
    # Of the kills, many miss the window.
    minutes = f"--minutes={1.5 if sabotage.kills_only else 0.3}"
    assert main(minutes, only, folder) == 1
    (column,) = columns(capsys).values()
    assert int(column[sabotage.loses]) > 0
    if sabotage.kills_only:
        # Each of the six who pay has one call in the window.
        faults = ("servers killed", "power cuts", "backups under load, restored")
        assert int(column[sabotage.loses]) <= 6 * sum(int(column[row]) for row in faults)
