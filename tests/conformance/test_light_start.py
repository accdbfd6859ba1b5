"""The command starts with what it needs and no more: said without a clock, by what it loads."""

import json
import subprocess
import sys

import pytest

LOADED = """
import json, sys
sys.argv[0] = "tool-chaining-conformance"
from banking_server.conformance.cli import main
try:
    main()
finally:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""
HEAVY = {
    *("pydantic", "jsonschema", "referencing", "httpx2", "yaml"),
    *("mcp", "mcp_types", "starlette", "uvicorn", "sqlalchemy", "openai"),
}


def loaded_by(*arguments: str) -> tuple[str, set[str]]:
    """Run the command in a process of its own; return its output and the packages it loaded."""
    command = [sys.executable, "-c", LOADED, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout, set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_what_needs_nothing_loads_nothing(argument: str) -> None:
    output, loaded = loaded_by(argument)
    assert "tool-chaining" in output
    assert "typer" in loaded
    assert loaded & HEAVY == set()
