"""What is ready for others: each script runs as its receiver would run it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .files import SENTENCES, SPECS

UPSTREAM = SPECS / "upstream"
SUITE = UPSTREAM / "conformance-suite"
PROPOSAL = UPSTREAM / "proposal" / "make.py"
TEMPLATE = [
    "Abstract",
    "Motivation",
    "Specification",
    "Rationale",
    "Backward Compatibility",
    "Security Implications",
    "Reference Implementation",
    "Open Questions",
    "Acknowledgments",
]


def test_the_traceability_file_has_each_sentence_word_for_word() -> None:
    (patch,) = SUITE.glob("*.patch")
    added = patch.read_text("utf-8").split("+++ b/src/seps/sep-0000.yaml\n")[1].split("\ndiff ")[0]
    lines = [line[1:] for line in added.splitlines() if line.startswith("+")]
    rows = yaml.safe_load("\n".join(lines))["requirements"]
    assert {row["text"] for row in rows} == {text for _, text in SENTENCES}
    assert all(("check" in row) != ("excluded" in row) for row in rows)


def run(variable: str, home: str, *command: object) -> None:
    """Run a script with a copy of the receiver's repository, if one can be had."""
    copy = os.environ.get(variable)
    if not copy and subprocess.run(["git", "ls-remote", home], capture_output=True).returncode:
        pytest.skip(f"need {home}, or a copy of it in {variable}")
    if shutil.which("npm") is None:
        pytest.skip("need Node 22 and npm")
    words = [sys.executable, *map(str, command), "--source", copy or home]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.nightly
def test_the_official_suite_judges_both_halves() -> None:
    home = "https://github.com/modelcontextprotocol/conformance"
    run("MCP_CONFORMANCE_SOURCE", home, SUITE / "run.py")


def test_the_proposal_has_the_template_and_is_short(tmp_path: Path) -> None:
    made = tmp_path / "0000-tool-chaining.md"
    subprocess.run([sys.executable, PROPOSAL, made], check=True)
    text = made.read_text("utf-8")
    assert re.findall("^## (.+)$", text, re.MULTILINE) == TEMPLATE
    assert len(text.splitlines()) <= 200
    # The text itself is in the extension's repository.
    assert not [name for name, _ in SENTENCES if f"**{name}**" in text]
    assert "](#" not in text


@pytest.mark.nightly
def test_the_repository_of_the_protocol_takes_the_proposal(tmp_path: Path) -> None:
    home = "https://github.com/modelcontextprotocol/modelcontextprotocol"
    made = tmp_path / "0000-tool-chaining.md"
    run("MCP_PROTOCOL_SOURCE", home, PROPOSAL, made, "--check")
    # Its tables are laid out as that repository wants them.
    assert re.search(r"^\| What {10,}\| Verdict ", made.read_text("utf-8"), re.MULTILINE)
