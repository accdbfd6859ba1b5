"""Two-phase transfers: prepare reserves, confirm posts or schedules, cancel voids.

A transfer that nobody confirms expires.

Each function runs in one write transaction, with its audit event, and returns an outcome: one small
type for each thing that can happen (`outcomes`). What is decided stands in `bank/rules.py`;
`prepare`, `confirm`, `cancel` and `settle` load what the decision needs, and carry it out.
`look` shows transfers as they stand. `records` reads and writes the transfer itself; `codes` are
the confirmation codes and the views' secrets.
"""
