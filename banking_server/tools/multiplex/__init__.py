"""Several calls in one: a list of tool requests, run in order, as the caller.

Each step is a call like any other: the same authorization, validation, questions to the customer,
limits and audit event. Read in this order:

- `request`: what the tool may be asked, and what is refused before anything is run;
- `sequence`: the tool, running the steps over as many rounds of questions as they need;
- `references`: arguments that are taken from earlier results, by a part of JMESPath;
- `inference`: arguments that a language model infers, the client's own or ours.
"""

from banking_server.tools.multiplex.references import ArgumentNotFound
from banking_server.tools.multiplex.sequence import multiplex_tools

__all__ = ["ArgumentNotFound", "multiplex_tools"]
