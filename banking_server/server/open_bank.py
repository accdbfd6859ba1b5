"""Opens the bank of the settings, for the server and for the commands that need no server.

It imports nothing of MCP, so that these commands start fast.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from banking_server.bank import opening
from banking_server.bank.storage import Bank
from banking_server.server.keys import Keys
from banking_server.server.settings import Settings

_DATA: Final = Path(__file__).parents[1] / "data"

DEMO_DATA: Final = _DATA if _DATA.is_dir() else Path(__file__).parents[2] / "data"
"""The folder of the demo data: in the package if it is installed, else beside it."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@asynccontextmanager
async def open_bank(
    settings: Settings,
    now: datetime,
    keys: Keys | None = None,
    *,
    create: bool | None = None,
    over_stdio: bool = False,
) -> AsyncIterator[Bank]:
    """Open the bank of these settings until the end of the block. Raises `DatabaseUnavailable`.

    With `create` a new database is made; by default if there is no secret yet. The database is
    made before the secret. So if several servers start together, each of them may make it. Without
    `keys`, the bank can do everything except make and check confirmation codes.
    """
    may_create = is_new(settings) if create is None else create
    bank = await opening.open_bank(
        settings.database,
        rules=settings.rules(over_stdio=over_stdio),
        code_key=secrets.token_bytes(32) if keys is None else keys.confirmation_codes,
        other_code_keys=() if keys is None else [other.confirmation_codes for other in keys.others],
        demo_data=DEMO_DATA,
        now=now,
        may_create=may_create,
    )
    try:
        yield bank
    finally:
        await bank.close()


def is_new(settings: Settings) -> bool:
    """Return whether there is no secret yet, so that the bank is new.

    A bank on PostgreSQL can be old although this computer has no secret.
    """
    path = settings.secret_path
    return settings.secret is None and path is not None and not path.exists()
