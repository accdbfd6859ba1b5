"""A command in this process, and servers to call."""

from ..server.conftest import _nobodys_settings, cli, database, elsewhere

__all__ = ["_nobodys_settings", "cli", "database", "elsewhere"]
