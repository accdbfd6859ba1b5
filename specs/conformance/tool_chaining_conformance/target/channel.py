"""A channel carries the messages of one connection: the part that stdio and HTTP share."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tool_chaining_conformance.message import METHOD_NOT_FOUND, Json, WireMessage
from tool_chaining_conformance.target.i_json import directive_faults

MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message to read, in bytes. A longer one ends the run."""

MESSAGES: Final = 100
"""The most messages to record for one request; a server may send many more."""

LEVELS: Final = 100
"""The deepest nesting to read. A deeper message ends the run: recursion is limited."""


class TargetFailure(Exception):
    """The server under test crashed, hung, or sent something that is not MCP."""


def too_long() -> TargetFailure:
    """Return the error for a message that is longer than `MESSAGE_BYTES`."""
    return TargetFailure(
        f"the server sent a message of more than {MESSAGE_BYTES // 1024**2} MiB, which the suite "
        "does not read; it should send less at once, such as fewer tools on a page of tools/list"
    )


def silence(method: str, seconds: float) -> str:
    """Return what to say of a request without a reply in time."""
    return f"no reply to {method} within {seconds:g} s"


class NotServed(TargetFailure):
    """The server refused this caller or this kind of client before any call could be made."""

    def __init__(self, reason: str, code: object) -> None:
        super().__init__(reason)
        self.code = code
        """The code of the JSON-RPC error, or the HTTP status 401 or 403, or None."""


@dataclass(frozen=True)
class Target:
    """The server under test: at a `url`, or started by `command`."""

    url: str | None = None
    command: Sequence[str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for `command`, in addition to the suite's own environment."""
    timeout: float = 30.0
    """Seconds that one reply may take."""


Ask = Callable[[str], Json | None]
"""Answers a request of the server: given its method, returns the result; None: not supported."""


@dataclass
class Record:
    """The messages of one exchange, in order: from a request to its response."""

    messages: list[WireMessage] = field(default_factory=list[WireMessage])

    def add(self, message: WireMessage, *, ends: bool = False) -> None:
        """Record a message; the one that ends the exchange is always recorded."""
        if ends or len(self.messages) < MESSAGES:
            self.messages.append(message)


def read(text: str | bytes) -> WireMessage | None:
    """Return the JSON object in `text` as a message of the server, or None if it is something else.

    Raises TargetFailure if it is nested too deeply.
    """
    try:
        message = json.loads(text)
        if not isinstance(message, dict):
            return None
        too_deep = is_deeper(message, LEVELS)
    except ValueError:
        return None
    except RecursionError:
        too_deep = True
    if too_deep:
        raise TargetFailure(f"the server sent a message nested deeper than {LEVELS} levels")
    faults = directive_faults(text)
    raw = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return WireMessage("server", message, raw.strip() if faults else None, faults)


def is_deeper(value: object, levels: int) -> bool:
    """Return whether a JSON value is nested deeper than `levels`."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(is_deeper(part, levels - 1) for part in parts)


def response_to(message: Json, answer: Ask) -> Json:
    """Return the response to a request of the server."""
    result = answer(str(message["method"]))
    error = {"code": METHOD_NOT_FOUND, "message": "the conformance suite does not offer this"}
    outcome: Json = {"error": error} if result is None else {"result": result}
    return {"jsonrpc": "2.0", "id": message["id"], **outcome}
