"""The views: cards that a host of MCP Apps shows in place of a tool's text, and who is given them.

A view is one HTML document, put together in `documents` of the files beside it. `offering` keeps
everything about views from clients that show none: those get what they got before there were any.
What a view shows is the tool's result, as the host hands it over; what it does is calls of the
bank's tools, through the host, with the customer's own rights.

**The customer's own act.** A view confirms a transfer with a secret that stands in the `_meta` of
the result that the view shows, under `DATA`, and nowhere else. MCP lets a host give a model the
content of a result and its structured content; `_meta` is for programs. Most hosts keep to that.
Some frameworks hand their model the whole result, `_meta` included: LlamaIndex's MCP tools 0.6.0,
Google's ADK 2.13.0, MoonshotAI's kimi-code, as tried or read in November 2026. None of these is
known to declare that it shows views, and who does not is given no secret. The tool that takes it,
`confirm_in_view`, is not for models either, and the host has to refuse it to them. So a model
needs two faults of its host to confirm by itself.

A host that lies can call for its user, here as in a form: it is trusted with the customer's yes,
and cannot be told from an honest one. `BANKING_CODES=desk` is for whoever cannot trust it that far:
then no result holds anything that confirms, no view gets a secret, and what a view does to confirm
is the call that everybody makes, with the code that the customer has from the bank's desk.
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
