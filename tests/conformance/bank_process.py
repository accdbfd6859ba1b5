"""This project's server over HTTP, as a process of its own."""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from unittest import mock
from urllib.parse import urlsplit

from banking_server.server.settings import load_settings
from banking_server.server.tokens import Tokens, load_keys

from .support import served_by

COMMAND = [sys.executable, "-m", "banking_server"]


class Bank:
    """Runs `serve --http` on a free port, on a database of its own, while the block lasts.

    `environment` holds settings of the server besides these.
    """

    url = ""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        database = {"BANKING_DATABASE": str(folder / "bank.db")}
        self._environment = {**os.environ, **(environment or {}), **database}
        command = (*COMMAND, "serve", "--http", "--port")
        self._served = served_by(*command, environment=self._environment)

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
        self.url = self._served.__enter__()
        self._environment["BANKING_PORT"] = str(urlsplit(self.url).port)
        return self

    def __exit__(self, *error: Any) -> None:
        self._served.__exit__(*error)
