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

HERE = Path(__file__).parent
ORIGIN = "IBM/ibm-watsonx-orchestrate-adk", "957b3e354ea0aa34d629c39ed2184697a88dc3d9"
BANK = "examples/experimental/agent_builder/customer_care_style/toolkits/banking_mcp_server"
SESSION = '{"userId": "1", "username": "demo", "numericId": "1", "accessToken": "-"}'
"""A session of discogs-mcp, which needs no account as long as nothing is asked of Discogs."""


@dataclass
class Server:
    """A server as its project has it, and how its own page installs and starts it."""

    name: str
    repository: str
    commit: str
    folder: str
    install: str
    start: str
    path: str = "/mcp"


SERVERS = (
    Server(
        *("origin-typescript", *ORIGIN, f"{BANK}/ts_server"),
        # Its lock file lacks a package, so `npm ci` refuses it.
        install="npm install --ignore-scripts",
        start="npm run dev",
    ),
    Server(
        *("origin-python", *ORIGIN, f"{BANK}/py_server"),
        # It asks for `mcp>=1.0.0` and is written for version 1.
        install=f"{sys.executable} -m venv .venv && .venv/bin/pip install --quiet . 'mcp<2'",
        start=".venv/bin/python -m src.main",
    ),
    Server(
        *("discogs-mcp", "rianvdm/discogs-mcp", "92cfb0cac5706e8d4307faeedd3f42eedf2c10ed", "."),
        install="npm ci --ignore-scripts && npm run postinstall && npx wrangler kv key put --local "
        f"--binding MCP_SESSIONS session:demo '{SESSION}'",
        start="npx wrangler dev --ip 127.0.0.1 --port $PORT",
        path="/mcp?session_id=demo",
    ),
)


def run(command: str, folder: Path) -> None:
    """Run a command of the shell; a failure ends the program with all that it wrote."""
    ran = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{command} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")


@contextmanager
def started(server: Server, folder: Path) -> Iterator[str]:
    """Start the server on a free port, and yield its URL once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    env = {**os.environ, "HOST": "127.0.0.1", "PORT": str(port), "CI": "1"}
    log = folder / "server.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            server.start, shell=True, cwd=folder, env=env, stdout=out, stderr=out, process_group=0
        )
    try:
        for _ in range(240):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.25)
        else:
            sys.exit(f"{server.name} does not listen:\n{log.read_text()}")
        yield f"http://127.0.0.1:{port}{server.path}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def judged(server: Server, folder: Path) -> tuple[str, str]:
    """Start the server; return the suite's verdict, and the checks that found a fault."""
    scenario = HERE / f"{server.name}.yaml"
    suite = (sys.executable, "-m", "tool_chaining_conformance", "server", "--json")
    with started(server, folder) as url:
        command = [*suite, "--scenario", str(scenario), "--url", url]
        ran = subprocess.run(command, capture_output=True, text=True)
    if not ran.stdout:
        sys.exit(f"{server.name} was not judged: {ran.stderr}")
    report = json.loads(ran.stdout)
    found = {each["id"] for each in report["checks"] if each["status"] in ("FAILURE", "WARNING")}
    return report["verdict"], ", ".join(sorted(found)) or "nothing"


def adopted(server: Server, clone: Path) -> None:
    """Judge the server as it is and with the diff."""
    owner, name = server.repository.split("/")
    origin = os.environ.get("ADOPTING_FROM", "https://github.com/{owner}/{name}")
    url = origin.format(owner=owner, name=name)
    run(f"git init --quiet && git fetch --quiet --depth=1 '{url}' {server.commit}", clone)
    run("git checkout --quiet FETCH_HEAD", clone)
    folder = clone / server.folder
    run(server.install, folder)
    verdict, found = judged(server, folder)
    print(f"{server.name} is {verdict}; found: {found}", flush=True)
    run(f"git apply '{HERE / server.name}.diff'", clone)
    outcome = judged(server, folder)
    print(f"{server.name} with the diff is {outcome[0]}; found: {outcome[1]}", flush=True)
    if found == "nothing" or outcome != ("conformant", "nothing"):
        sys.exit(f"{server.name}: something is to be found before the diff, and nothing after it.")


if __name__ == "__main__":
    for each in SERVERS:
        with TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            adopted(each, Path(scratch))
