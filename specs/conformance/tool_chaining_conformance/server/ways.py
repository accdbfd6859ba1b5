"""The ways to repeat a call that must give the same result."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tool_chaining_conformance.message import Json
from tool_chaining_conformance.names import SETTINGS
from tool_chaining_conformance.target.connection import ORDINARY
from tool_chaining_conformance.target.era import Era
from tool_chaining_conformance.values import quote

ABSENT: Final = object()
"""No provenance at all; None is sent as null, and is malformed."""

EMITS: Final = "tool-chaining-server-emits-to-undeclared-client"
LATER: Final = "tool-chaining-server-accepts-later-version"
UNKNOWN: Final = "tool-chaining-server-ignores-unknown-settings"
MALFORMED: Final = "tool-chaining-server-malformed-settings-absent"
EXPERIMENTAL: Final = "tool-chaining-server-reads-experimental"
PROVENANCE: Final = "tool-chaining-server-provenance-changes-nothing"
REFUSED: Final = "tool-chaining-server-chained-call-authorized"
"""The checks that compare a repeated call, in the order in which it is repeated."""

OF_REPEATING: Final = (EMITS, LATER, UNKNOWN, MALFORMED, PROVENANCE)
"""Those that apply to every step that is repeated."""


@dataclass(frozen=True)
class Way:
    """One way to repeat a call."""

    check: str
    """The check that compares it with the plain call."""
    what: str
    """What is different in it, as text for reports."""
    declares: Mapping[str, Any]
    """The settings that the client declares, by the member of its capabilities."""
    provenance: Any = ABSENT
    twice: bool = False
    """Whether to make it twice: a server that knows the chain may repeat its old result."""
    anew: bool = False
    """Whether the client has a connection of its own, whose first request declares the same."""


PLAIN: Final = Way("", "unchanged", ORDINARY)
UNDECLARED: Final = Way(EMITS, "as a client that did not declare the extension", {})
_FROM_THE_START: Final = Way(
    EMITS, "on a new connection, as a client that never declared the extension", {}, anew=True
)
# Always objects: MCP requires objects as members of `extensions`.
_MALFORMED_SETTINGS: Final[Sequence[Json]] = tuple(
    {"version": version} for version in (0, "1", 1.5, True)
)


def ways_of(era: Era, provenances: Sequence[Way]) -> list[Way]:
    """Return every way to repeat a call that `repeatable: true` allows."""
    later = {"version": 1, "since": "a later version", "options": {"level": 2}}
    malformed = _MALFORMED_SETTINGS
    more = [_FROM_THE_START]
    if era is Era.LEGACY:
        # There each declaration has a connection of its own, so it takes fewer.
        malformed = malformed[:1]
        more = [
            _declaring(EXPERIMENTAL, **each)
            for each in (
                {"experimental": SETTINGS},
                {"extensions": malformed[0], "experimental": SETTINGS},
                {"extensions": SETTINGS, "experimental": malformed[0]},
            )
        ]
    return [
        UNDECLARED,
        _declaring(EMITS, extensions={}),
        _declaring(LATER, extensions={"version": 2}),
        _declaring(UNKNOWN, extensions=later),
        *(_declaring(MALFORMED, extensions=each) for each in malformed),
        *more,
        *provenances,
    ]


def ways_of_provenance(chain: str, tool: str, others: Sequence[str]) -> list[Way]:
    """Return every provenance with which to repeat a call of `tool`.

    All have the chainId `chain`. The server has seen it with other calls, and then with this one.
    `others` are other tools of the server.
    """
    known = provenance(chain, 2, tool)
    again = {**known, "since": "a later version"}
    what = f"twice with provenance {quote(again)}, whose chainId and level were used before"
    previous = zip(_HIGHER_LEVELS, [UNLISTED, *others], strict=False)
    shapes: list[Any] = [{"chainId": chain, "level": 1}, known]
    shapes += [provenance(chain, level, other) for level, other in previous]
    return [
        *map(_with, shapes),
        Way(PROVENANCE, what, ORDINARY, again, twice=True),
        *map(_with, malformed_provenance(chain, tool)),
    ]


_HIGHER_LEVELS: Final = (2, 6, 1000, 3)
"""A number of calls beyond any server's limit on a chain."""

UNLISTED: Final = "a_tool_that_no_server_has"
"""A `previousTool` that is in no list."""

_CHAIN_ID_LENGTH: Final = 128
"""The most characters of a chainId."""


def malformed_provenance(chain: str, tool: str) -> list[Any]:
    """Return malformed provenance of each kind, for a call of `tool`."""
    return [
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
        *({"chainId": chain, "level": level} for level in (0, 1.5, True, 2)),
        *({"chainId": chain, "level": 2, "previousTool": each} for each in (None, "")),
        {"chainId": chain, "level": 1, "previousTool": tool},
    ]


def claims_of(tool: str, chain: Json | None) -> list[Way]:
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
    malformed = malformed_provenance(new_id(), tool)
    claims += [(f"with provenance {quote(each)}", each) for each in malformed]
    return [Way(REFUSED, what, ORDINARY, shape) for what, shape in claims]


def in_chain(what: str, shown: Json) -> Way:
    """Return the way with the provenance of the call's own chain."""
    return Way(PROVENANCE, what, ORDINARY, shown)


def provenance(chain_id: str, level: int, previous_tool: str) -> Json:
    """Return the provenance of a follow-up call."""
    return {"chainId": chain_id, "level": level, "previousTool": previous_tool}


def new_id() -> str:
    """Return a chainId that was never used."""
    return str(uuid.uuid4())


def _declaring(check: str, **declares: Any) -> Way:
    places = " and ".join(f"{json.dumps(each)} in {place}" for place, each in declares.items())
    return Way(check, f"as a client that declares {places}", declares)


def _with(shape: Any) -> Way:
    return Way(PROVENANCE, f"with provenance {quote(shape)}", ORDINARY, shape)
