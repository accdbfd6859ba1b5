"""What carries the messages of one connection: the part that stdio and HTTP have in common."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from banking_server.conformance.message import METHOD_NOT_FOUND, Json, WireMessage

MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""The longest message that is read, in bytes. A longer one ends the run."""

LEVELS: Final = 400
"""The deepest nesting that is read. A deeper message ends the run: Python cannot walk any depth."""


class TargetFailure(Exception):
    """The server under test did not cooperate: it crashed, hung, or spoke something else."""


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


Ask = Callable[[str, Json], Json]
"""Answers a question of the server: given method and params, returns the result."""


class Unanswerable(Exception):
    """The suite plays no part that could answer this method."""


class Channel(Protocol):
    """Carries messages of one connection, and records them."""

    def request(self, message: Json, answer: Ask, *, input_schema: object = None) -> Json:
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

    def close(self) -> None:
        """Leave nothing open."""
        ...


@dataclass
class Record:
    """The messages of a connection, in order."""

    messages: list[WireMessage] = field(default_factory=list[WireMessage])

    def sent(self, body: Json) -> None:
        """Note a message of the suite."""
        self.messages.append(WireMessage("client", body))

    def received(self, body: Json) -> None:
        """Note a message of the server."""
        self.messages.append(WireMessage("server", body))


def parsed(text: str | bytes) -> Json | None:
    """Return the JSON object that `text` holds, or None if it holds something else.

    Raises TargetFailure if it is nested too deeply.
    """
    try:
        message = json.loads(text)
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
            return message if isinstance(message, dict) else None
    raise _too_deep()


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
