"""The proxy as the client under test: a plain client in front of it follows nothing.

It is the program that the suite writes for intermediaries. The proxy is served in this process,
over streams in memory, since each run needs one of its own.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tool_chaining.rules import Rules
from tool_chaining_proxy.consent import consent_of
from tool_chaining_proxy.options import Address, ProxyOptions

from .wire import proxy_in_memory

sys.path.append(str(Path(__file__).parents[2] / "specs" / "examples"))
import proxy_under_test as example


def started(url: str, context: dict[str, Any], folder: Path) -> Any:
    """Return the proxy with the options of the command, in this process."""
    given = example.command(url, context, folder)

    def option(name: str) -> str | None:
        return given[given.index(name) + 1] if name in given else None

    token, rules, limit = context.get("bearerToken"), option("--rules"), option("--timeout")
    options = ProxyOptions(
        server=Address(url, f"Bearer {token}" if token else None),
        consent=consent_of(option("--consent"), trust_hints="--trust-hints" in given),
        **({"call_timeout": float(limit), "start_timeout": float(limit)} if limit else {}),
        rules=Rules.load(rules) if rules else None,
    )
    return proxy_in_memory(options)


example.started = started


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    revision = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    with TemporaryDirectory() as folder:
        return json.dumps(asyncio.run(example.Host(context).run(url, revision, Path(folder))))
