"""What the tests of the proxy share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..kit.serving import served
from . import strange_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the processes of a module leave what they say."""
    return tmp_path_factory.mktemp("proxy")


@pytest.fixture(scope="module")
def strange_url() -> Iterator[str]:
    """The address of a strange server."""
    with served(strange_server.over_http()) as url:
        yield url
