"""Makes each view as one HTML document of the files beside this module.

A document fetches nothing. Its content security policy allows only its own style sheet and script,
by their hashes: no connection, no image, no form, no text as code. The host adds its own policy.
"""

import base64
import hashlib
from pathlib import Path
from string import Template
from typing import Final

from mcp.server.apps import Apps, ResourceCsp

from banking_server.tools.views.offering import ACCOUNTS, HANDOFF, STATEMENT, TRANSFER

_SHOWN: Final = {
    ACCOUNTS: ("Accounts", ["accounts.js"]),
    TRANSFER: ("Transfer", ["handoff_card.js", "transfer.js"]),
    HANDOFF: ("Handoff to an agent", ["handoff_card.js", "handoff.js"]),
    STATEMENT: ("Statement", ["statement.js"]),
}
"""The title and the additional scripts of each view."""

_HERE: Final = Path(__file__).parent


def views() -> Apps:
    """Return the extension that serves the views as resources."""
    apps = Apps()
    for uri, (title, scripts) in _SHOWN.items():
        apps.add_html_resource(
            uri,
            _document(title, scripts),
            name=uri.rpartition("/")[2] + "_view",
            title=title,
            csp=ResourceCsp(
                connect_domains=[], resource_domains=[], frame_domains=[], base_uri_domains=[]
            ),
            prefers_border=True,
        )
    return apps


def _document(title: str, scripts: list[str]) -> str:
    style = _read("view.css")
    script = "\n".join(map(_read, ["host.js", "page.js", *scripts]))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types"
    )
    return Template(_read("view.html")).substitute(
        title=title, policy=policy, style=style, script=script
    )


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash of an element's content, as a policy writes it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
