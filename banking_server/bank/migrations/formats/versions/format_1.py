"""Format 1: balances are summed from the entries. Only SQLite has ever had it."""

from alembic import op

from banking_server.bank.migrations import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables in an empty database; on PostgreSQL format 2 is the first that has any."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in statements(1, "sqlite"):
            connection.exec_driver_sql(statement)
