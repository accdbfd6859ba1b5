"""The views: cards that a host of MCP Apps shows in place of a tool's text, and who is given them.

A view is one HTML document, put together in `documents` of the files beside it. `offering` keeps
everything about views from clients that show none: those get what they got before there were any.
What a view shows is the tool's result, as the host hands it over; what it does is calls of the
bank's tools, through the host, with the customer's own rights.

**The customer's own act.** A view confirms a transfer with a secret that stands in the `_meta` of
the result that the view shows, under `DATA`, and nowhere else: in no text, no structured content,
no log, no audit event, no table. It is made of the bank's key (`bank/transfers/codes.py`), bound
to the transfer, its customer and its expiry, compared in constant time, and good until the transfer
is made, expires, or was declined. A wrong one costs nothing: there are 2^256.
The tool that takes it, `confirm_in_view`, is for views alone: a host has to refuse it to its
model. And where a view is given what confirms, nothing else does: no form, and no code.

**Who shows `_meta` to a model.** MCP means it for programs, and most hosts keep it from the model:
Claude Code, the OpenAI Agents SDK, LangChain, Pydantic AI. Not all do. LlamaIndex's MCP tools
0.6.0, Google's ADK 2.13.0 and MoonshotAI's kimi-code hand on the whole result; none of these is
known to show views, and who does not say that it does is given no secret. Of ChatGPT, which does,
its users reported in May 2026 that the model could read it (openai/openai-apps-sdk-examples, issue
212). Such a model has the secret and, in a host that keeps to MCP Apps, no tool to use it with.
(Tried, read or reported up to November 2026.) So a model needs two faults of its host to confirm
by itself.

**What a host that lies can do.** It can press for its user, here as in a form: it is trusted with
the customer's yes, and cannot be told from an honest one. It cannot confirm another customer's
transfer, or confirm one twice. `BANKING_CODES=desk` is for whoever cannot trust it that far: then
no result holds anything that confirms, and a view takes the code that the customer has from the
bank's desk, by the call that everybody makes. (The host then sees the code, and could use it in
the view's place, for the transfer that it is of.)
"""

from banking_server.tools.views.documents import views
from banking_server.tools.views.offering import (
    ACCOUNTS,
    DATA,
    HANDOFF,
    TRANSFER,
    only_to_who_shows_them,
    shown_with,
    takes_views,
)

__all__ = [
    "ACCOUNTS",
    "DATA",
    "HANDOFF",
    "TRANSFER",
    "only_to_who_shows_them",
    "shown_with",
    "takes_views",
    "views",
]
