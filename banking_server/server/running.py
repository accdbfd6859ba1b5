"""The running server's bank, for what happens before a request gets as far as MCP."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from anyio.abc import TaskGroup

from banking_server.bank.accounts import is_customer
from banking_server.tools import App

logger = logging.getLogger(__name__)


class Running:
    """Holds the application while the server runs.

    Tokens and their scopes are checked by HTTP middleware. That is put together before the bank is
    opened, so it is handed this instead; the server's lifespan fills it, and empties it at the end.
    """

    def __init__(self) -> None:
        self._app: App | None = None
        self._background: TaskGroup | None = None

    @property
    def app(self) -> App:
        """The application. Raises `RuntimeError` unless the server runs."""
        if self._app is None:
            raise RuntimeError("The bank is not open.")
        return self._app

    @property
    def background(self) -> TaskGroup:
        """What goes on beside the requests. It ends before the bank is closed.

        Raises `RuntimeError` unless the server runs.
        """
        if self._background is None:
            raise RuntimeError("The bank is not open.")
        return self._background

    @contextmanager
    def with_app(self, app: App, background: TaskGroup) -> Iterator[None]:
        """Hold `app` and its `background` until the end of the block."""
        self._app, self._background = app, background
        try:
            yield
        finally:
            self._app = self._background = None

    async def is_customer(self, subject: str) -> bool:
        """Say whether `subject` is a customer; nobody is while the bank is closed."""
        return self._app is not None and await is_customer(self._app.bank, subject)

    async def can_be_read(self) -> bool:
        """Say whether the bank is open and answers. Never raises."""
        try:
            await is_customer(self.app.bank, "")
        except Exception as error:
            logger.warning("The bank cannot be read (%s)", type(error).__name__)
            return False
        return True
