"""What counts as a secret in reports, and what does not."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from tool_chaining_conformance.client.evidence import ClientEnd
from tool_chaining_conformance.report.redaction import (
    REDACTED,
    Redaction,
    is_secret_name,
    redacted_command,
)
from tool_chaining_conformance.target.child_process import last_errors

pytestmark = pytest.mark.quick


SECRETS = """
password Authorization accessToken access_token confirmationCode code api-key apiKey X-API-Key
client_secret cookies tokens OTP secretKey
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["tokenizer", "monkey", "key", "progressToken", "encoded", "barcodes", "spin", "reason"]
)
def test_names_that_only_look_like_it(name: str) -> None:
    assert not is_secret_name(name)


def test_redaction_of_messages() -> None:
    redaction = Redaction(["hunter2-secret", "1"])
    message = {
        "params": {"_meta": {"token": "abc"}, "arguments": {"confirmationCode": 123456, "n": "1"}},
        "text": "your password is hunter2-secret, and 1 of 11",
    }
    assert redaction.json(message) == {
        "params": {
            "_meta": {"token": REDACTED},
            "arguments": {"confirmationCode": REDACTED, "n": REDACTED},
        },
        "text": f"your password is {REDACTED}, and {REDACTED} of 11",
    }


def test_what_stays_readable() -> None:
    error = {"error": {"code": -32602, "message": "Unknown tool"}}
    schema = {"properties": {"token": {"type": "string"}}, "required": ["token"]}
    assert Redaction().json([error, schema]) == [error, schema]


def test_a_line_that_a_program_printed_last() -> None:
    assert last_errors("Traceback\nError: password=hunter2\n") == f"Error: password={REDACTED}"
    assert last_errors("Authorization: Bearer hunter2") == f"Authorization: Bearer {REDACTED}"
    assert last_errors("order=7: no such order") == "order=7: no such order"


WORD = 'say "friend" \\ & enter \u00e9'


@pytest.mark.parametrize(
    "text",
    [
        WORD,
        json.dumps({"word": WORD}),
        json.dumps({"word": WORD}, ensure_ascii=False),
        f"https://example.com/?word={quote(WORD)}",
        f"https://example.com/?word={quote_plus(WORD)}",
        f"Basic {base64.b64encode(WORD.encode()).decode()}",
        f"Basic {base64.urlsafe_b64encode(WORD.encode()).decode()}",
    ],
)
def test_a_secret_is_redacted_as_itself_and_encoded(text: str) -> None:
    before = text.partition("say")[0].partition(base64.b64encode(WORD.encode()).decode()[:8])[0]
    shown = Redaction([WORD]).text(text)
    assert shown.startswith(f"{before}{REDACTED}")
    assert len(shown) <= len(before + REDACTED) + 6


def test_a_last_line_is_whole_until_it_is_redacted() -> None:
    said = "." * 290 + "hunter2-secret"
    assert Redaction(["hunter2-secret"]).text(str(last_errors(said))) == "." * 290 + REDACTED
    assert len(str(ClientEnd(1, "", "x" * 5000))) < 400


def test_a_command_line_without_its_secrets() -> None:
    command = ["server", "--token", "abc", "--api-key=xyz", "--port", "1", "PASSWORD=p", "--code"]
    shown = ["--token", REDACTED, f"--api-key={REDACTED}", "--port", "1", f"PASSWORD={REDACTED}"]
    assert redacted_command(command) == ["server", *shown, "--code"]
