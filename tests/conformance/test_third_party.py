"""Against what nobody here wrote: a server on FastMCP, as it is and with our middleware."""

import importlib.util
import sys

import pytest

from banking_server.conformance.target.era import Era

from .support import HERE, served_by, suite

pytestmark = pytest.mark.needs_program(
    None if importlib.util.find_spec("fastmcp") else "FastMCP is not installed: pip install fastmcp"
)

OWED = {
    # FastMCP knows nothing of the extension, so what only the extension can do is not done.
    "tool-chaining-server-advertises-in-discover",
    "tool-chaining-server-advertises-in-initialize",
    "tool-chaining-server-names-next-tool-in-text",
}


@pytest.mark.parametrize(("options", "warned"), [([], OWED), (["--chaining"], set())])
def test_fastmcp_as_server(options: list[str], warned: set[str]) -> None:
    with served_by(sys.executable, str(HERE / "fastmcp_server.py"), *options) as url:
        run = suite("server", "--url", url, "--scenario", HERE / "fastmcp_shop.yaml", "--json")
    assert run.code == 0, run.output
    assert run.report["spec_versions"] == list(Era)
    checks = run.report["checks"]
    assert {check["id"] for check in checks if check["status"] == "WARNING"} == warned
