"""The program around the client of `client.py`, for the suite. `follow` is what differs from

tool-chaining-conformance program -o client_under_test.py

tool-chaining-conformance client --one-process -- python client_under_test.py
"""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

from mcp import Client

from banking_server.chaining import (
    CLIENT_EXTENSION,
    FollowNonDestructive,
    Proposal,
    call_tool_with_chaining,
)


@dataclass
class User:
    """The user, who answers each question as `context` says; and trusts the server's hints."""

    context: dict[str, Any]

    async def allows(self, proposal: Proposal) -> bool:
        """Allow what the server calls harmless; ask about everything else."""
        trusts = self.context.get("trustHints", True)
        if trusts and await FollowNonDestructive().allows(proposal):
            return True
        return await self.allows_again(proposal)

    async def allows_again(self, proposal: Proposal) -> bool:
        """Ask, also about what is harmless: an equal call may have taken effect already."""
        answers = self.context.get("consentByTool", {})
        answer = answers.get(proposal.tool.name, self.context["consent"])
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return bool(answer == "grant")


async def follow(url: str, revision: str, context: dict[str, Any]) -> dict[str, Any]:
    """Make the first call, let the client follow the chain, and return what its host gets."""
    mode = "legacy" if revision == "2025-11-25" else "auto"
    async with Client(url, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
        for _ in range(context.get("chains", 1)):
            chain = await call_tool_with_chaining(
                client, context["tool"], context["arguments"], consent=User(context)
            )
    if not chain.steps:
        return {"content": [], "outcome": chain.outcome}
    result = chain.merged().model_dump(by_alias=True, exclude_none=True, mode="json")
    follow_ups = [{"tool": each.tool, "fate": each.status} for each in chain.follow_ups]
    return {**result, "outcome": chain.outcome, "followUps": follow_ups}


def run(url: str, revision: str, context: dict[str, Any]) -> None:
    """Make one run, and print its result as one line of JSON."""
    print(json.dumps(asyncio.run(follow(url, revision, context))), flush=True)


def main() -> None:
    """Make the run that the variables describe, or one for each line of standard input."""
    if os.environ.get("MCP_CONFORMANCE_RUNS") == "stdin":  # With --one-process: a run on each line.
        for line in sys.stdin:
            told = json.loads(line)
            run(told["url"], told["protocolVersion"], told["context"])
    else:
        revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
        run(sys.argv[-1], revision, json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"]))


if __name__ == "__main__":
    main()
