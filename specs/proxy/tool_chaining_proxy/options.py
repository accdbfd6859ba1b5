"""The options of the proxy."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tool_chaining.client import DEFAULT_CALL_TIMEOUT, DEFAULT_TOTAL_TIMEOUT
from tool_chaining.directive import DEFAULT_LIMIT
from tool_chaining.rules import Rules
from tool_chaining.urls import without_user
from tool_chaining_proxy.consent import MakePolicy, consent_of
from tool_chaining_proxy.record import Recorder

START_TIMEOUT: Final = 60.0
"""Seconds that a server may take to start and answer, if no timeout was chosen."""

_STARTS_OTHERS: Final = re.compile(r"(python[\d.]*|node|npx|uvx|bunx)(\.exe|\.cmd)?\Z")


@dataclass(frozen=True)
class Command:
    """A server that the proxy starts, and talks to over stdio."""

    argv: tuple[str, ...]
    environment: dict[str, str]

    @property
    def name(self) -> str:
        """The server's name in messages for people: not that of a program that only starts it."""
        started_by, *arguments = self.argv
        plain = [one for one in arguments if not one.startswith("-")]
        if plain and _STARTS_OTHERS.match(Path(started_by).name) and "-c" not in arguments:
            return plain[0] if plain[0].startswith("@") else Path(plain[0]).name
        return Path(started_by).name


@dataclass(frozen=True)
class Address:
    """A server that the proxy reaches over Streamable HTTP."""

    url: str
    authorization: str | None = None
    """The value of the `Authorization` header. It is sent only to the origin of this URL."""

    @property
    def name(self) -> str:
        """The server's name in messages for people, without anything that can be a secret."""
        return without_user(self.url)


Server = Command | Address


@dataclass(frozen=True)
class ProxyOptions:
    """The options of following, for every transport."""

    server: Server
    consent: MakePolicy = field(default_factory=lambda: consent_of(None))
    """Returns the policy for one call of the client, which may ask its user."""
    limit: int = DEFAULT_LIMIT
    """Calls in one chain, the first one included."""
    call_timeout: float | None = DEFAULT_CALL_TIMEOUT
    """Seconds that one call may take, without the time for questions to the user."""
    start_timeout: float = START_TIMEOUT
    """Seconds that the server may take to start and answer for the first time."""
    time_limit: float | None = DEFAULT_TOTAL_TIMEOUT
    """Seconds that a whole chain may take, questions included."""
    follow_unadvertised: bool = False
    rules: Rules | None = None
    """The user's rules about which tool follows which."""
    recorder: Recorder | None = None
    max_parked: int = 100
    """The most calls of one user that may wait for an answer at a time."""
    parked_for: float = 600.0
    """Seconds that a call waits for an answer before it is cancelled."""


@dataclass(frozen=True)
class HttpOptions:
    """How the proxy is reached over HTTP."""

    host: str = "127.0.0.1"
    port: int = 9000
    """The TCP port; 0 is any free port."""
    allow_hosts: tuple[str, ...] = ()
    """Host names for clients, in addition to this computer's own, with a port or for all ports."""
    max_callers: int = 64
    """The most callers that may have a connection at a time."""
    idle: float = 600.0
    """Seconds after which an unused connection is closed."""
    forward_authorization: bool = False
    """Whether a caller's `Authorization` is sent to the server."""
    anybody: bool = False
    """Whether callers without credentials are served at an address that is not loopback."""
