"""A small conforming MCP server of the tests' own: raw JSON-RPC, both eras, stdio and HTTP.

It shares no code with the suite, nor with the extension under `tool_chaining`. Every
decision has a method of its own, so that a mutant is a few lines: see `server_mutants`.
"""

import json
import sys

ID = "com.example/tool-chaining"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
SESSION = "s-4711-alice"
FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}


def tool(name, required=(), optional=(), **more):
    properties = {key: {"type": "string"} for key in (*required, *optional)}
    for number in ("quantity", "price"):
        if number in properties:
            properties[number] = {"type": "integer" if number == "quantity" else "number"}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    output = {
        "type": "object",
        "properties": {"said": {"type": "string"}, "nextStep": {"type": "object"}},
        "required": ["said"],
    }
    return {
        "name": name,
        "inputSchema": schema,
        "outputSchema": output,
        "annotations": {"readOnlyHint": True},
        **more,
    }


class Refusal(Exception):
    """A JSON-RPC error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Ask(Exception):
    """A tool needs an answer of the user first."""


class Request:
    """One request, with what is known of the client that sent it."""

    def __init__(self, method, params, modern, capabilities, ask=None):
        self.method, self.params, self.modern = method, params, modern
        self.capabilities = capabilities
        self.meta = params.get("_meta") or {}
        self.ask = ask
        """Legacy: puts a question to the client and returns its answer."""

    @property
    def settings(self):
        """What the client declared: the first that is well-formed; None if nothing."""
        places = ("extensions",) if self.modern else ("extensions", "experimental")
        found = [self.capabilities.get(key) or {} for key in places]
        declared = [place[ID] for place in found if ID in place]
        return next(filter(self.well_formed, declared), declared[0] if declared else None)

    @staticmethod
    def well_formed(settings):
        version = settings.get("version", 1) if isinstance(settings, dict) else 0
        return type(version) is int and version >= 1

    @property
    def declared(self):
        return self.well_formed(self.settings)

    @property
    def provenance(self):
        return self.meta.get(ID)


class SmallServer:
    """A shop: large orders go to a manager, who has the team notified."""

    tools = (
        tool("login", ["user", "phrase"]),
        tool("place_order", ["sku", "quantity"]),
        tool("ask_manager", ["order"], ["reason"]),
        tool("notify_team", ["order"], ["price"]),
        tool("pick_colour", ["sku"]),
        tool("app_view", ["order"], _meta={"ui": {"visibility": ["app"]}}),
    )
    page_size = 3
    scenario = "shop.yaml"
    """The file that says how it is exercised."""

    def __init__(self):
        self.calls = 0
        """Tool calls so far; a conforming server has no use for it."""

    # Protocol

    def handle(self, message, capabilities, ask=None):
        """Answer one message; None for a notification."""
        if "id" not in message or "method" not in message:
            return None
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        modern = message["method"] == "server/discover" or META + "protocolVersion" in meta
        if modern:
            capabilities = meta.get(META + "clientCapabilities") or {}
        request = Request(message["method"], params, modern, capabilities, ask)
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = self.respond(request)
        except Refusal as refusal:
            return {**answer, "error": refusal.error}
        if modern:
            result = {"resultType": "complete", **result}
        return {**answer, "result": result}

    def respond(self, request):
        if request.method == "server/discover":
            return self.discover()
        if request.method == "initialize":
            return self.initialize()
        if request.method == "ping" and not request.modern:
            return self.ping()
        if request.method == "tools/list":
            return self.list_tools(request)
        if request.method == "tools/call":
            return self.call(request)
        raise Refusal(-32601, "Method not found")

    def settings(self):
        return {"version": 1}

    def ping(self):
        return {}

    def written(self, message):
        """Return a message as it goes on the wire."""
        return json.dumps(message)

    def discover(self):
        return {
            "supportedVersions": [MODERN],
            "capabilities": {"tools": {}, "extensions": {ID: self.settings()}},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META + "serverInfo": {"name": "shop", "version": "1"}},
        }

    def initialize(self):
        return {
            "protocolVersion": LEGACY,
            "capabilities": {"tools": {}, "experimental": {ID: self.settings()}},
            "serverInfo": {"name": "shop", "version": "1"},
        }

    def list_tools(self, request):
        start = int(request.params.get("cursor") or 0)
        tools = self.listed(request)
        page = {"tools": list(tools[start : start + self.page_size])}
        if start + self.page_size < len(tools):
            page["nextCursor"] = str(start + self.page_size)
        return {**page, "ttlMs": 0, "cacheScope": "private"} if request.modern else page

    def listed(self, request):
        return self.tools

    # Tools

    def call(self, request):
        self.calls += 1
        name, arguments = request.params["name"], request.params.get("arguments") or {}
        try:
            result, directive = self.run(name, arguments, request)
        except Ask:
            return self.interim(request)
        if directive is not None:
            self.attach(result, directive, request)
        return result

    def run(self, name, arguments, request):
        """Run a tool; return its result and its directive, if it has one."""
        if name == "login":
            return self.says(f"Your session is {SESSION}."), None
        if name == "place_order":
            return self.place_order(arguments, request)
        if name == "ask_manager":
            return self.says("The manager was asked."), self.directive("notify_team", arguments)
        if name == "notify_team":
            if not self.lets_in(request):
                return {**self.says("Please sign in first."), "isError": True}, None
            return self.notify_team(arguments, request)
        if name == "pick_colour":
            return self.says(f"It will be {self.answer(request)}."), self.colour_directive()
        raise Refusal(-32602, f"Unknown tool: {name}")

    def place_order(self, arguments, request):
        if arguments["quantity"] <= 100:
            return self.says("Ordered."), None
        order = f"{arguments['quantity']} x {arguments['sku']}"
        return self.says("A manager has to agree."), self.directive("ask_manager", {"order": order})

    def notify_team(self, arguments, request):
        return self.says("The team knows."), None

    def lets_in(self, request):
        """Return whether the caller has signed in."""
        return request.meta.get("session") == SESSION

    def directive(self, name, arguments):
        title = "A manager has to look at it"
        return {"tool": name, "arguments": {"order": arguments["order"]}, "title": title}

    def colour_directive(self):
        """The directive of a step that is neither repeated nor followed."""
        return {"tool": "notify_team", "arguments": {"order": "1"}}

    def says(self, text):
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"said": text}}

    def attach(self, result, directive, request):
        result["_meta"] = {"nextTool": directive}
        if not request.declared:
            self.attach_words(result, directive)

    def attach_words(self, result, directive):
        result["content"].append(self.in_words(directive))
        result["structuredContent"]["nextStep"] = self.next_step(directive)

    def next_step(self, directive):
        return {"tool": directive["tool"], "arguments": directive["arguments"]}

    def in_words(self, directive):
        return {
            "type": "text",
            "text": f"Next: {directive['tool']}, once, with {json.dumps(directive['arguments'])}",
            "annotations": {"audience": ["assistant"]},
            "_meta": {ID: {"describes": "nextTool"}},
        }

    def answer(self, request):
        """Return the user's answer, or ask for it."""
        if request.modern:
            answers = request.params.get("inputResponses")
            if answers is None:
                raise Ask
            answer = answers["colour"]
        else:
            answer = request.ask({"message": "Which colour?", "requestedSchema": FORM})
        return (answer.get("content") or {}).get("colour", "plain")

    def interim(self, request):
        params = {"mode": "form", "message": "Which colour?", "requestedSchema": FORM}
        question = {"method": "elicitation/create", "params": params}
        return {
            "resultType": "input_required",
            "inputRequests": {"colour": question},
            "requestState": "asked",
        }


# Over stdio; over HTTP, `support.serving` serves it


def serve_stdio(server):
    state = {}

    def send(message):
        sys.stdout.write(server.written(message) + "\n")
        sys.stdout.flush()

    def ask(params):
        send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        return json.loads(sys.stdin.readline()).get("result") or {}

    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            state = message["params"]["capabilities"]
        answer = server.handle(message, state, ask)
        if answer is not None:
            send(answer)


if __name__ == "__main__":
    serve_stdio(SmallServer())
