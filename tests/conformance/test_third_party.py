"""Against things that nobody here wrote: FastMCP as server and as client, the TypeScript SDK.

FastMCP comes with the extra `[test]`. The TypeScript SDK needs Node 22 and what
`tests/node/package.json` names.
"""

import asyncio
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.run import run_client
from banking_server.conformance.target.era import Era

from .node_project import MODULES, missing, node
from .support import HERE, Ended, all_checks, scripts, served_by, statuses, suite

fastmcp = pytest.mark.needs_program(
    None if importlib.util.find_spec("fastmcp") else "FastMCP is not installed: pip install fastmcp"
)
SHOP = HERE / "fastmcp_shop.yaml"
SERVER = [sys.executable, str(HERE / "fastmcp_server.py")]

OWED = {
    # FastMCP knows nothing of the extension, so what only the extension can do is not done.
    "tool-chaining-server-advertises-in-discover",
    "tool-chaining-server-advertises-in-initialize",
    "tool-chaining-server-names-next-tool-in-text",
}


@fastmcp
@pytest.mark.nightly
def test_fastmcp_as_server_over_stdio() -> None:
    """In one era: in the other it takes a process for each declaration, of three seconds each."""
    one_era = ("--spec-version", Era.MODERN)
    run = suite("server", "--scenario", SHOP, *one_era, "--json", "--", *SERVER)
    assert run.code == 0, run.output
    assert warned(run) == OWED - {"tool-chaining-server-advertises-in-initialize"}


def warned(run: Ended) -> set[str]:
    return {check["id"] for check in run.report["checks"] if check["status"] == "WARNING"}


@fastmcp
def test_fastmcp_as_server_over_http() -> None:
    with served_by(*SERVER) as url:
        run = suite("server", "--url", url, "--scenario", SHOP, "--json")
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    assert warned(run) == OWED


@fastmcp
@pytest.mark.nightly
def test_fastmcp_as_server_with_the_middleware() -> None:
    with served_by(*SERVER, "--chaining") as url:
        run = suite("server", "--url", url, "--scenario", SHOP, "--json")
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    assert warned(run) == set()


@fastmcp
@pytest.mark.nightly
@pytest.mark.parametrize("era", [Era.MODERN, Era.LEGACY])
def test_fastmcp_as_client(era: Era) -> None:
    from .fastmcp_client import follow

    def run_once(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
        return ClientEnd(0, asyncio.run(follow(url, environment)), "")

    run = run_client(run_once, scripts(), [era], all_checks("client"), 30, lambda what: None)
    judged = statuses(run.judgements)
    assert {check: status for check, status in judged.items() if status != "SUCCESS"} == {}


@pytest.mark.needs_program(missing("@modelcontextprotocol/sdk"))
def test_the_typescript_sdk_as_client(tmp_path: Path) -> None:
    # Node looks for packages beside the script, not beside the one who starts it.
    script = tmp_path / "client.mjs"
    script.write_text((HERE / "typescript_client.mjs").read_text())
    (tmp_path / "node_modules").symlink_to(MODULES.resolve())
    chosen = [
        "tool-chaining-client-follows-directive",
        "tool-chaining-client-passes-arguments-exactly",
        "tool-chaining-client-accepts-name-alias",
        "tool-chaining-client-ignores-conflicting-alias",
        "tool-chaining-client-unknown-tool-not-called",
        "tool-chaining-client-cycle-not-followed",
        "tool-chaining-client-limits-chain",
        "tool-chaining-client-sends-provenance",
    ]
    options = [part for check in chosen for part in ("--check", check)]
    run = suite("client", *options, "--json", "--", node(), script)
    assert run.code == 0, run.output
    # This SDK speaks the earlier era only, which is allowed.
    assert run.report["spec_versions"] == ["2025-11-25"]
    judged = {(check["spec_version"], check["status"]) for check in run.report["checks"]}
    assert judged == {("2025-11-25", "SUCCESS"), ("2026-07-28", "SKIPPED")}
