"""Talking to the server under test: raw JSON-RPC over both transports, in both eras.

Read in this order:

- `era`: the two eras of the protocol;
- `channel`, with `i_json`: what carries messages, how they are read and how many are kept, and how
  a target fails;
- `stdio`, with `child_process`: the channel to a program that is started here;
- `http`, with `headers`: the channel to a URL;
- `elicitation`: answers to what the server asks;
- `connection`: greet, list tools, call a tool.
"""
