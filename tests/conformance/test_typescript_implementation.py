"""The implementation in TypeScript, from the text alone: its own tests, and the suite's verdict."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tool_chaining_conformance.target.era import Era

from ..kit.servers import served_by
from .node_project import TYPESCRIPT, missing, node
from .support import Ended, suite

SPECS = Path(__file__).parents[2] / "specs"
SOURCE = SPECS / "typescript"

needs_node = pytest.mark.needs_program(missing("typescript", TYPESCRIPT))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("copied"))


def copied(to: Path) -> Path:
    """Return a copy of its folder and of the vectors, where its packages are to be found."""
    folder = to / SOURCE.relative_to(SPECS)
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("node_modules"))
    (to / "conformance").mkdir()
    shutil.copy(SPECS / "conformance" / "directives.json", to / "conformance")
    (folder / "node_modules").symlink_to((TYPESCRIPT / "node_modules").resolve())
    return folder


def ran(project: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script of its `package.json`, as npm does."""
    command = [str(node()), "--run", script]
    env = os.environ | {"PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)


@needs_node
def test_its_types_and_the_snippets_of_its_readme(project: Path) -> None:
    checked = ran(project, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    readme = project / "README.md"
    readme.write_text(readme.read_text("utf-8").replace(": CallToolResult =", " ="), "utf-8")
    assert "TS2345" in ran(project, "check").stdout


@needs_node
def test_its_own_tests(project: Path) -> None:
    tested = ran(project, "test")
    assert tested.returncode == 0, tested.stdout + tested.stderr


@needs_node
def test_its_package_in_an_empty_folder(project: Path) -> None:
    packed = ran(project, "check-package")
    assert packed.returncode == 0, packed.stdout + packed.stderr


def conformant(run: Ended, eras: list[Era]) -> None:
    assert run.code == 0, run.output
    assert run.report["verdict"] == "conformant", run.output
    assert run.report["spec_versions"] == eras
    assert {check["status"] for check in run.report["checks"]} <= {"SUCCESS", "SKIPPED"}


def judged_client(project: Path, *options: str, sdk: str = "2") -> Ended:
    command = [node(), project / "examples" / "client-under-test.ts", "--sdk", sdk]
    return suite("client", "--one-process", *options, "--json", "--", *command)


@needs_node
@pytest.mark.parametrize("era", [Era.MODERN, pytest.param(Era.LEGACY, marks=pytest.mark.nightly)])
def test_its_client(project: Path, era: Era) -> None:
    conformant(judged_client(project, "--spec-version", era), [era])


@needs_node
def test_its_client_on_version_1_of_the_sdk(project: Path) -> None:
    """In the era that this version speaks; the cases are about what it does differently."""
    options = ("--scenario", "follow", "--scenario", "lists", "--spec-version", Era.LEGACY)
    conformant(judged_client(project, *options, sdk="1"), [Era.LEGACY])


@needs_node
def test_its_server_over_stdio(project: Path) -> None:
    """In one era: in the other it takes a process for each declaration."""
    scenario = project / "examples" / "shop.yaml"
    command = [node(), project / "examples" / "server.ts"]
    run = suite(
        *("server", "--scenario", scenario, "--spec-version", Era.MODERN, "--json"), "--", *command
    )
    conformant(run, [Era.MODERN])


@needs_node
def test_its_server_over_http(project: Path) -> None:
    scenario = project / "examples" / "shop.yaml"
    with served_by(str(node()), str(project / "examples" / "server.ts"), "--http") as url:
        conformant(suite("server", "--url", url, "--scenario", scenario, "--json"), list(Era))
