"""The program around a client that follows chains, for the conformance suite.

    tool-chaining-conformance client --one-process -- python client_under_test.py

Replace `follow` and `User` by your client. A context has more members: `Your client` in
`specs/conformance/README.md` names them. What a program does not know it ignores.
"""

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client

from tool_chaining import CLIENT_EXTENSION, ConsentPolicy, Follower, Proposal


async def follow(url: str, revision: str, context: dict[str, Any]) -> dict[str, Any]:
    """Make the first call, let the client follow the chain, and return what its host gets.

    Return a result however the chain ends: an exception counts as a crash. Without any result,
    return {"content": [], "outcome": "failed"}.
    """
    mode = "legacy" if revision == "2025-11-25" else "auto"
    async with Client(url, mode=mode, extensions=[CLIENT_EXTENSION]) as client:
        follower = Follower(client, consent=User(context))
        for call in (context, *context.get("furtherCalls", ())):
            chain = await follower.call_tool(call["tool"], call["arguments"])
    return {**chain.merged_json(), "outcome": chain.outcome}


class User(ConsentPolicy):
    """The user of one run, who is asked before each follow-up call."""

    def __init__(self, context: dict[str, Any]) -> None:
        self.answers = context.get("consentByTool", {})
        self.otherwise = context["consent"]

    async def allows(self, proposal: Proposal) -> bool:
        """Answer as the context of the run says."""
        answer = self.answers.get(proposal.tool.name, self.otherwise)
        if isinstance(answer, list):  # One for each question.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer == "grant"

    allows_again = allows


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
