"""What any MCP client has, for the clients of these tests: a session over raw HTTP, and a host.

It shares no code with the suite, nor with `tool_chaining`.
"""

import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
import traceback
from urllib.parse import urlsplit

ID = "com.example/tool-chaining"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
INVALID_PARAMS = -32602
META = "io.modelcontextprotocol/"
INFO = {"name": "small-client", "version": "1"}


class NoResult(Exception):
    """The server answered with a JSON-RPC error, or with nothing that is a result."""

    code = 0


class Lost(NoResult):
    """The answer did not arrive, so nobody knows what became of the call."""


class Refused(NoResult):
    """The server refused the call before it acted."""


class Answered(NoResult):
    """The answer is a task, which nobody waits for, or the error -32602."""


class Session:
    """A connection to one server, in either era."""

    refusals = (-32020, -32021, -32022)
    """The codes of errors that say, on 2026-07-28, that the server refused before it acted."""
    unauthorized = (401, 403)
    """The HTTP statuses that say so."""

    def __init__(self, url, era, context):
        self.url, self.era, self.context = url, era, context
        self.session = None
        self.idle = self.busy = None
        """A connection that is kept open between requests, and the one that is waited for."""
        self.ids = itertools.count(1)
        self.cancelled = False

    def capabilities(self, method):
        return {"elicitation": {"form": {}}}

    def connect(self):
        """Begin the connection; return what the server is able to do."""
        if self.era == MODERN:
            return self.request("server/discover", {})["capabilities"]
        params = {"protocolVersion": LEGACY, "clientInfo": INFO}
        params["capabilities"] = self.capabilities("initialize")
        result = self.request("initialize", params)
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        return result["capabilities"]

    def request(self, method, params, meta=None):
        meta, headers = dict(meta or {}), {}
        if self.era == MODERN:
            meta[META + "protocolVersion"] = MODERN
            meta[META + "clientInfo"] = INFO
            meta[META + "clientCapabilities"] = self.capabilities(method)
            headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
            if method == "tools/call":
                headers["mcp-name"] = params["name"].encode().decode("latin-1")
        params = {**params, "_meta": meta} if meta else params
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        answer = self.post(message, headers)
        if "error" in answer:
            raise self.failure(answer["error"]["code"])(answer["error"])
        return answer["result"]

    def failure(self, code):
        if code == INVALID_PARAMS:
            return Answered
        return Refused if self.era == MODERN and code in self.refusals else NoResult

    def post(self, message, headers):
        """Post a message; return the response to it, if it is a request. Raises Lost."""
        where = urlsplit(self.url)
        connection, self.idle = self.idle, None
        if connection is None:
            connection = http.client.HTTPConnection(where.hostname, where.port)
            connection.connect()
        connection.sock.settimeout(self.context.get("timeoutSeconds", 20))
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self.authorization(),
            **headers,
        }
        if self.session:
            headers["mcp-session-id"] = self.session
        self.busy = connection.sock
        try:
            connection.request("POST", where.path, self.body(message), headers)
            response = connection.getresponse()
            self.session = self.session or response.headers.get("mcp-session-id")
            if "event-stream" in response.headers.get("content-type", ""):
                with contextlib.closing(connection):
                    return self.listen(response)
            body = response.read()
            if response.status >= 400 and "json" not in response.headers["content-type"]:
                raise (Refused if response.status in self.unauthorized else Lost)(response.status)
            self.idle = connection
            return json.loads(body) if body else None
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Lost(error) from error
        finally:
            self.busy = None

    def body(self, message):
        return json.dumps(message)

    def listen(self, stream):
        for line in stream:
            if line.startswith(b"data:"):
                received = json.loads(line[5:])
                if "method" not in received:
                    return received
                if "id" in received:
                    self.on_question(received["params"])
                    result = self.context["elicitation"]
                    self.post({"jsonrpc": "2.0", "id": received["id"], "result": result}, {})
        raise Lost("the stream ended")

    def authorization(self):
        token = self.context.get("bearerToken")
        return {"authorization": f"Bearer {token}"} if token else {}

    def on_question(self, asked):
        """Called with an interim result, or with a question."""

    def call(self, name, arguments, meta=None):
        """Make a call, with all its rounds. Raises NoResult."""
        params = {"name": name, "arguments": arguments}
        result = self.request("tools/call", params, meta)
        while result.get("resultType") == "input_required":
            self.on_question(result)
            answers = dict.fromkeys(result["inputRequests"], self.context["elicitation"])
            again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
            result = self.answered(again, meta)
        if not self.complete(result):
            is_task = "task" in result or result.get("resultType") == "task"
            raise (Answered if is_task else NoResult)(result)
        return result

    def answered(self, again, meta):
        """Send the user's answer. The server has begun, whatever it refuses now."""
        try:
            return self.request("tools/call", again, meta)
        except Refused as refused:
            raise NoResult(*refused.args) from refused

    def complete(self, result):
        if self.era == LEGACY:
            return "task" not in result
        return result.get("resultType", "complete") == "complete"


class Host(Session):
    """A session whose host has a user, and knows which tools its model may call."""

    def __init__(self, *given):
        super().__init__(*given)
        self.tools, self.read_to_the_end = {}, True

    def read_list(self):
        """Read the list of tools, page by page."""
        tools, cursor, self.read_to_the_end = [], None, True
        while True:
            try:
                page = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            except NoResult:
                page, self.read_to_the_end = {"tools": []}, False
            tools += page["tools"]
            if (cursor := page.get("nextCursor")) is None:
                break
        self.tools = {tool["name"]: tool for tool in tools if not self.disagrees(tool, tools)}

    def disagrees(self, tool, tools):
        """Whether the list has the name of a tool twice, with differences."""
        return any(each["name"] == tool["name"] and each != tool for each in tools)

    def find(self, name):
        return self.tools.get(name)

    def hidden(self, tool):
        visibility = tool.get("_meta", {}).get("ui", {}).get("visibility")
        if not isinstance(visibility, list):
            return visibility not in (None, "model")
        return "model" not in visibility

    def denied(self, name):
        """Whether the host keeps its model from the tool."""
        return name in self.context.get("deniedTools", [])

    def hints(self, tool, name, value):
        """Whether a hint that is trusted has this value."""
        trusted = self.context.get("trustHints", True) and self.read_to_the_end
        return trusted and (tool.get("annotations") or {}).get(name) is value

    def user_agrees(self, tool):
        time.sleep(self.context.get("answersAfterMs", 0) / 1000)
        answers = self.context.get("consentByTool", {})
        answer = answers.get(tool["name"], self.context.get("consent"))
        if isinstance(answer, list):  # One for each question.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer == "grant"

    def consents(self, tool):
        closed = self.hints(tool, "destructiveHint", False) and self.hints(
            tool, "openWorldHint", False
        )
        return self.hints(tool, "readOnlyHint", True) or closed or self.user_agrees(tool)

    def allowed(self, tool):
        """Whether the host lets its model call a tool."""
        return not (self.denied(tool["name"]) or self.hidden(tool)) and self.consents(tool)

    def model_may_call(self, name):
        """Whether the host lets its model make the first call."""
        return self.find(name) is not None and self.allowed(self.find(name))

    def cancel(self):
        """Cancel the chain: nothing more is awaited."""
        self.cancelled = True
        if (busy := self.busy) is not None:
            with contextlib.suppress(OSError):
                busy.shutdown(socket.SHUT_RDWR)

    def wait_for_cancel(self):
        def wait():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.visit(self.context["cancelUrl"])
                self.cancel()

        threading.Thread(target=wait, daemon=True).start()

    def visit(self, url):
        """Request a page, and wait for it."""
        where = urlsplit(url)
        connection = http.client.HTTPConnection(where.hostname, where.port)
        connection.request("GET", where.path)
        connection.getresponse()


def run(kind, url, environment):
    """Run one client in this process; return its exit code, output and errors."""
    context = json.loads(environment["MCP_CONFORMANCE_CONTEXT"])
    client = kind(url, environment["MCP_CONFORMANCE_PROTOCOL_VERSION"], context)
    try:
        return 0, client.run(), ""
    except Exception:
        return 1, "", traceback.format_exc()
    finally:
        if client.idle is not None:
            client.idle.close()
