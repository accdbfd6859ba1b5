"""The conformance suite: does a server, or a client, do what `specs/tool-chaining.md` says?

It is a program (`tool-chaining-conformance`), not a library. It speaks raw JSON-RPC on one side
and plays a scripted server on the other, so it judges implementations in any language. Of this
package it uses only what reads a directive (`banking_server.chaining`); the bank is unknown to it.

Read in this order:

- `requirements`: the numbered sentences, and the checks that test them;
- `scenario`: the two kinds of scenario files;
- `wire`, `server_checks`: a server under test;
- `mock_server`, `client_checks`: a client under test;
- `verdict`: what makes a run conformant, in one docstring;
- `report`: how it is told;
- `cli`: the command.
"""
