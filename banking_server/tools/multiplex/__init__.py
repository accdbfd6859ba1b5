"""Several calls in one: a list of tool requests, run in order, for the caller.

Each step is a call like any other, with its own authorization and audit event. Read in this order:

- `request`: the arguments of the tool, and what is refused before any step runs;
- `sequence`: the tool, which runs the steps, and waits for the answers of the client's model;
- `references`: arguments from earlier results, by a part of JMESPath;
- `inference`: arguments that a language model infers, the client's own or the bank's.
"""
