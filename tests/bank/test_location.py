"""Where a bank is kept: what can be written, and what is never shown of it."""

from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from banking_server.bank.location import in_full, read_location

pytestmark = pytest.mark.quick

PASSWORD = "pa%40ss:w/ord?#"


def test_a_path_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert read_location("a b.db") == tmp_path / "a b.db"
    assert read_location(Path("a:b//c?#.db")) == tmp_path / "a:b/c?#.db"
    assert read_location("~/bank.db") == tmp_path / "home" / "bank.db"


def test_a_url_hides_its_password() -> None:
    text = f"postgresql://me:{PASSWORD}@db.example:5433/bank?sslmode=require"
    url = read_location(text)
    assert isinstance(url, URL)
    assert (url.password, url.host, url.database) == ("pa@ss:w/ord?#", "db.example", "bank")
    shown = "postgresql://me:***@db.example:5433/bank?sslmode=require"
    assert {str(url), repr(url), f"{url}"} == {shown}
    assert read_location(in_full(url)) == url
    assert read_location(url) == url


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mysql://me:secret@db/bank", "begins with postgresql://"),
        ("postgresql:/me:secret@db/bank", "begins with postgresql://"),
        ("postgresql://me:secret@db", "must name the database"),
        ("postgresql://me:sec@ret@db/bank", "%40"),
        ("postgresql://me:secret@db:none/bank", "written like"),
        ("postgresql://me@db/bank?options=-csynchronous_commit=off", "these options only"),
        ("postgresql://me@db/bank?host=a@secret", "%40"),
    ],
)
def test_an_invalid_location_is_not_quoted_in_the_error(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_location(text)
    assert problem in str(refused.value)
    assert "ret" not in str(refused.value)
    assert refused.value.__cause__ is None
