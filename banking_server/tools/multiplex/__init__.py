"""Several calls in one: a list of tool requests, run in order, as the caller.

Each step is a call like any other: the same authorization, validation, questions to the customer,
limits and audit event. Read in this order:

- `tool`: the tool itself;
- `request`: what it may be asked, and what is refused before anything is run;
- `sequence`: running the steps, over as many rounds of questions as they need;
- `references`: arguments that are taken from earlier results;
- `expressions`: the language of these references, JMESPath, and why;
- `inference`: arguments that a language model infers;
- `places`: where in the arguments a value stands;
- `sampling`: asking the client's language model.

How a prompt is written, and why a call of its own may not have one, stands in `tools/prompts.py`.
"""

from banking_server.tools.multiplex.places import ArgumentNotFound
from banking_server.tools.multiplex.tool import multiplex_tools

__all__ = ["ArgumentNotFound", "multiplex_tools"]
