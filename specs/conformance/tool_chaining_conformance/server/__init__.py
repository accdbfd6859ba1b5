"""Judging a server: the suite plays scenarios, and checks judge the server's behavior.

Read in this order:

- `scenario`, with `references`: the scenario file, which says how to exercise a server;
- `reading`: the parts of a reply, and how a call ended;
- `evidence`: what a server did, as input of the checks;
- `report.judgement`, one folder up: the possible results of a check;
- `checks`: the checks, one function each; `bounded` validates arguments against a schema;
- `ways`: the ways in which a call is repeated;
- `exercise`: plays a scenario and produces evidence. It uses `connections`, where each caller signs
  in; `values`, the values of `${name}`; `expectation`, which compares a step with what the file
  expects; and `repeating`, which confirms each difference;
- `run`: all scenarios in all eras;
- `draft`: a first scenario file.
"""
