"""What Alembic runs first: its work is done on the connection, and in the transaction, it is given.

There is no other way: who wants to see a format has `versions`, and who wants to get to the newest
opens the bank.
"""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
