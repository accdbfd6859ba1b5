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
- `outgoing`, `server`: the server half: the check of a directive, and `add_tool_chaining`;
- `client`, with `caller`, `catalog`, `consent`, `doubt`, `refused` and `result`: the client half,
  which works with any client and needs only the data models of the SDK (`mcp_types`);
- `declaration`: what an `mcp.Client` declares.

`server` and `declaration` need `mcp` 2.3. All other modules also work beside `mcp` 1.x. `adapters`
are for other frameworks. `text` and `errors` are for programs that show people what a server says.

All public names can be imported from here; `__init__.pyi` is the list of them. A module is loaded
when the first of its names is used, so that the other half costs no time.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_LINES = Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines()
_MODULES = {line.split()[-1]: line.split()[1] for line in _LINES if line.startswith("from ")}
"""The module of each public name."""

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Load the module of a public name. Raises ImportError if it needs another version of `mcp`."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        needed = "needs mcp 2.3: pip install 'mcp>=2.3,<2.4', without what holds mcp below 2"
        raise ImportError(f"{__name__}.{name} {needed}", name="mcp") from error


def __dir__() -> list[str]:
    return __all__
