"""Judging a server: its scenarios are played, and checks judge what it did.

Read in this order:

- `scenario`, with `references`: how one server is exercised, as a file says;
- `reading`: what the suite reads from a reply, and how a call ended, in parts;
- `evidence`: what a server did, as checks get to see it;
- `report.judgement`, one folder up: what a check can say;
- `checks`: the checks, one function each; `bounded` does the work whose length a server decides;
- `variants`: the ways in which a call is made again;
- `exercise`: plays a scenario and produces evidence; with `connections`, where each caller signs
  in, `values`, what `${name}` stands for, `expectation`, whether a step came to what it means to
  show, and `repeating`, which confirms each difference;
- `run`: all scenarios in all eras;
- `draft`: a first scenario file.
"""
