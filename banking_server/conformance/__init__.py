"""The conformance suite: does a server, or a client, do what `specs/tool-chaining.md` says?

It is a program (`tool-chaining-conformance`), not a library. It speaks raw JSON-RPC to a server and
plays a scripted server to a client, so it judges implementations in any language. It shares no code
with what it judges but three constants (`banking_server.chaining.directive`).

Read in this order:

- `requirements`: the numbered sentences, and the checks that test them; `publish` makes the files
  of `specs/` that say the same in other forms;
- `target`: talking to what is judged;
- `server`: exercising a server, and the checks of servers;
- `client`: a mock server that plays scripts, and the checks of clients;
- `scenario_file`: files in YAML, and what scenarios and scripts share;
- `report`: judgements, what makes a run conformant (`report.verdict`), and how it is told;
- `cli`: the command; `pytest_plugin`: the same for a server as tests.
"""

from typing import Final

SUITE: Final = "tool-chaining-conformance"
"""What the command is called, and what reports call the suite."""
