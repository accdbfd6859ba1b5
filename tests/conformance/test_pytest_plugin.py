"""The checks of a server as tests of pytest, in a folder that has no tests of its own."""

import io
import os
import re
import shutil
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from .server_mutants import SERVER_MUTANTS
from .small_server import SmallServer
from .support import SERVER_COMMAND, SHOP, serving


def judged(folder: Path, server: str, *options: str) -> tuple[int, str]:
    """Run pytest in an empty folder, in this process; return its exit code and what it printed."""
    shutil.copy(SHOP, folder / "shop.yaml")
    plugin = ("-p", "tool_chaining_conformance.pytest_plugin", "--chaining-server", server)
    alone = mock.patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    printed = io.StringIO()
    with chdir(folder), alone, redirect_stdout(printed), redirect_stderr(printed):
        code = pytest.main(["-p", "no:cacheprovider", "-rs", *plugin, *options])
    return int(code), printed.getvalue()


def test_a_conforming_server(tmp_path: Path) -> None:
    code, output = judged(tmp_path, " ".join(SERVER_COMMAND), "--chaining-scenario", "shop.yaml")
    assert code == 0, output
    assert re.search(r"\d\d passed, 3 skipped in", output)
    assert "no step is about an intermediary" in output


@pytest.mark.ci
def test_workers_share_one_run(tmp_path: Path) -> None:
    program, started = tmp_path / "server.py", tmp_path / "started"
    program.write_text(
        f"import runpy\nopen({str(started)!r}, 'a').write('x')\n"
        f"runpy.run_path({SERVER_COMMAND[-1]!r}, run_name='__main__')\n"
    )
    counts = []
    for workers in ("0", "2"):
        started.unlink(missing_ok=True)
        options = ("--chaining-scenario", "shop.yaml", "-p", "xdist.plugin", "-n", workers)
        code, output = judged(tmp_path, f"{sys.executable} {program}", *options)
        assert code == 0, output
        counts.append(len(started.read_text()))
    assert counts[0] == counts[1]


def test_a_failed_check_is_a_failed_test_and_a_warning_a_passed_one(tmp_path: Path) -> None:
    class AlsoSilent(SERVER_MUTANTS["names-unlisted-tool"]):  # type: ignore[misc]
        def discover(self) -> dict[str, Any]:
            return {**super().discover(), "capabilities": {"tools": {}}}

    with serving(AlsoSilent()) as url:
        chosen = ("-k", "names-listed-tool or advertises")
        code, output = judged(tmp_path, url, "--chaining-scenario", "shop.yaml", *chosen)
    assert code == 1, output
    assert "1 failed, 1 passed, " in output
    assert re.search(r"notifyTeam[^$]*change    ", output)
    assert re.search(r"UserWarning: .*extensions", output)
    with serving(AlsoSilent()) as url:
        strict = ("-W", "error::UserWarning", *chosen)
        _, output = judged(tmp_path, url, "--chaining-scenario", "shop.yaml", *strict)
    assert "2 failed, " in output


def test_what_was_not_exercised_is_a_skip_but_the_verdict_is_not(tmp_path: Path) -> None:
    with serving(SmallServer()) as url:
        code, output = judged(tmp_path, url)
    assert code == 1, output
    assert "1 failed, 3 passed, 19 skipped" in output
    assert "inconclusive: 17 checks of a MUST could not be made" in output
    assert "there is no scenario file, which says how to exercise this server" in output
    code, output = judged(tmp_path, f"{sys.executable} -c 'exit(7)'")
    assert code == 1
    assert "ended with exit code 7" in output
    assert " passed" not in output
    code, output = judged(tmp_path, "x", "--chaining-scenario", "none.yaml")
    assert code == 4
    assert "none.yaml: cannot be read" in output
