"""The GitHub action: its steps are taken as they stand, with the inputs that a workflow gives."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ..kit.pages import block
from .support import HERE, SHOP, stdio_server

ROOT = HERE.parents[1]
ACTION = ROOT / ".github" / "actions" / "conformance"
CLIENT = [sys.executable, str(ROOT / "specs" / "examples" / "client_under_test.py")]
EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def description() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return read


def step(beginning: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = description()["runs"]["steps"]
    (found,) = [each for each in steps if each.get("name", "").startswith(beginning)]
    return found


def run_action(folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Take the step that runs the suite, as GitHub does, with the suite that is installed here."""
    known = {name: each["default"] for name, each in description()["inputs"].items()}
    chosen = known | {name.replace("_", "-"): value for name, value in given.items()}
    assert chosen.keys() == known.keys()
    values = {f"inputs.{name}": value for name, value in chosen.items()}
    values["runner.temp"] = str(folder)
    (folder / "tool-chaining-conformance").symlink_to(sys.prefix)
    running = step("Run the suite")
    variables = {
        name: EXPRESSION.sub(lambda found: values[found[1]], value)
        for name, value in running["env"].items()
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", running["run"]],
        cwd=folder,
        env={**os.environ, **variables, "GITHUB_ACTION_PATH": str(ACTION)},
        capture_output=True,
        text=True,
        timeout=120,
    )


SILENT = "    def initialize(self): return super().initialize() | {'capabilities': {'tools': {}}}"


def test_a_server_over_stdio_is_judged_and_its_reports_are_kept(tmp_path: Path) -> None:
    ran = run_action(
        tmp_path,
        command=shlex.join(map(str, stdio_server(tmp_path, SILENT))),
        scenario=f"\n{SHOP}\n",
        spec_version="2025-11-25",
        strict="true",
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "1 SHOULD is not, and --strict allows no warning" in ran.stdout
    reports = tmp_path / description()["inputs"]["report"]["default"]
    assert {path.name for path in reports.iterdir()} == {"junit.xml", "report.html", "report.json"}
    assert yaml.safe_load((reports / "report.json").read_text())["spec_versions"] == ["2025-11-25"]


@pytest.mark.ci
def test_a_client_is_judged(tmp_path: Path) -> None:
    ran = run_action(
        tmp_path,
        side="client",
        command=" ".join(CLIENT),
        arguments="--one-process\n--scenario\nfollow\n--json",
        report="kept here",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = yaml.safe_load(ran.stdout)
    assert {check["scenario"] for check in report["checks"]} == {"follow"}
    assert (tmp_path / "kept here" / "junit.xml").is_file()


def test_no_shell_reads_what_a_caller_gives(tmp_path: Path) -> None:
    ran = run_action(tmp_path, command="$(touch owned) `touch owned`; touch owned")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "cannot start '$(touch'" in ran.stdout
    assert not (tmp_path / "owned").exists()
    for each in description()["runs"]["steps"]:
        assert not EXPRESSION.search(each.get("run", ""))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"command": "shop 'now"}, "input `command`: a quotation mark is not closed"),
        ({"command": "shop \\"}, "input `command`: nothing follows its last backslash"),
        ({"strict": "yes"}, "input `strict`: must be `true` or `false`, not `yes`"),
        ({"side": "both"}, "input `side`: must be `server` or `client`, not `both`"),
        (
            {"side": "client", "header": "A=B"},
            "input `header`: is for servers only, and `side` is `client`",
        ),
    ],
    ids=str,
)
def test_a_mistake_in_the_inputs_is_one_line_and_not_a_verdict(
    tmp_path: Path, given: dict[str, str], complaint: str
) -> None:
    ran = run_action(tmp_path, **given)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"{complaint}\n")


def test_the_step_on_the_page_uses_the_action_with_its_inputs() -> None:
    [used] = yaml.safe_load(block("specs/conformance/README.md", "a step", "yaml"))
    assert used["with"].keys() <= description()["inputs"].keys()
    assert used["uses"] == f"OWNER/REPOSITORY/{ACTION.relative_to(ROOT).as_posix()}@TAG"
