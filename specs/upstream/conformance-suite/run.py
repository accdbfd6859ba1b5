"""Build the official conformance suite with the scenarios of this folder, and run them.

    python run.py [--source https://github.com/modelcontextprotocol/conformance]

It needs git, Node 22, npm, the network, and the Python environment of `banking-server`. All that it
makes is in a temporary folder. It ends with exit code 1 at the first thing that fails.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
TYPESCRIPT = HERE.parents[1] / "implementations" / "typescript"
SOURCE = "https://github.com/modelcontextprotocol/conformance"
COMMIT, VERSION = "c321dd32035556e6769d3724a8ee97d87c3faaac", "0.2.0-alpha.11"
"""The commit that the patch is for, and the package that was published from it."""

REVISIONS = ("2025-11-25", "2026-07-28")
FIXTURE = "test_tool_chaining"
BANK = {"BANKING_CODES": "result", "BANKING_SECRET": "for a trial, and for no other use"}
LOCKED = {"fromAccountId": "acc_checking_001", "toAccountId": "acc_savings_001", "amount": 25}


def run(*command: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return what it printed. Raises SystemExit with that if it fails."""
    words = [str(word) for word in command]
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    told, _ = process.communicate()
    with suppress(ProcessLookupError):  # The suite's own tests leave servers behind.
        os.killpg(process.pid, signal.SIGTERM)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{told[-4000:]}")
    return told


def build(source: str, folder: Path) -> Path:
    """Return the checkout of the suite with the patch: checked, built, and its own tests passed."""
    suite = folder / "suite"
    run("git", "clone", "--quiet", source, suite, cwd=folder)
    run("git", "checkout", "--quiet", COMMIT, cwd=suite)
    run("npm", "ci", "--ignore-scripts", cwd=suite)
    run("npm", "run", "build", cwd=suite)
    run("npm", "pack", f"@modelcontextprotocol/conformance@{VERSION}", cwd=folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        package.extractall(folder, filter="data")
    published = (folder / "package" / "dist" / "index.js").read_bytes()
    same = published == (suite / "dist" / "index.js").read_bytes()
    print(f"{COMMIT[:7]} builds the published {VERSION}: {'byte for byte' if same else 'NOT'}")
    if not same:
        raise SystemExit(1)
    who = {f"GIT_COMMITTER_{part}": "test@example.com" for part in ("NAME", "EMAIL")}
    run("git", "am", *sorted(HERE.glob("*.patch")), cwd=suite, env=who)
    for script in ("check", "build", "test"):
        run("npm", "run", script, cwd=suite)
        print(f"npm run {script}: passed")
    return suite


@contextmanager
def serving(command: list[object], port: int, cwd: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a server until the block ends; the block begins when it listens on the port."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, cwd=cwd, env={**os.environ, **env}, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def with_fixture(port: int, tool: str, arguments: object, token: str = "") -> Iterator[int]:
    """Stand in front of a server: a call of the fixture becomes this call of its own tool."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = json.loads(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            if message.get("params", {}).get("name") == FIXTURE:
                message["params"] |= {"name": tool, "arguments": arguments}
                body = json.dumps(message).encode()
                headers = {k: v.replace(FIXTURE, tool) for k, v in headers.items()}
            headers |= {"content-length": str(len(body)), "authorization": f"Bearer {token}"}
            server = http.client.HTTPConnection("127.0.0.1", port)
            server.request("POST", self.path, body, headers | {"host": f"127.0.0.1:{port}"})
            answer = server.getresponse()
            told = answer.read()
            self.send_response(answer.status)
            for name in ("content-type", "mcp-session-id"):
                if value := answer.headers.get(name):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            """Offer no stream of the server's own."""
            self.send_error(405)

        do_DELETE = do_GET

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as front:
        threading.Thread(target=front.serve_forever, daemon=True).start()
        yield front.server_address[1]
        front.shutdown()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(source: str, folder: Path) -> None:
    """Build, then let the scenarios judge each server and client on both revisions."""
    suite = build(source, folder)
    typescript = folder / "typescript"
    shutil.copytree(TYPESCRIPT, typescript, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(HERE / "client.ts", typescript / "examples" / "official.ts")
    run("npm", "ci", cwd=typescript)
    run("npm", "run", "check", cwd=typescript)

    def judge(who: str, *arguments: object) -> None:
        for revision in REVISIONS:
            options = ("--spec-version", revision, "--force")  # Or it leaves extensions out.
            told = run("node", "dist/index.js", *arguments, *options, cwd=suite)
            counts = re.search(r"Passed: (\d+)/\1, 0 failed, 0 warnings", told)
            print(f"{who}, {revision}: {counts[0] if counts else told}")
            if counts is None:
                raise SystemExit(1)

    def judge_server(who: str, port: int) -> None:
        url = f"http://localhost:{port}/mcp"
        judge(who, "server", "--url", url, "--scenario", "tool-chaining")

    def judge_client(who: str, *command: object) -> None:
        words = " ".join(map(str, command))
        judge(who, "client", "--command", words, "--scenario", "tool-chaining-client")

    everything = ("node", "--import", "tsx")
    client = suite / "examples" / "clients" / "typescript" / "everything-client.ts"
    judge_client("the suite's everything-client", *everything, client)
    judge_client("the Python half", sys.executable, HERE / "client.py")
    judge_client("the TypeScript half", "node", typescript / "examples" / "official.ts")

    port = free_port()
    server = "examples/servers/typescript/everything-server.ts"
    with serving([*everything, server], port, suite, {"PORT": str(port)}):
        judge_server("the suite's everything-server", port)

    port = free_port()
    shop = ["node", "examples/server.ts", "--http", port]
    order = {"sku": "bolts", "quantity": 500}
    with serving(shop, port, typescript, {}), with_fixture(port, "place_order", order) as front:
        judge_server("the shop on the TypeScript half", front)

    port = free_port()
    bank = {**BANK, "BANKING_DATABASE": str(folder / "bank.db"), "BANKING_PORT": str(port)}
    program = Path(sys.executable).with_name("banking-server")
    run(program, "database", "create", cwd=folder, env=bank)
    with serving([program, "serve", "--http"], port, folder, bank):
        token = run(program, "token", "--customer", "CUST001", cwd=folder, env=bank).strip()
        with with_fixture(port, "prepare_money_transfer", LOCKED, token) as front:
            judge_server("the bank", front)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The official suite with tool chaining.")
    parser.add_argument("--source", default=SOURCE, help="the repository of the suite, for git")
    with tempfile.TemporaryDirectory() as made:
        main(parser.parse_args().source, Path(made))
