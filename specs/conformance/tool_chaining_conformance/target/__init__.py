"""The connection to the server under test: raw JSON-RPC over both transports, in both eras.

Read in this order:

- `era`: the two eras of the protocol;
- `channel`, with `i_json`: how messages are read and recorded, and how a target fails;
- `stdio`, with `child_process`: the channel to a program that the suite starts;
- `http`, with `headers`: the channel to a URL;
- `elicitation`: answers to the server's questions;
- `connection`: begin a connection, list tools, call a tool.
"""
