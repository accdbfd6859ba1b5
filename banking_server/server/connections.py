"""How the HTTP server handles its TCP connections, which uvicorn has no option for."""

import asyncio
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol


class NoDelayHttp(H11Protocol):
    """HTTP without Nagle's algorithm, under which a response in two packets is delayed.

    asyncio turns it off, but not on the connections of a socket that several workers share.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
