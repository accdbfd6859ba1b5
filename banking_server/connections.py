"""How the HTTP server handles its TCP connections, which uvicorn has no option for."""

import asyncio
import socket
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEAD_BYTES: Final = 64 * 1024
"""The largest head of a request, as h11 has it; httptools has no limit of its own."""


class _NoDelay(asyncio.Protocol):
    """HTTP without Nagle's algorithm, under which a response in two packets is delayed.

    The event loop turns it off, but not on each kind of socket that several workers share.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection."""
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)


class _H11(_NoDelay, H11Protocol):
    pass


Http: type[asyncio.Protocol]
"""The protocol to serve: on httptools, which is several times as fast, or on h11."""

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    # There is not a wheel for every platform.
    Http = _H11
else:

    class _HttpTools(_NoDelay, HttpToolsProtocol):
        _head: int | None = None
        """How many bytes of an unfinished head have come."""

        def on_message_begin(self) -> None:
            self._head = 0
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            # The blanks around a value are none of it (RFC 9110, 5.5); llhttp leaves some there.
            super().on_header(name, value.strip(b" \t"))

        def on_headers_complete(self) -> None:
            self._head = None
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._head is not None:
                self._head += len(data)
                if self._head > MAX_HEAD_BYTES and not self.transport.is_closing():
                    self.send_400_response("The head of the request is too long.")

    Http = _HttpTools
