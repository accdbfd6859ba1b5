"""A server over stdio that follows a script: `python scripted_server.py NOTES SCRIPT`.

It knows no SDK, so it starts at once. SCRIPT is JSON: the only `revision` that it speaks, or null
for both, whether it `advertises`, its `tools` (a list for each time that it is asked, the last one
for ever), and the `answers` of each tool, likewise. An answer is the rest of a JSON-RPC response,
"waits" or "ends", or a whole `line`, where `$ID` is the request's id, and `$FIRST` that of the
first call that waits. In it `$N` stands for the number of the call, `$TO` for its argument `to`,
and any other name for a variable of the environment. An answer with `large` has a text of so many
letters, and one with `after` waits so many seconds. The rest of a response, or "waits", may stand
for a list too. `page` and `greeting` replace members of each page and of the first result. It first
writes so many lines of `errors` to standard error.

NOTES has a line for all that happens, and tells a later process which calls were made.
"""

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

OLD, NEW = "2025-11-25", "2026-07-28"
NOTES, SCRIPT = Path(sys.argv[1]), json.loads(sys.argv[2])
CHAINING: Any = {"com.example/tool-chaining": {}}
asked: Counter[str] = Counter()
waiting: dict[Any, Any] = {}
"""What is noted when a call that waits is cancelled."""
writing = threading.Lock()


def note(**what: Any) -> None:
    with writing, NOTES.open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def send(number: Any, answer: Any) -> None:
    with writing:
        print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)


def following(answers: list[Any], number: int) -> Any:
    return answers[min(number, len(answers) - 1)]


def call(number: Any, params: Any, complete: Any) -> None:
    name, arguments = params["name"], params.get("arguments") or {}
    lines = NOTES.read_text(encoding="utf-8").splitlines() if NOTES.exists() else []
    earlier = sum(json.loads(line).get("tool") == name for line in lines)
    note(tool=name, arguments=arguments, meta=params.get("_meta") or {})
    os.environ |= {"N": str(earlier), "TO": arguments.get("to", ""), "PID": str(os.getpid())}
    answer = json.loads(os.path.expandvars(json.dumps(following(SCRIPT["answers"][name], earlier))))
    if answer == "ends":
        sys.exit("The door fell.")
    if answer == "waits":
        waiting[number] = {"cancelled": name, "arguments": arguments}
        return
    if "line" in answer:
        line = answer["line"].replace("$ID", json.dumps(number))
        return print(line.replace("$FIRST", json.dumps(next(iter(waiting), 0))), flush=True)
    if "large" in answer:
        answer = {"result": {"content": [{"type": "text", "text": "x" * answer["large"]}]}}
    if "result" in answer:
        answer["result"] = {**complete, **answer["result"]}
    threading.Timer(answer.pop("after", 0), send, (number, answer)).start()


def greeting(method: str, complete: Any) -> Any:
    capabilities = {"tools": {}}
    if SCRIPT.get("advertises", True):
        capabilities["extensions"] = capabilities["experimental"] = CHAINING
    more = complete and {**complete, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/list":
        asked[method] += 1
        listed = following(SCRIPT["tools"], asked[method] - 1)
        if not isinstance(listed, list):
            return listed
        page = {"tools": listed, **more}
        return {"result": {**page, **SCRIPT.get("page", {})}}
    if method == "initialize" and SCRIPT["revision"] != NEW:
        described: Any = {
            "protocolVersion": OLD,
            "serverInfo": {"name": "scripted", "version": "1"},
        }
    elif method == "server/discover" and SCRIPT["revision"] != OLD:
        described = {"supportedVersions": [NEW]}
    else:
        return {"error": {"code": -32601, "message": "Method not found"}}
    greeting = {"capabilities": capabilities, **described, **more, **SCRIPT.get("greeting", {})}
    return {"result": greeting}


sys.stderr.write(f"{'x' * 99}\n" * SCRIPT.get("errors", 0))
for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params") or {}
    is_new = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    complete = {"resultType": "complete"} if is_new else {}
    if message.get("method") == "notifications/cancelled":
        note(**waiting.pop(params["requestId"], {}))
    elif message.get("method") == "tools/call":
        call(message["id"], params, complete)
    elif "id" in message and (answer := greeting(message["method"], complete)) != "waits":
        send(message["id"], answer)
for what in waiting.values():
    note(**what)
note(closed=True)
