"""This project's client under test: the program that the suite writes."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "specs" / "examples"))
import client_under_test as example


def run_once(url: str, environment: Mapping[str, str]) -> str:
    """Make one run, as the variables say it, and return what is printed."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    revision = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    return json.dumps(asyncio.run(example.follow(url, revision, context)))


if __name__ == "__main__":
    example.main()
