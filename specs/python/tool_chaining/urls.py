"""URLs of servers, the bearer token for one, and whether it can be sent there in private."""

import os
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

TOKEN_VARIABLE: Final = "MCP_TOKEN"  # noqa: S105 - its name, not its value
"""The environment variable of the token for a server."""


def token_of_environment() -> str | None:
    """Return the environment's token. Raises ValueError, not quoting it, if no header can hold it.

    Strips a line break at the end, which a token from a file often has.
    """
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not may_be_a_header(token):
        raise ValueError(
            f"{TOKEN_VARIABLE} has a character that HTTP headers cannot hold. A token is printable "
            "ASCII, on one line."
        )
    return token or None


def checked_url(url: str, *, has_secret: bool, insecure: bool) -> str:
    """Return the URL of the option `--url` as it may be shown.

    Raises ValueError, in one line for people, if it is no http or https URL, or a token, or the
    URL's own password, would go to another computer unencrypted and `insecure` does not allow that.
    """
    try:
        parts = http_url(url)
    except ValueError as error:
        shown = url.rpartition("@")[2][:100]
        raise ValueError(f"--url {error}, not {shown!r}.") from None
    if (has_secret or parts.password is not None) and not insecure and not stays_private(url):
        raise ValueError(
            f"The token would go to {parts.hostname} unencrypted. Use https, or allow it with "
            "--insecure."
        )
    return without_user(url)


def http_url(value: str, example: str = "https://example.com/mcp") -> SplitResult:
    """Return the parts of an http or https URL; raises ValueError if it is not one."""
    try:
        parts = urlsplit(value)
        host = (parts.hostname or "").encode("idna")
        usable = parts.scheme in ("http", "https") and host and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isprintable() or " " in value:
        raise ValueError(f"must be an http or https URL, such as {example}")
    return parts


def is_loopback(host: str) -> bool:
    """Return whether a host name or address always means this computer."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def stays_private(url: str) -> bool:
    """Return whether requests to the URL are encrypted or stay on this computer."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def without_user(url: str) -> str:
    """Return a URL without its user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def may_be_a_header(value: str) -> bool:
    """Return whether an HTTP header can have this value: printable ASCII, on one line."""
    return value.isascii() and value.isprintable()
