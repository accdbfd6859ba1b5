"""Serves the HTTP application with uvicorn, in one process or in several.

Slow and idle connections, and limits for each address and customer, are the task of a reverse
proxy: `README.md` shows its lines.
"""

import signal
import socket
import sys
from typing import Final

import uvicorn

from banking_server.server.settings import Settings
from tool_chaining.errors import ForPeople

ENDING_SECONDS: Final = 5
"""Seconds that an ending server waits for its running requests."""


class CannotListen(ForPeople):
    """The server cannot listen at an address; the message is one line for people."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 means any free port. Raises `CannotListen`."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        # Python adds the address, which the message has.
        problem = (error.strerror or str(error)).partition(" (while ")[0].lower()
        raise CannotListen(f"Cannot serve at {host} port {port}: {problem}.") from error


def serve(app: str, settings: Settings) -> None:
    """Serve the ASGI application that a function makes, until Ctrl-C or SIGTERM.

    `app` names the function, `module:function`; each process calls it. Exits with 3 if the
    application cannot start.
    """
    # uvicorn ends cleanly at SIGTERM, and then raises it again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.run(
        app,
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        lifespan="on",
        ws="none",
        proxy_headers=False,
        # uvicorn's messages go to the same log as all others.
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=ENDING_SECONDS,
    )
