"""A server that is not the bank, for all tests of the adapters."""

import sys
from collections.abc import Iterator

import pytest

from ..conformance.support import served_by
from ..kit.command import ANY_SERVER


@pytest.fixture(scope="session")
def anything() -> Iterator[str]:
    """The URL of a server that is not the bank."""
    with served_by(sys.executable, str(ANY_SERVER)) as url:
        yield url
