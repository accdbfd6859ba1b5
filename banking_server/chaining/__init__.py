"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result can say which tool must be called next, and with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

A client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the docstrings here refer to its sentences by their ids (`TC-D-01`).

Read in this order. The first seven need no MCP SDK: read these seven if you port the extension to
another language.

- `directive`: what is on the wire, and how to read it;
- `negotiation`: who says that it implements the extension;
- `provenance`: what a follow-up request says about the chain that it belongs to;
- `values`: how RFC 8785 writes a value, when two are the same, and what a pointer points to;
- `content`: whom a content item is for, and which tools are hidden from the model;
- `effort`: how much work is it to check a value against a schema?
- `arguments`: are arguments valid against an input schema?

The server half:

- `outgoing`: what may be sent, whatever the server is built on; of the SDK it needs `mcp_types`;
- `server`: attach a directive to a result, and the `Extension` of the SDK that lets it out.

The client half works with any client; of the SDK it needs only the data models (`mcp_types`):

- `caller`: what it needs of a client;
- `catalog`: the tools of one server, as a client sees them;
- `consent`: does the host allow a follow-up call?
- `result`: what came of a chain, and the one result that is made of it;
- `refused`: what a server refused before it acted on it;
- `client`: call a tool and follow the chain;
- `client_extension`: what a client of the SDK declares;
- `message_size`: how large one message of a server may be;
- `steady_http`: HTTP for a client of the SDK: a broken or endless answer loses no result;
- `bounded_transport`: how many messages of a server may come that are no answers;
- `bearer`: where a token may go.

`server`, `client_extension` and `bounded_transport` need `mcp` 2.3, and `needed_sdk` says so where
an older one is installed. All else also works beside `mcp` 1.x.

All public names can be imported from here. A module is loaded when the first of its names is used,
so that nobody waits for a half, or for an SDK, that they do not use.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from banking_server.chaining.bounded_transport import bounded
    from banking_server.chaining.caller import ToolCaller
    from banking_server.chaining.catalog import ToolCatalog
    from banking_server.chaining.client import (
        DEFAULT_CALL_TIMEOUT,
        DEFAULT_TOTAL_TIMEOUT,
        ChainStop,
        call_tool_with_chaining,
    )
    from banking_server.chaining.client_extension import CLIENT_EXTENSION
    from banking_server.chaining.consent import ConsentPolicy, FollowNonDestructive, Proposal
    from banking_server.chaining.content import hidden_from_model
    from banking_server.chaining.directive import (
        DEFAULT_LIMIT,
        IDENTIFIER,
        META_KEY,
        SETTINGS,
        Absent,
        Directive,
        Found,
        Malformed,
        read_directive,
    )
    from banking_server.chaining.outgoing import NextStep
    from banking_server.chaining.provenance import Provenance, read_provenance
    from banking_server.chaining.result import (
        ChainFailed,
        ChainResult,
        Fate,
        FollowUp,
        Outcome,
        Step,
    )
    from banking_server.chaining.server import ToolChaining, with_next_tool
    from banking_server.chaining.steady_http import SteadyHttpClient

__all__ = [
    "CLIENT_EXTENSION",
    "DEFAULT_CALL_TIMEOUT",
    "DEFAULT_LIMIT",
    "DEFAULT_TOTAL_TIMEOUT",
    "IDENTIFIER",
    "META_KEY",
    "SETTINGS",
    "Absent",
    "ChainFailed",
    "ChainResult",
    "ChainStop",
    "ConsentPolicy",
    "Directive",
    "Fate",
    "FollowNonDestructive",
    "FollowUp",
    "Found",
    "Malformed",
    "NextStep",
    "Outcome",
    "Proposal",
    "Provenance",
    "SteadyHttpClient",
    "Step",
    "ToolCaller",
    "ToolCatalog",
    "ToolChaining",
    "bounded",
    "call_tool_with_chaining",
    "hidden_from_model",
    "read_directive",
    "read_provenance",
    "with_next_tool",
]

_MODULE_OF: Final = {
    "CLIENT_EXTENSION": "client_extension",
    "DEFAULT_CALL_TIMEOUT": "client",
    "DEFAULT_LIMIT": "directive",
    "DEFAULT_TOTAL_TIMEOUT": "client",
    "IDENTIFIER": "directive",
    "META_KEY": "directive",
    "SETTINGS": "directive",
    "Absent": "directive",
    "ChainFailed": "result",
    "ChainResult": "result",
    "ChainStop": "client",
    "ConsentPolicy": "consent",
    "Directive": "directive",
    "Fate": "result",
    "FollowNonDestructive": "consent",
    "FollowUp": "result",
    "Found": "directive",
    "Malformed": "directive",
    "NextStep": "outgoing",
    "Outcome": "result",
    "Proposal": "consent",
    "Provenance": "provenance",
    "SteadyHttpClient": "steady_http",
    "Step": "result",
    "ToolCaller": "caller",
    "ToolCatalog": "catalog",
    "ToolChaining": "server",
    "bounded": "bounded_transport",
    "call_tool_with_chaining": "client",
    "hidden_from_model": "content",
    "read_directive": "directive",
    "read_provenance": "provenance",
    "with_next_tool": "server",
}

# Hidden from type checkers, which would otherwise take any name to be there (PEP 562).
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load the module of a public name when the name is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
        except ImportError as error:
            from banking_server.chaining.needed_sdk import needed_instead

            needed = needed_instead(error)
            if needed is None:
                raise
            raise ImportError(f"{name}: {needed}") from None
        value = getattr(module, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
