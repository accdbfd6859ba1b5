"""What is made from other files has been made anew."""

from pathlib import Path

import pytest

from banking_server.conformance import publish
from banking_server.conformance.publish import COMMAND, published

from .files import SPECS

PUBLISHED = published()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_that_is_made_is_up_to_date(name: str) -> None:
    found = (SPECS / name).read_text("utf-8")
    assert found == PUBLISHED[name], f"specs/{name} is made from other files; run: {COMMAND}"


def test_what_is_missing_or_old_is_written_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish, "__file__", str(tmp_path / "package" / "module" / "publish.py"))
    with pytest.raises(SystemExit, match="run this in a checkout"):
        publish.main()
    for name in PUBLISHED:
        (tmp_path / "specs" / name).parent.mkdir(parents=True, exist_ok=True)
    same, old, *missing = PUBLISHED
    (tmp_path / "specs" / same).write_text(PUBLISHED[same], "utf-8")
    (tmp_path / "specs" / old).write_text("old", "utf-8")
    publish.main()
    assert len(capsys.readouterr().out.splitlines()) == len([old, *missing])
    for name, content in PUBLISHED.items():
        assert (tmp_path / "specs" / name).read_text("utf-8") == content
