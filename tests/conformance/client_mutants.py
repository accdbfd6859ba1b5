"""Deliberately wrong clients, each a few lines away from `SmallClient`: two for each check.

Which check each one fails stands in `mutants.yaml`, under the name of its class:
`ReadsOnePage` is `reads-one-page`.
"""

import json
import re
import time
import unicodedata
import uuid

from .host import ID, Lost, Session
from .mutants import by_name
from .small_client import SmallClient

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

wrong("never-declares", capabilities=Session.capabilities)
after(
    "declares-in-calls-only",
    "capabilities",
    lambda self, able: able if self.__dict__.get("results") == [] else {"elicitation": {}},
)
wrong("settings-version-text", settings=lambda self: {"version": "1"})
wrong("settings-version-zero-of-a-client", settings=lambda self: {"version": 0})
wrong("accepts-malformed-settings", is_settings=lambda self, value: isinstance(value, dict))
wrong("takes-true-for-a-version", is_version=lambda self, v: isinstance(v, int) and v >= 1)
wrong("reads-extensions-alone", places=lambda self: ["extensions"])
wrong("reads-experimental-alone", places=lambda self: SmallClient.places(self)[-1:])
wrong("reads-experimental-everywhere", places=lambda self: ["extensions", "experimental"])
wrong("follows-unadvertised-servers", advertises=lambda self: True)


def declines(name, when):
    """Register a client that takes some settings for none."""
    right = SmallClient.is_settings
    wrong(name, is_settings=lambda self, value: right(self, value) and not when(value))


declines("declines-unknown-settings", lambda settings: set(settings) - {"version"})
declines("declines-three-settings", lambda settings: len(settings) > 2)
declines("declines-later-settings", lambda settings: settings.get("version", 1) != 1)
declines("declines-an-even-version", lambda settings: settings.get("version", 1) % 2 == 0)


class TakesForeignDirectivesAway(SmallClient):
    def handed_on_meta(self):
        meta = super().handed_on_meta()
        return {name: part for name, part in meta.items() if name != "nextTool"}


class StripsForeignWords(SmallClient):
    def merged(self):
        merged = super().merged()
        if self.trusts_server():
            return merged
        return {**merged, "content": self.content(merged)}


# Reading a directive


def reads(name, change):
    """Register a client that reads what `change` makes of a directive."""
    before(name, "read_directive", lambda self, value: (change(value),))


def refuses(name, is_wrong):
    """Register a client that takes a directive for malformed if `is_wrong` says so."""
    reads(name, lambda value: None if isinstance(value, dict) and is_wrong(value) else value)


def overlooks(name, change):
    """Register a client that looks for what nobody can write in JSON as `change` returns it."""
    right = SmallClient.canonical
    wrong(
        name,
        canonical=lambda self, value: right(self, json.loads(change(json.dumps(value)))),
    )


reads(
    "takes-text-for-a-directive",
    lambda value: {"tool": value, "arguments": {}} if isinstance(value, str) else value,
)
reads(
    "drops-bad-arguments",
    lambda value: (
        {key: part for key, part in value.items() if key != "arguments" or isinstance(part, dict)}
        if isinstance(value, dict)
        else value
    ),
)
refuses("refuses-unknown-members", lambda v: set(v) - {"tool", "name", "arguments", "title"})
refuses("knows-no-name", lambda value: "tool" not in value)
refuses("reads-name-with-arguments-only", lambda v: not {"tool", "arguments"} & set(v))
refuses(
    "refuses-malformed-title",
    lambda value: not isinstance(title := value.get("title", ""), str) or len(title) > 200,
)
overlooks("follows-infinite-numbers", lambda text: text.replace("Infinity", "0"))
overlooks("follows-half-a-pair", lambda text: re.sub(r"\\ud[89ab]..(?!\\ud[c-f])", "", text))


# Where a directive is looked for


def looks_elsewhere(name, find):
    """Register a client that takes what `find` finds in a result for a directive, too."""

    def read(self, result):
        found = find(self, result)
        return SmallClient.read(self, result) or (self.read_directive(found) if found else None)

    wrong(name, read=read)


looks_elsewhere(
    "follows-next-step",
    lambda self, result: (result.get("structuredContent") or {}).get("nextStep"),
)
looks_elsewhere("reads-a-prefixed-key", lambda self, result: (result.get("_meta") or {}).get(ID))


class FollowsInterimResult(SmallClient):
    def on_question(self, asked):
        if step := self.read(asked):
            self.request("tools/call", {"name": step[0], "arguments": step[1]})


class KeepsTheDirectiveOfAQuestion(SmallClient):
    asked = None

    def on_question(self, asked):
        self.asked = self.asked or self.read(asked)

    def read(self, result):
        step, self.asked = self.asked, None
        return step or super().read(result)


wrong(
    "follows-task-results",
    complete=lambda self, result: (
        "task" in result or "taskId" in result or SmallClient.complete(self, result)
    ),
)
wrong(
    "follows-unknown-results",
    complete=lambda self, result: (
        result.get("resultType") == "com.example/half" or SmallClient.complete(self, result)
    ),
)
before(
    "stops-at-errors",
    "read",
    # What the results of other chains are merged to, other checks judge.
    lambda self, result: (
        {} if result.get("isError") and self.context["name"] == "follow" else result,
    ),
)
before(
    "stops-at-errors-with-data",
    "read",
    lambda self, result: (
        {}
        if result.get("isError") and result.get("structuredContent") == {"failed": True}
        else result,
    ),
)
wrong("follows-nothing", next_step=lambda self, tool, result: None)


def ignores_at(name, case):
    """Register a client that ignores the second directive of a case."""

    def next_step(self, tool, result):
        ignored = self.context["case"] == case and len(self.calls) == 2
        return None if ignored else SmallClient.next_step(self, tool, result)

    wrong(name, next_step=next_step)


ignores_at("ignores-some-directives", "visible-tool")
ignores_at("ignores-directives-without-content", "without-content")


# A step of the user's rule


class AddsStepsBesideDirectives(SmallClient):
    def read(self, result):
        rule = "addedStep" in self.context and len(self.calls) == 1
        return self.step() if rule else super().read(result)

    def step(self):
        return self.context["addedStep"]["tool"], self.context["addedStep"].get("arguments", {})


class AddsStepsBesideMalformedDirectives(AddsStepsBesideDirectives):
    def read(self, result):
        try:
            return SmallClient.read(self, result)
        except ValueError:
            return super().read(result)


def added(may_follow):
    """Return a `may_follow` for the steps of the user's rule."""
    right = SmallClient.may_follow
    return lambda self, listed: (
        may_follow(self, listed) if "addedStep" in self.context else right(self, listed)
    )


class KeepsForeignWords(SmallClient):
    def is_marked(self, item):
        return self.advertises() and super().is_marked(item)


class KeepsForeignDirectives(SmallClient):
    def handed_on_meta(self):
        foreign = self.told and not self.advertises()
        return self.results[0]["_meta"] if foreign else super().handed_on_meta()


wrong("makes-added-steps-unasked", may_follow=added(lambda self, tool: not self.hidden(tool)))
wrong("adds-hidden-tools", may_follow=added(lambda self, listed: self.consents(listed)))


# The list, and what a call is checked against


class ReadsOnePage(SmallClient):
    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if method == "tools/list" and self.context["case"] == "last-page":
            result.pop("nextCursor", None)
        return result


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
        known = self.tools
        super().read_list()
        self.tools = {**self.tools, **known}


class ReadsLifetimesAsSeconds(SmallClient):
    fresh_until = 0

    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if method == "tools/list":
            self.fresh_until = time.monotonic() + result.get("ttlMs", 0)
        return result

    def read_list(self):
        if time.monotonic() > self.fresh_until:
            super().read_list()


class TrustsHalfAList(SmallClient):
    def read_list(self):
        super().read_list()
        self.read_to_the_end = True


def hides(name, when):
    """Register a client that hides a tool only if `when` says so of its visibility."""
    right = SmallClient.hidden
    wrong(
        name,
        hidden=lambda self, tool: right(self, tool) and when(tool["_meta"]["ui"].get("visibility")),
    )


FLAT = {"type": "object", "properties": {"owner": {"type": "object"}}}
ANYTHING = {"name": "ghost", "inputSchema": {}, "annotations": {"readOnlyHint": True}}

hides("calls-hidden-tools", lambda visibility: False)
hides("takes-empty-visibility-for-absent", lambda visibility: visibility != [])
after("calls-unknown-tools", "find", lambda self, found: found or ANYTHING)
before("resolves-names-by-case", "find", lambda self, name: (name.lower(),))
wrong("validates-nothing", fits=lambda self, schema, arguments: True)
before(
    "validates-the-top-only",
    "fits",
    lambda self, schema, given: (FLAT if "owner" in given else schema, given),
)


# Limits and cycles


class CountsQuestions(SmallClient):
    asked = 0

    def on_question(self, asked):
        self.asked += 1

    def obstacle(self, tool, arguments):
        self.limit = SmallClient.limit - self.asked
        return super().obstacle(tool, arguments)


class EndsAfterManyQuestions(CountsQuestions):
    def obstacle(self, tool, arguments):
        ends = "limit_reached" if self.asked > 3 else None
        return ends or SmallClient.obstacle(self, tool, arguments)


class ComparesWithTheFirstAndTheLast(SmallClient):
    def obstacle(self, tool, arguments):
        every, self.calls = self.calls, [self.calls[0], self.calls[-1]]
        ends = super().obstacle(tool, arguments)
        self.calls = every
        return "limit_reached" if len(every) >= self.limit else ends


wrong("no-limit", limit=1000)
wrong("limit-of-six", limit=6)
wrong("compares-arguments-as-text", canonical=lambda self, value: json.dumps(value))
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
sends(
    "normalizes-text",
    lambda given: json.loads(unicodedata.normalize("NFC", json.dumps(given, ensure_ascii=False))),
)


class CallsTheOtherServer(SmallClient):
    also_here = True

    def call(self, name, arguments, meta=None):
        if "otherServerUrl" not in self.context or name != "shared":
            return super().call(name, arguments, meta)
        there = self.other.request("tools/call", {"name": name, "arguments": arguments})
        return super().call(name, arguments, meta) if self.also_here else there


class FollowsWithAnotherToken(SmallClient):
    token = "Bearer another"

    def authorization(self):
        is_first = len(self.__dict__.get("calls", ())) < 2
        return super().authorization() if is_first else {"authorization": self.token}


wrong("calls-the-other-server-alone", CallsTheOtherServer, also_here=False)
wrong("follows-without-a-token", FollowsWithAnotherToken, token="")
wrong("no-provenance", meta=lambda self: {})
after("provenance-once", "meta", lambda self, meta: meta if len(self.calls) < 3 else {})
before(
    "a-chain-id-for-each-call",
    "provenance",
    lambda self, _, level, previous: (str(uuid.uuid4()), level, previous),
)
before(
    "names-the-first-tool",
    "provenance",
    lambda self, chain, level, previous: (chain, level, previous and self.calls[0][0]),
)


# Sending again


class SendsAgainWhatWasLost(SmallClient):
    def call(self, name, arguments, meta=None):
        try:
            return super().call(name, arguments, meta)
        except Lost:
            if name != "pay":
                raise
            return super().call(name, arguments, meta)


class SendsAgainAfterAnErrorResult(SmallClient):
    def call(self, name, arguments, meta=None):
        result = super().call(name, arguments, meta)
        # What equal chains do after an error, other checks judge.
        if result.get("isError") and self.context["case"] == "error-result":
            return super().call(name, arguments, meta)
        return result


# Consent


class AsksForTheCallsOfTheModelOnly(SmallClient):
    def model_may_call(self, name):
        reads_only = self.find(name).get("annotations", {}).get("readOnlyHint") is True
        return super().model_may_call(name) and reads_only


class AsksAboutDirectivesLess(AsksForTheCallsOfTheModelOnly):
    def may_follow(self, listed):
        asked = self.context["case"] == "harmless-tool" or self.consents(listed)
        return asked and not self.hidden(listed) and not self.denied(listed["name"])


class AsksOnce(SmallClient):
    agreed = False

    def user_agrees(self, tool):
        self.agreed = self.agreed or super().user_agrees(tool)
        return self.agreed


def takes_for_harmless(name, hint, value):
    """Register a client that takes a hint for a consent."""
    right = SmallClient.consents
    wrong(
        name,
        consents=lambda self, tool: (
            (tool.get("annotations") or {}).get(hint) is value or right(self, tool)
        ),
    )


takes_for_harmless("takes-what-only-adds-for-harmless", "destructiveHint", False)
takes_for_harmless("believes-untrusted-read-only-hints", "readOnlyHint", True)


class BelievesUntrustedHints(SmallClient):
    def hints(self, tool, name, value):
        is_known = "trustHints" in self.context and self.context["name"] == "consent"
        given = (tool.get("annotations") or {}).get(name) is value
        return (is_known and given) or super().hints(tool, name, value)


wrong(
    "follows-to-denied-tools",
    may_follow=lambda self, listed: not self.hidden(listed) and self.consents(listed),
)
wrong(
    "denies-what-writes-alone",
    may_follow=lambda self, listed: (
        not self.hidden(listed)
        and self.consents(listed)
        and (self.hints(listed, "readOnlyHint", True) or not self.denied(listed["name"]))
    ),
)


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
    def begin(self, listed, call):
        running = [each.call[0] for each in self.record.entries if each.answer == "running"]
        return "declined" if call[0] in running else super().begin(listed, call)


class GivesUpItsTurnEarly(SmallClient):
    def settle(self, result, error):
        super().settle(result, error)
        with self.record.changed:
            self.record.turns = [each for each in self.record.turns if each is not self.known]
            self.record.changed.notify_all()


wrong("goes-on-when-cancelled", cancel=lambda self: None)
wrong("holds-nothing", is_held_by=lambda self, other: False)
wrong("holds-every-chain", is_held_by=lambda self, other: True)


# The record of doubt


def forgets(name, when):
    """Register a client that forgets the calls of a chain, when it ends, that `when` says."""

    def end(self, well):
        SmallClient.end(self, well)
        self.drop(lambda other: other.chain is self.known and when(self, other))

    wrong(name, end=end)


forgets("forgets-errors", lambda self, entry: entry.answer == "failure")
forgets("forgets-successes", lambda self, entry: entry.answer == "success")
forgets("takes-a-no-for-a-good-end", lambda self, entry: self.outcome == "declined")
wrong(
    "forgets-for-other-first-calls",
    concerns=lambda self, entry, call: (
        entry.chain.first == self.known.first and SmallClient.concerns(self, entry, call)
    ),
)


class DoubtsErrorsEverywhere(SmallClient):
    def settle(self, result, error):
        super().settle(result, error)
        if self.entry.answer == "failure":
            self.entry.answer = "none"


class EndsADoubtWithANo(SmallClient):
    def begin(self, listed, call):
        ends = super().begin(listed, call)
        if ends == "declined":
            self.drop(lambda other: other.call[0] == call[0])
        return ends


class HoldsWaitingAgainstAChain(SmallClient):
    waited = False

    def take_turn(self):
        self.waited = any(map(self.is_held_by, self.record.turns))
        super().take_turn()

    def begin(self, listed, call):
        return super().begin(listed, call) or ("declined" if self.waited else None)


def excuses_idempotent(self, listed, call):
    excused = self.hints(listed, "idempotentHint", True)
    return [] if excused else SmallClient.in_doubt(self, listed, call)


wrong("never-ends-a-doubt", is_settled=lambda self, other, entry, is_first: False)
wrong(
    "ends-a-doubt-by-any-success",
    is_settled=lambda self, other, entry, is_first: (
        other.call[0] == entry.call[0] and other.answer != "success"
    ),
)
wrong("keeps-what-ended-well", end=lambda self, well: SmallClient.end(self, False))
wrong("excuses-idempotent-tools", in_doubt=excuses_idempotent)
before(
    "keeps-no-idempotent-calls",
    "sent",
    lambda self, call, kept: (
        call,
        kept and not self.hints(self.find(call[0]) or {}, "idempotentHint", True),
    ),
)
wrong("repeats-all-if-any", agreed_beforehand=lambda self, tool: "again" in self.context)
wrong(
    "compares-the-beginning-of-names",
    agreed_beforehand=lambda self, tool: any(
        name.startswith(tool) for name in self.context.get("again", ())
    ),
)
wrong("forgets-what-ended-well", recall=lambda self: None)


class RecallsErrorsOnly(SmallClient):
    def recall(self):
        super().recall()
        self.drop(lambda other: other.chain is self.known and other.answer == "success")


# What is told of follow-up calls


def names(name, when, named):
    """Register a client that writes some names of tools in another way."""
    right = SmallClient.named
    wrong(name, named=lambda self, tool: named(tool) if when(self, tool) else right(self, tool))


before("tells-made-from-nothing", "tell", lambda self, tool, given, _: (tool, given, "made"))


class TellsArguments(SmallClient):
    def in_words(self, told):
        return f"{super().in_words(told)} {json.dumps(told['arguments'])}"


class BelievesInvalidParams(SmallClient):
    def tell(self, tool, arguments, status):
        believes = status == "unknown" and self.context["case"] == "invalid-params"
        super().tell(tool, arguments, "not_made" if believes else status)

    def is_error(self):
        return True if self.context["case"] == "invalid-params" else super().is_error()


names("names-unlisted-tools", lambda self, tool: self.find(tool) is None, lambda tool: tool)
names("names-tools-as-they-are", lambda self, tool: '"' in tool, lambda tool: tool)
names("names-tools-in-full-length", lambda self, tool: len(tool) > 120, json.dumps)
before(
    "names-unlisted-tools-in-data",
    "told_as_data",
    lambda self, words: (
        [*words, *(told["tool"] for told in self.told if self.find(told["tool"]) is None)],
    ),
)


# The merged result


class LosesTheFirstData(SmallClient):
    def merged(self):
        lost = "structuredContent" if self.trusts_server() else None
        return {name: part for name, part in super().merged().items() if name != lost}


class ReplacesFollowUps(SmallClient):
    def merged(self):
        merged = super().merged()
        if self.told and self.context["case"] == "follow-ups-of-the-server":
            merged["structuredContent"] = {"followUps": self.words()}
        return merged


wrong(
    "repeats-what-calls-returned",
    quoted=lambda self, result: "".join(str(item.get("text")) for item in self.content(result)),
)
wrong("leaves-out-what-calls-returned", quoted=lambda self, result: "")


class ForgetsOnFailure(SmallClient):
    def content(self, result):
        lost = self.outcome == "failed" and len(self.results) > 1
        return [] if lost and result is self.results[0] else super().content(result)


class KeepsTheLastContentOnly(SmallClient):
    def content(self, result):
        # Where the chain failed or was merged to one result, other checks look.
        last = self.context["name"] in ("failures", "waiting", "merged")
        return super().content(result) if last or result is self.results[-1] else []


class AResultForEachStep(SmallClient):
    def lines(self, printed):
        results = vars(self).get("results", [])[:-1]
        steps = [json.dumps({"content": self.content(result)}) for result in results]
        return [*steps, *super().lines(printed)]


class PrintsItsResultTwice(SmallClient):
    def lines(self, printed):
        return [*super().lines(printed), *super().lines(printed)]


class DropsLaterData(SmallClient):
    def data(self, result):
        return super().data(result) if result is self.results[0] else None


class ShowsLaterDataToTheUser(SmallClient):
    def for_model(self, text):
        is_data = text in [json.dumps(self.data(result)) for result in self.results[1:]]
        item = super().for_model(text)
        return {**item, "annotations": {"audience": ["user"]}} if is_data else item


class ShowsTitlesToTheModel(SmallClient):
    def titles(self):
        metas = [(result.get("_meta") or {}).get("nextTool") for result in self.results]
        return [each["title"] for each in metas if isinstance(each, dict) and "title" in each]

    def words(self):
        return [*super().words(), *map(str, self.titles())]


class ShowsTitlesInData(ShowsTitlesToTheModel):
    def words(self):
        return SmallClient.words(self)

    def told_as_data(self, words):
        return {"followUps": [*words, *map(str, self.titles())]}


class TellsWhatIsMalformed(SmallClient):
    def words(self):
        malformed = self.outcome == "malformed_directive"
        return super().words() + [json.dumps(self.results[-1].get("_meta"))] * malformed


class KeepsNextStep(SmallClient):
    def told_as_data(self, words):
        step = (self.results[0].get("structuredContent") or {}).get("nextStep")
        return super().told_as_data(words) | ({"nextStep": step} if step else {})


class KeepsAMalformedDirective(SmallClient):
    def handed_on_meta(self):
        malformed = self.outcome == "malformed_directive"
        return self.results[-1]["_meta"] if malformed else super().handed_on_meta()


class KeepsMarkedImages(SmallClient):
    def is_marked(self, item):
        return item["type"] != "image" and super().is_marked(item)


wrong("hands-on-the-directive", handed_on_meta=lambda self: self.results[0].get("_meta") or {})
wrong(
    "is-error-of-the-last",
    is_error=lambda self: (
        bool(self.results[-1].get("isError"))
        or any(told["status"] == "unknown" for told in self.told)
    ),
)
wrong(
    "an-unknown-effect-is-no-error",
    is_error=lambda self: any(result.get("isError") for result in self.results),
)

CLIENT_MUTANTS |= by_name(vars(), SmallClient)
"""What mutants are called in `mutants.yaml`."""
