"""What carries the messages of one connection: the part that stdio and HTTP have in common."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from banking_server.conformance.message import METHOD_NOT_FOUND, Json, WireMessage
from banking_server.conformance.target.i_json import directive_faults

MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message that is read, in bytes. A longer one ends the run."""

PARSED_BYTES: Final = 16 * 1024 * 1024
"""About how much memory one message may take once it is read. A bigger one ends the run."""

KEPT_BYTES: Final = 16 * 1024 * 1024
"""About how much memory the messages of a run may take that are kept for its report."""

KEPT_EACH: Final = 100
"""Messages that are kept for one request; a server may send many more meanwhile."""

LEVELS: Final = 400
"""The deepest nesting that is read. A deeper message ends the run: Python cannot walk any depth."""


class TargetFailure(Exception):
    """The server under test did not cooperate: it crashed, hung, or spoke something else."""


def too_much(size: int, what: str) -> TargetFailure:
    """Return what to raise if one message has more than `size` bytes, in the sense of `what`."""
    return TargetFailure(
        f"the server sent a message of more than {size // 1024**2} MiB{what}, which the suite does "
        "not read; let it send less at once, such as fewer tools on a page of tools/list"
    )


def no_reply(method: str, seconds: float, others: int, size: int) -> str:
    """Say that a request was not answered in time, and how much came in place of an answer.

    Args:
        method: That of the request.
        seconds: The time that the answer had.
        others: How many other messages came.
        size: Their bytes, about.
    """
    silence = f"no reply to {method} within {seconds:g} s"
    if not others:
        return silence
    return (
        f"{silence}, but the server sent {others} other messages, about {size // 1024} KiB; "
        "let it answer before it sends more, or give it more time (--timeout)"
    )


class NotServed(TargetFailure):
    """The server refused this caller or this kind of client before any call could be made."""

    def __init__(self, reason: str, code: object) -> None:
        super().__init__(reason)
        self.code = code
        """That of the JSON-RPC error, or the HTTP status 401 or 403; None if it is neither."""


@dataclass
class Room:
    """How much may still be kept: what a server sends is its own choice, and has no end."""

    left: int = KEPT_BYTES

    def takes(self, size: int) -> bool:
        """Take `size` bytes, if there is room for them."""
        if size > self.left:
            return False
        self.left -= size
        return True


@dataclass(frozen=True)
class Target:
    """How the server under test is reached: by `url`, or by starting `command`."""

    url: str | None = None
    command: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set for `command`, besides those of the suite's own environment."""
    timeout: float = 30.0
    """Seconds that one reply may take."""
    room: "Room" = field(default_factory=lambda: Room())
    """For the messages that are kept, of all connections together."""


Ask = Callable[[str, Json], Json]
"""Answers a question of the server: given method and params, returns the result."""


class Unanswerable(Exception):
    """The suite plays no part that could answer this method."""


class Channel(Protocol):
    """Carries messages of one connection, and records them."""

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> "Received":
        """Send a request and return the response to it, answering the server's requests meanwhile.

        `input_schema` is that of the tool which the request calls, if it calls one: it can name
        arguments that HTTP repeats in headers. Raises TargetFailure.
        """
        ...

    def notify(self, message: Json) -> None:
        """Send a notification. Raises TargetFailure."""
        ...

    def adopt(self, version: str) -> None:
        """Go on in the revision that the `initialize` handshake agreed on."""
        ...

    def new_errors(self) -> str:
        """Return what the server wrote to standard error since this was asked for last."""
        ...

    def close(self) -> None:
        """Leave nothing open."""
        ...


@dataclass(frozen=True)
class Received:
    """A message of the server, as it was read."""

    body: Json
    size: int
    """About how much memory it takes, in bytes."""
    faults: tuple[str, ...] = ()
    """What in its directive is not I-JSON."""


@dataclass
class Record:
    """The messages of one exchange, in order: a request, and what came until its response."""

    room: Room
    messages: list[WireMessage] = field(default_factory=list[WireMessage])
    _left_out: int = 0

    def begin(self) -> None:
        """Begin a new exchange."""
        self.messages = []
        self._left_out = 0

    def sent(self, body: Json) -> None:
        """Note a message of the suite."""
        if len(self.messages) < KEPT_EACH:
            self.messages.append(WireMessage("client", body))

    def received(self, body: Json, size: int = 0, *, response: bool = False) -> None:
        """Note a message of the server; what there is no room for is counted only."""
        if (response or len(self.messages) < KEPT_EACH) and self.room.takes(size):
            self.messages.append(WireMessage("server", body))
        else:
            self._left_out += 1

    def exchange(self) -> tuple[WireMessage, ...]:
        """Return the messages of this exchange, and how many there was no room for."""
        if not self._left_out:
            return tuple(self.messages)
        note = {"leftOut": f"{self._left_out} messages that there was no room for"}
        return (*self.messages, WireMessage("server", note))


def read(text: str | bytes) -> Received | None:
    """Return the JSON object that `text` holds, or None if it holds something else.

    Raises TargetFailure if it is nested too deeply, or would take too much memory.
    """
    size = _cost(text)
    if size > PARSED_BYTES:
        raise too_much(PARSED_BYTES, " once it is read")
    try:
        message = json.loads(text, parse_int=_whole)
    except ValueError:
        return None
    except RecursionError:
        raise _too_deep() from None
    level = [message]
    for _ in range(LEVELS):
        level = [
            part
            for value in level
            if isinstance(value, dict | list)
            for part in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            if not isinstance(message, dict):
                return None
            return Received(message, size, directive_faults(text))
    raise _too_deep()


def _cost(text: str | bytes) -> int:
    """Return about how many bytes the value of a JSON text takes in Python."""
    if isinstance(text, bytes):
        brackets, members, items = text.count(b"{"), text.count(b":"), text.count(b",")
        brackets += text.count(b"[")
    else:
        brackets, members, items = text.count("{"), text.count(":"), text.count(",")
        brackets += text.count("[")
    return len(text) + 64 * brackets + 160 * members + 40 * items


def _whole(digits: str) -> int | float:
    """Read a whole number. Python reads no more than 4300 digits; no double holds so many."""
    return int(digits) if len(digits) <= 4300 else float(digits)


def _too_deep() -> TargetFailure:
    return TargetFailure(f"the server sent a message that is nested deeper than {LEVELS} levels")


def response_to(message: Json, answer: Ask) -> Json:
    """Return the response to a request of the server."""
    envelope: Json = {"jsonrpc": "2.0", "id": message["id"]}
    params = message.get("params")
    try:
        result = answer(str(message["method"]), params if isinstance(params, dict) else {})
    except Unanswerable:
        error = {"code": METHOD_NOT_FOUND, "message": "the conformance suite does not offer this"}
        return {**envelope, "error": error}
    return {**envelope, "result": result}
