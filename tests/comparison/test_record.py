"""The file of runs: appended to at once, read again, and gone on with."""

import json
from pathlib import Path

import pytest

from banking_server.comparison.record import (
    FileUnusable,
    Measured,
    RunsFile,
    differing,
    latest,
    read_runs,
)
from banking_server.comparison.ways import Way

from .support import SETTINGS, made

FIRST, SECOND = made(Way.AGENT), made(Way.NEXT_TOOL)


def written(path: Path, *runs: Measured) -> Path:
    with RunsFile(path, resume=False) as file:
        for run in runs:
            file.append(run)
            assert read_runs(path)[-1] == run  # At once.
    return path


def test_a_run_is_kept_whole_and_without_secrets(tmp_path: Path) -> None:
    path = written(tmp_path / "runs.jsonl", FIRST, SECOND)
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    kept = json.loads(text.splitlines()[0])["conditions"]
    assert kept["model"]["host"] == "models.example"
    assert (kept["model"]["temperature"], kept["model"]["turns"]) == (0, 12)
    assert kept["version"]
    assert "core" in kept["machine"]
    assert json.loads(text.splitlines()[1])["conditions"].get("model") is None


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path / "runs.jsonl", FIRST)
    with pytest.raises(
        FileUnusable, match="holds something already: go on with its runs by --resume"
    ):
        RunsFile(path, resume=False)
    with RunsFile(path, resume=True) as file:
        assert file.runs == [FIRST]
        file.append(SECOND)
    assert read_runs(path) == [FIRST, SECOND]


@pytest.mark.parametrize("torn", ['{"ta', '{"task":"pay a', None])
def test_a_torn_last_line_is_taken_off_as_one_more_is_written(
    tmp_path: Path, torn: str | None
) -> None:
    path = written(tmp_path / "runs.jsonl", FIRST)
    whole = path.read_bytes()
    # Only the line break may be missing too.
    path.write_bytes(whole[:-1] if torn is None else whole + torn.encode())
    before = path.read_bytes()
    assert read_runs(path) == [FIRST]
    with RunsFile(path, resume=True) as file:
        assert path.read_bytes() == before
        file.append(SECOND)
        file.append(SECOND)
    assert path.read_bytes().startswith(whole)
    assert read_runs(path) == [FIRST, SECOND, SECOND]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[{"a": 1}]', "line 1, is no run of a comparison"),
        ("words\nwords", "line 1, is no run of a comparison"),
        ('{"task":"torn', "holds no run of a comparison: name another file, or remove it"),
    ],
)
def test_a_file_of_others_is_not_touched(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "foreign.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileUnusable, match=words):
        RunsFile(path, resume=True)
    assert path.read_text(encoding="utf-8") == content


def test_what_is_no_run_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "runs.jsonl", FIRST)
    path.write_text(path.read_text(encoding="utf-8") + "{}\n", encoding="utf-8")
    with pytest.raises(FileUnusable, match=r"runs.jsonl, line 2, is no run of a comparison\."):
        read_runs(path)


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "runs.jsonl"
    with pytest.raises(FileUnusable, match="cannot be written: No such file or directory"):
        RunsFile(nowhere, resume=True)
    with pytest.raises(FileUnusable, match="cannot be read: No such file or directory"):
        read_runs(nowhere)
    with pytest.raises(FileUnusable, match="cannot be written: Is a directory"):
        RunsFile(tmp_path, resume=True)
    full = Path("/dev/full")
    if full.exists():
        refused = pytest.raises(FileUnusable, match="/dev/full cannot be written: No space left")
        with RunsFile(full, resume=True) as file, refused:
            file.append(FIRST)


def test_a_run_that_is_made_again_counts_once() -> None:
    failed = made(Way.AGENT, right=False, unavailable="gone")
    assert latest([failed, SECOND, FIRST]) == [FIRST, SECOND]


def test_runs_under_other_conditions_are_not_gone_on_with() -> None:
    other = SETTINGS.model_copy(update={"temperature": 0.7})
    assert differing([FIRST, SECOND], SETTINGS) is None
    assert differing([SECOND, FIRST], other) == "temperature was 0.0, and is 0.7 now"
    # What no model decides is the same without one; the others are not made then.
    assert differing([SECOND, FIRST], None) is None
