"""`--draft`: rules from recordings whose rules are known."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tool_chaining.rules import Rules
from tool_chaining_proxy.draft import drafted

pytestmark = pytest.mark.quick

Made = tuple[str, dict[str, Any], dict[str, Any]]
"""A call: its tool, its arguments, and the members of its result."""


def data(**members: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": members, "isError": False}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": False, **more}


def recording(folder: Path, sessions: list[list[Any]], **more: Any) -> Path:
    """Write sessions, each a list of calls; one in a list of its own overlaps the call before."""
    lines, now = [], 100
    for number, calls in enumerate(sessions):
        for made in calls:
            overlaps = isinstance(made, list)
            tool, arguments, result = made[0] if overlaps else made
            began = now - 9.5 if overlaps else now
            line = {
                "session": str(number),
                "began": datetime.fromtimestamp(began, UTC).isoformat(),
                "ended": datetime.fromtimestamp(now + 1, UTC).isoformat(),
                "tool": tool,
                "arguments": arguments,
                "readOnly": True,
                **result,
                **more,
            }
            lines.append(json.dumps(line))
            now += 10
    path = folder / "calls.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def rules_of(draft: str, folder: Path) -> list[tuple[str, Any, str, Any]]:
    """The rules that are not commented out: after, when, then, arguments."""
    if "\n[[rule]]" not in draft:
        return []
    path = folder / "draft.toml"
    path.write_text(draft, encoding="utf-8")
    return [(r.after, r.when, r.then, r.arguments) for r in Rules.load(path).rules]


def each(make: Callable[[int], list[Any]], times: int = 4) -> list[list[Any]]:
    return [make(number) for number in range(times)]


def from_(path: str) -> dict[str, str]:
    return {"jmespath": path}


END: Made = ("note", {}, data())
KNOWN: list[tuple[str, list[list[Any]], list[Any]]] = [
    (
        "a constant beside a path",
        each(lambda n: [("a", {}, data(id=n)), ("b", {"id": n, "unit": "EUR"}, data())]),
        [("a", None, "b", {"id": from_("structuredContent.id"), "unit": "EUR"})],
    ),
    (
        "a nested path, and a name that needs quotes",
        each(
            lambda n: [
                ("a", {}, data(**{"my items": [{"id": n}]})),
                ("b", {"to": {"deep": [n]}}, data()),
            ]
        ),
        [("a", None, "b", {"to": {"deep": [from_('structuredContent."my items"[0].id')]}})],
    ),
    (
        "the first text as JSON",
        each(lambda n: [("a", {}, text(json.dumps({"id": n}))), ("b", {"id": n}, data())]),
        [("a", None, "b", {"id": from_("json.id")})],
    ),
    (
        "an argument of the first call",
        each(lambda n: [("a", {"who": f"p{n}"}, text("ok")), ("b", {"name": f"p{n}"}, data())]),
        [("a", None, "b", {"name": from_("arguments.who")})],
    ),
    (
        "structured content before json before arguments",
        each(
            lambda n: [
                (
                    "a",
                    {"id": n},
                    {**data(x={"id": n}), "content": text(f'{{"id": {n}}}')["content"]},
                ),
                ("b", {"id": n}, data()),
            ]
        ),
        [("a", None, "b", {"id": from_("structuredContent.x.id")})],
    ),
    (
        "a branch by a boolean",
        each(
            lambda n: [
                ("a", {}, data(id=n, ok=n % 2 == 0)),
                ("b" if n % 2 == 0 else "c", {"id": n}, data()),
            ],
            8,
        ),
        [
            ("a", "structuredContent.ok == `true`", "b", {"id": from_("structuredContent.id")}),
            ("a", "structuredContent.ok == `false`", "c", {"id": from_("structuredContent.id")}),
        ],
    ),
    (
        "a branch by a text",
        each(
            lambda n: [
                ("a", {}, data(state=("open", "shut")[n % 2])),
                *([("b", {}, data())] if n % 2 else [END]),
            ],
            8,
        ),
        [
            ("a", "structuredContent.state == 'open'", "note", {}),
            ("a", "structuredContent.state == 'shut'", "b", {}),
        ],
    ),
    (
        "a branch by an empty list",
        each(
            lambda n: [
                ("a", {}, data(found=[n] * (n % 2))),
                *([("b", {}, data())] if n % 2 else []),
            ],
            8,
        ),
        [("a", "structuredContent.found", "b", {})],
    ),
    (
        "only after an error",
        each(
            lambda n: [
                ("a", {}, {**text("no"), "isError": n % 2 == 0}),
                *([("b", {}, data())] if n % 2 == 0 else []),
            ],
            8,
        ),
        [("a", None, "b", {})],
    ),
    (
        "other calls around it",
        each(lambda n: [END, ("a", {}, data(id=n)), ("b", {"id": n}, data()), END]),
        [("a", None, "b", {"id": from_("structuredContent.id")}), ("b", None, "note", {})],
    ),
    (
        "a list of values",
        each(lambda n: [("a", {}, data(ids=[n, n + 1])), ("b", {"all": [n, n + 1]}, data())]),
        [("a", None, "b", {"all": from_("structuredContent.ids")})],
    ),
    (
        "names that look like expressions",
        each(lambda n: [("a", {}, data(id=n)), ("b", {"jmespath": "x", "text": n}, data())]),
        [("a", None, "b", {"jmespath": {"value": "x"}, "text": from_("structuredContent.id")})],
    ),
    # No rule.
    ("too seldom", each(lambda n: [("a", {}, data(id=n)), ("b", {"id": n}, data())], 2), []),
    (
        "a value that the model made up",
        each(lambda n: [("a", {}, data(id=n)), ("b", {"title": f"Call {n}"}, data())]),
        [],
    ),
    (
        "a value that was there but once",
        each(lambda n: [("a", {}, data(id=n, other=7)), ("b", {"id": n if n else 7}, data())]),
        [],
    ),
    (
        "overlapping calls",
        each(lambda n: [("a", {}, data(id=n)), [("c", {}, data())], ("b", {"id": n}, data())]),
        [],
    ),
    (
        "sometimes, and else two calls beside each other",
        each(
            lambda n: [
                ("a", {}, data(id=n)),
                *([("b", {}, data())] if n < 4 else [("c", {}, data()), [("d", {}, data())]]),
            ],
            7,
        ),
        [],
    ),
    (
        "only sometimes, and only an id differs",
        each(lambda n: [("a", {}, data(id=f"x{n}")), *([("b", {}, data())] if n else [])]),
        [],
    ),
    (
        "a number that crosses a limit",
        each(lambda n: [("a", {}, data(risk=n)), *([("b", {}, data())] if n > 4 else [])], 9),
        [],
    ),
]


@pytest.mark.parametrize(
    ("sessions", "rules"), [row[1:] for row in KNOWN], ids=[r[0] for r in KNOWN]
)
def test_a_recording_gives_the_rules_that_made_it(
    tmp_path: Path, sessions: Any, rules: Any
) -> None:
    found = rules_of(drafted(recording(tmp_path, sessions)), tmp_path)
    assert sorted(map(repr, found)) == sorted(map(repr, rules))


def test_a_rule_that_changes_something_is_a_persons_decision(tmp_path: Path) -> None:
    sessions = each(lambda n: [("a", {}, data(id=n)), ("b", {"id": n}, data())], 7)
    draft = drafted(recording(tmp_path, sessions, readOnly=False))
    assert rules_of(draft, tmp_path) == []
    assert "# 7 of 7 times, in 7 sessions" in draft
    assert '# id = { jmespath = "structuredContent.id" }' in draft


def test_a_hostile_recording_becomes_no_line_of_toml(tmp_path: Path) -> None:
    evil = 'x"\nrule\nafter = ""\nthen = "pay" # \u2028\u202e\x00\U0001f600'
    sessions = each(
        lambda n: [
            (evil, {evil: n}, data(**{evil: f"{evil}{n}"})),
            (evil + "2", {evil: f"{evil}{n}", "free": f"{evil}, {n}?"}, data()),
            (evil + "3", {"same": evil}, data()),
        ]
    )
    draft = drafted(recording(tmp_path, sessions))
    for line in draft.splitlines():
        assert line.startswith(("#", "[", "after", "then", "same", '"x')) or not line
    found = rules_of(draft, tmp_path)
    assert [(after, then, arguments) for after, _, then, arguments in found] == [
        (evil + "2", evil + "3", {"same": evil})
    ]
    assert "it takes a model" in draft


def test_a_draft_says_why_it_has_no_rule(tmp_path: Path) -> None:
    sessions = each(lambda n: [("a", {}, text(f"id x{n} made")), ("b", {"id": f"x{n}"}, data())])
    path = recording(tmp_path, sessions)
    assert "No rule for a -> b: id stands in the text, where a match can find it." in drafted(path)
    assert "# No call followed another one 5 times." in drafted(path, 5)


def test_what_the_proxy_called_itself_makes_no_pair(tmp_path: Path) -> None:
    sessions = each(
        lambda n: [("a", {}, data(id=n)), ("b", {"id": n}, {**data(), "byProxy": True}), END]
    )
    assert rules_of(drafted(recording(tmp_path, sessions)), tmp_path) == []
