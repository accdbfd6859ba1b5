"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result can say which tool must be called next, and with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

A client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the docstrings here refer to its sentences by their ids (`TC-D-01`).

Read in this order. The first six need no MCP SDK: read these, and the first five at least, if you
port the extension to another language.

- `directive`: what is on the wire, and how to read it;
- `negotiation`: who says that it implements the extension;
- `provenance`: what a follow-up request says about the chain that it belongs to;
- `values`: how RFC 8785 writes a value, when two are the same, and what a pointer points to;
- `content`: whom a content item is for, and which tools are hidden from the model;
- `arguments`: are arguments valid against an input schema?

The server half:

- `outgoing`: what may be sent, whatever the server is built on; of the SDK it needs `mcp_types`;
- `server`: attach a directive to a result, and the `Extension` of the SDK that checks it.

The client half works with any client; of the SDK it needs only the data models (`mcp_types`):

- `caller`: what it needs of a client, and the list of its server's tools;
- `consent`: does the host allow a follow-up call?
- `doubt`: the calls whose effect is unknown, kept across chains;
- `result`: what came of a chain, and the one result that is made of it;
- `refused`: what a server refused before it acted on it;
- `client`: call a tool and follow the chain;
- `client_extension`: what a client of the SDK declares;
- `transport`: how much is read of a server, and what a broken connection does;
- `bearer`: where a token may go.

`server`, `client_extension` and `transport` need `mcp` 2.3, and `needed_sdk` says so where an older
one is installed. All else also works beside `mcp` 1.x.

All public names can be imported from here; `__init__.pyi` is the list of them. A module is loaded
when the first of its names is used, so that nobody waits for a half, or for an SDK, that they do
not use.
"""

from typing import Any

from banking_server.lazily import attach_stub

_load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load the module of a public name, or say which SDK it needs."""
    try:
        return _load(name)
    except ImportError as error:
        from banking_server.chaining.needed_sdk import needed_instead

        needed = needed_instead(error)
        if needed is None:
            raise
        raise ImportError(f"{name}: {needed}") from None
