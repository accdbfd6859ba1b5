"""Deterministic tool chaining for MCP: `_meta.nextTool`, both halves.

A tool result can say which tool must be called next, and with which arguments::

    {"content": [...], "_meta": {"nextTool": {"tool": "request_agent_handoff", "arguments": {...}}}}

A client follows it without asking a language model. The normative text is
`specs/tool-chaining.md`; the docstrings here refer to its sentences by their ids (`TC-D-01`).

The first five modules, and `arguments`, need no MCP SDK: read these if you port the extension to
another language.

- `directive`, `negotiation`, `provenance`: what is on the wire, and how to read it;
- `values`, `content`: JSON as RFC 8785 has it, and whom a content item is for;
- `arguments`: are arguments valid against an input schema?
- `outgoing`, `server`: the server half: what may be sent, and the `Extension` of the SDK;
- `client`, with `caller`, `consent`, `doubt`, `refused` and `result`: the client half, which works
  with any client and needs only the data models of the SDK (`mcp_types`);
- `transport`, `bearer`: what a client of the SDK declares, how much it reads of a server, and where
  a token may go.

`server` and `transport` need `mcp` 2.3, and `needed_sdk` says so where an older one is installed.
All else also works beside `mcp` 1.x.

All public names can be imported from here; `__init__.pyi` is the list of them. A module is loaded
when the first of its names is used, so that nobody waits for a half that they do not use.
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
