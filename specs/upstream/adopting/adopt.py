"""Make servers of other people conformant: fetch, apply the diff, start, judge; before and after.

    python specs/upstream/adopting/adopt.py

Needs git, Node, npm, and the network. `ADOPTING_FROM` says where to clone from, in place of
`https://github.com/{owner}/{name}`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
BANK = "examples/experimental/agent_builder/customer_care_style/toolkits/banking_mcp_server"
SESSION = (
    "--binding=MCP_SESSIONS",
    "session:demo",
    '{"userId": "1", "username": "demo", "numericId": "1", "accessToken": "-"}',
)
"""A session of discogs-mcp, which needs no account as long as nothing is asked of Discogs."""


@dataclass
class Server:
    """A server as its project has it, and how its own page starts it."""

    name: str
    repository: str
    commit: str
    prepare: tuple[tuple[str, ...], ...]
    start: tuple[str, ...]
    folder: str = "."
    path: str = "/mcp"


SERVERS = (
    Server(
        name="origin-typescript",
        repository="IBM/ibm-watsonx-orchestrate-adk",
        commit="957b3e354ea0aa34d629c39ed2184697a88dc3d9",
        folder=f"{BANK}/ts_server",
        # Its lock file lacks a package, so `npm ci` refuses it.
        prepare=(("npm", "install", "--ignore-scripts"),),
        start=("npm", "run", "dev"),
    ),
    Server(
        name="origin-python",
        repository="IBM/ibm-watsonx-orchestrate-adk",
        commit="957b3e354ea0aa34d629c39ed2184697a88dc3d9",
        folder=f"{BANK}/py_server",
        # It asks for `mcp>=1.0.0` and is written for version 1.
        prepare=(
            (sys.executable, "-m", "venv", ".venv"),
            (".venv/bin/pip", "install", "--quiet", ".", "mcp<2"),
        ),
        start=(".venv/bin/python", "-m", "src.main"),
    ),
    Server(
        name="discogs-mcp",
        repository="rianvdm/discogs-mcp",
        commit="92cfb0cac5706e8d4307faeedd3f42eedf2c10ed",
        prepare=(
            ("npm", "ci", "--ignore-scripts"),
            ("npm", "run", "postinstall"),
            ("npx", "wrangler", "kv", "key", "put", "--local", *SESSION),
        ),
        start=("npx", "wrangler", "dev", "--ip", "127.0.0.1", "--port"),
        path="/mcp?session_id=demo",
    ),
)


def run(*command: object, cwd: Path) -> str:
    """Run a command and return its output; a failure ends the program with all of it."""
    words = [str(word) for word in command]
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=500)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


@contextmanager
def started(server: Server, folder: Path) -> Iterator[str]:
    """Start the server on a free port, and yield its URL once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [*server.start, port] if server.start[-1] == "--port" else [*server.start]
    env = {**os.environ, "HOST": "127.0.0.1", "PORT": port, "CI": "1"}
    with (folder / "server.log").open("w+") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
        try:
            for _ in range(240):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                        break
                time.sleep(0.25)
            else:
                sys.exit(f"{server.name} does not listen:\n{(folder / 'server.log').read_text()}")
            yield f"http://127.0.0.1:{port}{server.path}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)


def judged(server: Server, folder: Path) -> tuple[str, list[str]]:
    """Start the server; return the suite's verdict, and the checks that found a fault."""
    suite = [sys.executable, "-m", "banking_server.conformance", "server", "--json", "--scenario"]
    with started(server, folder) as url:
        ran = subprocess.run(
            [*suite, str(HERE / f"{server.name}.yaml"), "--url", url],
            capture_output=True, text=True, timeout=500,
        )  # fmt: skip
    if not ran.stdout:
        sys.exit(f"{server.name} was not judged: {ran.stderr}")
    report: dict[str, Any] = json.loads(ran.stdout)
    bad = {each["id"] for each in report["checks"] if each["status"] in ("FAILURE", "WARNING")}
    return report["verdict"], sorted(bad)


def adopted(server: Server, clone: Path) -> str:
    """Judge the server as it is and with the diff; return what became of it."""
    owner, name = server.repository.split("/")
    origin = os.environ.get("ADOPTING_FROM", "https://github.com/{owner}/{name}")
    run("git", "init", "--quiet", clone, cwd=HERE)
    url = origin.format(owner=owner, name=name)
    run("git", "fetch", "--quiet", "--depth=1", url, server.commit, cwd=clone)
    run("git", "checkout", "--quiet", "FETCH_HEAD", cwd=clone)
    folder = clone / server.folder
    for command in server.prepare:
        run(*command, cwd=folder)
    verdict, before = judged(server, folder)
    diff = HERE / f"{server.name}.diff"
    run("git", "apply", diff, cwd=clone)
    print(f"{server.name}: {verdict}, with faults: {', '.join(before)}", flush=True)
    verdict, after = judged(server, folder)
    if not before or verdict != "conformant" or after:
        sys.exit(f"{server.name} with the diff: {verdict}, with faults: {', '.join(after)}")
    return f"{server.name} with the diff: conformant, without a fault"


if __name__ == "__main__":
    for each in SERVERS:
        with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            print(adopted(each, Path(scratch) / "clone"), flush=True)
