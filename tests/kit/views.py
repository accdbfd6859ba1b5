"""A client that shows views of MCP Apps, and what stands in a result for the view alone."""

from typing import Any

from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.types import CallToolResult

from banking_server.tools.views import DATA

SHOWS_VIEWS = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
"""Passed among a client's extensions, this declares that it shows views."""


def for_view(result: CallToolResult) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (result.meta or {}).get(DATA)
    return found


def secret_of(result: CallToolResult) -> str:
    found = for_view(result)
    assert found is not None
    return str(found["secret"])
