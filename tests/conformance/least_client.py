"""The useful minimum of a client, as `specs/guide.md` names it: every MUST and no SHOULD.

What stands between the marks is the half that a client author writes. `host` has what any MCP
client has. Each decision is a method, so that a wrong client is a few lines: see `client_mutants`.
"""

import copy
import functools
import itertools
import json
import math
import threading

from .host import ID, MODERN, Answered, Host, NoResult, Refused


class Chain:
    """A chain, as the record knows it. `began` and `ended` number the events of the record."""

    def __init__(self, first, began):
        self.first, self.began, self.ended, self.calls = first, began, math.inf, []


class Entry:
    """A follow-up call that was sent, and what it brought."""

    answer = "running"
    """Then `success`, `failure` for another answer, or `none`."""

    def __init__(self, chain, call, sent):
        self.chain, self.call, self.sent = chain, call, sent
        self.agreed = []
        """The first calls for whose chains the user agreed to a repetition."""


class Record:
    """The record of doubt of one conversation. No run of these tests lasts until an entry ends."""

    def __init__(self):
        self.entries = []
        self.turns = []
        """The chains that have their turn or wait for it, in order."""
        self.events = itertools.count(1)
        self.changed = threading.Condition()


class LeastClient(Host):
    limit = 5
    patience = 60
    """Seconds that a chain waits for each one before it."""

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
        tool, arguments = value.get("tool", value.get("name")), value.get("arguments", {})
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
        return self.begin(listed, (tool, self.canonical(arguments)))

    def may_follow(self, listed):
        return self.allowed(listed)

    def begin(self, listed, call):
        """Wait for the turn of the chain, and ask; return how the chain ends, or None."""
        is_kept = not self.hints(listed, "readOnlyHint", True)
        with self.record.changed:
            if is_kept and self.known not in self.record.turns:
                self.take_turn()
        if self.cancelled or not self.may_follow(listed):
            return "cancelled" if self.cancelled else "declined"
        with self.record.changed:
            doubts = self.in_doubt(listed, call)
            if doubts and not (self.agreed_beforehand(call[0]) or self.user_agrees(listed)):
                return "declined"
            for entry in doubts:
                entry.agreed.append(self.known.first)
            self.sent(call, is_kept)
        return None

    def take_turn(self):
        """Wait until the chains before this one with an equal first call have ended."""
        ahead = [other for other in self.record.turns if self.is_held_by(other)]
        self.record.turns.append(self.known)
        for other in ahead:
            self.record.changed.wait_for(
                lambda other=other: other not in self.record.turns, self.patience
            )

    def is_held_by(self, other):
        return other.first == self.known.first

    def agreed_beforehand(self, tool):
        return tool in self.context.get("again", [])

    def sent(self, call, is_kept):
        """Note that a call is sent. A first call is kept only if it ends unanswered."""
        self.entry = Entry(self.known, call, next(self.record.events))
        self.known.calls.append(self.entry)
        if is_kept:
            self.record.entries.append(self.entry)

    def in_doubt(self, listed, call):
        """Return the entries that put the tool of a follow-up call in doubt."""
        if self.hints(listed, "readOnlyHint", True):
            return []
        may_be_repeated = self.hints(listed, "idempotentHint", True)
        concerned = [each for each in self.record.entries if self.concerns(each, call)]
        return [each for each in concerned if not (may_be_repeated and each.call == call)]

    def concerns(self, entry, call):
        is_other = entry.chain is not self.known and self.known.first not in entry.agreed
        everywhere = entry.answer == "none" or entry.chain.first == self.known.first
        return is_other and entry.call[0] == call[0] and everywhere

    def settle(self, result, error):
        """Note in the record how the last call ended: it has a result, or an error."""
        entry, is_first = self.entry, len(self.calls) == 1
        if error is not None:
            entry.answer = "failure" if isinstance(error, Answered) else "none"
        else:
            entry.answer = "failure" if result.get("isError") else "success"
        if isinstance(error, Refused):
            self.drop(lambda other: other is entry)
        elif is_first and entry.answer == "none":
            self.record.entries.append(entry)
        elif entry.answer == "success":
            self.drop(lambda other: self.is_settled(other, entry, is_first))

    def is_settled(self, other, entry, is_first):
        """Whether a success ends an entry."""
        equal = other.call == entry.call and (is_first or other.chain.first == entry.chain.first)
        return equal and other.answer != "success" and other.chain.ended < entry.sent

    def drop(self, is_over):
        with self.record.changed:
            self.record.entries = [each for each in self.record.entries if not is_over(each)]

    def end(self, well):
        """Note that the chain ended, and its turn."""
        known = self.known
        if well:
            self.drop(lambda other: other.chain is known or self.is_over(other))
        with self.record.changed:
            known.ended = next(self.record.events)
            self.record.turns = [each for each in self.record.turns if each is not known]
            self.record.changed.notify_all()

    def is_over(self, other):
        """Whether the good end of the chain ends an entry of another one."""
        equal = other.chain.first == self.known.first and other.chain.ended < self.known.began
        return equal and other.answer in ("success", "failure")

    def recall(self):
        """Note that the chain was cancelled right after its good end."""
        self.known.ended = next(self.record.events)
        self.record.entries += self.known.calls[1:]

    def follow(self, tool, arguments):
        """Make a call and what follows it; return how the chain ended."""
        self.results, self.calls, self.told = [], [], []
        call = (tool, self.canonical(arguments))
        self.known = Chain(call, next(self.record.events))
        self.sent(call, False)
        self.outcome = self.ended(tool, arguments)
        failed = any(result.get("isError") for result in self.results)
        self.end(well=self.outcome == "completed" and not failed)

    def ended(self, tool, arguments):
        while True:
            call = (tool, self.canonical(arguments))
            self.calls.append(call)
            try:
                result = self.call(tool, arguments, self.meta())
            except NoResult as error:
                self.settle(None, error)
                self.tell(tool, arguments, "not_made" if isinstance(error, Refused) else "unknown")
                return "cancelled" if self.cancelled else "failed"
            self.settle(result, None)
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
        words, structured = self.words(), {}
        if "structuredContent" in first:
            data = self.data(first)
            more = isinstance(data, dict) and "followUps" not in data
            own = data | self.told_as_data(self.quoting(words)) if more else data
            structured = {"structuredContent": own}
        texts = [item.get("text") for item in content]
        later = [self.data(each) for each in self.results[1:]]
        shown = [text for each in later if each and (text := json.dumps(each)) not in texts]
        content += map(self.for_model, shown + words)
        return {"content": content, "isError": self.is_error(), **structured}

    def content(self, result):
        return [item for item in result.get("content", []) if not self.is_marked(item)]

    def is_marked(self, item):
        mark = (item.get("_meta") or {}).get(ID)
        return isinstance(mark, dict) and mark.get("describes") == "nextTool"

    def data(self, result):
        """Return the structured content of a result without the words."""
        data = result.get("structuredContent")
        step = data.get("nextStep") if isinstance(data, dict) else None
        repeats = isinstance(step, dict) and isinstance(step.get("tool"), str)
        if not repeats or "nextTool" not in (result.get("_meta") or {}):
            return data
        return {name: part for name, part in data.items() if name != "nextStep"}

    def quoting(self, words):
        """Return the words with what each call returned, as one JSON string."""
        returned = [self.quoted(result) for result in self.results[1:]]
        return [
            f"{text} {more}" for text, more in itertools.zip_longest(words, returned, fillvalue="")
        ]

    def quoted(self, result):
        return json.dumps("\n".join(str(item.get("text")) for item in self.content(result)))

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
        return self.advertises()

    def advertises(self):
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
            if "cancelledUrl" in call:
                self.recall()
                self.visit(call["cancelledUrl"])
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
