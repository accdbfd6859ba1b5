"""Two-phase transfers: prepare reserves, confirm posts or schedules, cancel voids.

A transfer that nobody confirms expires.

Each function runs in one write transaction, with its audit event, and returns an outcome: one small
type for each thing that can happen (`outcomes`). The decisions are in `bank/rules.py`; `prepare`
and `confirm` load what a decision needs and carry it out. `records` reads and writes the transfer.
"""
