"""A command in this process."""

from ..server.conftest import _nobodys_settings, cli, database

__all__ = ["_nobodys_settings", "cli", "database"]
