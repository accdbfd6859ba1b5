"""JSON-RPC messages as they were sent."""

from dataclasses import dataclass
from typing import Any, Final, Literal

METHOD_NOT_FOUND: Final = -32601

PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
"""Members of `_meta` that MCP itself defines, from 2026-07-28 on."""

Json = dict[str, Any]


def within(value: object, *names: str) -> Json:
    """Return the nested object at these names, one after the other; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class WireMessage:
    """One message as it was sent."""

    sender: Literal["client", "server"]
    body: Json
    raw: str | None = None
    """Its text, if a parser hides a part of it, such as the digits of a number."""
    faults: tuple[str, ...] = ()
    """The faults of its directive as I-JSON, which a parser hides."""

    def to_json(self) -> Json:
        """Return the message as reports show it."""
        raw = {} if self.raw is None else {"raw": self.raw}
        return {"from": self.sender, "message": self.body, **raw}
