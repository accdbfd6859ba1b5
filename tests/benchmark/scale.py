"""A bank of any size: generated customers of ten accounts each, with the payments of a year."""

import sqlite3
from contextlib import closing
from pathlib import Path

SOMEBODY, BUSY, OTHER = "SCALE000000", "acc_scale_0000000", "acc_scale_0000001"
"""A customer and two accounts of theirs. A tenth of all entries is on the busy one."""
NEIGHBOUR, THEIRS = "SCALE000001", "acc_scale_0000010"


def add(path: Path, accounts: int, entries: int) -> None:
    """Add so many, ten entries an account at least, to a database file that no process has open.

    Each payment is of 1.00, from the bank itself. It is written as fast as can be, so the file is
    worth nothing if this is interrupted.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as bank:
        bank.executescript(f"""
            PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;
            BEGIN EXCLUSIVE;
            CREATE TEMP TABLE payment AS
                WITH RECURSIVE counted (i) AS
                    (SELECT 0 UNION ALL SELECT i + 1 FROM counted WHERE i + 1 < {entries // 2})
                SELECT (SELECT max(posting_id) FROM posting) + 1 + i AS posting_id,
                    100 * (i + 1) AS debited, iif(i % 5, 1 + i % {accounts - 1}, 0) AS place,
                    strftime('%Y-%m-%dT%H:%M:%f000Z', 'now',
                        ({360.0 / (entries // 2)} * i - 360) || ' days') AS at
                FROM counted;
            INSERT INTO customer (customer_id, name)
                SELECT DISTINCT printf('SCALE%06d', place / 10), 'Somebody' FROM payment;
            INSERT INTO account (account_id, customer_id, account_name, account_type,
                    can_transfer_from, can_transfer_to, is_locked, currency, debits_posted_minor,
                    credits_posted_minor, debits_pending_minor, last_posted_at)
                SELECT printf('acc_scale_%07d', place), printf('SCALE%06d', place / 10),
                    'Checking ' || place, 'checking', 1, 1, 0, 'USD', 0, 100 * count(*), 0, max(at)
                FROM payment GROUP BY place
                UNION ALL SELECT 'acc_equity_scale', NULL, 'Equity', 'equity', 0, 0, 0, 'USD',
                    max(debited), 0, 0, max(at) FROM payment;
            INSERT INTO posting (posting_id, kind, description, posted_at)
                SELECT posting_id, 'history', 'Payment ' || posting_id, at FROM payment;
            INSERT INTO entry (posting_id, side, account_id, amount_minor, currency, posted_at,
                    debits_after_minor, credits_after_minor)
                SELECT posting_id, 'debit', 'acc_equity_scale', -100, 'USD', at, debited, 0
                FROM payment
                UNION ALL SELECT posting_id, 'credit', printf('acc_scale_%07d', place), 100, 'USD',
                    at, 0, 100 * row_number() OVER (PARTITION BY place ORDER BY posting_id)
                FROM payment;
            COMMIT;
            PRAGMA journal_mode = WAL;
        """)
