"""The implementation in TypeScript, from the text alone: its own tests, and the suite's verdict."""

import shutil
import subprocess
from pathlib import Path

import pytest

from banking_server.conformance.target.era import Era

from .node_project import TYPESCRIPT, missing, node
from .support import Ended, served_by, suite

SPECS = Path(__file__).parents[2] / "specs"
SOURCE = SPECS / "implementations" / "typescript"

pytestmark = pytest.mark.needs_program(missing("typescript", TYPESCRIPT))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of its folder, beside the vectors, where its packages are to be found."""
    specs = tmp_path_factory.mktemp("specs")
    (specs / "conformance").mkdir()
    shutil.copy(SPECS / "conformance" / "directives.json", specs / "conformance")
    folder = specs / "implementations" / "typescript"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to((TYPESCRIPT / "node_modules").resolve())
    return folder


def in_node(project: Path, *arguments: str) -> None:
    command = [str(node()), *arguments]
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_its_types(project: Path) -> None:
    in_node(project, "node_modules/typescript/bin/tsc")


def test_its_own_tests(project: Path) -> None:
    in_node(project, "--test", "tests/*.test.ts")


def conformant(run: Ended, eras: list[Era]) -> None:
    assert run.code == 0, run.output
    assert run.report["verdict"] == "conformant", run.output
    assert run.report["spec_versions"] == eras
    assert {check["status"] for check in run.report["checks"]} <= {"SUCCESS", "SKIPPED"}


def judged_client(project: Path, *options: str, sdk: str = "2") -> Ended:
    command = [node(), project / "examples" / "client-under-test.ts", "--sdk", sdk]
    return suite("client", "--one-process", *options, "--json", "--", *command)


def test_its_client(project: Path) -> None:
    conformant(judged_client(project), list(Era))


def test_its_client_on_version_1_of_the_sdk(project: Path) -> None:
    """In the era that this version speaks; the cases are about what it does differently."""
    options = ("--scenario", "follow", "--scenario", "lists", "--spec-version", Era.LEGACY)
    conformant(judged_client(project, *options, sdk="1"), [Era.LEGACY])


def test_its_server_over_stdio(project: Path) -> None:
    """In one era: in the other it takes a process for each declaration."""
    scenario = project / "examples" / "shop.yaml"
    command = [node(), project / "examples" / "server.ts"]
    run = suite(
        *("server", "--scenario", scenario, "--spec-version", Era.MODERN, "--json"), "--", *command
    )
    conformant(run, [Era.MODERN])


def test_its_server_over_http(project: Path) -> None:
    scenario = project / "examples" / "shop.yaml"
    with served_by(str(node()), str(project / "examples" / "server.ts"), "--http") as url:
        conformant(suite("server", "--url", url, "--scenario", scenario, "--json"), list(Era))
