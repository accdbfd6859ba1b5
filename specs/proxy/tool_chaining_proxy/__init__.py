"""`tool-chaining-proxy`: any client's calls to any MCP server, with their chains followed.

The proxy passes on unchanged what it does not know, so it handles raw JSON on both sides. To the
client it looks like the server; to the server behind it ("upstream") it looks like the client. One
call goes one way:

1. `client_side` reads a request, over `stdio` or `http`, and makes an exchange for it;
2. `exchange` gives it its time limits and its span, and runs the work of
3. `chain`, which follows the chain with the library, and makes each call through
4. `session`, the user's own connection to the server, which keeps it open as
5. `upstream`: it sends the call, and knows no client.

Whatever the server says meanwhile, a question, progress or a log message, goes from `upstream`
through `session` to the exchange that it belongs to, and from there straight to the client. So does
the answer: `exchange` writes it, and only then the chain has ended.

Beside them are `eras` (what client and server declare in both revisions), `consent` (which
follow-up calls are made), `check_rules`, `options`, `cli`, `sdk` (the internal parts of the MCP SDK
that the proxy uses). What any client of an untrusted server needs is in `tool_chaining.hosting`.
"""

from typing import Final

__version__ = "0.1.0"

NAME: Final = "tool-chaining-proxy"
