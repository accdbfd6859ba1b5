"""URLs, and where a token may go: to its server, and to nobody who listens on the way."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


def http_url(value: str, example: str = "https://example.com/mcp") -> SplitResult:
    """Return the parts of a URL that requests can go to; raises ValueError with an example."""
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
    """Return whether a host's name or address can only be this computer."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def stays_private(url: str) -> bool:
    """Return whether nobody on the way can read what is sent to a URL.

    That is over TLS, and on this computer.
    """
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def without_user(url: str) -> str:
    """Return a URL without the user and the password that can stand in it, nor a query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
