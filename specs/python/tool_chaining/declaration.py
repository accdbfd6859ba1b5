"""What an `mcp.Client` says to a server about the extension."""

from typing import Final

from mcp.client import advertise

from tool_chaining.directive import IDENTIFIER, SETTINGS

CLIENT_EXTENSION: Final = advertise(IDENTIFIER, SETTINGS)
"""Declares the extension (TC-C-01): `mcp.Client(..., extensions=[CLIENT_EXTENSION])`."""
