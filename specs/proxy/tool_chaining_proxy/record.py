"""`--record FILE`: a line of JSON for each call, with its result. `--draft` reads them.

The file holds everything that tools take and return, and no HTTP header.
"""

import errno
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from tool_chaining.content import is_error, member
from tool_chaining.operator import write_line
from tool_chaining.text import quoted
from tool_chaining_proxy import NAME
from tool_chaining_proxy.eras import Json

MAX_RESULT: Final = 256 * 1024
"""The largest result that is recorded with its content, in bytes of JSON."""

_JSON: Final = TypeAdapter(dict[str, Any])
"""Four times as fast as `json`: a recorded call must cost little more than any other."""


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


class Recorder:
    """The file of `--record`. A problem with it ends the recording, and no call."""

    def __init__(self, path: Path) -> None:
        """Open the file. A new one can be read by its owner alone."""
        self._path, self._file = path, -1
        self._read_only: set[str] = set()
        # Several proxies may append to one file, and a pipe that nobody reads is not waited for.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        try:
            self._file = os.open(path, flags, 0o600)
            found = os.fstat(self._file)
            if found.st_uid != os.geteuid():
                self._end("it belongs to another account")
            elif found.st_size and os.pread(self._file, 1, found.st_size - 1) != b"\n":
                self._write(b"\n")  # A full disk cut off the last line.
        except OSError as error:
            self._end((error.strerror or str(error)).lower())

    def note_tools(self, listed: Json) -> None:
        """Note which tools a page of the server's list marks as read-only."""
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(name := member(tool, "name"), str):
                marked = member(member(tool, "annotations"), "readOnlyHint") is True
                (self._read_only.add if marked else self._read_only.discard)(name)

    def add(
        self, session: str, began: float, call: tuple[str, Json], result: Json | None, *, own: bool
    ) -> None:
        """Append a call that ended just now: the client's `own`, or one that the proxy made.

        A call that has no complete result is marked as unanswered. `began` is in Unix seconds.
        """
        if self._file < 0:
            return
        tool, arguments = call
        line: Json = {"session": session, "began": _utc(began), "ended": _utc(time.time())}
        line |= {"tool": tool, "arguments": arguments, "readOnly": tool in self._read_only}
        if not own:
            line["byProxy"] = True
        if result is None or result.get("resultType", "complete") != "complete":
            line["unanswered"] = True
        else:
            line["isError"] = is_error(result)
            line |= _content(result)
        try:
            self._write(_JSON.dump_json(line) + b"\n")
        except (OSError, ValueError, RecursionError) as error:
            self._end((getattr(error, "strerror", None) or str(error)).lower())

    def _write(self, line: bytes) -> None:
        if os.write(self._file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _end(self, why: str) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
        write_line(f"{NAME}: Calls are no longer recorded in {quoted(str(self._path))}: {why}.")


def _content(result: Json) -> Json:
    """Return the content of a result for a line, or that it was left out."""
    names = ("content", "structuredContent")
    found: Json = {name: result[name] for name in names if name in result}
    try:
        fits = len(_JSON.dump_json(found)) <= MAX_RESULT
    except (ValueError, RecursionError):
        fits = False
    return found if fits else {"omitted": True}
