"""What the tests of the commands share."""

import pytest

from ..kit.command import Cli


@pytest.fixture
def created(cli: Cli) -> None:
    """Let the command's database be there, which looking does not make."""
    assert cli("database", "create").code == 0
