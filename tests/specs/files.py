"""The files of `specs/`, read once."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

SPECS = Path(__file__).parents[2] / "specs"
CONFORMANCE = SPECS / "conformance"
CLIENT_SCRIPTS = sorted((CONFORMANCE / "client").glob("*.yaml"))
SERVER_SCENARIOS = sorted((CONFORMANCE / "server").glob("*.yaml"))
SCHEMAS = sorted(
    [*(CONFORMANCE / "schemas").glob("*.schema.json"), SPECS / "next-tool.schema.json"]
)
MARKDOWN = sorted([*SPECS.glob("*.md"), CONFORMANCE / "README.md"])

KEYWORD = re.compile(r"\b(MUST|SHOULD|MAY|SHALL|REQUIRED|RECOMMENDED|OPTIONAL)\b")
SENTENCE = re.compile(r"^- \*\*(TC-[DSC]-\d\d)\*\* (.+)$", re.MULTILINE)
REQUIREMENT_ID = re.compile(r"\bTC-[A-Z]-\d+\b")
CHECK_ID = re.compile(r"\btool-chaining-(?:server|client)-[a-z0-9-]*[a-z0-9]")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def read_yaml(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)


PROSE = (SPECS / "tool-chaining.md").read_text(encoding="utf-8")
SENTENCES = SENTENCE.findall(PROSE)
"""Id and text of each normative sentence, in reading order."""

REQUIREMENTS: list[dict[str, Any]] = read_yaml(SPECS / "requirements.yaml")["requirements"]


def checks_of(row: dict[str, Any]) -> list[str]:
    check = row.get("check", [])
    return [check] if isinstance(check, str) else check


CHECKS = {check for row in REQUIREMENTS for check in checks_of(row)}


def schema(name: str) -> Any:
    return read_json(CONFORMANCE / "schemas" / f"{name}.schema.json")


def code_blocks(markdown: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def normative_section(markdown: str) -> str:
    """The text under `## Specification`, up to the next heading of that level."""
    return markdown.split("\n## Specification\n")[1].split("\n## ")[0]


class Twice(Exception):
    """A member name stands twice."""


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(members)) < len(members):
        raise Twice
    return dict(members)


def strictly_read(text: str) -> Any:
    """Read JSON as I-JSON has it, numbers as doubles. Raises Twice if a name stands twice."""
    return json.loads(text, object_pairs_hook=_once, parse_int=float)


def writable(value: Any) -> bool:
    """Whether RFC 8785 can write a value: no number that is no double, no lone surrogate."""
    if isinstance(value, dict):
        return all(writable(part) for member in value.items() for part in member)
    if isinstance(value, list):
        return all(map(writable, value))
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, bool | None) or abs(value) < 2**1024
