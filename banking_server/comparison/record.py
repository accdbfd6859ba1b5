"""One run as it is kept: a line of JSON, with its transcript and all that decided it."""

import json
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from banking_server import __version__
from banking_server.agent import ModelSettings
from banking_server.comparison.failures import Failure
from banking_server.comparison.model_calls import ModelCall
from banking_server.comparison.tasks import Case, Task
from banking_server.comparison.ways import WITH_MODEL, Way


class Conditions(BaseModel):
    """What a run was made under, and what decides it besides its task, way and wording."""

    model_config = ConfigDict(frozen=True)

    version: str
    python: str
    machine: str
    model: dict[str, Any] | None
    """The model's settings, without the key; of the URL, only where it points. None without one."""


def conditions(way: Way, settings: ModelSettings | None) -> Conditions:
    """Return what runs of a way are made under here; `settings` are the model's, if any."""
    model = None
    if settings is not None and way in WITH_MODEL:
        parts = urlsplit(settings.url)
        shown = settings.model_dump(mode="json", exclude={"url", "key", "insecure"})
        model = {
            "host": f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname,
            **shown,
        }
    return Conditions(
        version=__version__,
        python=platform.python_version(),
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        model=model,
    )


class Measured(BaseModel):
    """One run."""

    model_config = ConfigDict(frozen=True)

    task: Task
    way: Way
    number: int
    """Of the wording, from 1."""
    words: str
    at: datetime
    """When it began, UTC."""
    right: bool
    """The database holds what the task asks for, and nothing else; to a question, the answer is."""
    wrong: tuple[str, ...] = ()
    """What was done that nobody asked for."""
    tried: tuple[str, ...] = ()
    """What would have been done that nobody asked for, had the customer not refused it."""
    refused: tuple[str, ...] = ()
    """What the customer was asked for, and did not agree to."""
    failure: Failure | None = None
    """Why it is not right; None if it is, or if the endpoint failed."""
    unavailable: str | None = None
    """Why the model's endpoint gave no reply, in one line: the run says nothing about its way."""
    ended: str
    """How the run says it ended."""
    answer: str | None = None
    """What the user was told at the end, by an agent."""
    calls: int
    """Tool calls that the bank was asked for, steps of `multiplex_tools` included."""
    seconds: float
    model_calls: tuple[ModelCall, ...] = ()
    transcript: tuple[dict[str, Any], ...] = ()
    conditions: Conditions

    @property
    def key(self) -> tuple[Task, Way, str]:
        """What a run is one of: it is made once."""
        return self.task, self.way, self.words

    @property
    def prompt_tokens(self) -> int:
        """Of all replies."""
        return sum(call.prompt_tokens for call in self.model_calls)

    @property
    def cached_tokens(self) -> int:
        """Of the prompts, what was in the endpoint's cache."""
        return sum(call.cached_tokens for call in self.model_calls)

    @property
    def completion_tokens(self) -> int:
        """Of all replies."""
        return sum(call.completion_tokens for call in self.model_calls)


def key_of(case: Case, way: Way) -> tuple[Task, Way, str]:
    """Return the key of the run of a case in a way."""
    return case.task, way, case.words


class FileUnusable(Exception):
    """The file of runs cannot be read, written, or gone on with; the message is one line."""


class RunsFile:
    """A file of runs, one line of JSON each; a context manager that has it open to append to."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        """Open it, and change nothing in it yet.

        Raises FileUnusable, also if it is there and is not to be gone on with, or holds no run.
        """
        self.path = path
        self.runs: list[Measured] = []
        self._kept: _Kept | None = None
        try:
            path.open("a").close()
            if path.stat().st_size:
                if not resume:
                    raise FileUnusable(
                        f"{path} holds something already: go on with its runs by --resume, or "
                        "name another file."
                    )
                self._kept = _read(path)
                self.runs = [*self._kept.runs]
                if not self.runs:
                    raise FileUnusable(
                        f"{path} holds no run of a comparison: name another file, or remove it."
                    )
            self._file: TextIO = path.open("a", encoding="utf-8")
        except OSError as error:
            raise FileUnusable(f"{path} cannot be written: {error.strerror}.") from None

    def __enter__(self) -> "RunsFile":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # What could not be written is tried once more.
            self._file.close()

    def append(self, run: Measured) -> None:
        """Write a run, at once. Raises FileUnusable."""
        try:
            if self._kept is not None:
                # The last line was being written when everything stopped.
                self._file.truncate(self._kept.size)
                self._file.write("" if self._kept.ended else "\n")
                self._kept = None
            self._file.write(run.model_dump_json(exclude_defaults=True) + "\n")
            self._file.flush()
        except OSError as error:
            raise FileUnusable(f"{self.path} cannot be written: {error.strerror}.") from None


def read_runs(path: Path) -> list[Measured]:
    """Return the runs of a file. Raises FileUnusable."""
    try:
        return _read(path).runs
    except OSError as error:
        raise FileUnusable(f"{path} cannot be read: {error.strerror}.") from None


def holds_runs(path: Path) -> bool:
    """Say whether a file begins as one of runs does. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


class _Kept(NamedTuple):
    """What a file holds."""

    runs: list[Measured]
    size: int
    """Bytes of the file that hold them; what follows is the beginning of one more."""
    ended: bool
    """Whether the last has its line break."""


def _read(path: Path) -> _Kept:
    runs: list[Measured] = []
    size = 0
    ended = True
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        ended = line.endswith(b"\n")
        try:
            runs.append(Measured.model_validate_json(line))
        except ValidationError:
            if ended or not (line.startswith(_BEGINNING) or _BEGINNING.startswith(line)):
                raise FileUnusable(f"{path}, line {number}, is no run of a comparison.") from None
            return _Kept(runs, size, True)
        size += len(line)
    return _Kept(runs, size, ended)


_BEGINNING: Final = b'{"task":"'
"""Of each line."""


def latest(runs: Iterable[Measured]) -> list[Measured]:
    """Return one run of each key, the last: one that the endpoint failed in is made again."""
    return list({run.key: run for run in runs}.values())


def differing(runs: Iterable[Measured], settings: ModelSettings | None) -> str | None:
    """Return what runs were made under that is not so here, in a few words; None if nothing is.

    Runs with a model are not looked at where none is configured: none of them will be made.
    """
    for run in runs:
        if settings is None and run.way in WITH_MODEL:
            continue
        here, there = (_flat(one) for one in (conditions(run.way, settings), run.conditions))
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                before, now = json.dumps(there.get(name)), json.dumps(here.get(name))
                return f"{name} was {before}, and is {now} now"
    return None


def _flat(given: Conditions) -> dict[str, Any]:
    fields = given.model_dump(mode="json")
    return {**fields, "model": None, **(fields["model"] or {})}
