"""What counts as a secret in reports, and what does not."""

import json

import pytest

from tool_chaining_conformance.report.redaction import REDACTED, Redaction
from tool_chaining_conformance.target.child_process import wrote_last

pytestmark = pytest.mark.quick


def test_redaction_of_messages() -> None:
    redaction = Redaction(["hunter2-secret", "1"])
    message = {
        "params": {"_meta": {"token": "abc"}, "arguments": {"n": "1", "hunter2-secret": 1}},
        "text": "your password is hunter2-secret, and 1 of 11",
    }
    assert redaction.json(message) == {
        "params": {
            "_meta": {"token": "abc"},
            "arguments": {"n": REDACTED, REDACTED: REDACTED},
        },
        "text": f"your password is {REDACTED}, and {REDACTED} of 11",
    }


WORD = 'say "friend" \\ & enter \u00e9'


@pytest.mark.parametrize(
    "text",
    [
        WORD,
        json.dumps({"word": WORD}),
        json.dumps({"word": WORD}, ensure_ascii=False),
    ],
)
def test_a_secret_is_redacted_as_itself_and_in_json(text: str) -> None:
    before = text.partition("say")[0]
    shown = Redaction([WORD]).text(text)
    assert shown.startswith(f"{before}{REDACTED}")
    assert len(shown) <= len(before + REDACTED) + 6


def test_a_last_line_is_whole_until_it_is_redacted() -> None:
    written = "." * 290 + "hunter2-secret"
    assert Redaction(["hunter2-secret"]).text(wrote_last(written)).endswith("." * 290 + REDACTED)
