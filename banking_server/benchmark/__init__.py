"""How fast the bank is, against a bare server of the SDK in the same run, on the same machine.

Every server is a process of its own, started as a user starts it, and so is the load. Bank and
reference are measured in turn within each round, so that whatever else the machine does falls on
both. Every answer that is counted has been looked at: a wrong one fails its row. Read in this
order:

- `rows`: what is measured, and what it must reach; `run`: one row after the other;
- `load`: the process that makes the calls; `calls`: what it sends;
- `servers`, `bare`: what is measured, and what it is compared with;
- `machine`: what all of it runs on;
- `figures`: what was measured; `report`: that as a table and as JSON.
"""
