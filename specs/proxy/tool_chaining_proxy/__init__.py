"""`tool-chaining-proxy`: any client's calls to any MCP server, with their chains followed.

The proxy passes on unchanged what it does not know, so both its halves handle raw JSON. To the
client it looks like the server; to the server behind it ("upstream") it looks like the client. Read
in this order:

- `eras`: what a client and a server declare, in both protocol revisions;
- `upstream`: one connection to the server behind the proxy;
- `questions`: the server's questions during a request, and their way to the user;
- `changes`: notifications of changes for a client of 2026-07-28;
- `link`: one user of the proxy, and the user's own upstream connection;
- `chains`: a `tools/call` whose chain is followed; `consent`: which follow-up calls are made;
- `server`: handles each message of the client;
- `stdio`: one user; `http` and `callers`: many users, each with a link of their own;
- `options` and `cli`: the options, and the command;
- `sdk`: the internal parts of the MCP SDK that the proxy uses;
- `hosting`: tools for programs that connect to any server.
"""

from typing import Final

__version__ = "0.1.0"

NAME: Final = "tool-chaining-proxy"
