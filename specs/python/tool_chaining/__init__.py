"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result can say which tool must be called next, and with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

A client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the docstrings here refer to its sentences by their ids (`TC-D-01`).

The first six modules need no MCP SDK: read these if you port the extension to another language.

- `directive`, `negotiation`, `provenance`: what is on the wire, and how to read it;
- `values`, `content`: comparing JSON by RFC 8785, and reading results member by member;
- `arguments`: are arguments valid against an input schema?
- `client`, with `caller`, `tools`, `consent`, `conversation` and `result`: the client half, which
  works on JSON with any client; only `ChainResult.merged()` needs the SDK's models (`mcp_types`);
- `outgoing`, `server`: the server half: the check of a directive, and `add_tool_chaining`;
- `declaration`: what an `mcp.Client` declares;
- `hosting`, `urls`, `operator`: for programs that connect to servers which nobody trusts.

`server`, `declaration` and `hosting` need `mcp` 2.3. All other modules also work beside `mcp` 1.x.
`adapters` are for other frameworks.

Import all public names from here. Those that need `mcp` load on first use, so a client does not
pay for the server half.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tool_chaining.caller import CallRefused, ToolCaller
from tool_chaining.client import Follower
from tool_chaining.consent import ConsentPolicy, NobodyToAsk, Proposal, TrustHints
from tool_chaining.conversation import Conversation
from tool_chaining.directive import IDENTIFIER, META_KEY, Directive, read_directive
from tool_chaining.result import ChainResult, FollowUp, FollowUpStatus, Outcome, Step
from tool_chaining.tools import Tool

if TYPE_CHECKING:
    from tool_chaining.declaration import CLIENT_EXTENSION
    from tool_chaining.outgoing import NextStep
    from tool_chaining.server import add_tool_chaining, with_next_tool

__version__ = "0.1.0"

__all__ = [
    "CLIENT_EXTENSION",
    "IDENTIFIER",
    "META_KEY",
    "CallRefused",
    "ChainResult",
    "ConsentPolicy",
    "Conversation",
    "Directive",
    "FollowUp",
    "FollowUpStatus",
    "Follower",
    "NextStep",
    "NobodyToAsk",
    "Outcome",
    "Proposal",
    "Step",
    "Tool",
    "ToolCaller",
    "TrustHints",
    "add_tool_chaining",
    "read_directive",
    "with_next_tool",
]

_NEED_MCP: Final = {
    "CLIENT_EXTENSION": "declaration",
    "NextStep": "outgoing",
    "add_tool_chaining": "server",
    "with_next_tool": "server",
}


def __getattr__(name: str) -> Any:
    """Load a public name that needs `mcp`. Raises ImportError if it needs another version."""
    if name not in _NEED_MCP:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_NEED_MCP[name]}"), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        needed = "needs mcp 2.3: pip install 'mcp>=2.3', without what holds mcp below 2"
        raise ImportError(f"{__name__}.{name} {needed}", name="mcp") from error
