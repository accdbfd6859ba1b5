"""A small conforming chain-following MCP client of the tests' own: raw HTTP, both eras.

It shares no code with the suite, nor with `tool_chaining`. Every decision has a method of
its own, so that a mutant is a few lines: see `client_mutants`.
"""

import contextlib
import http.client
import json
import os
import socket
import sys
import threading
import traceback
import uuid
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator

ID = "com.example/tool-chaining"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
INFO = {"name": "small-client", "version": "1"}


class NoResult(Exception):
    """The server answered with a JSON-RPC error, or with nothing that is a result."""


class Lost(NoResult):
    """The answer did not arrive, so nobody knows what became of the call."""


class Malformed(Exception):
    """What stands in the place of a directive is not one."""


class SmallClient:
    limit = 5

    def __init__(self, url, era, context):
        self.url, self.era, self.context = url, era, context
        self.session = None
        self.idle = self.busy = None
        """A connection that is kept open between requests, and the one that is waited for."""
        self.next_id = 0
        self.tools = {}
        self.advertised = None
        self.cancelled = False
        self.started = []
        """The tool and the arguments of each follow-up call that was started."""
        self.pending = None
        """The directive that was not followed."""
        self.outcome = None
        """How the last chain ended."""
        self.in_doubt = set()
        """Tools of this session whose last call has an unknown effect."""

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
        found = [
            self.read_settings((result["capabilities"].get(place) or {}).get(ID))
            for place in self.places()
        ]
        self.advertised = next((settings for settings in found if settings is not None), None)
        return result

    def places(self):
        """Return the capabilities in which settings are looked for."""
        return ["extensions"] if self.era == MODERN else ["extensions", "experimental"]

    def read_settings(self, value):
        """Return the settings, or None where there are none."""
        known = isinstance(value, dict) and self.is_version(value.get("version", 1))
        return value if known else None

    def is_version(self, value):
        return type(value) is int and value >= 1

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
            self.on_error(answer["error"])
            raise NoResult(answer["error"]["message"])
        return answer["result"]

    def on_error(self, error):
        """Told of a JSON-RPC error."""

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
            **self.authorization(message),
            **headers,
        }
        if self.session:
            headers["mcp-session-id"] = self.session
        self.busy = connection.sock
        try:
            connection.request("POST", where.path, json.dumps(message), headers)
            response = connection.getresponse()
            self.session = self.session or response.headers.get("mcp-session-id")
            if "event-stream" not in response.headers.get("content-type", ""):
                body = response.read()
                if response.status >= 400 and "json" not in response.headers["content-type"]:
                    raise Lost(response.status)
                self.idle = connection
                return json.loads(body) if body else None
            with contextlib.closing(connection):
                return self.listen(response)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Lost(error) from error
        finally:
            self.busy = None

    def listen(self, stream):
        for line in stream:
            if line.startswith(b"data:"):
                received = json.loads(line[5:])
                if "method" not in received:
                    return received
                if "id" in received:
                    self.on_question(received.get("params") or {})
                    result = self.context["elicitation"]
                    self.post({"jsonrpc": "2.0", "id": received["id"], "result": result}, {})
        raise Lost("the stream ended")

    def authorization(self, message):
        token = self.context.get("bearerToken")
        return {"authorization": f"Bearer {token}"} if token else {}

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
        if not self.complete(result):
            raise NoResult("this is no complete result")
        return result

    def complete(self, result):
        if self.era == LEGACY:
            return "task" not in result
        return result.get("resultType", "complete") == "complete"

    def list_tools(self):
        tools, cursor = {}, None
        while True:
            result = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            tools |= {tool["name"]: tool for tool in result["tools"]}
            cursor = result.get("nextCursor")
            if cursor is None:
                return tools

    def cancel(self):
        """Cancel the chain: nothing more is awaited."""
        self.cancelled = True
        if (busy := self.busy) is not None:
            with contextlib.suppress(OSError):
                busy.shutdown(socket.SHUT_RDWR)

    def wait_for_cancel(self):
        where = urlsplit(self.context["cancelUrl"])
        connection = http.client.HTTPConnection(where.hostname, where.port)
        connection.request("GET", where.path)

        def wait():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.getresponse()
                self.cancel()

        threading.Thread(target=wait, daemon=True).start()

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
        tool = value.get("tool")
        arguments = value.get("arguments", {})
        if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
            raise Malformed
        if not self.writable(value):
            raise Malformed
        return tool, arguments

    def writable(self, value):
        """Whether RFC 8785 can write a value."""
        try:
            json.dumps(self.plain(value), allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, OverflowError):
            return False
        return True

    def find(self, name):
        return self.tools.get(name)

    def read_list(self):
        self.tools = self.list_tools()

    def fits(self, schema, arguments):
        return Draft202012Validator(schema).is_valid(arguments)

    def same(self, arguments):
        """Return what two equal sets of arguments have in common."""
        return json.dumps(self.plain(arguments), sort_keys=True)

    def plain(self, value):
        if isinstance(value, dict):
            return {key: self.plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        return value

    def visibility(self, tool):
        return tool.get("_meta", {}).get("ui", {}).get("visibility")

    def hidden(self, tool):
        visibility = self.visibility(tool)
        if not isinstance(visibility, list):
            return visibility not in (None, "model")
        return "model" not in visibility

    def denied(self, name):
        """Whether the host keeps its model from the tool."""
        return name in self.context.get("deniedTools", [])

    def consents(self, tool):
        hints = tool.get("annotations") or {}
        harmless = hints.get("readOnlyHint") is True or hints.get("destructiveHint") is False
        return (harmless and self.trusts_hints()) or self.user_agrees(tool)

    def trusts_hints(self):
        """Whether the user said that the server's hints are trusted."""
        return self.context.get("trustHints", True)

    def user_agrees(self, tool):
        answers = self.context.get("consentByTool", {})
        answer = answers.get(tool["name"], self.context.get("consent"))
        if isinstance(answer, list):
            # One for each question; the last one holds for all further ones.
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        return answer == "grant"

    def allowed(self, name, tool):
        """Whether the host lets its model make a call."""
        return not (self.denied(name) or self.hidden(tool)) and self.consents(tool)

    def may_follow(self, name, tool):
        return self.allowed(name, tool) and self.trusts_server()

    def trusts_server(self):
        return self.advertised is not None

    def obstacle(self, tool_name, arguments, made):
        """Return how the chain ends before this call, or None."""
        if len(made) >= self.limit:
            return "limit_reached"
        self.read_list()
        return self.obstacle_in_list(tool_name, arguments, made)

    def obstacle_in_list(self, tool_name, arguments, made):
        tool = self.find(tool_name)
        if tool is None:
            return "unknown_tool"
        if not self.fits(tool["inputSchema"], arguments):
            return "invalid_arguments"
        if (tool_name, self.same(arguments)) in made:
            return "cycle"
        return None if self.may_follow(tool_name, tool) else "declined"

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
            if previous is not None:
                self.started.append((tool, arguments))
            meta = self.meta(chain_id, len(made), previous)
            try:
                result = self.call(tool, arguments, meta)
            except NoResult as error:
                self.doubt(tool, arguments)
                return results, "cancelled" if self.cancelled else self.on_failure(results, error)
            self.in_doubt.discard(tool)
            results.append(result)
            try:
                directive = self.read(result)
            except Malformed:
                return results, "malformed_directive"
            if directive is None:
                return results, "completed"
            outcome = "cancelled" if self.cancelled else self.obstacle(*directive, made)
            if outcome is None and self.is_in_doubt(*directive):
                outcome = "declined"
            if outcome is not None:
                self.pending = directive
                return results, outcome
            previous, (tool, arguments) = tool, directive

    def doubt(self, tool, arguments):
        self.in_doubt.add(tool)

    def is_in_doubt(self, tool, arguments):
        """Whether the effect of the tool's last call is unknown, and nobody agrees to another."""
        return tool in self.in_doubt and not self.user_agrees({"name": tool})

    def on_failure(self, results, error):
        return "failed"

    def merged(self, results):
        """Return the content of all results, without the words about directives."""
        return [
            item
            for number, result in enumerate(results)
            for item in result.get("content", [])
            if not (self.is_settled(number, results) and self.is_wording(item))
        ]

    def is_settled(self, number, results):
        """Whether nobody is to act any more on what result `number` says of a next step."""
        return True

    def is_wording(self, item):
        return (item.get("_meta") or {}).get(ID, {}).get("describes") == "nextTool"

    def follow_ups(self, results):
        """Return the number, the tool, the arguments and the status of each follow-up call."""
        calls = zip(self.started, ["made"] * (len(results) - 1) + ["unknown"], strict=False)
        if self.pending is not None:
            calls = [*calls, (self.pending, "not_made")]
        return [
            {"number": number, "tool": tool, "arguments": arguments, "status": status}
            for number, ((tool, arguments), status) in enumerate(calls, 2)
        ]

    def is_error(self, results):
        return any(result.get("isError") for result in results) or self.lost(results)

    def lost(self, results):
        """Whether nobody knows if a follow-up call took effect."""
        return len(self.started) >= max(len(results), 1)

    def structured(self, results):
        structured = dict(results[0].get("structuredContent") or {}) if results else {}
        if "nextTool" in (results[0].get("_meta") or {} if results else {}):
            if "followUps" in structured:
                return None
            structured.pop("nextStep", None)
        return structured or None

    def told_in_structured(self, follow_ups):
        """Return what a host is told that shows its model structured content alone."""
        told = [self.in_words(each)["text"] for each in follow_ups]
        return {"followUps": told} if told else {}

    def handed_on_meta(self, results):
        meta = dict(results[-1].get("_meta") or {}) if results else {}
        meta.pop("nextTool", None)
        return meta

    def in_words(self, follow_up):
        number, named = follow_up["number"], self.named(follow_up["tool"])
        text = f"Call {number}, of {named}: {follow_up['status']}."
        return {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}

    def named(self, tool):
        if tool not in self.tools:
            return "a tool that the server does not list"
        return json.dumps(tool[:120])

    def printed(self, results, outcome):
        follow_ups = self.follow_ups(results)
        content = self.merged(results) + [self.in_words(each) for each in follow_ups]
        printed = {"outcome": outcome, "content": content, "isError": self.is_error(results)}
        printed |= {"_meta": self.handed_on_meta(results), "followUps": follow_ups}
        structured = self.structured(results)
        if structured is None:
            return printed
        structured |= self.told_in_structured(follow_ups)
        return {**printed, "structuredContent": structured}

    def lines(self, results, outcome):
        """Return the lines of the output."""
        return ["Done.", json.dumps(self.printed(results, outcome))]

    def model_may_call(self, name):
        """Whether the host lets its model make the first call."""
        tool = self.find(name)
        return tool is not None and self.allowed(name, tool)

    def run(self):
        if "cancelUrl" in self.context:
            self.wait_for_cancel()
        self.connect()
        self.read_list()
        tool, arguments = self.context["tool"], self.context["arguments"]
        if self.context.get("firstCallBy") == "model" and not self.model_may_call(tool):
            results, outcome = [], "declined"
        else:
            for _ in range(self.context.get("chains", 1)):
                self.started, self.pending = [], None
                results, outcome = self.follow(tool, arguments)
        self.outcome = outcome
        return "".join(f"{line}\n" for line in self.lines(results, outcome))


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
