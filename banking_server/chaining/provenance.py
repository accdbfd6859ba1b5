"""Provenance: what a request says about the chain it belongs to.

It travels in the *request's* `_meta`, under the extension's identifier, so that a server can
write down which calls belong together. It is what a client says of itself: good for an audit
trail, worthless as a permission.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from banking_server.chaining.directive import IDENTIFIER


class Provenance(BaseModel):
    """One call's place in a chain."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    chain_id: str = Field(min_length=1, max_length=128)
    """The same for every call of one chain, and for no other chain."""

    level: int = Field(ge=1, le=2**31 - 1)
    """The call's number in the chain; the first is 1."""

    previous_tool: str | None = Field(default=None, min_length=1)
    """The tool whose result named this one; None for the first call."""

    def to_wire(self) -> dict[str, Any]:
        """Return the request `_meta` that carries this."""
        return {IDENTIFIER: self.model_dump(by_alias=True, exclude_none=True)}


def read_provenance(meta: object) -> Provenance | None:
    """Read the provenance from a request's `_meta`; None where there is none or it is malformed.

    A malformed one is ignored, never an error: a call is judged by what it asks, not by this.
    """
    if not isinstance(meta, Mapping):
        return None
    try:
        return Provenance.model_validate(meta.get(IDENTIFIER), by_alias=True, by_name=False)
    except ValidationError:
        return None
