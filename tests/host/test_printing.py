"""What reaches the terminal, whatever a server sends."""

import io
import re

import pytest

from banking_server.host.plain import quoted_name
from banking_server.host.printing import console, say, say_in_parts

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('order" was called\ncall', '"order\\" was called call"'),
        ("a        b", '"a b"'),
        ("a\u00a0\u2800\u3164\u115fb", r'"a \u2800\u3164\u115fb"'),
        ("n" * 200_000, f'"{"n" * 127}\u2026"'),
    ],
)
def test_a_name_cannot_leave_its_quotes(name: str, shown: str) -> None:
    assert quoted_name(name) == shown


@pytest.mark.parametrize(
    ("terminal", "variables", "may"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (False, {"FORCE_COLOR": "1"}, True),
    ],
)
def test_colours_are_where_they_may_be(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, variables: dict[str, str], may: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **variables}.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    out = console(stream)
    say(out, "one\n\ntwo", indent=2, style="bold")
    say_in_parts(out, ("name", "cyan"), (": words", ""), indent=2)
    shown = stream.getvalue()
    assert ("\x1b[36m" in shown) is may
    assert terminal or may or "\x1b" not in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [line.rstrip() for line in plain.splitlines()] == ["  one", "", "  two", "  name: words"]
