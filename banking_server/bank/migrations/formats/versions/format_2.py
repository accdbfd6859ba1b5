"""Format 2: accounts and entries keep totals; the audit trail can be archived; limits count."""

from alembic import op
from sqlalchemy import Connection

from banking_server.bank.migrations import about, statements

revision = "0002"
down_revision = "0001"

_NEW = {"wrong_attempt", "audit_archive"}
_CHANGED = {
    "account": """
INSERT INTO account
SELECT account_id, customer_id, account_name, account_type, can_transfer_from, can_transfer_to,
    is_locked, account_holder, currency, coalesce(debits, 0), coalesce(credits, 0),
    (SELECT coalesce(sum(amount_minor), 0) FROM transfer
     WHERE from_account_id = account_id AND status = 'pending'),
    last_posted_at
FROM account_1 LEFT JOIN (
    SELECT account_id, -sum(amount_minor) FILTER (WHERE side = 'debit') AS debits,
        sum(amount_minor) FILTER (WHERE side = 'credit') AS credits,
        max(posted_at) AS last_posted_at
    FROM entry_1 JOIN posting USING (posting_id) GROUP BY account_id) USING (account_id)
ORDER BY account_1.rowid
""",
    "transfer": "INSERT INTO transfer SELECT * FROM transfer_1 ORDER BY rowid",
    "entry": """
INSERT INTO entry
SELECT entry_id, posting_id, side, account_id, amount_minor, currency, posted_at,
    coalesce(-sum(amount_minor) FILTER (WHERE side = 'debit') OVER so_far, 0),
    coalesce(sum(amount_minor) FILTER (WHERE side = 'credit') OVER so_far, 0)
FROM entry_1 JOIN posting USING (posting_id)
WINDOW so_far AS (PARTITION BY account_id ORDER BY posted_at, posting_id)
ORDER BY entry_id
""",
}
"""The tables that are made anew, and how they are filled from the old ones."""


def upgrade() -> None:
    """Keep everything that is stored, and add up what is kept from now on."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _remake(connection)
    else:
        for statement in statements(2, "postgresql"):
            connection.exec_driver_sql(statement)


def _remake(connection: Connection) -> None:
    run = connection.exec_driver_sql
    names = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in run(names).fetchall():
        run(f"DROP TRIGGER {name}")
    for table in _CHANGED:
        run(f"ALTER TABLE {table} RENAME TO {table}_1")
    made = {statement: about(statement) for statement in statements(2, "sqlite")}
    for statement, (kind, table) in made.items():
        if kind == "TABLE" and table in (_NEW | set(_CHANGED)):
            run(statement)
    for fill in ("transfer", "account", "entry"):
        run(_CHANGED[fill])
    for table in _CHANGED:
        run(f"DROP TABLE {table}_1")  # And its indexes.
    for statement, (kind, table) in made.items():
        if kind == "TRIGGER" or (kind == "INDEX" and table in (_NEW | set(_CHANGED))):
            run(statement)
