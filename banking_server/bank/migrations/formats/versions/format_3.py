"""Format 3: a transfer remembers how often its customer, asked to confirm it, did not."""

from alembic import op
from sqlalchemy import Connection

from banking_server.bank.migrations import about, statements

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Keep everything that is stored; nobody has declined anything."""
    connection = op.get_bind()
    run = connection.exec_driver_sql
    if connection.dialect.name == "sqlite":
        _remake(connection)
    else:
        run("ALTER TABLE transfer ADD COLUMN declines INTEGER DEFAULT 0 NOT NULL")
        run(
            "ALTER TABLE transfer ADD CONSTRAINT declines_are_counted CHECK (declines >= 0)",
        )


def _remake(connection: Connection) -> None:
    run = connection.exec_driver_sql
    run("ALTER TABLE transfer RENAME TO transfer_2")
    made = [each for each in statements(3, "sqlite") if about(each)[1] == "transfer"]
    run(made.pop(0))
    run("INSERT INTO transfer SELECT *, 0 FROM transfer_2 ORDER BY rowid")
    run("DROP TABLE transfer_2")  # And its indexes.
    for index in made:
        run(index)
