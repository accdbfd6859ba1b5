"""One host's configuration file: what servers it has, and what it would be with ours or without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from banking_server.installing import json_text, yaml_text
from banking_server.installing.hosts import Host
from banking_server.installing.unreadable import NotByName, Unreadable

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a configuration that are read. Some hosts keep their whole history in it."""

_MARK: Final = b"\xef\xbb\xbf"
"""What some editors on Windows begin a file with, and Claude Desktop loses its servers over."""

_OURS: Final = ("type", "command", "cmd", "args", "enabled")
"""What of an entry of this server is set anew; the rest, such as `env`, is its user's."""


_NAMES: Final = ("banking-server", "banking_server")
"""The program of this server, and its module."""


@dataclass(frozen=True)
class Configuration:
    """A host's configuration as it was read."""

    host: Host
    path: Path
    content: bytes | None
    """None if there is no such file."""

    @classmethod
    def read(cls, host: Host, path: Path) -> Self:
        """Read a configuration, which need not be there. Raises `Unreadable`."""
        try:
            if not path.exists():
                return cls(host, path, None)
            if not path.is_file():
                raise Unreadable("it is no file")
            if path.stat().st_size > LARGEST:
                raise Unreadable(f"it is larger than {LARGEST // 1024 // 1024} MiB")
            return cls(host, path, path.read_bytes())
        except OSError as error:
            raise Unreadable(
                f"it cannot be read ({(error.strerror or str(error)).lower()})"
            ) from error

    @property
    def text(self) -> str:
        """The text, without the mark that it may begin with. Raises `Unreadable`."""
        try:
            return (self.content or b"").removeprefix(_MARK).decode()
        except UnicodeDecodeError as error:
            raise Unreadable("it is not in UTF-8") from error

    @property
    def marked(self) -> bool:
        """Whether it begins with a byte order mark, which it would not if it were written anew."""
        return (self.content or b"").startswith(_MARK)

    def servers(self) -> Mapping[str, Any]:
        """Return the entries of the servers, by their names. Raises `Unreadable`."""
        if self.host.yaml:
            held = yaml_text.parse(self.text)
        else:
            held = json_text.parse(self.text, comments=self.host.comments)
        if held is None:
            return {}
        if not isinstance(held, dict):
            raise NotByName(None)
        servers = held.get(self.host.servers)
        if servers is None:
            return {}
        if not isinstance(servers, dict):
            raise NotByName(self.host.servers)
        return servers

    def ours(self) -> list[str]:
        """Return the names under which this server is there. Raises `Unreadable`."""
        return [name for name, entry in self.servers().items() if is_ours(entry)]

    def with_server(self, name: str, command: Sequence[str]) -> str:
        """Return the text with this server in it, started by `command`. Raises `Unreadable`.

        Of an entry that is ours already, what its user has added stays.
        """
        entry = self.host.entry(name, command)
        there = self.servers().get(name)
        if there is None or not is_ours(there):
            return self._put(self.text, [name], entry)
        text = self.text
        for member in _OURS:
            if member in entry and there.get(member) != entry[member]:
                text = self._put(text, [name, member], entry[member])
        return text

    def without_server(self, name: str) -> str:
        """Return the text without a server that it has. Raises `Unreadable`."""
        drop = yaml_text.drop if self.host.yaml else json_text.drop
        return drop(self.text, [self.host.servers, name])

    def _put(self, text: str, path: Sequence[str], value: Any) -> str:
        put = yaml_text.put if self.host.yaml else json_text.put
        return put(text, [self.host.servers, *path], value)


def is_ours(entry: Any) -> bool:
    """Say whether an entry starts this server, whatever started it when it was written."""
    if not isinstance(entry, dict):
        return False
    args = entry.get("args")
    words = [entry.get("command", entry.get("cmd")), *(args if isinstance(args, list) else [])]
    return any(
        _named(word) in _NAMES
        and (at == 0 or words[at - 1] in ("--", "-m") or words[max(at - 2, 0)] == "--from")
        for at, word in enumerate(words)
    )


def _named(word: Any) -> str:
    return str(word).replace("\\", "/").split("/")[-1].removesuffix(".exe")
