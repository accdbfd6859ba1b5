"""Runs, made up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from banking_server.agent import ModelSettings
from banking_server.comparison.model_calls import ModelCall
from banking_server.comparison.record import Measured, conditions
from banking_server.comparison.run import CLOSED
from banking_server.comparison.tasks import Task, cases
from banking_server.comparison.ways import WITH_MODEL, Way
from banking_server.server.build import build_server
from banking_server.server.settings import Settings

SETTINGS = ModelSettings(url="https://u:secret@models.example/v1", name="tiny", temperature=0)
CALL = ModelCall(
    prompt_tokens=1000,
    completion_tokens=10,
    estimated=False,
    cached_tokens=400,
    cached_by_endpoint=False,
    seconds=1,
    reply="x",
)


def made(
    way: Way, number: int = 1, task: Task = Task.LOCKED, *, right: bool = True, **other: Any
) -> Measured:
    """Return a run of a wording, by its number from 1."""
    case = cases(task)[number - 1]
    calls = (CALL,) * number if way in WITH_MODEL else ()
    given: dict[str, Any] = {
        "task": task,
        "way": way,
        "number": number,
        "words": case.words,
        "at": datetime(2026, 11, 22, tzinfo=UTC),
        "right": right,
        "ended": "answered",
        "calls": number,
        "seconds": float(number),
        "model_calls": calls,
        "conditions": conditions(way, SETTINGS),
    }
    return Measured(**{**given, **other})


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare each run the start of a process; `tests/cli/test_compare.py` has some with one."""

    def server(database: Path) -> MCPServer[Any]:
        return build_server(
            Settings.model_construct(database=database, **CLOSED), customer="CUST001"
        )

    monkeypatch.setattr("banking_server.comparison.run.bank_server", server)
