"""Under which names a request may come, and from which pages: others may be a rebinding attack."""

import logging
import re
from collections.abc import Iterable
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this computer that everybody has."""

_PORT: Final = re.compile(r":[0-9]{1,5}\Z")


class KnownNames:
    """Refuses a request under another `Host` with 421, and from another `Origin` with 403.

    ASGI middleware against DNS rebinding. A name that ends with `:*` stands for every port. Unlike
    the SDK's own check this one takes digits alone for a port, whatever case a name is written in,
    and looks at each `Origin` that was sent.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> Response | None:
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if not hosts or not all(_is_known(host, self._hosts) for host in hosts):
            logger.warning("Refused a request for the host %.200s", ascii(hosts))
            return Response("Invalid Host header", status_code=421)
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if not all(_is_known(origin, self._origins) for origin in origins):
            logger.warning("Refused a request from the origin %.200s", ascii(origins))
            return Response("Invalid Origin header", status_code=403)
        return None


def _is_known(name: str, known: frozenset[str]) -> bool:
    name = name.lower()
    return "*" not in name and (name in known or _PORT.sub(":*", name) in known)
