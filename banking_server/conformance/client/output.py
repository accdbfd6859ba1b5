"""What a client under test may print on its last line of output."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from banking_server.conformance.message import Json


class FollowUp(BaseModel):
    """A follow-up call, as the merged result tells of it."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    tool: str
    fate: Literal["made", "not_made", "unknown"]
    """`unknown`: it was started, and no result came."""


class ClientOutput(BaseModel):
    """What the client hands on: the merged result, and how the chain ended."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    content: list[Json]
    """The content of the merged result."""
    outcome: str | None = None
    """How the chain ended, as the table of outcomes says it."""
    is_error: bool | None = Field(default=None, alias="isError")
    """Of the merged result. Where it is printed, the whole merged result is."""
    structured_content: Json | None = Field(default=None, alias="structuredContent")
    """Of the merged result."""
    meta: Json | None = Field(default=None, alias="_meta")
    """Of the merged result."""
    follow_ups: list[FollowUp] | None = Field(default=None, alias="followUps")
    """Every follow-up call, in order."""
