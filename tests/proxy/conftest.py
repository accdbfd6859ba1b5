"""What the tests of the proxy share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of a module leave what they say."""
    return tmp_path_factory.mktemp("proxy")
