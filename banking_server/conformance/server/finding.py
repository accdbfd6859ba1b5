"""What a check can say of a piece of evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

from banking_server.conformance.message import WireMessage


@dataclass(frozen=True)
class Finding:
    """What a check compared, and whether it holds."""

    holds: bool
    expected: str
    seen: str
    messages: Sequence[WireMessage] | None = None
    """The messages that show it; None: those of the evidence."""


@dataclass(frozen=True)
class Untestable:
    """The check applies, but nothing was seen that it could judge."""

    reason: str


@dataclass(frozen=True)
class NotApplicable:
    """The check does not apply to this server, or to this directive."""

    reason: str


Judged = Finding | Untestable | NotApplicable | Sequence[Finding] | None
"""None, and no finding at all, say nothing: the evidence does not concern the check."""
