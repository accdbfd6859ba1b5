"""Provenance: what a request says about the chain that it belongs to (TC-D-15).

It stands in the `_meta` of the *request*, under the extension's identifier, so that a server can
record which calls belong together. A client says it about itself: it is good for an audit trail,
and worthless as a permission (TC-S-23).
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from banking_server.chaining.directive import IDENTIFIER


class Provenance(BaseModel):
    """The place of one call in its chain."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    chain_id: str = Field(min_length=1, max_length=128)
    """The same for every call of one chain, and for no other chain."""

    level: int = Field(ge=1)
    """The number of the call in the chain; the first is 1."""

    previous_tool: str | None = Field(default=None, min_length=1)
    """The tool whose result carried the directive to this call; None for the first call only."""

    @field_validator("level", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        """Take `2.0` for the integer that it is in JSON."""
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @model_validator(mode="after")
    def _led_here(self) -> Self:
        if (self.level == 1) != (self.previous_tool is None):
            raise ValueError("the calls after the first have a previousTool, and only they")
        return self

    def to_wire(self) -> dict[str, Any]:
        """Return the member of a request's `_meta` that carries the provenance."""
        return {IDENTIFIER: self.model_dump(by_alias=True, exclude_none=True)}


def read_provenance(meta: object) -> Provenance | None:
    """Read the provenance from a request's `_meta`; None if it is absent or malformed.

    Malformed provenance is ignored and never an error (TC-S-23): a call is judged by what it asks
    for, not by this.
    """
    if not isinstance(meta, Mapping) or IDENTIFIER not in meta:
        return None
    wire = meta[IDENTIFIER]
    if isinstance(wire, Mapping) and wire.get("previousTool", "") is None:
        return None  # Absent is one thing, null another.
    try:
        return Provenance.model_validate(wire, by_alias=True, by_name=False)
    except ValidationError:
        return None
