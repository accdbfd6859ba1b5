"""A server over stdio that follows a script: `python scripted_server.py NOTES SCRIPT`.

SCRIPT is JSON: the `revision`, whether it `advertises`, its `tools` (a list for each time that it
is asked, the last one for ever), and the `answers` of each tool, likewise. An answer is the rest of
a JSON-RPC response, "waits" or "ends"; `N` in it stands for the number of the call, and `TO` for
its argument `to`. An answer with `together` waits until so many calls of the tool are running, one
with `after` so many seconds.

NOTES has a line for all that happens, and tells a later process which calls were made.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from wrong_server import NEW, OLD

NOTES, SCRIPT = Path(sys.argv[1]), json.loads(sys.argv[2])
NEXT: dict[str, int] = {}
CHAINING = {"com.example/tool-chaining": {}}
waiting: dict[Any, str] = {}
"""The calls that wait for their answer."""
held: dict[str, list[Any]] = {}
"""The responses that wait for those of further calls."""
writing = threading.Lock()


def note(**what: Any) -> None:
    with writing, NOTES.open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def send(number: Any, answer: Any, tool: str | None = None) -> None:
    if tool is not None:
        note(ended=tool)
    with writing:
        print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)


def following(name: str, answers: list[Any], number: int) -> Any:
    return answers[min(number, len(answers) - 1)]


def call(number: Any, params: Any) -> None:
    name, arguments = params["name"], params.get("arguments") or {}
    lines = NOTES.read_text(encoding="utf-8").splitlines() if NOTES.exists() else []
    earlier = [one for one in map(json.loads, lines) if one.get("tool") == name]
    note(tool=name, arguments=arguments, meta=params.get("_meta") or {})
    text = json.dumps(following(name, SCRIPT["answers"][name], len(earlier)))
    text = text.replace('"N"', str(len(earlier))).replace("TO", arguments.get("to", ""))
    answer = json.loads(text)
    if answer == "ends":
        os._exit(1)
    if answer == "waits":
        waiting[number] = name
        return
    if SCRIPT["revision"] == NEW and "result" in answer:
        answer["result"] = {"resultType": "complete", **answer["result"]}
    together, after = answer.pop("together", 1), answer.pop("after", 0)
    held.setdefault(name, []).append((number, answer, name))
    if len(held[name]) == together:
        for response in held.pop(name):
            threading.Timer(after, send, response).start()


def greeting(method: str) -> Any:
    capabilities = {"tools": {}}
    if SCRIPT.get("advertises", True):
        capabilities["extensions"] = capabilities["experimental"] = CHAINING
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    more = cached if SCRIPT["revision"] == NEW else {}
    if method == "tools/list":
        NEXT["list"] = NEXT.get("list", -1) + 1
        return {"result": {"tools": following("list", SCRIPT["tools"], NEXT["list"]), **more}}
    if (method, SCRIPT["revision"]) == ("initialize", OLD):
        info = {"name": "scripted", "version": "1"}
        described = {"protocolVersion": OLD, "serverInfo": info}
    elif (method, SCRIPT["revision"]) == ("server/discover", NEW):
        described = {"supportedVersions": [NEW]}
    else:
        return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": {"capabilities": capabilities, **described, **more}}


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        name = waiting.pop(message["params"]["requestId"], None)
        note(cancelled=name)
    elif message.get("method") == "tools/call":
        call(message["id"], message["params"])
    elif "id" in message:
        send(message["id"], greeting(message["method"]))
note(closed=True)
