"""The conformance suite: does a server or a client implement `specs/tool-chaining.md`?

It is a program (`tool-chaining-conformance`), not a library. It sends raw JSON-RPC to a server, and
plays a scripted mock server for a client, so it judges implementations in any language. It imports
nothing from the library, which is one of the things it judges.

Read in this order:

- `requirements`: the numbered sentences, and the checks that test them;
- `target`: the connection to the server under test;
- `server`: the exercise of a server, and the checks of servers;
- `client`: a mock server that plays scripts, and the checks of clients;
- `scenario_file`: reads the YAML files of scenarios and scripts;
- `report`: judgements, the verdict (`report.verdict`), and the forms of a report;
- `cli`: the command; `pytest_plugin`: the checks of a server as tests.
"""

from typing import Final

__version__ = "0.1.0"

SUITE: Final = "tool-chaining-conformance"
"""The name of the command, and the suite's name in reports."""
