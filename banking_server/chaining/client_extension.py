"""What a client of the SDK declares: that it implements the extension (TC-C-01)."""

from typing import Final

from mcp.client import advertise

from banking_server.chaining.directive import IDENTIFIER, SETTINGS

CLIENT_EXTENSION: Final = advertise(IDENTIFIER, SETTINGS)
"""Pass it in `mcp.Client(..., extensions=[CLIENT_EXTENSION])` to declare the extension."""
