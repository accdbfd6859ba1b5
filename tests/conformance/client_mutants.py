"""Deliberately wrong clients, each a few lines away from `SmallClient`.

Which check each one fails stands in `mutants.yaml`, under the name of its class:
`AsksOnce` is `asks-once`.
"""

import json
import re
import unicodedata
import uuid

from .mutants import by_name
from .small_client import ID, LEGACY, Lost, Malformed, NoResult, SmallClient, Task

CLIENT_MUTANTS = {}


def wrong(name, like=SmallClient, **members):
    """Register a mutant that differs from a class in these members."""
    CLIENT_MUTANTS[name] = type(name, (like,), members)


def after(name, method, change):
    """Register a client of which a method returns what `change` makes of the right value."""
    right = getattr(SmallClient, method)
    wrong(name, **{method: lambda self, *given: change(self, right(self, *given))})


def before(name, method, change):
    """Register a client of which a method is given what `change` makes of the right arguments."""
    right = getattr(SmallClient, method)
    wrong(name, **{method: lambda self, *given: right(self, *change(self, *given))})


# Declaring, and what a server advertises


class DeclaresInCallsOnly(SmallClient):
    def capabilities(self, method):
        declared = super().capabilities(method)
        return declared if method == "tools/call" else {"elicitation": {"form": {}}}


class AcceptsMalformedSettings(SmallClient):
    def read_settings(self, value):
        return value if value is None or isinstance(value, dict) else {}


class SecondPlaceDecides(SmallClient):
    def connect(self):
        places = super().connect()["capabilities"]
        if ID in places.get("experimental", {}):
            self.advertised = self.read_settings(places["experimental"][ID])


def declines(name, when):
    """Register a client that follows no server with some settings."""
    right = SmallClient.trusts_server
    wrong(name, trusts_server=lambda self: not when(self.advertised or {}) and right(self))


declines("declines-unknown-settings", lambda settings: set(settings) - {"version"})
declines("declines-later-settings", lambda settings: settings.get("version", 1) != 1)
wrong("settings-version-text", settings=lambda self: {"version": "1"})
wrong("never-declares", capabilities=lambda self, method: {"elicitation": {"form": {}}})
after(
    "declares-in-experimental-alone",
    "capabilities",
    lambda self, all: {"elicitation": all["elicitation"], "experimental": all["extensions"]},
)
wrong("takes-true-for-a-version", is_version=lambda self, v: isinstance(v, int) and v >= 1)
wrong("follows-unadvertised-servers", trusts_server=lambda self: True)
wrong("reads-experimental-everywhere", places=lambda self: ["extensions", "experimental"])
wrong("reads-extensions-alone", places=lambda self: ["extensions"])
wrong("reads-experimental-alone", places=lambda self: SmallClient.places(self)[-1:])


# Reading a directive


def reads(name, change, kind=dict):
    """Register a client that reads what `change` makes of a directive of this kind."""

    def repaired(self, value):
        return (change(value) if isinstance(value, kind) else value,)

    before(name, "read_directive", repaired)


def reads_alias(name, alias, member):
    """Register a client that reads a member under another name, too."""
    reads(name, lambda value: {**value, member: value[alias]} if alias in value else value)


def refuses(name, is_wrong):
    """Register a client that takes a directive for malformed if `is_wrong` says so."""
    reads(name, lambda value: None if is_wrong(value) else value)


def overlooks(name, change):
    """Register a client that looks for what nobody can write in JSON as `change` returns it."""
    before(name, "writable", lambda self, value: (json.loads(change(json.dumps(value))),))


def overlooks_members(name, kept):
    """Register a client that looks for it in some members only."""
    before(
        name, "writable", lambda self, value: ({k: part for k, part in value.items() if kept(k)},)
    )


def is_text(value):
    return value if value[0] == "{" else {"tool": value, "arguments": {"text": "x"}}


reads(
    "takes-text-for-a-directive",
    lambda value: value[0] if isinstance(value, list) else is_text(value),
    kind=str | list,
)
reads("parses-directive-out-of-text", lambda v: json.loads(v) if v[0] == "{" else v, kind=str)
reads("folds-case-of-members", lambda value: {key.lower(): part for key, part in value.items()})
reads(
    "takes-name-where-tool-is-null",
    lambda value: {**value, "tool": value.get("name")} if value.get("tool", "") is None else value,
)
reads(
    "drops-bad-arguments",
    lambda value: {
        key: part
        for key, part in value.items()
        if key != "arguments" or not isinstance(part, list | None)
    },
)
reads(
    "turns-numbers-into-names",
    lambda value: value | {"tool": str(value["tool"])} if value.get("tool") == 7 else value,
)
reads_alias("reads-another-alias", "toolName", "tool")
reads_alias("reads-input-as-arguments", "input", "arguments")
refuses("refuses-unknown-members", lambda v: set(v) - {"tool", "name", "arguments", "title"})
refuses("refuses-name-beside-tool", lambda value: {"tool", "name"} <= set(value))
refuses("takes-blanks-for-no-name", lambda value: str(value.get("tool")).isspace())
refuses(
    "refuses-malformed-title",
    lambda value: not isinstance(title := value.get("title", ""), str) or len(title) > 200,
)
after(
    "drops-null-arguments",
    "read_directive",
    lambda self, read: (read[0], {k: v for k, v in read[1].items() if v is not None}),
)
after("resolves-names-by-case", "read_directive", lambda self, read: (read[0].lower(), read[1]))
overlooks("follows-infinite-numbers", lambda text: text.replace("Infinity", "0"))
overlooks("follows-half-a-pair", lambda text: re.sub(r"\\ud[89ab]..(?!\\ud[c-f])", "", text))
overlooks_members(
    "looks-at-arguments-alone-for-numbers", lambda name: name in ("tool", "arguments")
)
overlooks_members("follows-unwritable-titles", lambda name: name != "title")


class CallsAgainOnMalformed(SmallClient):
    def read(self, result):
        try:
            return super().read(result)
        except Malformed:
            self.call("begin", {"story": "again"}, None)
            raise


# Where a directive is looked for


def looks_elsewhere(name, find):
    """Register a client that takes what `find` finds in a result for a directive, too."""

    def read(self, result):
        found = find(self, result)
        return SmallClient.read(self, result) or (self.read_directive(found) if found else None)

    wrong(name, read=read)


def reads_key(name, key):
    """Register a client that reads another key of `_meta`, too."""
    looks_elsewhere(name, lambda self, result: (result.get("_meta") or {}).get(key))


def reads_words(name, phrase):
    """Register a client that finds a call in marked words."""

    def find(self, result):
        words = [item["text"] for item in result.get("content", []) if self.is_wording(item)]
        found = re.search(phrase, "\n".join(words))
        return found and {"tool": found[1], "arguments": json.loads(found[2])}

    looks_elsewhere(name, find)


def structured_content(result):
    return result.get("structuredContent") or {}


reads_key("reads-other-keys", "nexttool")
reads_key("reads-a-prefixed-key", ID)
reads_key("follows-a-longer-name", "com.example/tool-chaining/nextTool")
reads_words("reads-text", r"call (\w+) once, with (.*)\.")
reads_words("reads-the-words-of-the-guide", r'call the tool "(\w+)" .*: ({.*})')
looks_elsewhere(
    "follows-next-step", lambda self, result: structured_content(result).get("nextStep")
)
looks_elsewhere(
    "follows-text",
    lambda self, result: (structured_content(result).get("_meta") or {}).get("nextTool"),
)
before(
    "stops-without-content", "read", lambda self, result: (result if result.get("content") else {},)
)
before(
    "stops-at-errors",
    "read",
    # What the results of other chains are merged to, other checks judge.
    lambda self, result: (
        {} if result.get("isError") and self.context["name"] == "follow" else result,
    ),
)
wrong("follows-nothing", read=lambda self, result: None, added=lambda self, *of: None)
wrong(
    "follows-task-results",
    complete=lambda self, result: "task" in result or SmallClient.complete(self, result),
)
wrong(
    "follows-unknown-results",
    complete=lambda self, result: (
        result.get("resultType") == "com.example/half" or SmallClient.complete(self, result)
    ),
)


class FollowsInterimResult(SmallClient):
    def on_question(self, interim):
        directive = self.read(interim)
        if directive is not None:
            self.request("tools/call", {"name": directive[0], "arguments": directive[1]})


class FollowsErrorData(SmallClient):
    def on_error(self, error):
        directive = self.read(error.get("data") or {})
        if directive is not None:
            self.call(*directive, None)


class FollowsToolsList(SmallClient):
    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if method == "tools/list":
            self.from_list = self.read(result)
        return result

    def read(self, result):
        directive = super().read(result)
        return directive or ("tools" not in result and self.from_list) or None


class AddsStepsBesideDirectives(SmallClient):
    def read(self, result):
        rule = "addedStep" in self.context and not self.started
        return None if rule else super().read(result)


# The list, and what a call is checked against


class ReadsOnePage(SmallClient):
    def list_tools(self):
        # Where the list changes, other checks look.
        if self.context["case"] != "last-page":
            return super().list_tools()
        return {tool["name"]: tool for tool in self.request("tools/list", {})["tools"]}


class StopsAtAnEmptyCursor(SmallClient):
    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if self.context["case"] == "last-page" and result.get("nextCursor") == "":
            del result["nextCursor"]
        return result


class ReadsTheListOnce(SmallClient):
    def read_list(self):
        if not self.tools:
            super().read_list()


class KeepsWhatItKnew(SmallClient):
    def read_list(self):
        # That the list is read is not all; what is looked at counts.
        self.tools = {**self.list_tools(), **self.tools}


class CallsUnknownTools(SmallClient):
    def find(self, name):
        anything = {"inputSchema": {}, "annotations": {"readOnlyHint": True}}
        return anything if name == "ghost" else super().find(name)


class IgnoresSomeDirectives(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        if len(made) == 2 and self.context["case"] == "visible-tool":
            return "completed"
        return super().obstacle(tool_name, arguments, made)


def twice(self, tool, tools):
    return [each["name"] for each in tools].count(tool["name"]) > 1


def hides(name, rule):
    """Register a client that hides a tool by its visibility, and by whether it is hidden."""
    right = SmallClient.hidden
    wrong(name, hidden=lambda self, tool: rule(self.visibility(tool), right(self, tool)))


def allows_model(visibility):
    return isinstance(visibility, list) and "model" in map(str.lower, visibility)


FLAT = {"type": "object", "properties": {"owner": {"type": "object"}}}

wrong("takes-the-last-of-two", disagrees=lambda self, tool, tools: False)
wrong("takes-every-name-twice-for-unknown", disagrees=twice)
hides("calls-hidden-tools", lambda visibility, hidden: False)
hides("takes-empty-visibility-for-absent", lambda visibility, hidden: hidden and visibility != [])
hides("takes-visibility-text-for-absent", lambda text, hidden: hidden and not isinstance(text, str))
hides("hides-what-is-for-the-model", lambda visibility, hidden: hidden or visibility == "model")
hides("folds-case-of-visibility", lambda listed, hidden: hidden and not allows_model(listed))
wrong("validates-nothing", fits=lambda self, schema, arguments: True)
before(
    "validates-the-top-only",
    "fits",
    lambda self, schema, given: (FLAT if "owner" in given else schema, given),
)
before(
    "ignores-enum",
    "fits",
    lambda self, schema, given: (json.loads(json.dumps(schema).replace("enum", "title")), given),
)


# Limits and cycles


class CountsQuestions(SmallClient):
    asked = 0

    def on_question(self, interim):
        self.asked += 1

    def obstacle(self, tool_name, arguments, made):
        if len(made) + self.asked >= self.limit:
            return "limit_reached"
        return super().obstacle(tool_name, arguments, made)


class GoesRoundOnce(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        outcome = super().obstacle(tool_name, arguments, made)
        again = self.context["case"] in ("cycle-of-one", "cycle-through-first-call")
        return None if outcome == "cycle" and again and len(made) < 3 else outcome


class NoToolTwice(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        if self.context["case"] == "same-tool-new-arguments" and tool_name in dict(made):
            return "cycle"
        return super().obstacle(tool_name, arguments, made)


class TakesToolsOfAnotherCaseForMade(SmallClient):
    def obstacle_in_list(self, tool_name, arguments, made):
        obstacle = super().obstacle_in_list(tool_name, arguments, made)
        lower = [(tool.lower(), same) for tool, same in made]
        again = (tool_name.lower(), self.same(arguments)) in lower
        return "cycle" if again and obstacle is None else obstacle


class ComparesNumbersBeyondDoubles(SmallClient):
    def plain(self, value):
        if type(value) is int and 2**53 <= abs(value) < 2**1024:
            return value
        return super().plain(value)


wrong("no-limit", limit=1000)
wrong("limit-of-four", limit=4)
before(
    "compares-with-the-first-and-the-last",
    "obstacle_in_list",
    lambda self, tool, given, made: (tool, given, [made[0], made[-1]]),
)
wrong("compares-arguments-as-text", same=lambda self, arguments: json.dumps(arguments))
before("compares-trimmed-text", "plain", lambda self, v: (v.strip() if isinstance(v, str) else v,))
before("takes-true-for-one", "plain", lambda self, v: (int(v) if isinstance(v, bool) else v,))
after(
    "compares-lists-without-order",
    "plain",
    lambda self, plain: sorted(plain, key=json.dumps) if isinstance(plain, list) else plain,
)


# What is sent


def sends(name, change, tool="keep"):
    """Register a client that sends the arguments of a tool as `change` returns them."""

    def sent(self, called, given, meta):
        return called, change(given) if called == tool else given, meta

    before(name, "call", sent)


sends("invents-arguments", lambda given: given or {"reason": "none given"}, tool="status")
sends("sends-null-for-no-arguments", lambda given: None, tool="status")
sends(
    "normalizes-text",
    lambda given: json.loads(
        unicodedata.normalize("NFC", json.dumps(given, ensure_ascii=False)),
    ),
)
sends(
    "rounds-numbers",
    lambda given: json.loads(json.dumps(given), parse_float=lambda text: round(float(text), 6)),
)
sends("changes-line-ends", lambda given: json.loads(json.dumps(given).replace("\\r\\n", "\\n")))
sends(
    "cuts-long-arguments",
    lambda given: {k: v[:5000] if isinstance(v, str) else v for k, v in given.items()},
)
sends("drops-duplicates", lambda given: json.loads(json.dumps(given).replace("1, 1", "1")))


class FillsInDefaults(SmallClient):
    def call(self, name, arguments, meta):
        properties = (self.find(name) or {}).get("inputSchema", {}).get("properties", {})
        defaults = {key: rule["default"] for key, rule in properties.items() if "default" in rule}
        return super().call(name, defaults | arguments, meta)


class CallsTheOtherServer(SmallClient):
    def call(self, name, arguments, meta):
        other = self.context.get("otherServerUrl")
        if other is None or name != "shared":
            return super().call(name, arguments, meta)
        client = SmallClient(other, self.era, self.context)
        client.connect()
        client.call(name, arguments, meta)
        return super().call(name, arguments, meta)


class FollowsWithAnotherToken(SmallClient):
    def authorization(self, message):
        if "bearerToken" in self.context and self.started:
            return {"authorization": "Bearer another"}
        return super().authorization(message)


class LevelsFromZero(SmallClient):
    def provenance(self, chain_id, level, previous):
        # Well-formed still: the first call says nothing.
        return super().provenance(chain_id, max(level - 1, 2), previous)

    def meta(self, chain_id, level, previous):
        return {} if level == 1 else super().meta(chain_id, level, previous)


wrong("no-provenance", meta=lambda self, chain_id, level, previous: {})
wrong(
    "provenance-once",
    meta=lambda self, *given: SmallClient.meta(self, *given) if given[1] < 3 else {},
)
wrong("one-chain-id-for-ever", chain_id=lambda self: "8d0eb1a5-6c13-4a6c-9d5f-0a1e7d3f2b11")
wrong("one-chain-id-a-session", chain_id=lambda self: vars(self).setdefault("id", uuid.uuid4().hex))
before(
    "a-chain-id-for-each-call",
    "provenance",
    lambda self, _, level, previous: (str(uuid.uuid4()), level, previous),
)
before(
    "names-the-first-tool",
    "provenance",
    lambda self, chain_id, level, previous: (chain_id, level, previous and self.first[0]),
)
after(
    "first-call-names-a-previous-tool",
    "provenance",
    lambda self, shown: {"previousTool": "none", **shown},
)


# Sending again


class SendsAgainWhatWasLost(SmallClient):
    what, case = "pay", None

    def call(self, name, arguments, meta):
        try:
            return super().call(name, arguments, meta)
        except Lost:
            if name != self.what or self.case not in (None, self.context["case"]):
                raise
            return super().call(name, arguments, meta)


class _SendsAgainAfterAnError(SmallClient):
    """Makes a follow-up call again after one kind of error."""

    code = 0
    last = None

    def on_error(self, error):
        self.last = error["code"]

    def call(self, name, arguments, meta):
        try:
            return super().call(name, arguments, meta)
        except NoResult as failure:
            if "pay" not in name or isinstance(failure, Lost) or self.last != self.code:
                raise
            return super().call(name, arguments, meta)


class SendsAgainAfterAQuestion(SmallClient):
    def answered(self, again, meta):
        try:
            return super().answered(again, meta)
        except NoResult:
            return super().answered(again, meta)


class BelievesARefusalOfASecondAnswer(SmallClient):
    answers = 0

    def answered(self, again, meta):
        self.answers += 1
        if self.answers == 2:
            return self.request("tools/call", again, meta)
        return super().answered(again, meta)


for _kind, _code in (("internal", -32603), ("params", -32602), ("server", -32050)):
    wrong(f"sends-again-after-{_kind}-error", _SendsAgainAfterAnError, code=_code)
wrong("believes-untrusted-idempotent-hints", SendsAgainWhatWasLost, what="pay-standing")
wrong("believes-untrusted-read-only-hints", SendsAgainWhatWasLost, what="look-up")
wrong("obeys-status-503", SendsAgainWhatWasLost, what="pay-abroad", case="status-503")
wrong("believes-idempotent-words", SendsAgainWhatWasLost, case="idempotent-text")


# Consent


class AsksForTheCallsOfTheModelOnly(SmallClient):
    def model_may_call(self, name):
        tool = self.find(name)
        return super().model_may_call(name) and tool["annotations"].get("readOnlyHint") is True


class AsksOnce(SmallClient):
    agreed = False

    def user_agrees(self, tool):
        self.agreed = self.agreed or super().user_agrees(tool)
        return self.agreed


class KeepsAYesForTheTool(SmallClient):
    agreed = ()

    def consents(self, tool):
        yes = tool["name"] in self.agreed or super().consents(tool)
        self.agreed += (tool["name"],) * yes
        return yes


class BelievesOldHints(SmallClient):
    def hints(self, tool, name, value):
        old = vars(self).setdefault("old", self.tools)
        return super().hints(old.get(tool.get("name"), tool), name, value)


def takes_hint(name, is_hint):
    """Register a client that trusts a hint, too, of which `is_hint` says that it is the value."""

    def hints(self, tool, hint, value):
        given = tool.get("annotations") or {}
        if hint in given and is_hint(given[hint], value):
            given = {hint: value}
        return SmallClient.hints(self, {**tool, "annotations": given}, hint, value)

    wrong(name, hints=hints)


def takes_for_harmless(name, hint, value):
    """Register a client that takes a hint for a consent."""
    right = SmallClient.consents
    wrong(
        name,
        consents=lambda self, tool: (
            (tool.get("annotations") or {}).get(hint) is value or right(self, tool)
        ),
    )


wrong("consents-to-everything", consents=lambda self, tool: True)
wrong(
    "follows-to-denied-tools",
    may_follow=lambda self, name, tool: not self.hidden(tool) and self.consents(tool),
)
wrong(
    "makes-added-steps-unasked",
    may_follow=lambda self, *call: "addedStep" in self.context or self.allowed(*call),
)
wrong("believes-untrusted-hints", trusts_hints=lambda self: True)
wrong("trusts-half-a-list", trusts_list=lambda self: True)
takes_hint("takes-a-true-value-for-a-hint", lambda given, value: value and bool(given))
takes_hint("takes-nothing-for-false", lambda given, value: value is False and not given)
takes_hint("reads-hints-in-text", lambda given, value: given == json.dumps(value))
takes_for_harmless("takes-idempotent-for-harmless", "idempotentHint", True)
takes_for_harmless("takes-a-closed-world-for-harmless", "openWorldHint", False)
takes_for_harmless("takes-what-only-adds-for-harmless", "destructiveHint", False)


# Cancelling, and chains at once


class IgnoresACancellationWhileItReads(SmallClient):
    reads = False

    def read_list(self):
        self.reads = True
        super().read_list()
        self.reads = False

    def cancel(self):
        if not self.reads:
            super().cancel()


class DeclinesWhatRuns(SmallClient):
    def begin(self, tool, arguments):
        running = [name for _, name, _ in self.record.running]
        return "declined" if tool in running else super().begin(tool, arguments)


class DeclinesWhatAnEqualChainRuns(SmallClient):
    def begin(self, tool, arguments):
        return "declined" if self.is_held(tool, arguments) else super().begin(tool, arguments)


wrong("goes-on-when-cancelled", cancel=lambda self: None)
wrong("holds-nothing", is_held=lambda self, tool, arguments: False)
wrong(
    "holds-what-runs",
    is_held=lambda self, tool, arguments: tool in [name for _, name, _ in self.record.running],
)
wrong(
    "holds-equal-calls-only",
    is_held=lambda self, tool, arguments: (
        (self.first, tool, self.same(arguments)) in self.record.running
    ),
)


# The record of doubt


def forgets(name, what, **members):
    """Register a client in which a call without a result leaves no doubt if `what` says so.

    It is given whether the call is the first one of its chain, and the error.
    """

    def on_no_result(self, tool, arguments, error):
        if not what(self, (tool, self.same(arguments)) == self.first, error):
            SmallClient.on_no_result(self, tool, arguments, error)

    wrong(name, on_no_result=on_no_result, **members)


class ForgetsLostAnswers(SmallClient):
    how = int
    """What `Lost` has: the HTTP status, a text about the stream, or a TimeoutError."""

    def on_failure(self, results, error):
        if isinstance(error, Lost) and isinstance(error.args[0], self.how):
            self.record.doubts.clear()
        return super().on_failure(results, error)


class ForgetsLostCallsOfIdempotentTools(SmallClient):
    def on_no_result(self, tool, arguments, error):
        if not (isinstance(error, Lost) and self.may_be_repeated(tool)):
            super().on_no_result(tool, arguments, error)


class RemembersAYes(SmallClient):
    def in_doubt(self, tool, arguments):
        return []

    def user_agrees(self, tool):
        yes = vars(self).setdefault("agreed_to", set())
        if tool["name"] in yes or super().user_agrees(tool):
            yes.add(tool["name"])
        return tool["name"] in yes


class ComparesArgumentsOfDoubtfulCalls(SmallClient):
    def counts(self, entry, tool, arguments):
        return entry[1] == self.same(arguments) and super().counts(entry, tool, arguments)


class DoubtsErrorsEverywhere(SmallClient):
    def on_result(self, tool, arguments, result, is_first):
        super().on_result(tool, arguments, result, is_first)
        if result.get("isError") and not is_first:
            self.doubt(tool, arguments, None)


class EndsADoubtByAnotherResult(SmallClient):
    def clear(self, tool, arguments):
        self.record.doubts[:] = [each for each in self.record.doubts if each[0] != tool]


class EndsADoubtByAnError(SmallClient):
    def on_result(self, tool, arguments, result, is_first):
        self.clear(tool, arguments)
        super().on_result(tool, arguments, result, is_first)


class DoubtsAfterAYes(SmallClient):
    def begin(self, tool, arguments):
        kept = list(self.record.doubts)
        ends = super().begin(tool, arguments)
        self.record.doubts[:] = kept
        return ends


class LooksAtTheRecordBeforeItWaits(SmallClient):
    seen = None

    def begin(self, tool, arguments):
        self.seen = super().in_doubt(tool, arguments)
        return super().begin(tool, arguments)

    def in_doubt(self, tool, arguments):
        return self.seen if self.seen is not None else super().in_doubt(tool, arguments)


forgets("forgets-lost-first-calls", lambda self, is_first, error: is_first)
forgets(
    "forgets-errors-of-first-calls",
    lambda self, is_first, error: is_first and not isinstance(error, Lost),
)
forgets("forgets-cancelled-calls", lambda self, is_first, error: self.cancelled)
forgets("forgets-tasks", lambda self, _, error: isinstance(error, Task), only_in=LEGACY)
wrong("forgets-lost-streams", ForgetsLostAnswers, how=str)
wrong("forgets-after-a-time-limit", ForgetsLostAnswers, how=TimeoutError)
wrong("forgets-unknown-effects", in_doubt=lambda self, tool, arguments: [])
wrong("forgets-what-was-not-delivered", not_delivered=lambda self, results: None)
before("forgets-errors", "on_result", lambda self, tool, given, _, first: (tool, given, {}, first))
wrong("never-ends-a-doubt", clear=lambda self, tool, arguments: None)
wrong("doubts-errors-of-idempotent-tools", may_be_repeated=lambda self, name: False)
before(
    "doubts-lost-calls-in-equal-chains-only",
    "doubt",
    lambda self, tool, given, _: (tool, given, self.first),
)


# What is told of follow-up calls


class TakesAFailedCallForNotMade(SmallClient):
    case = "protocol-error"

    def follow_ups(self, results):
        status = "not_made" if self.context["case"] == self.case else "unknown"
        return [
            {**each, "status": status} if each["status"] == "unknown" else each
            for each in super().follow_ups(results)
        ]


def tells(name, more):
    """Register a client that says `more` of a follow-up call."""

    def in_words(self, told):
        return self.for_model(f"{SmallClient.in_words(self, told)['text']} {more(self, told)}")

    wrong(name, in_words=in_words)


def made(follow_up):
    return {**follow_up, "status": "made"}


wrong("believes-invalid-params", TakesAFailedCallForNotMade, case="invalid-params")
wrong("believes-status-400", TakesAFailedCallForNotMade, case="status-400")
wrong(
    "believes-errors-about-the-request",
    refusals=(*SmallClient.refusals, -32700, -32600, -32601),
)
wrong(
    "believes-a-refusal-after-a-question",
    answered=lambda self, again, meta: self.request("tools/call", again, meta),
)
wrong("takes-a-missing-capability-for-unknown", refusals=(-32020, -32022))
wrong("takes-refused-headers-for-unknown", refusals=(-32021, -32022))
wrong("takes-status-403-for-unknown", unauthorized=(401,))
after("tells-made-from-nothing", "follow_ups", lambda self, told: list(map(made, told)))
before("tells-made-in-structured-content", "told_in_structured", lambda _, ups: (map(made, ups),))
before(
    "tells-unknown-as-made",
    "in_words",
    lambda self, told: (made(told) if told["status"] == "unknown" else told,),
)
before(
    "names-follow-ups-without-numbers",
    "in_words",
    lambda self, told: (told | {"number": "again"},),
)
wrong("names-no-follow-up", in_words=lambda self, told: self.for_model("More was done."))
tells("tells-arguments", lambda self, told: json.dumps(told["arguments"]))
tells("tells-names-of-arguments", lambda self, told: ", ".join(told["arguments"]))
tells(
    "tells-why-arguments-are-invalid",
    lambda self, told: json.dumps(told["arguments"]) if self.outcome == "invalid_arguments" else "",
)
wrong("names-unlisted-tools", named=lambda self, tool: json.dumps(tool[:120]))
wrong(
    "names-tools-as-they-are",
    named=lambda self, tool: tool[:120] if '"' in tool else SmallClient.named(self, tool),
)
wrong(
    "names-tools-in-full-length",
    named=lambda self, tool: json.dumps(tool) if len(tool) > 120 else SmallClient.named(self, tool),
)
wrong("tells-follow-ups-in-text-alone", told_in_structured=lambda self, follow_ups: {})
after("follow-ups-always", "told_in_structured", lambda self, told: {"followUps": [], **told})


# What is suggested to the model


class SuggestsDoubtfulCalls(SmallClient):
    def may_suggest(self, outcome, name, arguments):
        doubtful = bool(self.in_doubt(name, arguments))
        nobody = self.context.get("consent") == "nobody"
        return (doubtful and nobody) or super().may_suggest(outcome, name, arguments)


def suggests_after(name, outcome):
    """Register a client that suggests each call before which a chain ended in this way."""
    right = SmallClient.may_suggest
    wrong(
        name, may_suggest=lambda self, ended, *call: ended == outcome or right(self, ended, *call)
    )


suggests_after("suggests-refused-calls", "declined")
suggests_after("suggests-hidden-tools", "limit_reached")
after(
    "suggests-without-the-mark",
    "suggestion",
    lambda self, items: [self.for_model(item["text"]) for item in items],
)


# The merged result


class ForgetsOnFailure(SmallClient):
    when_lost = False
    failed = False

    def on_failure(self, results, error):
        self.failed = isinstance(error, Lost) is self.when_lost
        return "failed"

    def merged(self, results):
        return [] if self.failed else super().merged(results)


class AResultForEachStep(SmallClient):
    def lines(self, results, outcome):
        steps = [json.dumps({"content": result.get("content", [])}) for result in results[:-1]]
        return [*steps, *super().lines(results, outcome)]


class KeepsTheLastContentOnly(SmallClient):
    def merged(self, results):
        # Where the chain failed or was merged to one result, other checks look.
        if self.context["name"] in ("failures", "waiting", "merged"):
            return super().merged(results)
        return super().merged(results[-1:])


class ShowsLaterDataToTheUser(SmallClient):
    def merged(self, results):
        data = [json.dumps(self.data(result)) for result in results[1:]]
        for_user = {"annotations": {"audience": ["user"]}}
        return [i | for_user if i.get("text") in data else i for i in super().merged(results)]


class IsErrorOfTheLast(SmallClient):
    looked_at = -1

    def is_error(self, results):
        failed = results and results[self.looked_at].get("isError")
        return bool(failed) or self.lost(results)


class KeepsAMalformedDirective(SmallClient):
    def handed_on_meta(self, results):
        malformed = self.outcome == "malformed_directive"
        return results[-1]["_meta"] if malformed else super().handed_on_meta(results)


def adds_texts(name, texts):
    """Register a client whose merged content has what `texts` finds in each result, too."""

    def merged(self, results):
        found = [text for result in results for text in texts(self, result)]
        return SmallClient.merged(self, results) + list(map(self.for_model, found))

    wrong(name, merged=merged)


def drops(name, what):
    """Register a client whose merged content lacks the items of which `what` is true."""
    after(name, "merged", lambda self, items: [item for item in items if not what(item)])


def titles(self, result):
    directive = (result.get("_meta") or {}).get("nextTool")
    return filter(None, [directive.get("title")] if isinstance(directive, dict) else [])


adds_texts("shows-titles-to-the-model", titles)
adds_texts(
    "tells-what-is-malformed",
    lambda self, result: (
        [json.dumps(result.get("_meta"))] * (self.outcome == "malformed_directive")
    ),
)
adds_texts(
    "tells-later-steps-as-they-are",
    lambda self, result: [json.dumps(data)] if (data := result.get("structuredContent")) else [],
)
drops("drops-image", lambda item: item["type"] == "image")
drops("drops-blanks", lambda item: not item.get("text", "x").strip())
drops(
    "drops-items-for-the-assistant",
    lambda item: item.get("annotations") == {"audience": ["assistant"]} and item["text"][0] != "{",
)
after(
    "drops-priority",
    "merged",
    lambda self, items: json.loads(json.dumps(items).replace(', "priority": 1', "")),
)
after(
    "cuts-long-content",
    "merged",
    lambda self, items: [
        {**item, "text": item["text"][:10_000]} if "text" in item else item for item in items
    ],
)
wrong("drops-later-data", data=lambda self, result: {})
wrong("forgets-when-the-connection-breaks", ForgetsOnFailure, when_lost=True)
wrong("merges-foreign-results", leaves_as_it_is=lambda self: False)
wrong("hands-on-the-instruction", is_settled=lambda self, number, _: number >= len(self.started))
wrong("hands-on-the-words-of-the-last", is_settled=lambda self, n, _: n < len(self.started))
wrong(
    "asks-the-model-to-try-again",
    is_settled=lambda self, n, results: n < len(results) - 1 or n >= len(self.started),
)
wrong("keeps-words-of-a-declined-step", is_settled=lambda self, *of: self.outcome != "declined")
wrong(
    "compares-marks-by-equality",
    is_wording=lambda self, item: (item.get("_meta") or {}).get(ID) == {"describes": "nextTool"},
)
wrong(
    "hands-on-the-directive",
    handed_on_meta=lambda self, results: results[-1].get("_meta") or {} if results else {},
)
wrong("is-error-of-the-first", IsErrorOfTheLast, looked_at=0)
after("is-error-in-words", "is_error", lambda self, failed: failed and "yes")
wrong("an-unknown-effect-is-no-error", lost=lambda self, results: False)
for _what, _outcome in (
    ("being-declined", "declined"),
    ("a-malformed-directive", "malformed_directive"),
    ("the-limit", "limit_reached"),
):
    after(
        f"is-error-after-{_what}",
        "is_error",
        lambda self, failed, ends=_outcome: failed or self.outcome == ends,
    )
after("is-error-unless-completed", "is_error", lambda self, failed: failed or bool(self.pending))
before("structured-content-of-the-last", "structured", lambda self, results: (results[-1:],))
wrong(
    "keeps-next-step",
    structured=lambda self, results: (
        SmallClient.structured(self, results) and results[0]["structuredContent"]
    ),
)
wrong(
    "replaces-follow-ups",
    structured=lambda self, results: self.data(results[0]) or None if results else None,
)
after(
    "lists-follow-ups-that-are-no-texts",
    "told_in_structured",
    lambda self, told: {"followUps": [*told["followUps"], {"x": 1}]} if told else told,
)
after(
    "strips-a-foreign-next-step",
    "structured",
    lambda self, own: {key: own[key] for key in own or {} if key != "nextStep"} or None,
)

CLIENT_MUTANTS |= by_name(vars(), SmallClient)
"""What mutants are called in `mutants.yaml`."""
