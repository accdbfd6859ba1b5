"""JSON-RPC messages as they went over the wire."""

from dataclasses import dataclass
from typing import Any, Final, Literal

METHOD_NOT_FOUND: Final = -32601

Json = dict[str, Any]


@dataclass(frozen=True)
class WireMessage:
    """One message as it went over the wire."""

    sender: Literal["client", "server"]
    body: Json

    def to_json(self) -> Json:
        """Return the message as reports show it."""
        return {"from": self.sender, "message": self.body}
