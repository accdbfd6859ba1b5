"""What each host's file would be with this server in it, and which files are left alone."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.installing import json_text, yaml_text
from banking_server.installing.configuration import LARGEST, Configuration, is_ours
from banking_server.installing.hosts import HOSTS, HostName
from banking_server.installing.unreadable import Unreadable

SAMPLES = Path(__file__).with_name("samples")
COMMAND = ["/opt/a b/tool-chaining-proxy", "--", "/opt/a b/banking-server"]


def configuration(host: str, text: str | bytes) -> Configuration:
    content = text.encode() if isinstance(text, str) else text
    return Configuration(HOSTS[HostName(host)], Path("mcp.json"), content)


def held(host: str, text: str) -> Any:
    return yaml_text.parse(text) if host == "goose" else json_text.parse(text, comments=True)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("host", HOSTS)
def test_the_rest_of_a_file_stays_as_it_is(host: HostName, newline: str) -> None:
    [sample] = SAMPLES.glob(f"{host}.*")
    before = sample.read_text(encoding="utf-8").replace("\n", newline)
    servers = HOSTS[host].servers
    text = configuration(host, before).with_server("bank", COMMAND)
    assert text.count("\n") == text.count(newline)
    there = held(host, text)
    assert there[servers].pop("bank") == HOSTS[host].entry("bank", COMMAND)
    assert there == held(host, before)
    changed = configuration(host, text)
    assert (changed.ours(), changed.with_server("bank", COMMAND)) == (["bank"], text)
    assert changed.without_server("bank") == before


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("before", ["", "\n"])
def test_a_file_with_nothing_in_it(host: HostName, before: str) -> None:
    text = configuration(host, before).with_server("bank", COMMAND)
    entry = HOSTS[host].entry("bank", COMMAND)
    assert held(host, text) == {HOSTS[host].servers: {"bank": entry}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "servers": {\n    "bank": 1\n  }\n}'),
        ("// none\n", '// none\n{\n  "servers": {\n    "bank": 1\n  }\n}\n'),
        ('{"a": 1}', '{"a": 1, "servers": {"bank": 1}}'),
        ('{"servers":{},"a":1}', '{"servers":{"bank": 1},"a":1}'),
        ('{"servers": null}', '{"servers": {"bank": 1}}'),
        ('{"servers": {"bank": [0],},}', '{"servers": {"bank": 1,},}'),
        ("{ // here\n}", '{ // here\n  "servers": {\n    "bank": 1\n  }\n}'),
        ('{\n    "servers": {}\n}', '{\n    "servers": {\n        "bank": 1\n    }\n}'),
        ('{"servers": {\n"a": 1}}', '{"servers": {\n"a": 1,\n"bank": 1\n}}'),
    ],
)
def test_members_of_json(before: str, after: str) -> None:
    assert json_text.put(before, ["servers", "bank"], 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, "bank": {}}', '{"a": 1}'),
        ('{"bank": {}, "a": 1}', '{"a": 1}'),
        ('{\n  "bank": {}, // ours\n  "a": 1\n}', '{\n  // ours\n  "a": 1\n}'),
        ('{\r\n  "bank": {},\r\n  "a": 1\r\n}', '{\r\n  "a": 1\r\n}'),
        ('{ /* all */ "bank": {} }', "{ /* all */}"),
        ('{ "bank": {} }', "{}"),
    ],
)
def test_members_of_json_that_go(before: str, after: str) -> None:
    assert json_text.drop(before, ["bank"]) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1", "a: 1\nextensions:\n  bank: 1\n"),
        ("# none\n", "# none\nextensions:\n  bank: 1\n"),
        ("extensions: {} # none\na: 1", "extensions:  # none\n  bank: 1\na: 1"),
        ("extensions:\na: 1", "extensions:\n  bank: 1\na: 1"),
        ("b: &b {}\nextensions:\n    a: *b", "b: &b {}\nextensions:\n    a: *b\n    bank: 1\n"),
        ("extensions:\n  bank: {a: 1}  # mine\n", "extensions:\n  bank: 1  # mine\n"),
        ("a: 1\n...\n", "a: 1\nextensions:\n  bank: 1\n...\n"),
        ("extensions:\n  a: |\n    x\n", "extensions:\n  a: |\n    x\n  bank: 1\n"),
        ("extensions: ~ # none", "extensions:  # none\n  bank: 1\n"),
    ],
)
def test_members_of_yaml(before: str, after: str) -> None:
    assert yaml_text.put(before, ["extensions", "bank"], 1) == after


def test_yaml_without_members() -> None:
    with pytest.raises(Unreadable, match="it does not hold"):
        yaml_text.put("- a", ["extensions"], 1)


def test_the_last_member_of_yaml_leaves_a_mapping() -> None:
    assert yaml_text.drop("extensions:\n  bank: 1\na: 1", ["extensions", "bank"]) == (
        "extensions: {}\na: 1"
    )


def test_a_name_that_yaml_would_take_for_something_else() -> None:
    assert yaml_text.put("", ["extensions", "on"], {"a": 1}) == 'extensions:\n  "on":\n    a: 1\n'


@pytest.mark.parametrize(
    ("host", "text", "why"),
    [
        ("vscode", "{", "line 1 is no JSON"),
        ("vscode", '{\n  "servers": {\n    "a" 1\n  }\n}', "line 3 is no JSON"),
        ("vscode", "{} {}", "line 1 is no JSON: extra data"),
        ("vscode", '{"a": "', "line 1 is no JSON: unterminated string$"),
        ("vscode", '{"a": "\t"}', "line 1 is no JSON: invalid control character$"),
        ("vscode", "{'a': 1}", "line 1 is no JSON"),
        ("vscode", '{"a": NaN}', "NaN is no JSON"),
        ("vscode", "[" * 100_000, "nested too deeply"),
        ("vscode", "null", "it does not hold"),
        ("vscode", "[]", "it does not hold"),
        ("vscode", '{"servers": []}', 'its "servers" does not hold'),
        ("vscode", '{"servers": {}, "servers": {}}', 'it has "servers" twice'),
        ("vscode", '{"servers": {"bank": 1, "bank": 1}}', 'it has "bank" twice'),
        ("vscode", b"\xff\xfe{\0}\0", "not in UTF-8"),
        ("cursor", '{"servers": {}} // "mcpServers": {', "nothing"),
        ("claude-desktop", '{\n  "mcpServers": {} // none\n}', "line 2 has a comment"),
        ("claude-code", '{"mcpServers": {},\n}', "line 1 has a comment or a comma too many"),
        ("goose", "a: [1", "line 1 is no YAML"),
        ("goose", "extensions:\n\ta: 1", "line 2 is no YAML"),
        ("goose", "a: 1\n---\nb: 1", "is no YAML"),
        ("goose", "a: \x01", "a character that must not be there"),
        ("goose", "[" * 5_000, "nested too deeply"),
        ("goose", "- a", "it does not hold"),
        ("goose", "extensions: [a]", 'its "extensions" does not hold'),
        ("goose", "extensions: {}\nextensions: {}", 'it has "extensions" twice'),
        ("goose", "{}", "cannot be changed line by line"),
        ("goose", "extensions: {a: 1}", "cannot be changed line by line"),
        ("goose", "b: &b {q: 1}\nextensions: *b", "cannot be changed line by line"),
        ("goose", "b: &b\n  q: 1\nextensions: *b", "cannot be changed line by line"),
        ("goose", "? extensions\n:\n", "cannot be changed line by line"),
    ],
)
def test_what_is_left_alone(host: str, text: str | bytes, why: str) -> None:
    if why == "nothing":
        assert configuration(host, text).ours() == []
        return
    with pytest.raises(Unreadable, match=why):
        configuration(host, text).with_server("bank", COMMAND)


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = HOSTS[HostName.VSCODE]
    with pytest.raises(Unreadable, match="no file"):
        Configuration.read(host, tmp_path)
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(Unreadable, match="larger than 64 MiB"):
        Configuration.read(host, huge)

    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", forbidden)  # An administrator may read all.
    with pytest.raises(Unreadable, match=r"cannot be read \(permission denied\)"):
        Configuration.read(host, Path(__file__))


def test_a_byte_order_mark_goes() -> None:
    marked = configuration("claude-desktop", b'\xef\xbb\xbf{"mcpServers": {}}')
    assert marked.marked
    assert marked.with_server("bank", ["x"]).startswith('{"mcpServers": {"bank"')


def test_what_people_added_to_the_entry_stays() -> None:
    before = """{
  "mcpServers": {
    "bank": { // my bank
      "command": "/old/banking-server",
      "args": ["--customer", "CUST001"], // me
      "env": {"BANKING_CODES": "desk"}
    }
  }
}
"""
    after = configuration("cursor", before).with_server("bank", ["/new/banking-server"])
    assert after.replace('"/new/', '"/old/') == (
        before.replace('["--customer", "CUST001"]', "[]").replace(
            '"desk"}\n', '"desk"},\n      "type": "stdio"\n'
        )
    )


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "banking-server"}, True),
        ({"command": "C:\\a b\\Scripts\\banking-server.exe", "args": None}, True),
        ({"command": "tool-chaining-proxy", "args": ["--", "/x/banking-server"]}, True),
        ({"command": "tool-chaining-proxy", "args": ["--", "npx", "other"]}, False),
        ({"command": "python", "args": ["-m", "banking_server"]}, True),
        ({"cmd": "uv", "args": ["tool", "run", "--from", "/x", "banking-server"]}, True),
        ({"command": "server-filesystem", "args": ["/home/ada/banking-server"]}, False),
        ({"url": "https://bank.example/mcp"}, False),
        ({"command": 1, "args": [2]}, False),
        ("banking-server", False),
    ],
)
def test_whose_an_entry_is(entry: Any, ours: bool) -> None:
    assert is_ours(entry) is ours
