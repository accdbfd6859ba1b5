"""What is ready for others: each script runs as its receiver would run it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .files import SENTENCES, SPECS

UPSTREAM = SPECS / "upstream"
SUITE = UPSTREAM / "conformance-suite"
SOURCE = os.environ.get("MCP_CONFORMANCE_SOURCE")
"""A copy of the official suite's repository, for machines that do not reach its home."""


def test_the_traceability_file_has_each_sentence_word_for_word() -> None:
    (patch,) = SUITE.glob("*.patch")
    added = patch.read_text("utf-8").split("+++ b/src/seps/sep-0000.yaml\n")[1].split("\ndiff ")[0]
    lines = [line[1:] for line in added.splitlines() if line.startswith("+")]
    rows = yaml.safe_load("\n".join(lines))["requirements"]
    assert {row["text"] for row in rows} == {text for _, text in SENTENCES}
    assert all(("check" in row) != ("excluded" in row) for row in rows)


@pytest.mark.nightly
def test_the_official_suite_judges_both_halves(tmp_path: Path) -> None:
    source = ["--source", SOURCE] if SOURCE else []
    if not SOURCE:
        home = "https://github.com/modelcontextprotocol/conformance"
        if subprocess.run(["git", "ls-remote", home], capture_output=True).returncode != 0:
            pytest.skip(f"need {home}, or a copy of it in MCP_CONFORMANCE_SOURCE")
    if shutil.which("npm") is None:
        pytest.skip("need Node 22 and npm")
    command = [sys.executable, str(SUITE / "run.py"), *source]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
