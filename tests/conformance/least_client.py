"""The useful minimum of a client, as `specs/guide.md` names it: every MUST and no SHOULD.

What stands between the marks is the half that a client author writes. `host` has what any MCP
client has. Each decision is a method, so that a wrong client is a few lines: see `client_mutants`.
"""

import copy
import functools
import json
import threading

from .host import ID, MODERN, Host, NoResult, Refused, Task


class Record:
    """What the chains of one conversation share."""

    def __init__(self):
        self.doubts = []
        """Each doubtful call, and the first call of the chains that it concerns; None: all."""
        self.running = []
        """The first call and the call of each follow-up call that runs."""
        self.changed = threading.Condition()


class LeastClient(Host):
    limit = 5

    def __init__(self, *given):
        super().__init__(*given)
        self.record = Record()

    # The half: begin

    def canonical(self, value):
        """Return what equal values share. Raises ValueError where RFC 8785 cannot write."""
        text = json.dumps(self.plain(value), sort_keys=True, allow_nan=False, ensure_ascii=False)
        return text.encode()

    def plain(self, value):
        """Return a value with doubles for numbers."""
        if isinstance(value, dict):
            return {name: self.plain(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.plain(part) for part in value]
        return value if isinstance(value, str | bool | None) else float(value)

    def read(self, result):
        """Return the call that a result asks for, or None. Raises ValueError if it is malformed."""
        meta = result.get("_meta") or {}
        return self.read_directive(meta["nextTool"]) if "nextTool" in meta else None

    def read_directive(self, value):
        if not isinstance(value, dict):
            raise ValueError
        self.canonical(value)
        tool, arguments = value.get("tool"), value.get("arguments", {})
        if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
            raise ValueError
        return tool, arguments

    def obstacle(self, tool, arguments):
        """Return how the chain ends before a follow-up call, or None."""
        if self.cancelled or len(self.calls) >= self.limit:
            return "cancelled" if self.cancelled else "limit_reached"
        self.read_list()
        listed = self.find(tool)
        if listed is None:
            return "unknown_tool"
        if not self.fits(listed["inputSchema"], arguments):
            return "invalid_arguments"
        if (tool, self.canonical(arguments)) in self.calls:
            return "cycle"
        if self.cancelled or not self.may_follow(listed):
            return "cancelled" if self.cancelled else "declined"
        return self.begin(listed, (tool, self.canonical(arguments)))

    def may_follow(self, listed):
        return self.allowed(listed)

    def begin(self, listed, call):
        """Wait for the turn of a call, and ask about its doubts; return how the chain ends."""
        with self.record.changed:
            self.record.changed.wait_for(lambda: not self.is_held(call))
            doubts = self.in_doubt(listed, call)
            if doubts and not self.user_agrees(listed):
                return "declined"
            self.record.doubts = [each for each in self.record.doubts if each not in doubts]
            self.record.running.append((self.calls[0], call))

    def is_held(self, call):
        running = [(first, other[0]) for first, other in self.record.running]
        return (self.calls[0], call[0]) in running

    def in_doubt(self, listed, call):
        """Return what the record has against a follow-up call."""
        if self.hints(listed, "readOnlyHint", True):
            return []
        return [each for each in self.record.doubts if self.counts(each, call)]

    def counts(self, entry, call):
        return entry[0][0] == call[0] and entry[1] in (None, self.calls[0])

    def settle(self, call, result, error):
        """Note in the record how a call ended: it has a result, or an error."""
        with self.record.changed:
            if (self.calls[0], call) in self.record.running:
                self.record.running.remove((self.calls[0], call))
            self.record.changed.notify_all()
        if error is not None:
            if not isinstance(error, Refused):
                self.doubt(call, self.calls[0] if isinstance(error, Task) else None)
        elif not result.get("isError"):
            self.record.doubts = [each for each in self.record.doubts if each[0] != call]
        elif len(self.calls) > 1 and not self.may_be_repeated(call[0]):
            self.doubt(call, self.calls[0])

    def doubt(self, call, first):
        self.record.doubts.append((call, first))

    def may_be_repeated(self, tool):
        listed = self.find(tool) or {}
        return any(self.hints(listed, hint, True) for hint in ("readOnlyHint", "idempotentHint"))

    def follow(self, tool, arguments):
        """Make a call and what follows it; return how the chain ended."""
        self.results, self.calls, self.told = [], [], []
        self.outcome = self.ended(tool, arguments)
        if self.outcome == "cancelled":  # The host does not get the result.
            for call in self.calls[1 : len(self.results)]:
                self.doubt(call, self.calls[0])

    def ended(self, tool, arguments):
        while True:
            call = (tool, self.canonical(arguments))
            self.calls.append(call)
            try:
                result = self.call(tool, arguments, self.meta())
            except NoResult as error:
                self.settle(call, None, error)
                self.tell(tool, arguments, "not_made" if isinstance(error, Refused) else "unknown")
                return "cancelled" if self.cancelled else "failed"
            self.settle(call, result, None)
            self.results.append(result)
            self.tell(tool, arguments, "made")
            if not self.trusts_server():
                return "declined"
            try:
                step = self.next_step(tool, result)
            except (ValueError, OverflowError):
                return "malformed_directive"
            if step is None:
                return "completed"
            if outcome := self.obstacle(*step):
                self.calls.append(step)
                self.tell(*step, "not_made")
                return outcome
            tool, arguments = step

    def tell(self, tool, arguments, status):
        """Note what became of a follow-up call."""
        if (number := len(self.calls)) > 1:
            told = {"number": number, "tool": tool, "arguments": arguments, "status": status}
            self.told.append(told)

    def merged(self):
        """Return one result for the whole chain, or that of the server as it is."""
        first = self.results[0]
        if not (self.told or self.outcome == "malformed_directive") or not self.trusts_server():
            return first
        content = [item for each in self.results for item in self.content(each)]
        words = self.words()
        own, structured = self.data(first), {}
        if "structuredContent" in first and "followUps" not in own:
            structured = {"structuredContent": own | self.told_as_data(words)}
        texts = [item.get("text") for item in content]
        data = [self.data(each) for each in self.results[bool(structured) :]]
        shown = [text for each in data if each and (text := json.dumps(each)) not in texts]
        content += map(self.for_model, shown + words)
        return {"content": content, "isError": self.is_error(), **structured}

    def content(self, result):
        return [item for item in result.get("content", []) if not self.is_marked(item)]

    def is_marked(self, item):
        mark = (item.get("_meta") or {}).get(ID)
        return isinstance(mark, dict) and mark.get("describes") == "nextTool"

    def data(self, result):
        """Return the structured content of a result without the words."""
        data = dict(result.get("structuredContent") or {})
        if "nextTool" in (result.get("_meta") or {}):
            data.pop("nextStep", None)
        return data

    def words(self):
        """Return a text about each follow-up call."""
        malformed = ["A next step could not be read."] * (self.outcome == "malformed_directive")
        return [self.in_words(each) for each in self.told] + malformed

    def in_words(self, told):
        return f"Call {told['number']}, of {self.named(told['tool'])}: {told['status']}."

    def named(self, tool):
        return json.dumps(tool[:120]) if self.find(tool) else "a tool that is not listed"

    def told_as_data(self, words):
        return {"followUps": words}

    def for_model(self, text):
        return {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}

    def is_error(self):
        failed = any(result.get("isError") for result in self.results)
        return failed or any(told["status"] == "unknown" for told in self.told)

    # The half: end

    def fits(self, schema, arguments):
        return True

    def next_step(self, tool, result):
        return self.read(result)

    def meta(self):
        return {}

    def trusts_server(self):
        return self.advertised is not None

    def connect(self):
        able = super().connect()
        found = [(able.get(place) or {}).get(ID) for place in self.places()]
        known = [each for each in found if self.is_settings(each)]
        self.advertised = known[0] if known else None
        return able

    def places(self):
        """Return the capabilities in which settings are looked for."""
        return ["extensions"] if self.era == MODERN else ["extensions", "experimental"]

    def is_settings(self, value):
        return isinstance(value, dict) and self.is_version(value.get("version", 1))

    def is_version(self, value):
        return type(value) is int and value >= 1

    def run(self):
        """Make the first calls; return what is printed for the last one."""
        if "cancelUrl" in self.context:
            self.wait_for_cancel()
        self.connect()
        self.read_list()
        by_model = self.context.get("firstCallBy") == "model"
        if by_model and not self.model_may_call(self.context["tool"]):
            return self.output({"outcome": "declined", "content": []})
        begun = [self.context, *self.context.get("furtherCalls", [])]
        if self.context.get("atOnce"):
            return self.run_at_once(begun)
        for call in begun:
            self.cancelled = False
            self.follow(call["tool"], call["arguments"])
        return self.output(self.printed())

    def run_at_once(self, begun):
        chains = [copy.copy(self) for _ in begun]
        threads = []
        for chain, call in zip(chains, begun, strict=True):
            chain.idle = None
            follow = functools.partial(chain.follow, call["tool"], call["arguments"])
            threads.append(threading.Thread(target=follow))
            threads[-1].start()
        for chain, thread in zip(chains, threads, strict=True):
            thread.join()
            if chain.idle is not None:
                chain.idle.close()
        return chains[-1].output(chains[-1].printed())

    def printed(self):
        return self.merged() if self.results else {"content": []}

    def output(self, printed):
        return json.dumps(printed, ensure_ascii=False) + "\n"
