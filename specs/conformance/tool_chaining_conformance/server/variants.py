"""The ways to repeat a call that must give the same result."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.names import SETTINGS
from tool_chaining_conformance.server.evidence import (
    Refusal,
    RepeatedInExperimental,
    RepeatedUndeclared,
    RepeatedWithLaterVersion,
    RepeatedWithMalformedSettings,
    RepeatedWithProvenance,
    RepeatedWithUnknownSettings,
    Repetition,
)
from tool_chaining_conformance.target.connection import ORDINARY
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote


class Absent(Enum):
    """No provenance at all; None is sent as null, and is malformed."""

    ABSENT = "absent"


@dataclass(frozen=True)
class Variant:
    """One way to repeat a call."""

    kind: type[Repetition]
    what: str
    """What is different in it, as text for reports."""
    declares: Mapping[str, Any]
    """The settings that the client declares, by the member of its capabilities."""
    provenance: Any = Absent.ABSENT
    twice: bool = False
    """Whether to make it twice: a server that knows the chain may repeat its old result."""


PLAIN: Final = Variant(Repetition, "unchanged", ORDINARY)
UNDECLARED: Final = Variant(
    RepeatedUndeclared, "as a client that did not declare the extension", {}
)
# Always objects: MCP requires objects as members of `extensions`.
_MALFORMED_SETTINGS: Final[Sequence[Json]] = tuple(
    {"version": version} for version in (0, "1", 1.5, True)
)


def variants_of(era: Era, provenances: Sequence[Variant]) -> list[Variant]:
    """Return every way to repeat a call that `repeatable: true` allows."""
    unknown = {"version": 1, "since": "a later version", "options": {"level": 2}}
    malformed = _MALFORMED_SETTINGS
    in_experimental: list[Variant] = []
    if era is Era.LEGACY:
        # Each needs its own connection.
        malformed = malformed[:1]
        in_experimental = [
            _declaring(RepeatedInExperimental, {"experimental": SETTINGS}),
            *(
                _declaring(RepeatedInExperimental, {"extensions": one, "experimental": two})
                for one, two in ((malformed[0], SETTINGS), (SETTINGS, malformed[0]))
            ),
        ]
    return [
        UNDECLARED,
        _declaring(RepeatedUndeclared, {"extensions": {}}),
        _declaring(RepeatedWithLaterVersion, {"extensions": {"version": 2}}),
        _declaring(RepeatedWithUnknownSettings, {"extensions": unknown}),
        *(_declaring(RepeatedWithMalformedSettings, {"extensions": each}) for each in malformed),
        *in_experimental,
        *provenances,
    ]


def variants_of_provenance(chain: str, tool: str, others: Sequence[str]) -> list[Variant]:
    """Return every provenance with which to repeat a call of `tool`.

    All have the chainId `chain`. The server has seen it with other calls, and then with this one.
    `others` are other tools of the server.
    """
    known = provenance(chain, 2, tool)
    again = {**known, "since": "a later version"}
    what = f"twice with provenance {quote(again)}, whose chainId and level were used before"
    return [
        _with({"chainId": chain, "level": 1}),
        _with(known),
        *map(_with, map(partial(provenance, chain), _HIGHER_LEVELS, [UNLISTED, *others])),
        Variant(RepeatedWithProvenance, what, ORDINARY, again, twice=True),
        *variants_of_malformed_provenance(chain, tool),
    ]


_HIGHER_LEVELS: Final = (2, 6, 1000, 3)
"""A number of calls beyond any server's limit on a chain."""

UNLISTED: Final = "a_tool_that_no_server_has"
"""A `previousTool` that is in no list."""

_CHAIN_ID_LENGTH: Final = 128
"""The most characters of a chainId."""


def variants_of_malformed_provenance(chain: str, tool: str) -> list[Variant]:
    """Return every way to repeat a call of `tool` with malformed provenance."""
    shapes: list[Any] = [
        None,
        "no object",
        {"chainId": "", "level": 1},
        {"chainId": "x" * (_CHAIN_ID_LENGTH + 1), "level": 1},
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
    return [_with(shape) for shape in shapes]


def claims_of(tool: str, chain: Json | None) -> list[Variant]:
    """Return the provenance that a stranger could send with a call of `tool` to get access.

    `chain` is the provenance of another caller's successful follow-up call, or None.
    """
    claims: list[tuple[str, Any]] = []
    if chain is not None:
        known, level, previous = chain["chainId"], chain["level"], chain["previousTool"]
        claims = [
            ("with the provenance of the follow-up call that succeeded", chain),
            ("with its previousTool and another chainId", provenance(new_id(), level, previous)),
            ("with its chainId, one call later", provenance(known, level + 1, tool)),
            ("with its chainId, as the first call", {"chainId": known, "level": 1}),
        ]
    claims.append(("with provenance that is made up", provenance(new_id(), 2, tool)))
    malformed = variants_of_malformed_provenance(new_id(), tool)
    claims += [(each.what, each.provenance) for each in malformed]
    return [Variant(Refusal, what, ORDINARY, shape) for what, shape in claims]


def provenance(chain_id: str, level: int, previous_tool: str) -> Json:
    """Return the provenance of a follow-up call."""
    return {"chainId": chain_id, "level": level, "previousTool": previous_tool}


def new_id() -> str:
    """Return a chainId that was never used."""
    return str(uuid.uuid4())


def _declaring(kind: type[Repetition], declares: Mapping[str, Any]) -> Variant:
    places = " and ".join(f"{json.dumps(each)} in {place}" for place, each in declares.items())
    return Variant(kind, f"as a client that declares {places}", declares)


def _with(shape: Any) -> Variant:
    what = f"with provenance {quote(shape)}"
    return Variant(RepeatedWithProvenance, what, ORDINARY, provenance=shape)
