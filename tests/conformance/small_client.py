"""A small conforming chain-following MCP client of the tests' own: raw HTTP, both eras.

It shares no code with the suite, nor with `banking_server.chaining`. Every decision has a method of
its own, so that a mutant is a few lines: see `client_mutants`.
"""

import contextlib
import http.client
import json
import os
import sys
import traceback
import uuid
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from referencing import Registry

ID = "com.example/tool-chaining"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
INFO = {"name": "small-client", "version": "1"}


class RpcError(Exception):
    """The server answered with a JSON-RPC error."""


class Malformed(Exception):
    """What stands in the place of a directive is not one."""


class SmallClient:
    limit = 5

    def __init__(self, url, era, context):
        self.url, self.era, self.context = url, era, context
        self.session = None
        self.idle = None
        """A connection that is kept open between requests."""
        self.next_id = 0
        self.tools = None
        self.advertised = None

    # Protocol

    def settings(self):
        return {"version": 1}

    def capabilities(self, method):
        return {"elicitation": {"form": {}}, "extensions": {ID: self.settings()}}

    def connect(self):
        if self.era == MODERN:
            result = self.request("server/discover", {})
        else:
            params = {"protocolVersion": LEGACY, "clientInfo": INFO}
            params["capabilities"] = self.capabilities("initialize")
            result = self.request("initialize", params)
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {})
        extensions = result["capabilities"].get("extensions") or {}
        self.advertised = extensions.get(ID)
        return result

    def request(self, method, params, meta=None):
        self.next_id += 1
        meta = dict(meta or {})
        headers = {}
        if self.era == MODERN:
            meta[META + "protocolVersion"] = MODERN
            meta[META + "clientInfo"] = INFO
            meta[META + "clientCapabilities"] = self.capabilities(method)
            headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
            if method == "tools/call":
                headers["mcp-name"] = params["name"].encode().decode("latin-1")
        params = {**params, "_meta": meta} if meta else params
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        answer = self.post(message, headers)
        if "error" in answer:
            raise RpcError(answer["error"]["message"])
        return answer["result"]

    def post(self, message, headers):
        """Post a message; return the response to it, if it is a request."""
        where = urlsplit(self.url)
        connection, self.idle = self.idle, None
        if connection is None:
            connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **headers,
        }
        if self.session:
            headers["mcp-session-id"] = self.session
        connection.request("POST", where.path, json.dumps(message), headers)
        response = connection.getresponse()
        self.session = self.session or response.headers.get("mcp-session-id")
        if "event-stream" not in response.headers.get("content-type", ""):
            body = response.read()
            self.idle = connection
            return json.loads(body) if body else None
        with contextlib.closing(connection):
            for line in response:
                if line.startswith(b"data:"):
                    received = json.loads(line[5:])
                    if "method" not in received:
                        return received
                    self.on_question(received.get("params") or {})
                    result = self.context["elicitation"]
                    self.post({"jsonrpc": "2.0", "id": received["id"], "result": result}, {})
        raise RpcError("the stream ended")

    def on_question(self, interim):
        """Told of an interim result, or of a question."""

    def call(self, name, arguments, meta):
        params = {"name": name, "arguments": arguments}
        result = self.request("tools/call", params, meta)
        while result.get("resultType") == "input_required":
            self.on_question(result)
            answers = dict.fromkeys(result["inputRequests"], self.context["elicitation"])
            again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
            result = self.request("tools/call", again, meta)
        return result

    def list_tools(self):
        tools, cursor = {}, None
        while True:
            result = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools |= {tool["name"]: tool for tool in result["tools"]}
            cursor = result.get("nextCursor")
            if cursor is None:
                return tools

    # The chain

    def read(self, result):
        """Return (tool, arguments), or None if there is no directive."""
        meta = result.get("_meta") or {}
        if "nextTool" not in meta:
            return None
        return self.read_directive(meta["nextTool"])

    def read_directive(self, value):
        if not isinstance(value, dict):
            raise Malformed
        if "tool" in value and "name" in value and value["tool"] != value["name"]:
            raise Malformed
        tool = value["tool"] if "tool" in value else value.get("name")
        arguments = value.get("arguments", {})
        if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
            raise Malformed
        return tool, arguments

    def find(self, name):
        if name not in self.tools:
            self.tools = self.list_tools()
        return self.tools.get(name)

    def fits(self, schema, arguments):
        dialect = validator_for(schema, default=Draft202012Validator)
        try:
            return dialect(schema, registry=Registry()).is_valid(arguments)
        except Exception:
            return False

    def same(self, arguments):
        """Return what two equal sets of arguments have in common."""
        return json.dumps(self.plain(arguments), sort_keys=True)

    def plain(self, value):
        if isinstance(value, dict):
            return {key: self.plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return value

    def hidden(self, tool):
        visibility = tool.get("_meta", {}).get("ui", {}).get("visibility")
        return visibility is not None and "model" not in visibility

    def consents(self, tool):
        hints = tool.get("annotations") or {}
        return hints.get("readOnlyHint") is True or hints.get("destructiveHint") is False

    def obstacle(self, tool_name, arguments, made):
        """Return how the chain ends before this call, or None."""
        if len(made) >= self.limit:
            return "limit_reached"
        tool = self.find(tool_name)
        if tool is None:
            return "unknown_tool"
        if not self.fits(tool["inputSchema"], arguments):
            return "invalid_arguments"
        if (tool_name, self.same(arguments)) in made:
            return "cycle"
        if self.hidden(tool) or not self.consents(tool):
            return "declined"
        return None

    def chain_id(self):
        return str(uuid.uuid4())

    def provenance(self, chain_id, level, previous):
        shown = {"chainId": chain_id, "level": level}
        return shown if previous is None else {**shown, "previousTool": previous}

    def meta(self, chain_id, level, previous):
        return {ID: self.provenance(chain_id, level, previous)}

    def follow(self, tool, arguments):
        """Follow the chain; return its results and its outcome."""
        chain_id, previous = self.chain_id(), None
        results, made = [], []
        while True:
            made.append((tool, self.same(arguments)))
            try:
                result = self.call(tool, arguments, self.meta(chain_id, len(made), previous))
            except RpcError:
                return results, self.on_failure(results)
            results.append(result)
            try:
                directive = self.read(result)
            except Malformed:
                return results, "malformed_directive"
            if directive is None:
                return results, "completed"
            outcome = self.obstacle(*directive, made)
            if outcome is not None:
                return results, outcome
            previous, (tool, arguments) = tool, directive

    def on_failure(self, results):
        return "failed"

    def merged(self, results):
        """Return the content of all results, without what was said to the model and done since."""
        last = len(results) - 1
        return [
            item
            for number, result in enumerate(results)
            for item in result.get("content", [])
            if number == last or not self.is_wording(item)
        ]

    def is_wording(self, item):
        return (item.get("_meta") or {}).get(ID, {}).get("describes") == "nextTool"

    def printed(self, results, outcome):
        return {"outcome": outcome, "content": self.merged(results)}

    def run(self):
        self.connect()
        self.tools = self.list_tools()
        results, outcome = self.follow(self.context["tool"], self.context["arguments"])
        print_line = json.dumps(self.printed(results, outcome))
        return f"Done.\n{print_line}\n"


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


if __name__ == "__main__":
    code, output, errors = run(SmallClient, sys.argv[-1], os.environ)
    sys.stdout.write(output)
    sys.stderr.write(errors)
    raise SystemExit(code)
