"""URLs of servers, and whether a bearer token can be sent to one without being read on the way."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


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
