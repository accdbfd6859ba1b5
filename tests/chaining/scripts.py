"""What to tell the scripted server to say (see `chain_server.Script`), and what came of it."""

from typing import Any

from mcp.types import TextContent

from banking_server.chaining import ChainResult

ECHO = {"tool": "echo"}


def say(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    """Arguments of `relay`: say the text, and send `then` as the directive."""
    return {"say": text, **({} if then is None else {"next": then}), **more}


def relay(text: str, then: Any = None, **more: Any) -> dict[str, Any]:
    """A directive to `relay`."""
    return {"tool": "relay", "arguments": say(text, then, **more)}


def texts(chain: ChainResult) -> list[str]:
    return [block.text for block in chain.content if isinstance(block, TextContent)]


def tools(chain: ChainResult) -> list[str]:
    return [step.tool for step in chain.steps]
