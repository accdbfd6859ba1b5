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


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def read_yaml(path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def schema(name: str) -> Any:
    return read_json(CONFORMANCE / "schemas" / f"{name}.schema.json")


def code_blocks(markdown: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)
