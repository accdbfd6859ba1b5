"""Whether a server or client declared the extension in its capabilities."""

from collections.abc import Mapping
from typing import Any, Final

from tool_chaining.directive import IDENTIFIER, SETTINGS

NEGOTIATED_FROM: Final = "2026-07-28"
"""The first revision whose capabilities have `extensions`, on both sides and in every request."""


def has_declared(capabilities: object, revision: str | None) -> bool:
    """Return whether the capabilities of a server or a client declare the extension.

    `capabilities` are JSON as on the wire, or an SDK's model of them. Until 2025-11-25 there was no
    official place for extensions, so `experimental` counts too (TC-D-12). Malformed settings count
    as absent. Settings of a later version count as declared (TC-D-12).
    """
    if revision is None:
        return False
    places = ["extensions"] if revision >= NEGOTIATED_FROM else ["extensions", "experimental"]
    return any(_are_settings(capability(capability(capabilities, at), IDENTIFIER)) for at in places)


def capability(capabilities: object, name: str) -> Any:
    """Return one of the capabilities, as JSON or an SDK's model; None if it is absent."""
    if isinstance(capabilities, Mapping):
        return capabilities.get(name)
    return getattr(capabilities, name, None)


def advertised_in(result: Mapping[str, Any], *places: str) -> dict[str, Any]:
    """Return a result with the extension in these members of its `capabilities` (TC-S-01).

    The capabilities of 2025-11-25 have `experimental` and no `extensions`. So a server of that
    revision advertises the extension in both.
    """
    capabilities = dict(result.get("capabilities") or {})
    for at in places:
        capabilities[at] = {**(capabilities.get(at) or {}), IDENTIFIER: SETTINGS}
    return {**result, "capabilities": capabilities}


def _are_settings(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    version = value.get("version", 1)
    return (
        isinstance(version, int | float)
        and not isinstance(version, bool)
        and version >= 1
        and version == version // 1
    )
