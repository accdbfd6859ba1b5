"""This project's server over HTTP, as a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self
from unittest import mock

from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens, load_keys

COMMAND = [sys.executable, "-m", "banking_server"]
PATIENCE = 60


class Bank:
    """Runs `serve --http` on a free port, on a database of its own, while the block lasts.

    `environment` holds settings of the server besides these.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._environment = {
            **os.environ,
            **(environment or {}),
            "BANKING_DATABASE": str(folder / "bank.db"),
            "BANKING_PORT": str(self._port),
        }
        self._process = subprocess.Popen(
            [*COMMAND, "serve", "--http"],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def token(self, customer: str = "CUST001") -> str:
        """Return a token for a demo customer."""
        with mock.patch.dict(os.environ, self._environment):
            settings = load_settings()
        return Tokens.of(settings, load_keys(settings)).mint(
            customer,
            ["bank:read", "bank:transfer"],
            now=datetime.now(UTC),
            lifetime=timedelta(hours=1),
        )

    def __enter__(self) -> Self:
        end = time.monotonic() + PATIENCE
        while True:
            assert self._process.poll() is None, "the server ended before it was up"
            assert time.monotonic() < end, "the server did not come up"
            try:
                socket.create_connection(("127.0.0.1", self._port)).close()
            except OSError:
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *error: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE)
