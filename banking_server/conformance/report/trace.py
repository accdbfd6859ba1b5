"""A trace: every message of every run, passing ones too, as JSON lines."""

from collections.abc import Iterable
from pathlib import Path
from typing import IO

from banking_server.conformance.message import Json, WireMessage
from banking_server.conformance.report.keeping import shallow
from banking_server.conformance.report.plain import as_json
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.target.era import Era


class Trace:
    """The file of a trace, written as the runs come."""

    def __init__(self, path: Path, redaction: Redaction) -> None:
        """Begin the file anew, with the folders above it. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._redaction = redaction

    def write(
        self,
        scenario: str,
        step: str,
        era: Era,
        messages: Iterable[WireMessage],
        *,
        server: str | None = None,
    ) -> None:
        """Write the messages of one step or case, a line each.

        `server` tells a second server of a case from the first. Raises OSError.
        """
        for message in messages:
            line: Json = {"scenario": scenario, "step": step, "spec_version": era}
            if server is not None:
                line["server"] = server
            body = self._redaction.json(shallow(message.body))
            self._file.write(as_json(line | {"from": message.sender, "message": body}) + "\n")

    def close(self) -> None:
        """End the file."""
        self._file.close()
