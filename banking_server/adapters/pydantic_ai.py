"""Pydantic AI: a client for its `MCPToolset`, whose tool calls come back with chains followed."""

from typing import ClassVar

from banking_server.adapters.fastmcp import ChainingClient as FastMCPChainingClient
from banking_server.adapters.fastmcp import Transport


class ChainingClient(FastMCPChainingClient[Transport]):
    """To be given to `MCPToolset`: `MCPToolset(ChainingClient("https://example.com/mcp"))`.

    Pydantic AI shows its model the structured content of a result and nothing else, so a result
    with follow-up calls has none. Elicitation and the rest are options of this client.
    """

    text_first: ClassVar[bool] = True
