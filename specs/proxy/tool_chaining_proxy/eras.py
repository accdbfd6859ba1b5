"""What a client and a server declare, in both protocol revisions.

On 2026-07-28 ("modern" here) each request has the client's declaration. On 2025-11-25 it belongs to
the connection. All functions take and return parsed JSON, and change nothing in place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from tool_chaining.directive import IDENTIFIER, SETTINGS

Json = dict[str, Any]

MODERN: Final = list(MODERN_PROTOCOL_VERSIONS)


@dataclass(frozen=True)
class Declared:
    """What the client declares: in `initialize`, or in each modern request."""

    revision: str
    capabilities: Json
    client_info: Json | None

    @classmethod
    def read(cls, revision: str, capabilities: object, client_info: object) -> "Declared":
        """Return a client's declaration. A member that is not an object counts as absent."""
        info = dict(client_info) if isinstance(client_info, Mapping) else None
        return cls(revision, _object(capabilities), info)

    @property
    def modern(self) -> bool:
        """Whether the client uses 2026-07-28."""
        return self.revision in MODERN_PROTOCOL_VERSIONS

    @property
    def upstream_capabilities(self) -> Json:
        """What the proxy declares upstream: the same, and the extension (TC-C-01)."""
        passed = dict(self.capabilities)
        for place in ("extensions",) if self.modern else ("extensions", "experimental"):
            passed[place] = {**_object(passed.get(place)), IDENTIFIER: SETTINGS}
        return passed

    def enveloped(self, params: Json, revision: str) -> Json:
        """Return the params of a modern request, with the declaration in `_meta`."""
        meta = {
            **_object(params.get("_meta")),
            PROTOCOL_VERSION_META_KEY: revision,
            CLIENT_CAPABILITIES_META_KEY: self.upstream_capabilities,
        }
        if self.client_info is not None:
            meta[CLIENT_INFO_META_KEY] = self.client_info
        return {**params, "_meta": meta}


def in_request(params: Mapping[str, Any], revision: str) -> Declared:
    """Read the client's declaration from the params of any modern request."""
    meta = _object(params.get("_meta"))
    info = meta.get(CLIENT_INFO_META_KEY)
    return Declared.read(revision, meta.get(CLIENT_CAPABILITIES_META_KEY), info)


def greeting(received: Json) -> Json:
    """Return the server's `initialize` or `server/discover` result for the client.

    The extension is left out, because the proxy leaves no directive to follow.
    """
    capabilities = _object(received.get("capabilities"))
    for place in ("extensions", "experimental"):
        members = capabilities.get(place)
        if isinstance(members, Mapping) and IDENTIFIER in members:
            capabilities[place] = {k: v for k, v in members.items() if k != IDENTIFIER}
            if not capabilities[place]:
                del capabilities[place]
    passed = {**received, "capabilities": capabilities}
    # The revisions that the proxy supports, too.
    return passed | ({"supportedVersions": MODERN} if "supportedVersions" in received else {})


def _object(value: Any) -> Json:
    return dict(value) if isinstance(value, Mapping) else {}
