"""A command in this process, and servers to call."""

import pytest

from ..kit.command import Cli
from ..server.conftest import _nobodys_settings, cli, database, elsewhere

__all__ = ["_nobodys_settings", "cli", "database", "elsewhere"]


@pytest.fixture
def created(cli: Cli) -> None:
    """Let the command's database be there, which looking does not make."""
    assert cli("database", "create").code == 0
