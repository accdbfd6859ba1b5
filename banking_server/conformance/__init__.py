"""The conformance suite: does a server, or a client, do what `specs/tool-chaining.md` says?

It is a program (`tool-chaining-conformance`), not a library. It speaks raw JSON-RPC on one side
and plays a scripted server on the other, so it judges implementations in any language. Of this
package it uses three constants (`banking_server.chaining.directive`): judge and judged share no
judgement. The bank is unknown to it.

Read in this order:

- `requirements`: the numbered sentences, and the checks that test them;
- `target`: talking to a server under test;
- `server`: judging a server;
- `client`: judging a client;
- `report`: what was found, the verdict, and how both are told;
- `cli`: the command.
"""
