"""What the tests of the agent share."""

from ..server.conftest import _nobodys_settings, cli, database, elsewhere, full

__all__ = ["_nobodys_settings", "cli", "database", "elsewhere", "full"]
