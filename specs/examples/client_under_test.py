"""The program around a client that follows chains, for the conformance suite.

    tool-chaining-conformance client --one-process -- python client_under_test.py

A context holds more: see `specs/conformance/README.md`. What a program does not know it ignores.
"""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client

from tool_chaining import CLIENT_EXTENSION, Proposal, call_tool_with_chaining


class User:
    """The user of one run, who is asked before each follow-up call."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def allows(self, proposal: Proposal) -> bool:
        """Answer as the context of the run says."""
        return self.answer == "grant"


async def follow(url: str, revision: str, context: dict[str, Any]) -> dict[str, Any]:
    """Make the first call, follow the chain, and return the one result that a host gets."""
    mode = "legacy" if revision == "2025-11-25" else "auto"
    async with Client(url, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
        chain = await call_tool_with_chaining(
            client, context["tool"], context["arguments"], consent=User(context["consent"])
        )
    merged = chain.merged().model_dump(by_alias=True, exclude_none=True, mode="json")
    return {**merged, "outcome": chain.outcome}


def run(url: str, revision: str, context: dict[str, Any]) -> None:
    """Make one run, and print its result as one line of JSON."""
    print(json.dumps(asyncio.run(follow(url, revision, context))), flush=True)


if os.environ.get("MCP_CONFORMANCE_RUNS") == "stdin":  # With --one-process: a run on each line.
    for line in sys.stdin:
        told = json.loads(line)
        run(told["url"], told["protocolVersion"], told["context"])
else:
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    run(sys.argv[-1], version, json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"]))
