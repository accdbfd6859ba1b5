"""The ways in which a call is made again, and must end as before."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from banking_server.chaining.directive import SETTINGS
from banking_server.conformance.message import Json
from banking_server.conformance.server.evidence import (
    RepeatedInExperimental,
    RepeatedUnchanged,
    RepeatedUndeclared,
    RepeatedWithEmptySettings,
    RepeatedWithLaterVersion,
    RepeatedWithMalformedProvenance,
    RepeatedWithMalformedSettings,
    RepeatedWithProvenance,
    RepeatedWithUnknownSettings,
    Repetition,
)
from banking_server.conformance.target.connection import Profile
from banking_server.conformance.target.era import Era


class Absent(Enum):
    """No provenance at all; None is sent as null, and is malformed."""

    ABSENT = "absent"


@dataclass(frozen=True)
class Variant:
    """One way to make a call again."""

    kind: type[Repetition]
    what: str
    """What is different about it, as reports and the dry run say it."""
    settings: Any = None
    """What the client declares; None: nothing."""
    place: Literal["extensions", "experimental"] = "extensions"
    """Where the client declares it."""
    provenance: Any = Absent.ABSENT

    @property
    def declared(self) -> bool:
        """Whether the client declares the extension, with settings that are not malformed."""
        return self.settings is not None and self.kind is not RepeatedWithMalformedSettings

    def profile(self, *, elicitation: bool) -> Profile:
        """Return what the client says that it can do."""
        return Profile(self.settings, self.place, elicitation)

    def takes_a_connection(self, era: Era) -> bool:
        """Return whether it takes a connection of its own: where connections carry declarations."""
        return era is Era.LEGACY and (self.settings, self.place) != (SETTINGS, "extensions")


CHAIN_ID_LENGTH: Final = 128
"""Characters of a chainId at most."""

PLAIN: Final = Variant(RepeatedUnchanged, "unchanged", SETTINGS)
UNDECLARED: Final = Variant(
    RepeatedUndeclared, "as a client that did not declare the extension", None
)
_LATER: Final = {"version": 2}
_UNKNOWN: Final = {"version": 1, "since": "a later version", "options": {"level": 2}}
# Always an object: MCP itself refuses a client whose capabilities hold anything else.
_MALFORMED_SETTINGS: Final[Sequence[Any]] = ({"version": 0}, {"version": "1"}, {"version": 1.5})


def variants_of(era: Era, tool: str) -> list[Variant]:
    """Return every way to make a call of `tool` again that a repeatable step allows."""
    malformed = _MALFORMED_SETTINGS if era is Era.MODERN else _MALFORMED_SETTINGS[:1]
    return [
        PLAIN,
        UNDECLARED,
        _declaring(RepeatedWithEmptySettings, {}),
        _declaring(RepeatedWithLaterVersion, _LATER),
        _declaring(RepeatedWithUnknownSettings, _UNKNOWN),
        *(_declaring(RepeatedWithMalformedSettings, settings) for settings in malformed),
        *(
            [
                Variant(
                    RepeatedInExperimental,
                    "as a client that declares the extension in experimental alone",
                    SETTINGS,
                    "experimental",
                )
            ]
            if era is Era.LEGACY
            else []
        ),
        _with(RepeatedWithProvenance, {"chainId": _new_id(), "level": 1}),
        _with(RepeatedWithProvenance, provenance(_new_id(), 2, tool)),
        *variants_of_malformed_provenance(tool),
    ]


def variants_of_malformed_provenance(tool: str) -> list[Variant]:
    """Return every way to make a call of `tool` again with malformed provenance."""
    chain = _new_id()
    shapes: list[Any] = [
        None,
        "no object",
        {"chainId": "", "level": 1},
        {"chainId": "x" * (CHAIN_ID_LENGTH + 1), "level": 1},
        {"chainId": 7, "level": "2", "previousTool": ["no", "name"]},
        {},
        [{"chainId": chain, "level": 1}],
        7,
        {"level": 1},
        {"chainId": chain},
        {"chainId": chain, "level": 0},
        {"chainId": chain, "level": 1.5},
        {"chainId": chain, "level": True},
        {"chainId": chain, "level": 2},
        {"chainId": chain, "level": 2, "previousTool": None},
        {"chainId": chain, "level": 2, "previousTool": ""},
        {"chainId": chain, "level": 1, "previousTool": tool},
    ]
    return [_with(RepeatedWithMalformedProvenance, shape) for shape in shapes]


@dataclass(frozen=True)
class Claim:
    """What a stranger says of a chain, to be let in."""

    what: str
    provenance: Any


def claims_of(tool: str, chain: Json | None) -> list[Claim]:
    """Return what a stranger who calls `tool` could claim.

    `chain` is the provenance of somebody's follow-up call, which succeeded; None if there was none.
    """
    made_up = Claim("with provenance that is made up", provenance(_new_id(), 2, tool))
    malformed = [
        Claim(variant.what, variant.provenance)
        for variant in variants_of_malformed_provenance(tool)
    ]
    if chain is None:
        return [made_up, *malformed]
    known, level, previous = chain["chainId"], chain["level"], chain["previousTool"]
    return [
        Claim("with the provenance of the follow-up call that succeeded", chain),
        Claim("with its previousTool and another chainId", provenance(_new_id(), level, previous)),
        Claim("with its chainId, one call later", provenance(known, level + 1, tool)),
        Claim("with its chainId, as the first call", {"chainId": known, "level": 1}),
        made_up,
        *malformed,
    ]


def _new_id() -> str:
    return str(uuid.uuid4())


def in_chain(previous: Json) -> Variant:
    """Return the way in which a follow-up call is made: with the provenance that it had."""
    return Variant(
        RepeatedWithProvenance, "with the provenance of its chain", SETTINGS, provenance=previous
    )


def provenance(chain_id: str, level: int, previous_tool: str) -> Json:
    """Return the provenance of a follow-up call."""
    return {"chainId": chain_id, "level": level, "previousTool": previous_tool}


def _declaring(kind: type[Repetition], settings: Any) -> Variant:
    return Variant(kind, f"as a client that declares {json.dumps(settings)}", settings)


def _with(kind: type[Repetition], shape: Any) -> Variant:
    what = "malformed provenance" if kind is RepeatedWithMalformedProvenance else "provenance"
    shown, length = shape, 0
    if isinstance(shape, dict) and isinstance(shape.get("chainId"), str):
        length = len(shape["chainId"])
        shown = {**shape, "chainId": shape["chainId"][:8] + ("…" if length > 8 else "")}
    what += f" {json.dumps(shown, ensure_ascii=False)}"
    if length > CHAIN_ID_LENGTH:
        what += f", with a chainId of {length} characters"
    return Variant(kind, f"with {what}", SETTINGS, provenance=shape)
