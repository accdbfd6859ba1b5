"""What the tests of the agent share."""

import pytest

from banking_server.agent import endpoint

from ..server.conftest import elsewhere

__all__ = ["elsewhere"]


@pytest.fixture(autouse=True)
def nothing_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare each test the seconds between a request that failed and the next."""
    monkeypatch.setattr(endpoint, "RETRIES", 0)
