"""Builds the MCP server: the bank, its tools, the extension, and the caller."""

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Final

import anyio
from mcp.server import CacheHint, MCPServer
from mcp.server.mcpserver import RequestStateSecurity

from banking_server import __version__
from banking_server.bank.accounts import list_customers
from banking_server.bank.storage import Bank, BankBusy
from banking_server.bank.transfers.confirm import settle
from banking_server.client.agent.settings import (
    ModelNotConfigured,
    is_configured,
    load_model_settings,
)
from banking_server.server.keys import load_keys
from banking_server.server.open_bank import is_new, open_bank, utc_now
from banking_server.server.settings import Settings, SettingsError
from banking_server.tools import FOR_VIEWS, TOOLS
from banking_server.tools.calling import App, BankServer, Infer
from banking_server.tools.views.documents import views
from banking_server.tools.views.offering import only_for_clients_with_views
from tool_chaining import add_tool_chaining
from tool_chaining.operator import write_line

logger = logging.getLogger(__name__)

NAME: Final = "banking-server"

SETTLE_EVERY_SECONDS: Final = 60

TOOLS_FRESH_MS: Final = 60_000
"""How long a client may cache the list of tools. It changes only with the program."""

_INSTRUCTIONS = """\
A personal bank. Start with list_accounts for the ids that the other tools take. A transfer has two
steps: prepare_money_transfer reserves the money, and confirm_or_cancel_money_transfer posts it once
the customer agrees. Never make up a confirmation code, and use one only if the customer says so.
A result whose _meta.nextTool names a tool says what has to happen next: call that tool with exactly
those arguments, unless your client already did, in which case its result is there too."""


class _StandardError(logging.Handler):
    """Writes messages without waiting for their reader."""

    def emit(self, record: logging.LogRecord) -> None:
        write_line(self.format(record))


def configure_logging(level: str) -> None:
    """Log to standard error.

    Libraries log from WARNING on: below that, some of them log contents of messages.
    """
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, format=form, handlers=[_StandardError()])
    logging.getLogger("banking_server").setLevel(level)


async def check_before_serving(settings: Settings) -> list[str]:
    """Open the bank and close it again, to find errors before serving; return the customers.

    Raises `DatabaseUnavailable`, `SecretUnavailable` or `SettingsError`.
    """
    async with open_bank(settings, utc_now()) as bank:
        load_keys(settings)
        _model(show_problem=False)
        return await list_customers(bank)


def build_server(
    settings: Settings,
    *,
    customer: str | None,
    clock: Callable[[], datetime] = utc_now,
) -> MCPServer[App]:
    """Return the server for the one `customer` of a stdio connection, or for HTTP (None).

    Over HTTP, the verified token says who is calling, and the server settles due transfers.
    Raises `SecretUnavailable` or `SettingsError`; the bank is opened when the server starts.
    """
    created = is_new(settings)  # Before `load_keys` makes the secret.
    keys = load_keys(settings)
    over_http = customer is None
    model = _model(show_problem=not over_http)

    @asynccontextmanager
    async def lifespan(_: MCPServer[App]) -> AsyncIterator[App]:
        async with AsyncExitStack() as open_until_the_end:
            bank = await open_until_the_end.enter_async_context(
                open_bank(settings, clock(), keys, create=created, over_stdio=not over_http)
            )
            infer = None if model is None else await open_until_the_end.enter_async_context(model())
            app = App(
                bank=bank,
                clock=clock,
                customer=customer,
                infer=infer,
            )
            async with anyio.create_task_group() as background:
                if over_http:
                    background.start_soon(_settle_for_ever, bank, clock)
                logger.info("Process %d serves.", os.getpid())
                yield app
                background.cancel_scope.cancel()

    mcp = BankServer(
        NAME,
        title="Personal banking",
        instructions=_INSTRUCTIONS,
        version=__version__,
        tools=(*TOOLS, *FOR_VIEWS),
        extensions=[views()],
        lifespan=lifespan,
        middleware=[only_for_clients_with_views],
        # All processes share the keys: an answer may reach another process than its question.
        request_state_security=RequestStateSecurity(
            keys=[keys.request_state, *(other.request_state for other in keys.others)]
        ),
        # A client that follows a chain looks up the next tool. It can use its cached list.
        cache_hints={"tools/list": CacheHint(ttl_ms=TOOLS_FRESH_MS, scope="private")},
    )
    add_tool_chaining(mcp)
    return mcp


def _model(*, show_problem: bool) -> Callable[[], AbstractAsyncContextManager[Infer]] | None:
    """Return a function that connects the language model of the environment, or None.

    Raises `SettingsError`.
    """
    if not is_configured():
        return None

    from banking_server.server.model import answering  # Slow to import; only needed here.

    try:
        chosen = load_model_settings()
    except ModelNotConfigured as error:
        raise SettingsError(str(error)) from None
    return lambda: answering(chosen, show_problem=show_problem)


async def _settle_for_ever(bank: Bank, clock: Callable[[], datetime]) -> None:
    """Settle due transfers once a minute. Several processes may do so: a transfer posts once."""
    while True:
        try:
            now = clock()
            settled = await settle(bank, as_of=now.date(), now=now)
        except BankBusy:
            logger.info("The bank is busy; due transfers are settled in a minute")
        except Exception:
            logger.exception("Due transfers could not be settled; trying again in a minute")
        else:
            if settled:
                logger.info("Settled %d due transfers", len(settled))
        await anyio.sleep(SETTLE_EVERY_SECONDS)
