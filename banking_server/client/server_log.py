"""The standard error of a server over stdio: shown, and searched for dropped directives."""

import re
import sys
from typing import Final

from banking_server.client.plain import SHOWN
from tool_chaining.text import one_line, printable
from tool_chaining_proxy.hosting.server_errors import ServerErrors

_DROPPED: Final = "Dropped nextTool"
"""How the server half of the extension begins its log message about a wrong directive."""

_STYLE: Final = re.compile(r"\x1b(\[[\d;]*m|\]8;[^\x1b]*\x1b\\)")
"""Colours and links of a terminal."""

_SOURCE: Final = re.compile(r" +\S+\.py:\d+$")
"""The last column of a log table: the line of code that logged the message. By default, servers on
the SDK log in such tables. They are 80 characters wide, and leave 25 for the message."""


class ServerLog(ServerErrors):
    """The standard error of one server, passed on to ours."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        """The rows of the last message about a dropped directive."""
        self._column = 0
        """Where the message starts in its rows, as long as more rows may follow; else 0."""
        self._width = 0
        """The width of the table's column for the message; 0 if it is not in a table."""
        super().__init__(self._print)

    def _print(self, line: str) -> None:
        """Print a line on our standard error, marked as the server's."""
        self._look_at(_STYLE.sub("", line).rstrip())
        shown = printable(line).removesuffix("\n")
        sys.stderr.write(f"[server] {shown}\n")

    def dropped(self) -> str | None:
        """Return the message about the last directive that the server dropped, on one line.

        None if it logged none. Call this only after `close`.
        """
        # A row without a space that fills the column is part of a longer word.
        parts = (
            part if len(part) == self._width and " " not in part else f"{part} "
            for part in self._parts
        )
        return one_line("".join(parts), SHOWN) or None

    def _look_at(self, line: str) -> None:
        if (column := line.find(_DROPPED)) >= 0:
            text = _SOURCE.sub("", line)
            self._column, self._parts = column, [text[column:]]
            self._width = line.rfind(" ") - column if text != line else 0
        elif 0 < self._column < len(line) and line[: self._column].isspace():
            self._parts = [*self._parts, line[self._column :]][:SHOWN]
        else:
            self._column = 0
