"""A small bank: accounts, a double-entry ledger and two-phase transfers, in one SQLite file.

It knows SQL, and nothing of MCP or of the words on a wire. A function here takes plain values, runs
its rule in one transaction and returns an outcome; it raises only when the database is broken.

- `rules`: every rule, pure. `money`: amounts. `models`: the tables.
- `storage`: opening, reading, writing, deleting. `demo_data`: what a new file is filled with.
- `ledger`: postings and balances. `audit`: who did what.
- `accounts`, `statement`, `transfers`, `handoffs`, `approvals`, `compliance`: what can be done.
"""
