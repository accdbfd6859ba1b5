"""Provenance: what a request says about its chain (TC-D-15).

It is in the `_meta` of the *request*, under the extension's identifier, so that a server can record
which calls belong together. The client claims it, so it is useful for an audit trail and must never
count as a permission (TC-S-23).
"""

from dataclasses import dataclass
from typing import Any

from tool_chaining.directive import IDENTIFIER
from tool_chaining.values import canonical


@dataclass(frozen=True)
class Provenance:
    """The place of one call in its chain."""

    chain_id: str
    """The same for every call of one chain, and for no other chain; 1 to 128 characters."""

    level: int
    """The number of the call in the chain; the first is 1."""

    previous_tool: str | None = None
    """The tool whose result carried the directive to this call; None for the first call only."""

    def to_wire(self) -> dict[str, Any]:
        """Return the member of a request's `_meta` that carries the provenance."""
        previous = {} if self.previous_tool is None else {"previousTool": self.previous_tool}
        return {IDENTIFIER: {"chainId": self.chain_id, "level": self.level, **previous}}


def read_provenance(meta: object) -> Provenance | None:
    """Return the provenance of a request's `_meta`; None if it is absent or malformed.

    Malformed provenance is ignored and never an error (TC-S-23): the call does not depend on it.
    """
    wire = meta.get(IDENTIFIER) if isinstance(meta, dict) else None
    if not isinstance(wire, dict):
        return None
    chain_id, level, previous = wire.get("chainId"), wire.get("level"), wire.get("previousTool")
    try:
        canonical([chain_id, level, previous])
    except (ValueError, RecursionError):
        return None
    if not isinstance(chain_id, str) or not 1 <= len(chain_id) <= 128:
        return None
    if not isinstance(level, int | float) or isinstance(level, bool) or level != level // 1:
        return None
    if level == 1 and "previousTool" not in wire:
        return Provenance(chain_id, 1)
    if level > 1 and isinstance(previous, str) and previous:
        return Provenance(chain_id, int(level), previous)
    return None
