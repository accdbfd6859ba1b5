"""The running server's bank, for what happens before a request gets as far as MCP."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from banking_server.bank.accounts import is_customer
from banking_server.tools import App

logger = logging.getLogger(__name__)


class Running:
    """Holds the application while the server runs.

    What checks tokens and scopes is put together before the bank is opened, so it is handed this
    instead; the server's lifespan fills it, and empties it at the end.
    """

    def __init__(self) -> None:
        self._app: App | None = None

    @property
    def app(self) -> App:
        """The application. Raises `RuntimeError` unless the server runs."""
        if self._app is None:
            raise RuntimeError("The bank is not open.")
        return self._app

    @contextmanager
    def with_app(self, app: App) -> Iterator[None]:
        """Hold `app` until the end of the block."""
        self._app = app
        try:
            yield
        finally:
            self._app = None

    async def is_customer(self, subject: str) -> bool:
        """Say whether `subject` is a customer; nobody is while the bank is closed."""
        return self._app is not None and await is_customer(self._app.bank, subject)

    async def can_serve(self) -> bool:
        """Say whether the bank is open and answers. Never raises."""
        try:
            await is_customer(self.app.bank, "")
        except Exception as error:
            logger.warning("The bank cannot serve (%s)", type(error).__name__)
            return False
        return True
