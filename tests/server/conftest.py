"""A server that several tests use."""

import signal
from collections.abc import Iterator

import pytest

from ..kit.command import PATIENCE
from ..kit.servers import HttpServer, http_server


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """An HTTP server as it is by default, but for its log: it says as much as it can."""
    with http_server(tmp_path_factory.mktemp("bank"), BANKING_LOG_LEVEL="DEBUG") as server:
        yield server
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0, "Ctrl-C ends it"
        assert "Traceback" not in server.logged()
