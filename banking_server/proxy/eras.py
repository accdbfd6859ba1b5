"""What the two protocol revisions say differently.

On 2026-07-28 ("modern" here) each request carries who is asking, and each result says of what kind
it is; the server asks by interim results, and tells of changes on streams that the client opened.
Until 2025-11-25 all that belongs to the connection. All functions take and return parsed JSON, and
change nothing in place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
)
from mcp.types.version import (
    MODERN_PROTOCOL_VERSIONS,
)

from banking_server.chaining import IDENTIFIER, SETTINGS

Json = dict[str, Any]

MODERN: Final = list(MODERN_PROTOCOL_VERSIONS)

ASKED_OF: Final = ("tools/call", "prompts/get", "resources/read")
"""The requests during which a modern server may ask its client something."""

_ONLY_MODERN: Final = ("server/discover", "subscriptions/listen")
_NOT_MODERN: Final = ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")

_ENVELOPE: Final = (PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)


def is_modern(revision: str) -> bool:
    """Return whether a protocol revision is 2026-07-28 or later."""
    return revision in MODERN_PROTOCOL_VERSIONS


def is_unknown(method: str, revision: str) -> bool:
    """Return whether a method of one revision is asked for on the other."""
    return method in (_NOT_MODERN if is_modern(revision) else _ONLY_MODERN)


@dataclass(frozen=True)
class Declared:
    """What the client says about itself: by `initialize`, or in each modern request."""

    revision: str
    capabilities: Json
    client_info: Json | None

    @property
    def modern(self) -> bool:
        """Whether the client speaks 2026-07-28."""
        return is_modern(self.revision)

    def upstream_capabilities(self, *, modern: bool) -> Json:
        """Return what is declared to the server behind: this, and the extension.

        What cannot be passed on is left out: a modern side has no tasks of its own and tells of no
        changed roots.
        """
        passed = dict(self.capabilities)
        if modern != self.modern:
            passed.pop("tasks", None)
            if isinstance(roots := passed.get("roots"), Mapping):
                passed["roots"] = {k: v for k, v in roots.items() if k != "listChanged"}
        for place in ("extensions",) if modern else ("extensions", "experimental"):
            passed[place] = {**_object(passed.get(place)), IDENTIFIER: SETTINGS}
        return passed


def declared_by(method: str, params: Mapping[str, Any] | None, revision: str) -> Declared:
    """Read what the client says about itself from `initialize` or from any modern request."""
    params = params or {}
    if method == "initialize":
        info = params.get("clientInfo")
        return Declared(
            str(params.get("protocolVersion")), _object(params.get("capabilities")), _or_none(info)
        )
    meta = _object(params.get("_meta"))
    return Declared(
        revision,
        _object(meta.get(CLIENT_CAPABILITIES_META_KEY)),
        _or_none(meta.get(CLIENT_INFO_META_KEY)),
    )


def for_upstream(params: Mapping[str, Any] | None, *, modern: bool) -> Json:
    """Return the client's params for a server of either revision, without the client's envelope.

    The connection to a modern server adds an envelope of its own.
    """
    passed = dict(params or {})
    meta = {k: v for k, v in _object(passed.get("_meta")).items() if k not in _ENVELOPE}
    if not modern:
        meta.pop(LOG_LEVEL_META_KEY, None)
        passed.pop("inputResponses", None)
        passed.pop("requestState", None)
    passed.pop("_meta", None)
    return {**passed, "_meta": meta} if meta else passed


def for_downstream(
    method: str, result: Json, *, modern: bool, upstream_modern: bool, server_info: Any
) -> Json:
    """Return the server's result as its client expects it."""
    if modern == upstream_modern:
        return result
    more: Json = {"resultType": "complete"}
    if method in _CACHEABLE:
        more |= {"ttlMs": 0, "cacheScope": "private"}
    stamp = {SERVER_INFO_META_KEY: server_info} if server_info is not None else {}
    return {**more, **result, "_meta": {**stamp, **_object(result.get("_meta"))}}


def greeting(declared: Declared, said: Json, *, upstream_modern: bool) -> Json:
    """Return the server's `initialize` or `server/discover` result as the client expects it."""
    capabilities = _passed_on(said.get("capabilities"), modern=declared.modern)
    if declared.modern == upstream_modern:
        passed = {**said, "capabilities": capabilities}
        return passed | ({"supportedVersions": MODERN} if upstream_modern else {})
    words = {"instructions": said["instructions"]} if "instructions" in said else {}
    info = server_info(said)
    return {
        "resultType": "complete",
        "supportedVersions": MODERN,
        "capabilities": capabilities,
        **words,
        "ttlMs": 0,
        "cacheScope": "private",
        **({"_meta": {SERVER_INFO_META_KEY: info}} if info is not None else {}),
    }


def server_info(said: Json) -> Any:
    """Return how a server names itself in its `initialize` or `server/discover` result."""
    return said.get("serverInfo") or _object(said.get("_meta")).get(SERVER_INFO_META_KEY)


def _passed_on(capabilities: Any, *, modern: bool) -> Json:
    """Return the server's capabilities as the client is told them.

    The extension is left out, since nothing is left to be followed; so are the tasks of 2025-11-25
    where the client has no word for them.
    """
    passed = _object(capabilities)
    for place in ("extensions", "experimental"):
        if isinstance(members := passed.get(place), Mapping) and IDENTIFIER in members:
            passed[place] = {k: v for k, v in members.items() if k != IDENTIFIER}
            if not passed[place]:
                del passed[place]
    if modern:
        passed.pop("tasks", None)
    return passed


def _object(value: Any) -> Json:
    return dict(value) if isinstance(value, Mapping) else {}


def _or_none(value: Any) -> Json | None:
    return dict(value) if isinstance(value, Mapping) else None
