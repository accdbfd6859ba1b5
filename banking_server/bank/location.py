"""Where a bank is kept: the path of a SQLite file, or the URL of a PostgreSQL database.

Written out, a location never shows a password; `in_full` is for the environment of our processes.
"""

from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL as URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

Location = Path | URL

_SCHEME: Final = "postgresql"
_OPTIONS: Final = {
    *("host", "hostaddr", "port", "target_session_attrs", "passfile", "channel_binding"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "gssencmode"),
}
"""The options allowed after the `?` of a URL: they locate and identify the server; none is secret.

Timeouts and the durability of a commit are set by this program, not by a URL.
"""


def read_location(value: object) -> Location:
    """Read a path, made absolute, or a URL like `postgresql://USER:PASSWORD@HOST/DATABASE`.

    Raises `ValueError`; its message does not repeat anything of a URL.
    """
    if isinstance(value, URL):
        return value
    text = str(value)
    if text.startswith((":memory:", "file:")):
        raise ValueError("must be the path of a file; a database in memory would not be kept")
    # A URL with a slash missing is not a path either, and its password would be shown.
    if "://" not in text and not text.lower().startswith(("postgresql:/", "postgres:/")):
        try:
            return Path(text).expanduser().absolute()
        except RuntimeError:
            raise ValueError("names a home directory that cannot be found") from None
    if not text.startswith(f"{_SCHEME}://"):
        raise ValueError(f"must be a path, or a URL that begins with {_SCHEME}://")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(
            f"must be written like {_SCHEME}://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from None
    # A password that contains "@" would be mistaken for a host and shown.
    if any("@" in str(part) for part in (url.host, url.database, *url.query.values())):
        raise ValueError("has more than one @: write %40 for one in a password")
    if not url.database:
        raise ValueError(f"must name the database: {_SCHEME}://USER@HOST/DATABASE")
    if not _OPTIONS.issuperset(url.query):
        raise ValueError(f"may have these options only: {', '.join(sorted(_OPTIONS))}")
    return url


def in_full(location: Location) -> str:
    """Return the text that `read_location` reads, password included."""
    if isinstance(location, URL):
        return location.render_as_string(hide_password=False)
    return str(location)
