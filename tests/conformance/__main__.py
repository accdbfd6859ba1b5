"""Judges the implementations of this repository, and shows them on one page.

    python -m tests.conformance conformance.html

It needs the packages of `specs/typescript` (`npm ci`). The exit code is 1 if one of them is not
conformant.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mcp

from tool_chaining_conformance.report.json import report_json
from tool_chaining_conformance.report.page import page_of
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.report import Report
from tool_chaining_conformance.target.era import Era

from ..kit.pages import ROOT
from ..kit.servers import served_by
from ..proxy import proxied_client
from . import project_client
from .node_project import TYPESCRIPT, missing, node
from .support import HERE, examine_program, suite
from .test_this_project import BANKING, over_http
from .test_typescript_implementation import copied, judged_client

PATCHES = (ROOT / "specs" / "upstream" / "python-sdk").glob("*.patch")


def reports(folder: Path) -> Iterator[tuple[str, Any]]:
    """Judge each implementation, and return its name and report."""
    yield "Python bank", over_http(folder, BANKING).report
    yield "Python library", of_client(project_client.run_once)
    yield "Proxy", of_client(proxied_client.run_once)
    yield "Python SDK with the hook", on_the_hook(folder)
    project = copied(folder)
    with served_by(str(node()), str(project / "examples" / "server.ts"), "--http") as url:
        scenario = project / "examples" / "shop.yaml"
        run = suite("server", "--url", url, "--scenario", scenario, "--json")
    yield "TypeScript server", run.report
    yield "TypeScript client", judged_client(project).report


def of_client(run_once: Callable[[str, Mapping[str, str]], str]) -> Any:
    """Judge a client that is run in this process."""
    run = examine_program(run_once, list(Era))
    command = {"command": ["python", "-m", run_once.__module__]}
    return json.loads(report_json(Report.on(run, command, Redaction())))


def on_the_hook(folder: Path) -> Any:
    """Judge the client on a copy of the installed SDK with the patch."""
    patched = folder / "patched"
    shutil.copytree(Path(mcp.__file__).parent, patched / "mcp")
    for patch in PATCHES:
        words = ("git", "apply", "-p2", "--include=mcp/*", patch)
        subprocess.run(words, cwd=patched, check=True)
    path = os.pathsep.join([str(patched), *filter(None, [os.environ.get("PYTHONPATH")])])
    client = (sys.executable, HERE / "hooked_client.py")
    ended = suite(
        *("client", "--one-process", "--json", "--", *client), environment={"PYTHONPATH": path}
    )
    return ended.report


def main(output: Path) -> int:
    if lacking := missing("typescript", TYPESCRIPT):
        sys.exit(lacking)
    judged = []
    # The clients of this process report each call on standard error, which nobody needs here.
    with TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        for name, report in reports(Path(folder)):
            print(f"{name}: {report['verdict']}", flush=True)
            judged.append((name, report))
    output.write_text(page_of(judged), encoding="utf-8")
    return int(any(report["verdict"] != "conformant" for _, report in judged))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
