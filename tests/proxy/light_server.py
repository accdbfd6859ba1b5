"""A server over stdio that starts at once, since it has no SDK: for tests of its processes.

`python light_server.py [2025-11-25]`: it speaks both revisions, or that one alone.
"""

import json
import os
import sys
from typing import Any

OLD, NEW = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
INFO = {"name": "light", "version": "1"}
METHOD_NOT_FOUND = -32601

JSON = dict[str, Any]


def note(line: str) -> None:
    if path := os.environ.get("STRANGE_NOTES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def listed(name: str) -> JSON:
    schema = {"type": "object", "properties": {}}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": True}}


def who() -> JSON:
    """Which process answers, and what it was told when it was started."""
    told = {
        "pid": os.getpid(),
        "secret": os.environ.get("MCP_TOKEN"),
        "environment": os.environ.get("STRANGE_SETTING"),
    }
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": told}


def result_of(method: str, is_new: bool) -> JSON | None:
    """Return the result of a request other than a call; None if there is no such method."""
    has: JSON = {"capabilities": {"tools": {}}}
    cached = {"ttlMs": 0, "cacheScope": "private"} if is_new else {}
    match method:
        case "initialize":
            return {"protocolVersion": OLD, "serverInfo": INFO, **has}
        case "server/discover" if is_new:
            return {"supportedVersions": [NEW], **cached, **has}
        case "tools/list":
            return {"tools": [listed("who"), listed("slow")], **cached}
    return None


def serve(only_old: bool) -> None:
    """Answer each line. A call of `slow` ends when it is cancelled, or the input ends."""
    slow: dict[Any, str] = {}
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
        is_new = f"{META}protocolVersion" in params.get("_meta", {}) and not only_old
        result = who() if method == "tools/call" else result_of(method, is_new)
        if is_new and result is not None:
            result |= {"resultType": "complete", "_meta": {f"{META}serverInfo": INFO}}
        error = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        answer = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
    for name in slow.values():
        note(f"cancelled {name}")


if __name__ == "__main__":
    serve(only_old=OLD in sys.argv)
