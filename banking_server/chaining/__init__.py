"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result may say which tool must be called next, with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

and a client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the requirement ids in the docstrings here (`TC-D-01`) are its.

Read in this order:

- `directive`: what is on the wire, and how to read it;
- `provenance`: what a follow-up request says about the chain it belongs to;
- `values`: when two JSON values are the same, and where a pointer leads;
- `content`: who a content item is for, and which tools are kept from the model;
- `arguments`: arguments against an input schema;
- `server`: attach a directive to a result, and the `Extension` that checks it on its way out;
- `catalog`: one server's tools, as a client sees them;
- `client`: call a tool and follow the chain.
"""

from banking_server.chaining.catalog import ToolCatalog
from banking_server.chaining.client import (
    CLIENT_EXTENSION,
    DEFAULT_LIMIT,
    ChainFailed,
    ChainResult,
    ConsentPolicy,
    FollowNonDestructive,
    Outcome,
    Proposal,
    Step,
    call_tool_with_chaining,
)
from banking_server.chaining.content import hidden_from_model
from banking_server.chaining.directive import (
    IDENTIFIER,
    META_KEY,
    SETTINGS,
    Absent,
    Directive,
    Found,
    Malformed,
    read_directive,
)
from banking_server.chaining.provenance import Provenance, read_provenance
from banking_server.chaining.server import ToolChaining, with_next_tool

__all__ = [
    "CLIENT_EXTENSION",
    "DEFAULT_LIMIT",
    "IDENTIFIER",
    "META_KEY",
    "SETTINGS",
    "Absent",
    "ChainFailed",
    "ChainResult",
    "ConsentPolicy",
    "Directive",
    "FollowNonDestructive",
    "Found",
    "Malformed",
    "Outcome",
    "Proposal",
    "Provenance",
    "Step",
    "ToolCatalog",
    "ToolChaining",
    "call_tool_with_chaining",
    "hidden_from_model",
    "read_directive",
    "read_provenance",
    "with_next_tool",
]
