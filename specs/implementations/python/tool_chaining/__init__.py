"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result can say which tool must be called next, and with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

A client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the docstrings here refer to its sentences by their ids (`TC-D-01`).

The first five modules, and `arguments`, need no MCP SDK: read these if you port the extension to
another language.

- `directive`, `negotiation`, `provenance`: what is on the wire, and how to read it;
- `values`, `content`: comparing JSON by RFC 8785, and the audience of a content item;
- `arguments`: are arguments valid against an input schema?
- `outgoing`, `server`: the server half: the check of a directive, and the SDK's `Extension`;
- `client`, with `caller`, `consent`, `doubt`, `refused` and `result`: the client half, which works
  with any client and needs only the data models of the SDK (`mcp_types`);
- `declaration`: what an `mcp.Client` declares.

`server` and `declaration` need `mcp` 2.3; `needed_sdk` has the message for an older one. All other
modules also work beside `mcp` 1.x. `adapters` are for other frameworks, `proxy` is for any client,
and `hosting` is for programs that connect to servers which nobody trusts.

All public names can be imported from here; `__init__.pyi` is the list of them. A module is loaded
when the first of its names is used, so that the other half costs no time.
"""

from typing import Any

from tool_chaining.lazily import attach_stub

__version__ = "0.1.0"

_load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load the module of a public name, or say which SDK it needs."""
    try:
        return _load(name)
    except ImportError as error:
        from tool_chaining.needed_sdk import upgrade_message

        needed = upgrade_message(error)
        if needed is None:
            raise
        raise ImportError(f"{name}: {needed}") from None
