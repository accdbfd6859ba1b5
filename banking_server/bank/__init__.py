"""A small bank: accounts, a double-entry ledger and two-phase transfers, in one SQLite file.

It knows SQL, but nothing about MCP or wire formats. A function here takes plain values, runs its
rule in one transaction and returns an outcome; it raises only if the database is broken.

- `rules`: every rule, pure. `money`: amounts. `models`: the tables.
- `storage`: opening, reading, writing, deleting. `demo_data`: the content of a new file.
- `ledger`: postings and balances. `audit`: who did what.
- `accounts`, `statement`, `transfers`, `handoffs`, `approvals`, `compliance`: the operations.
"""
