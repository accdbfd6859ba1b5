"""What is wrong in a ledger, by the driver's own SQL and by what the driver wrote down."""

import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ENTRIES = """
    SELECT posting_id, account_id, amount_minor, credits_after_minor - debits_after_minor
    FROM entry ORDER BY posted_at, posting_id"""
POSTINGS = """
    SELECT posting_id, memo, transfer.transfer_id, from_account_id, to_account_id
    FROM posting JOIN transfer ON transfer.transfer_id = posting.transfer_id"""
ACCOUNTS = """
    SELECT account_id, credits_posted_minor - debits_posted_minor, debits_pending_minor,
    (SELECT coalesce(sum(amount_minor), 0) FROM transfer
     WHERE from_account_id = account_id AND status = 'pending') FROM account"""


class Journal:
    """What was asked for, what was answered, and each fault: a line each, with tabs in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal.txt"
        self._file = self.path.open("ab", buffering=0)

    def write(self, kind: str, *more: object, sync: bool = False) -> None:
        """Write one line; with `sync`, it is on the disk afterwards."""
        self._file.write("\t".join(map(str, (kind, *more, "\n"))).encode())
        if sync:
            os.fsync(self._file.fileno())

    def of(self, *kinds: str, upto: int | None = None) -> list[tuple[str, ...]]:
        """Return the first two words of the lines of these kinds, in so many first bytes."""
        text = self.path.read_bytes()[:upto].decode()
        lines = (line.split("\t") for line in text.splitlines())
        return [tuple(line[1:3]) for line in lines if line[0] in kinds]


def wrong_in(ledger: Any, journal: Journal, upto: int | None = None) -> Counter[str]:
    """Count what is wrong.

    Acknowledged is what the first `upto` bytes of the journal say. A wish was for one minor unit,
    and it is posted twice if two postings have its memo, whatever their ids.
    """
    wrong: Counter[str] = Counter()
    balances: Counter[str] = Counter()
    postings: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for posting, account, amount, kept in ledger.execute(ENTRIES).fetchall():
        postings[posting].append((account, amount))
        balances[account] += amount
        wrong["wrong kept totals"] += balances[account] != kept
    for account, kept, kept_pending, pending in ledger.execute(ACCOUNTS).fetchall():
        wrong["wrong kept totals"] += (kept, kept_pending) != (balances[account], pending)
    for sides in postings.values():
        wrong["wrong sums"] += len(sides) != 2 or sum(amount for _, amount in sides) != 0
    found = ledger.execute(POSTINGS).fetchall()
    posted = {
        (memo, transfer)
        for posting, memo, transfer, source, target in found
        if sorted(postings[posting]) == sorted([(source, -1), (target, 1)])
    }
    prepared = set(ledger.execute("SELECT memo, transfer_id FROM transfer").fetchall())
    asked, may_be = set(journal.of("asked")), set(journal.of("posted", "unknown"))
    wishes = {memo for memo, _ in asked} & {memo for _, memo, *_ in found}
    lost = set(journal.of("posted", upto=upto)) - posted
    lost |= set(journal.of("prepared", upto=upto)) - prepared
    wrong["acknowledged and lost"] = len(lost)
    wrong["doubled"] = len(found) - len(wishes)
    wrong["done, but said not to be"] = len(posted & asked - may_be)
    return wrong


def happened(ledger: Any, journal: Journal) -> Counter[str]:
    """Count the lines of the journal by their kinds, and what the unknown calls became."""
    posted = {(memo, transfer) for _, memo, transfer, *_ in ledger.execute(POSTINGS).fetchall()}
    unknown, repeated = set(journal.of("unknown")), set(journal.of("posted"))
    fates = {
        "postings acknowledged": len(repeated),
        "unknown, repeated: posted": len(unknown & repeated),
        "unknown, left: posted": len(unknown & posted - repeated),
        "unknown, left: not posted": len(unknown - posted),
    }
    lines = journal.path.read_text().splitlines()
    return Counter(line.split("\t")[0] for line in lines) + Counter(fates)
