"""A server whose answers are wrong in the way that the called tool's name says. It knows no SDK."""

import json
import sys
from typing import Any

JSON = dict[str, Any]

OLD, NEW = "2025-11-25", "2026-07-28"
LARGE = "x" * 17 * 1024 * 1024

REFUSALS = {"-32602": 200, "-32020": 400, "401": 401, "502": 502}
"""Which tool is refused with which error, and by which HTTP status."""
OWN = ("-32000", "-32603", "-32700")
"""Which tool is answered with an error of the server's own, by a code that the SDK uses too."""

LAST_WORDS = "The door fell."
FOLLOWED = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in (*REFUSALS, "asks of the weather", "ends", "no words")
]

ASKS: JSON = {"sure": {"method": "weather/ask"}}


def said(text: str) -> JSON:
    return {"result": {"content": [{"type": "text", "text": text}]}}


def greeting(method: str, revision: str) -> JSON:
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        return {"result": {"tools": FOLLOWED, **(cached if revision == NEW else {})}}
    described: JSON = {"capabilities": {"tools": {}}}
    if method == "initialize" and revision == OLD:
        info = {"name": "wrong", "version": "1"}
        return {"result": {**described, "protocolVersion": OLD, "serverInfo": info}}
    if method == "server/discover" and revision == NEW:
        return {"result": {**described, **cached, "supportedVersions": [NEW]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def answer(message: JSON, revision: str) -> str:
    """Return the line that answers a request."""
    own = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] != "tools/call":
        return json.dumps({**own, **greeting(message["method"], revision)})
    kind = message["params"]["name"].removeprefix("stream ")
    if kind == "large":
        return json.dumps({**own, **said(LARGE)})
    if kind == "ends":
        sys.exit(LAST_WORDS)
    if kind == "no words":
        return json.dumps({**own, "result": {"content": [{"type": "text"}]}})
    if kind.startswith("to "):
        led = {"content": [], "_meta": {"nextTool": {"tool": kind[3:], "arguments": {}}}}
        return json.dumps({**own, "result": {"resultType": "complete", **led}})
    if kind in REFUSALS or kind in OWN:
        return json.dumps({**own, "error": {"code": int(kind), "message": "No."}})
    if kind == "asks of the weather" and "requestState" not in message["params"]:
        interim = {"resultType": "input_required", "requestState": "1", "inputRequests": ASKS}
        return json.dumps({**own, "result": interim})
    good = {**said("Good.")["result"], "resultType": "complete"}
    return json.dumps({**own, "result": good})


if __name__ == "__main__":
    for line in sys.stdin:
        if {"id", "method"} <= (request := json.loads(line)).keys():
            print(answer(request, sys.argv[1]), flush=True)
