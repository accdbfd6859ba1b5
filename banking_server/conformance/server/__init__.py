"""Judging a server: its scenarios are played, and checks judge what it did.

Read in this order:

- `scenario`, with `captures`: how one server is exercised, as a file says;
- `reading`: what the suite reads from a reply;
- `evidence`: what a server did, as checks get to see it;
- `report.judgement`, one folder up: what a check can say;
- `checks`: the checks, one function each;
- `exercise`: plays a scenario and produces evidence;
- `run`: all scenarios in all eras.
"""
