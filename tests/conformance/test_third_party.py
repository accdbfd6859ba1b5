"""Against what nobody here wrote: FastMCP as server and as client (the extra `[test]`)."""

import asyncio
import importlib.util
import sys
from collections.abc import Mapping

import pytest

from banking_server.conformance.client.evidence import ClientEnd
from banking_server.conformance.client.run import run_client
from banking_server.conformance.target.era import Era

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
