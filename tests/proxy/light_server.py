"""A server over stdio that starts at once, since it knows no SDK: for tests of its processes.

`python light_server.py [2025-11-25]`: it speaks both revisions, or that one alone.
"""

import json
import os
import sys
from typing import Any

from wrong_server import NEW, OLD, greeting


def note(line: str) -> None:
    if path := os.environ.get("STRANGE_NOTES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def who() -> dict[str, Any]:
    """Which process answers, and what it was told when it was started."""
    told = {
        "pid": os.getpid(),
        "secret": os.environ.get("MCP_TOKEN"),
        "environment": os.environ.get("STRANGE_SETTING"),
    }
    return {"result": {"resultType": "complete", "content": [], "structuredContent": told}}


slow: dict[Any, str] = {}
"""The calls that end when they are cancelled, or the input ends."""
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/cancelled" and params["requestId"] in slow:
        note(f"cancelled {slow.pop(params['requestId'])}")
    if "id" not in message:
        continue
    if method == "tools/call" and params["name"] == "slow":
        slow[message["id"]] = params["arguments"]["text"]
        note(f"slow {slow[message['id']]}")
        continue
    is_new = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    revision = NEW if is_new and OLD not in sys.argv else OLD
    answer = who() if method == "tools/call" else greeting(method, revision)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
for name in slow.values():
    note(f"cancelled {name}")
