"""How an HTTP server here handles its TCP connections, which uvicorn has no options for.

The bank's server and `tool-chaining-proxy` both serve with `Http`, and so have the same bounds:
on time, for a head, a body and a reader that does not read; on size, of a head and of what stands
around a body; and on number, in all and for each address. When there is no room, the connection
that has waited longest without a whole request makes room, or whose answers nobody reads; only if
all are being answered, the newcomer is told 503. So whoever opens connections and says nothing only
shortens the time in which others like them have to say something.
"""

import asyncio
import ipaddress
import logging
import math
import socket
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import h11
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

try:
    import resource
except ImportError:  # pragma: no cover - Windows
    resource = None  # type: ignore[assignment]

_BODY_FOLLOWS: Final = (b"content-length", b"transfer-encoding")
_TOO_LONG: Final = "The head of the request, or what stands around its body, is too long."

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES: Final = 64 * 1024
"""The largest head of a request, and the most that may stand around its body: chunk extensions
and trailers."""

MAX_HEADERS: Final = 100
"""The most headers of a request."""

MAX_WAITING: Final = 8
"""The most requests that wait on one connection behind the one that is being answered.

Nobody needs to send requests without waiting for answers, and each takes fifty times the memory
that it took to send it."""

_RESERVE: Final = 64
"""Descriptors that a process needs for other things: the database, the log, the event loop."""

_MANY: Final = 16384
"""Descriptors, of which no more are used even if there are: each connection is looked at once a
second."""


def _descriptors() -> int:
    if resource is None:  # pragma: no cover - Windows
        return 1024
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY if most == resource.RLIM_INFINITY else min(most, _MANY)


_ACCEPTS_ONE: Final = find_spec("uvloop") is not None
"""Whether the event loop that uvicorn takes accepts one connection at a time.

asyncio accepts as many as its backlog at once, and again, before the first is looked at here.
"""

BACKLOG: Final = 2048 if _ACCEPTS_ONE else max(8, _descriptors() // 16)
"""How many connections the system keeps until they are accepted."""


def most_connections(reserve: int = _RESERVE) -> int:
    """Return how many connections fit below the descriptors that this process may have."""
    being_accepted = 8 if _ACCEPTS_ONE else 2 * BACKLOG
    return max(8, _descriptors() - reserve - being_accepted)


@dataclass(frozen=True)
class Limits:
    """What is allowed to connections; times are in seconds."""

    head: float = 10
    """From the first byte of a request, or the beginning of the connection, to the whole head."""
    body: float = 30
    """From the head to the whole body."""
    unread: float = 30
    """For a reader who does not read, while so much of an answer waits that it goes no further."""
    most: int = field(default_factory=most_connections)
    """Connections of one process at a time."""
    each_address: int = 100
    """Connections of one address at a time; of an IPv6 network of 64 bits, which one host has."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose `X-Forwarded-For` is believed.

    Their own connections are not counted for each address: their requests are, under the address
    for which they were sent, from the head to the end of the answer.
    """

    @cached_property
    def proxies(self) -> "TrustedProxies":
        """The trusted proxies."""
        return TrustedProxies(self.trusted_proxies)


class TrustedProxies:
    """Tells for whom a proxy's request was sent."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(each, strict=False) for each in trusted]

    def __contains__(self, host: str) -> bool:
        address = _address(host) if self._networks else None
        return address is not None and any(address in network for network in self._networks)

    def client(self, forwarded_for: bytes) -> str | None:
        """Return as what the nearest address that is none of the proxies is counted."""
        for each in reversed(forwarded_for.decode("latin-1").split(",")):
            host = _without_port(each.strip())
            if host and host not in self:
                return _counted_as(host)
        return None


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _counted_as(host: str) -> str:
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed, 64), strict=False))
    return host[:64] if address is None else str(address)


_Phase = Literal["head", "body", "answer", "idle"]
"""What is waited for: a request's head, its body, the server's answer to it, or another request."""


class _Table:
    """The connections of one server, the oldest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._all: dict[_Connection, None] = {}
        self._of_address: dict[str, dict[_Connection, None]] = {}
        self._sweeping = False

    def has_room_for(self, newcomer: "_Connection", address: str | None) -> bool:
        """Take a connection in, or count one that is in under another address.

        Who waits without a whole request may have to go for it. False if all are being answered.
        """
        self._stop_counting(newcomer)
        others = self._of_address.get(address or "", {})
        if not self._make_room(others, self.limits.each_address):
            return False
        if newcomer not in self._all and not self._make_room(self._all, self.limits.most):
            return False
        self._all[newcomer] = None
        newcomer.address = address
        if address is not None:
            self._of_address.setdefault(address, {})[newcomer] = None
        if not self._sweeping:
            self._sweeping = True
            self._sweep(newcomer.loop)
        return True

    def _make_room(self, among: dict["_Connection", None], most: int) -> bool:
        if len(among) < most:
            return True
        longest: _Connection | None = None
        for each in among:
            if each.phase != "answer" or each.is_unread:
                if not each.was_served:
                    longest = each
                    break
                if longest is None or each.since < longest.since:
                    longest = each
        if longest is None:
            logger.warning("Refused a connection: all %d are being answered", len(among))
            return False
        logger.warning("Closed a connection that waited, as there were %d", len(among))
        self.remove(longest)
        longest.transport.abort()
        return True

    def remove(self, connection: "_Connection") -> None:
        """Forget a connection, which is gone or has no room."""
        self._all.pop(connection, None)
        self._stop_counting(connection)

    def _stop_counting(self, connection: "_Connection") -> None:
        if connection.address is not None:
            of_address = self._of_address.get(connection.address, {})
            of_address.pop(connection, None)
            if not of_address:
                self._of_address.pop(connection.address, None)
            connection.address = None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to everybody's time, every second or so while there is anybody."""
        if not self._all:
            self._sweeping = False
            return
        now = loop.time()
        for each in list(self._all):
            each.see_to_its_time(now)
        shortest = min(self.limits.head, self.limits.body, self.limits.unread)
        loop.call_later(min(1.0, shortest / 4), self._sweep, loop)


_tables: WeakKeyDictionary[ServerState, _Table] = WeakKeyDictionary()


class _Refused(Exception):
    """A request is not served; its connection says `status` and `words`, and is closed."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class _Connection(asyncio.Protocol):
    """A connection of uvicorn, with limits."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    flow: FlowControl
    config: Config
    server_state: ServerState
    client: tuple[str, int] | None
    cycle: Any
    _unset_keepalive_if_required: Callable[[], None]

    def __init__(self, *arguments: Any, limits: Limits = Limits(), **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.server_state not in _tables:
            _tables[self.server_state] = _Table(limits)
        self._table = _tables[self.server_state]
        self.phase: _Phase = "head"
        self.since = self.loop.time()
        """When the phase began."""
        self.was_served = False
        """Whether a whole request has come."""
        self.address: str | None = None
        """Under which it is counted."""
        self._by_proxy = False
        self._has_spoken = False
        self._is_closing = False
        self._deadline = math.inf
        self._refusal: _Refused | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection, or refuse it."""
        connection = transport.get_extra_info("socket")
        # Nagle's algorithm delays a response in two packets. The event loop turns it off, but not
        # on each kind of socket that several workers share.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._deadline = self.since + self._table.limits.head
        host = self.client[0] if self.client else ""
        self._by_proxy = host in self._table.limits.proxies
        address = None if self._by_proxy or not host else _counted_as(host)
        if not self._table.has_room_for(self, address):
            self._close_with(503, "There are too many connections; try again.")

    def connection_lost(self, error: Exception | None) -> None:
        """End a connection."""
        self._table.remove(self)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._has_spoken = True
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Turn to the next request."""
        super().on_response_complete()  # type: ignore[misc]
        if self._is_in_head():
            # Whoever has begun the next request is not idle.
            self._unset_keepalive_if_required()
        if self._by_proxy and self.address is not None:
            self._table.has_room_for(self, None)
        self._look()

    def pause_writing(self) -> None:
        """Wait for the reader, not for ever."""
        super().pause_writing()
        if self.phase == "answer":
            self._deadline = self.loop.time() + self._table.limits.unread

    def resume_writing(self) -> None:
        """Go on writing."""
        super().resume_writing()
        if self.phase == "answer":
            self._deadline = math.inf

    @property
    def is_unread(self) -> bool:
        """Whether so much waits for the reader that no more is written."""
        return self.flow.write_paused

    def _look(self) -> None:
        """Note what is waited for now."""
        phase = self._phase_now()
        if phase == self.phase:
            return
        self.phase = phase
        self.since = self.loop.time()
        if phase == "answer":
            self.was_served = True
            unread = self._table.limits.unread
            self._deadline = self.since + unread if self.is_unread else math.inf
        else:
            self._deadline = self.since + self._seconds(phase)

    def _seconds(self, phase: _Phase) -> float:
        if phase == "idle":
            return self.config.timeout_keep_alive
        limits = self._table.limits
        return limits.head if phase == "head" else limits.body

    def _phase_now(self) -> _Phase:
        if self.cycle is not None and not self.cycle.response_complete:
            return "body" if self.cycle.more_body else "answer"
        return "head" if self.cycle is None or self._is_in_head() else "idle"

    def _is_in_head(self) -> bool:
        """Return whether a part of a head is there."""
        raise NotImplementedError

    def _being_answered(self) -> Any:
        """Return the request that is answered now, or was last, as uvicorn has it; if any."""
        return self.cycle

    def see_to_its_time(self, now: float) -> None:
        """Close the connection if its time is over; `now` is the event loop's, in seconds."""
        if self.transport.is_closing() and not self._is_closing:
            # What is written is still sent, if somebody reads it.
            self._is_closing = True
            self._deadline = now + self._table.limits.unread
        elif now < self._deadline:
            return
        elif self._is_closing or self.phase == "answer":
            self.transport.abort()
        elif self.phase == "idle" or not self._has_spoken:
            self.transport.close()
        else:
            self._close_with(408, "The request took too long to arrive.")

    def _check_head(self, version: str, headers: Collection[tuple[bytes, bytes]]) -> None:
        """Raise `_Refused` for a head that is too much, or that others could read differently."""
        names = [name for name, _ in headers]
        size = sum([len(name) + len(value) for name, value in headers])
        if len(names) > MAX_HEADERS or size > MAX_HEAD_BYTES:
            raise self._refused(431, _TOO_LONG)
        hosts = names.count(b"host")
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            raise self._refused(400, "The request has to name one Host.")
        if version not in ("1.1", "1.0"):
            raise self._refused(505, "The request has to be of HTTP/1.1.")
        if b"transfer-encoding" in names:
            if b"content-length" in names or version == "1.0":
                raise self._refused(400, "The length of the request is not clear.")
            if dict(headers)[b"transfer-encoding"].lower() != b"chunked":
                raise self._refused(
                    501, "The only Transfer-Encoding that is understood is chunked."
                )
        if self._by_proxy:
            forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
            client = self._table.limits.proxies.client(forwarded)
            if not self._table.has_room_for(self, client):
                raise self._refused(503, "There are too many requests at once; try again.")

    def _refused(self, status: int, words: str) -> _Refused:
        self._refusal = _Refused(status, words)
        return self._refusal

    def send_400_response(self, msg: str) -> None:
        """Say why a request cannot be served, and close the connection."""
        refusal = self._refusal or _Refused(400, msg)
        self._close_with(refusal.status, refusal.words)

    def _close_with(self, status: int, words: str) -> None:
        """Answer once more, unless an answer has begun, and close the connection."""
        cycle = self._being_answered()
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        body = words.encode()
        head = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            "Content-Type: text/plain; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Connection: close",
            *(["Retry-After: 1"] if status == HTTPStatus.SERVICE_UNAVAILABLE else []),
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        if cycle is not None:
            # What is still being answered has nobody to go to.
            cycle.disconnected = True
        self.transport.close()


class _CheckedH11(h11.Connection):
    """h11, whose requests are looked at before uvicorn serves them."""

    def __init__(self, connection: "_H11") -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._connection = connection

    def next_event(self) -> Any:
        """Return what comes next. Raises `h11.RemoteProtocolError`."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            try:
                self._connection.check(event)
            except _Refused as refused:
                raise h11.RemoteProtocolError(refused.words) from None
        return event


class _H11(_Connection, H11Protocol):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = _CheckedH11(self)

    def check(self, request: h11.Request) -> None:
        """Raise `_Refused` for a head that is not served."""
        self._check_head(request.http_version.decode(), request.headers)

    def _is_in_head(self) -> bool:
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])


Http: type[_Connection]
"""The protocol to serve: on httptools, which is several times as fast, or on h11.

`functools.partial(Http, limits=Limits(…))` has other limits.
"""

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    # There is not a wheel for every platform.
    Http = _H11
else:

    class _HttpTools(_Connection, HttpToolsProtocol):
        _in_head = False
        _answered: Any = None
        _around: int | None = None
        """Bytes of an unfinished message that have come since anything of use came."""

        def on_message_begin(self) -> None:
            if len(self.pipeline) >= MAX_WAITING:
                raise self._refused(400, "There are too many requests on this connection at once.")
            self._in_head = True
            self._around = 0
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            # A trailer is no header: it comes when the headers have been acted upon.
            if self._in_head:
                # The blanks around a value are none of it (RFC 9110, 5.5); llhttp leaves some.
                super().on_header(name, value.strip(b" \t"))

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._around = 0
            self._check_head(self.parser.get_http_version(), self.headers)
            upgrades = self.parser.should_upgrade()
            if upgrades and any(name in _BODY_FOLLOWS for name, _ in self.headers):
                # There is nothing to switch to, but llhttp reads no further: not the body either,
                # and could take it for another request.
                raise self._refused(400, "A request that asks for an upgrade has no body.")
            super().on_headers_complete()
            if not self.pipeline:
                self._answered = self.cycle
            if upgrades:
                self.cycle.keep_alive = False

        def on_response_complete(self) -> None:
            if self.pipeline:
                self._answered, _ = self.pipeline[-1]
            super().on_response_complete()

        def _being_answered(self) -> Any:
            # While others wait behind it, `cycle` is the last one that came.
            return self._answered

        def on_body(self, body: bytes) -> None:
            self._around = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._around = None
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            if self._around is not None:
                self._around += len(data)
            super().data_received(data)
            around = self._around
            if around is not None and around > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._close_with(431, _TOO_LONG)

        def _phase_now(self) -> _Phase:
            # While others wait behind it, it is the one before that is being answered.
            return "answer" if self.pipeline else super()._phase_now()

        def _is_in_head(self) -> bool:
            return self._in_head

    Http = _HttpTools
