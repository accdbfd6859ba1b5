"""Runs one function on the open bank, for commands that need no server."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from banking_server.cli.messages import CommandFailed

if TYPE_CHECKING:
    from banking_server.bank.rules import NotFound, Refused
    from banking_server.bank.storage import Bank
    from banking_server.server.settings import Settings

_T = TypeVar("_T")


def run_on_bank(
    settings: "Settings",
    work: "Callable[[Bank], Coroutine[Any, Any, _T]]",
    *,
    create: bool = False,
) -> _T:
    """Open the bank of these settings, run `work` on it and close it again.

    With `create`, a missing database is created. Raises `DatabaseUnavailable`.
    """
    import asyncio

    from banking_server.server.open_bank import open_bank, utc_now

    async def run() -> _T:
        async with open_bank(settings, utc_now(), create=create) as bank:
            return await work(bank)

    return asyncio.run(run())


def accepted(outcome: "_T | NotFound | Refused", subject: str) -> _T:
    """Return a desk's outcome. Raises `CommandFailed` if the bank refused.

    `subject` names what the command was about, such as "handoff".
    """
    from banking_server.bank.rules import NotFound, Refused

    if isinstance(outcome, NotFound):
        raise CommandFailed(f"There is no {subject} {outcome.value!r}.")
    if isinstance(outcome, Refused):
        raise CommandFailed(outcome.message)
    return outcome
