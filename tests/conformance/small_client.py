"""A small conforming chain-following MCP client of the tests' own: raw HTTP, both eras.

It shares no code with the suite, nor with `tool_chaining`. Every decision has a method of
its own, so that a mutant is a few lines: see `client_mutants`.
"""

import contextlib
import copy
import http.client
import itertools
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


class Refused(NoResult):
    """The server refused the call before it acted."""


class Task(NoResult):
    """The answer is a task, which nobody waits for."""


class Malformed(Exception):
    """What stands in the place of a directive is not one."""


class Record:
    """What the chains of one conversation share."""

    def __init__(self):
        self.doubts = []
        """The tool and the arguments of each doubtful call, and the first call of the chains for
        which it is in doubt; None: for all."""
        self.running = []
        """The first call, the tool and the arguments of each follow-up call that runs."""
        self.changed = threading.Condition()


class SmallClient:
    limit = 5
    refusals = (-32020, -32021, -32022)
    """The codes of errors that say that the server refused a request before it acted."""
    unauthorized = (401, 403)
    """The HTTP statuses that say so."""
    read_to_the_end = True
    """Whether every page of the last list could be read."""

    def __init__(self, url, era, context):
        self.url, self.era, self.context = url, era, context
        self.session = None
        self.idle = self.busy = None
        """A connection that is kept open between requests, and the one that is waited for."""
        self.ids = itertools.count(1)
        self.tools = {}
        self.advertised = None
        self.cancelled = False
        self.started = []
        """The tool and the arguments of each follow-up call that was started."""
        self.pending = None
        """The directive that was not followed."""
        self.outcome = None
        """How the last chain ended."""
        self.first = None
        """The first call of the chain."""
        self.refused = False
        """Whether the server refused the last call before it acted."""
        self.record = Record()

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
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        answer = self.post(message, headers)
        if "error" in answer:
            self.on_error(answer["error"])
            refused = answer["error"]["code"] in self.refusals
            raise (Refused if refused else NoResult)(answer["error"]["message"])
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
                    refused = response.status in self.unauthorized
                    raise (Refused if refused else Lost)(response.status)
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
            result = self.answered(again, meta)
        if not self.complete(result):
            raise (Task if "task" in result else NoResult)("this is no complete result")
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

    def list_tools(self):
        tools, cursor = [], None
        self.read_to_the_end = True
        while True:
            try:
                result = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            except NoResult:
                result = {"tools": []}
                self.read_to_the_end = False
            tools += result["tools"]
            cursor = result.get("nextCursor")
            if cursor is None:
                return {tool["name"]: tool for tool in tools if not self.disagrees(tool, tools)}

    def disagrees(self, tool, tools):
        """Whether the list has the name of a tool twice, with differences."""
        return any(each["name"] == tool["name"] and each != tool for each in tools)

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

    def added(self, tool, result):
        """Return the step that the user's rule adds, or None."""
        step = self.context.get("addedStep")
        if step is None or step["after"] != tool:
            return None
        return step["tool"], step.get("arguments", {})

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
        closed = self.hints(tool, "destructiveHint", False) and self.hints(
            tool, "openWorldHint", False
        )
        return self.hints(tool, "readOnlyHint", True) or closed or self.user_agrees(tool)

    def hints(self, tool, name, value):
        """Whether a hint that is trusted has this value."""
        trusted = self.trusts_hints() and self.trusts_list()
        return trusted and (tool.get("annotations") or {}).get(name) is value

    def trusts_list(self):
        """Whether the last list was read to its end."""
        return self.read_to_the_end

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
        return self.allowed(name, tool)

    def trusts_server(self):
        return self.advertised is not None

    def leaves_as_it_is(self):
        """Whether the result of this server is handed on as it came."""
        return not self.trusts_server()

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
        self.first = (tool, self.same(arguments))
        while True:
            made.append((tool, self.same(arguments)))
            if previous is not None:
                self.started.append((tool, arguments))
            meta = self.meta(chain_id, len(made), previous)
            try:
                result = self.call(tool, arguments, meta)
            except NoResult as error:
                self.refused = isinstance(error, Refused)
                self.on_no_result(tool, arguments, error)
                if self.cancelled:
                    self.not_delivered(results)
                return results, "cancelled" if self.cancelled else self.on_failure(results, error)
            finally:
                self.ended(tool, arguments)
            self.on_result(tool, arguments, result, previous is None)
            results.append(result)
            if "nextTool" in (result.get("_meta") or {}) and not self.trusts_server():
                return results, "declined"
            try:
                directive = self.read(result)
            except Malformed:
                return results, "malformed_directive"
            directive = directive or self.added(tool, result)
            if directive is None:
                return results, "completed"
            outcome = "cancelled" if self.cancelled else self.obstacle(*directive, made)
            outcome = "cancelled" if self.cancelled else outcome or self.begin(*directive)
            if outcome is not None:
                self.pending = directive
                if outcome == "cancelled":
                    self.not_delivered(results)
                return results, outcome
            previous, (tool, arguments) = tool, directive

    # The record of doubt

    def begin(self, tool, arguments):
        """Wait for the turn of a follow-up call; return how the chain ends before it, or None."""
        with self.record.changed:
            self.record.changed.wait_for(lambda: not self.is_held(tool, arguments))
            in_doubt = self.in_doubt(tool, arguments)
            if in_doubt and not self.user_agrees({"name": tool}):
                return "declined"
            for entry in in_doubt:
                self.record.doubts.remove(entry)
            self.record.running.append((self.first, tool, self.same(arguments)))

    def is_held(self, tool, arguments):
        return (self.first, tool) in [each[:2] for each in self.record.running]

    def ended(self, tool, arguments):
        """Let a follow-up call go on that was held for this one."""
        with self.record.changed:
            if (call := (self.first, tool, self.same(arguments))) in self.record.running:
                self.record.running.remove(call)
            self.record.changed.notify_all()

    def in_doubt(self, tool, arguments):
        """Return what the record has against a follow-up call of this chain."""
        if self.hints(self.find(tool) or {}, "readOnlyHint", True):
            return []
        return [entry for entry in self.record.doubts if self.counts(entry, tool, arguments)]

    def counts(self, entry, tool, arguments):
        doubtful, _, first = entry
        return tool == doubtful and first in (None, self.first)

    def on_no_result(self, tool, arguments, error):
        if not self.refused:
            narrow = isinstance(error, Task)
            self.doubt(tool, arguments, self.first if narrow else None)

    def on_result(self, tool, arguments, result, is_first):
        if not result.get("isError"):
            self.clear(tool, arguments)
        elif not is_first and not self.may_be_repeated(tool):
            self.doubt(tool, arguments, self.first)

    def may_be_repeated(self, name):
        tool = self.find(name) or {}
        return any(self.hints(tool, hint, True) for hint in ("readOnlyHint", "idempotentHint"))

    def not_delivered(self, results):
        """Note that the host did not get the merged result."""
        for tool, arguments in self.started[: len(results) - 1]:
            self.doubt(tool, arguments, self.first)

    def doubt(self, tool, arguments, first):
        self.record.doubts.append((tool, self.same(arguments), first))

    def clear(self, tool, arguments):
        """End the doubts about a call that an equal one settled."""
        call = (tool, self.same(arguments))
        self.record.doubts[:] = [each for each in self.record.doubts if each[:2] != call]

    def on_failure(self, results, error):
        return "failed"

    def merged(self, results):
        """Return the content of all results, without the words about directives."""
        merged = []
        for number, result in enumerate(results):
            content = result.get("content", [])
            settled = self.is_settled(number, results)
            merged += [item for item in content if not (settled and self.is_wording(item))]
            data = self.data(result) if number else None
            if data and data not in [self.json_of(item) for item in content]:
                merged.append(self.for_model(json.dumps(data)))
        return merged

    def data(self, result):
        """Return the structured content of a result without the words."""
        data = dict(result.get("structuredContent") or {})
        if "nextTool" in (result.get("_meta") or {}):
            data.pop("nextStep", None)
        return data

    def json_of(self, item):
        try:
            return json.loads(item.get("text", ""))
        except ValueError:
            return None

    def for_model(self, text):
        return {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}

    def suggestion(self, outcome):
        """Return the marked item for a call that nobody could be asked about, in a list."""
        if self.pending is None or not self.may_suggest(outcome, *self.pending):
            return []
        tool, arguments = self.pending
        text = f"Next: {tool} with {json.dumps(arguments)}"
        return [{**self.for_model(text), "_meta": {ID: {"describes": "nextTool"}}}]

    def may_suggest(self, outcome, name, arguments):
        nobody = outcome == "declined" and self.context.get("consent") == "nobody"
        tool = self.find(name)
        if tool is None or not (nobody or outcome == "limit_reached"):
            return False
        return not (self.denied(name) or self.hidden(tool) or self.in_doubt(name, arguments))

    def is_settled(self, number, results):
        """Whether nobody is to act any more on what result `number` says of a next step."""
        return True

    def is_wording(self, item):
        return (item.get("_meta") or {}).get(ID, {}).get("describes") == "nextTool"

    def follow_ups(self, results):
        """Return the number, the tool, the arguments and the status of each follow-up call."""
        last = "not_made" if self.refused else "unknown"
        calls = zip(self.started, ["made"] * (len(results) - 1) + [last], strict=False)
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
        return len(self.started) >= max(len(results), 1) and not self.refused

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
        return self.for_model(f"Call {number}, of {named}: {follow_up['status']}.")

    def named(self, tool):
        if tool not in self.tools:
            return "a tool that the server does not list"
        return json.dumps(tool[:120])

    def printed(self, results, outcome):
        if results and self.leaves_as_it_is():
            return {"outcome": outcome, "isError": False, **results[-1]}
        follow_ups = self.follow_ups(results)
        content = self.merged(results) + [self.in_words(each) for each in follow_ups]
        content += self.suggestion(outcome)
        printed = {"outcome": outcome, "content": content, "isError": self.is_error(results)}
        printed |= {"_meta": self.handed_on_meta(results), "followUps": follow_ups}
        structured = self.structured(results)
        if structured is None:
            return printed
        structured |= self.told_in_structured(follow_ups)
        return {**printed, "structuredContent": structured}

    def lines(self, results, outcome):
        """Return the lines of the output."""
        return ["Done.", json.dumps(self.printed(results, outcome), ensure_ascii=False)]

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
            further = [(each["tool"], each["arguments"]) for each in self.further()]
            if self.context.get("atOnce"):
                return self.run_at_once([(tool, arguments), *further])
            for call in [(tool, arguments), *further]:
                self.started, self.pending, self.cancelled = [], None, False
                self.refused = False
                results, outcome = self.follow(*call)
        return self.output(results, outcome)

    def further(self):
        return self.context.get("furtherCalls", [])

    def output(self, results, outcome):
        self.outcome = outcome
        return "".join(f"{line}\n" for line in self.lines(results, outcome))

    def run_at_once(self, calls):
        """Begin all chains at once; return the output for the last one."""
        ended = {}

        def run(number, call):
            chain = copy.copy(self)
            chain.started, chain.idle = [], None
            ended[number] = chain, chain.follow(*call)

        threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for chain, _ in ended.values():
            if chain.idle is not None:
                chain.idle.close()
        last, (results, outcome) = ended[len(calls) - 1]
        return last.output(results, outcome)


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
