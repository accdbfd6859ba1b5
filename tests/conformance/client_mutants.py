"""Deliberately wrong clients, each a few lines away from `SmallClient`.

Which check each one fails stands in `specs/conformance/mutants.yaml`, under the name of its class:
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


def changes(name, change):
    """Register a client that sends the arguments of `keep` as `change` returns them."""

    def sent(self, tool, given, meta):
        return tool, change(given) if tool == "keep" else given, meta

    before(name, "call", sent)


class _Lenient(SmallClient):
    """Repairs a directive before reading it."""

    def repair(self, value):
        raise NotImplementedError

    def read_directive(self, value):
        return super().read_directive(self.repair(value))


class TakesTextForADirective(_Lenient):
    def repair(self, value):
        if isinstance(value, str) and value[0] != "{":
            return {"tool": value, "arguments": {"text": "x"}}
        return value[0] if isinstance(value, list) else value


class TakesNameWhereToolIsNull(_Lenient):
    def repair(self, value):
        if isinstance(value, dict) and value.get("tool", "") is None:
            return {**value, "tool": value.get("name")}
        return value


class DropsBadArguments(_Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("arguments"), list | None):
            return {key: item for key, item in value.items() if key != "arguments"}
        return value


class InventsArguments(SmallClient):
    def call(self, name, arguments, meta):
        if name == "status" and self.context["case"] == "absent-arguments":
            arguments = {"reason": "none given"}
        return super().call(name, arguments, meta)


class RefusesUnknownMembers(SmallClient):
    def read_directive(self, value):
        if isinstance(value, dict) and set(value) - {"tool", "name", "arguments", "title"}:
            raise Malformed
        return super().read_directive(value)


class RefusesNameBesideTool(SmallClient):
    def read_directive(self, value):
        if isinstance(value, dict) and "tool" in value and "name" in value:
            raise Malformed
        return super().read_directive(value)


class TurnsNumbersIntoNames(_Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("tool"), int):
            return {**value, "tool": str(value["tool"])}
        return value


class ParsesDirectiveOutOfText(_Lenient):
    def repair(self, value):
        return json.loads(value) if isinstance(value, str) and value[0] == "{" else value


class FoldsCaseOfMembers(_Lenient):
    def repair(self, value):
        if isinstance(value, dict):
            return {key.lower(): item for key, item in value.items()}
        return value


class RefusesMalformedTitle(SmallClient):
    def read_directive(self, value):
        title = value.get("title", "x") if isinstance(value, dict) else "x"
        if not isinstance(title, str) or len(title) > 200:
            raise Malformed
        return super().read_directive(value)


class ReadsOtherKeys(SmallClient):
    def read(self, result):
        meta = result.get("_meta") or {}
        if "nextTool" not in meta and "nexttool" in meta:
            return self.read_directive(meta["nexttool"])
        return super().read(result)


class FollowsInterimResult(SmallClient):
    def on_question(self, interim):
        directive = self.read(interim)
        if directive is not None:
            self.request("tools/call", {"name": directive[0], "arguments": directive[1]})


class FollowsToolsList(SmallClient):
    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if method == "tools/list":
            self.from_list = self.read(result)
        return result

    def read(self, result):
        directive = super().read(result)
        return directive or ("tools" not in result and self.from_list) or None


class FollowsText(SmallClient):
    def read(self, result):
        return super().read(result) or super().read(result.get("structuredContent") or {})


class FirstCallNamesAPreviousTool(SmallClient):
    def provenance(self, chain_id, level, previous):
        shown = super().provenance(chain_id, level, previous)
        return {**shown, "previousTool": "none"} if level == 1 else shown


class DeclaresInCallsOnly(SmallClient):
    def capabilities(self, method):
        declared = super().capabilities(method)
        return declared if method == "tools/call" else {"elicitation": {"form": {}}}


class IgnoresSomeDirectives(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        if len(made) == 2 and self.context["case"] == "visible-tool":
            return "completed"
        return super().obstacle(tool_name, arguments, made)


class CallsTheOtherServer(SmallClient):
    def call(self, name, arguments, meta):
        other = self.context.get("otherServerUrl")
        if other is None or name != "shared":
            return super().call(name, arguments, meta)
        client = SmallClient(other, self.era, self.context)
        client.connect()
        client.call(name, arguments, meta)
        return super().call(name, arguments, meta)


class CallsAgainOnMalformed(SmallClient):
    def read(self, result):
        try:
            return super().read(result)
        except Malformed:
            self.call("begin", {"story": "again"}, None)
            raise


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


class LevelsFromZero(SmallClient):
    def provenance(self, chain_id, level, previous):
        # Well-formed still: the first call says nothing.
        return super().provenance(chain_id, max(level - 1, 2), previous)

    def meta(self, chain_id, level, previous):
        return {} if level == 1 else super().meta(chain_id, level, previous)


class NamesTheFirstTool(SmallClient):
    def follow(self, tool, arguments):
        self.first = tool
        return super().follow(tool, arguments)

    def provenance(self, chain_id, level, previous):
        return super().provenance(chain_id, level, None if previous is None else self.first)


class StopsAtErrors(SmallClient):
    def read(self, result):
        # What the results of other chains are merged to, other checks judge.
        stops = result.get("isError") and self.context["name"] == "follow"
        return None if stops else super().read(result)


class AcceptsMalformedSettings(SmallClient):
    def read_settings(self, value):
        return value if value is None or isinstance(value, dict) else {}


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


class ValidatesTheTopOnly(SmallClient):
    def fits(self, schema, arguments):
        flat = {"type": "object", "properties": {"owner": {"type": "object"}}}
        return super().fits(flat if "owner" in arguments else schema, arguments)


class CallsUnknownTools(SmallClient):
    def find(self, name):
        anything = {"inputSchema": {}, "annotations": {"readOnlyHint": True}}
        return anything if name == "ghost" else super().find(name)


class TakesEmptyVisibilityForAbsent(SmallClient):
    def hidden(self, tool):
        return self.visibility(tool) != [] and super().hidden(tool)


class TakesVisibilityTextForAbsent(SmallClient):
    def hidden(self, tool):
        return not isinstance(self.visibility(tool), str) and super().hidden(tool)


class HidesWhatIsForTheModel(SmallClient):
    def hidden(self, tool):
        return self.visibility(tool) == "model" or super().hidden(tool)


class FoldsCaseOfVisibility(SmallClient):
    def hidden(self, tool):
        visibility = self.visibility(tool)
        if isinstance(visibility, list) and "model" in map(str.lower, visibility):
            return False
        return super().hidden(tool)


class FollowsTaskResults(SmallClient):
    def complete(self, result):
        return "task" in result or super().complete(result)


class FollowsUnknownResults(SmallClient):
    def complete(self, result):
        return result.get("resultType") == "com.example/half" or super().complete(result)


class FollowsErrorData(SmallClient):
    def on_error(self, error):
        directive = self.read(error.get("data") or {})
        if directive is not None:
            self.call(*directive, None)


class TakesAFailedCallForNotMade(SmallClient):
    case = "protocol-error"

    def follow_ups(self, results):
        status = "not_made" if self.context["case"] == self.case else "unknown"
        return [
            {**each, "status": status} if each["status"] == "unknown" else each
            for each in super().follow_ups(results)
        ]


class DeclaresInExperimentalAlone(SmallClient):
    def capabilities(self, method):
        declared = super().capabilities(method)
        return {"elicitation": declared["elicitation"], "experimental": declared["extensions"]}


class ComparesWithTheFirstAndTheLast(SmallClient):
    def obstacle_in_list(self, tool_name, arguments, made):
        return super().obstacle_in_list(tool_name, arguments, [made[0], made[-1]])


class TakesToolsOfAnotherCaseForMade(SmallClient):
    def obstacle_in_list(self, tool_name, arguments, made):
        obstacle = super().obstacle_in_list(tool_name, arguments, made)
        lower = [(tool.lower(), same) for tool, same in made]
        again = (tool_name.lower(), self.same(arguments)) in lower
        return "cycle" if again and obstacle is None else obstacle


class ComparesTrimmedText(SmallClient):
    def plain(self, value):
        return value.strip() if isinstance(value, str) else super().plain(value)


class ComparesNumbersBeyondDoubles(SmallClient):
    def plain(self, value):
        if type(value) is int and 2**53 <= abs(value) < 2**1024:
            return value
        return super().plain(value)


class ComparesListsWithoutOrder(SmallClient):
    def plain(self, value):
        plain = super().plain(value)
        return sorted(plain, key=json.dumps) if isinstance(plain, list) else plain


class TakesTrueForOne(SmallClient):
    def plain(self, value):
        return float(value) if isinstance(value, bool) else super().plain(value)


class FillsInDefaults(SmallClient):
    def call(self, name, arguments, meta):
        properties = (self.find(name) or {}).get("inputSchema", {}).get("properties", {})
        defaults = {key: rule["default"] for key, rule in properties.items() if "default" in rule}
        return super().call(name, defaults | arguments, meta)


class AsksForTheCallsOfTheModelOnly(SmallClient):
    def model_may_call(self, name):
        tool = self.find(name)
        return super().model_may_call(name) and tool["annotations"].get("readOnlyHint") is True


class FollowsToDeniedTools(SmallClient):
    def may_follow(self, name, tool):
        return not self.hidden(tool) and self.consents(tool)


class FollowsWithAnotherToken(SmallClient):
    def authorization(self, message):
        if "bearerToken" in self.context and self.started:
            return {"authorization": "Bearer another"}
        return super().authorization(message)


class SendsAgainWhatWasLost(SmallClient):
    what, case = "pay", None

    def call(self, name, arguments, meta):
        try:
            return super().call(name, arguments, meta)
        except Lost:
            if name != self.what or self.case not in (None, self.context["case"]):
                raise
            return super().call(name, arguments, meta)


class SendsAgainAfterAQuestion(SmallClient):
    def answered(self, again, meta):
        try:
            return super().answered(again, meta)
        except NoResult:
            return super().answered(again, meta)


class BelievesARefusalAfterAQuestion(SmallClient):
    def answered(self, again, meta):
        return self.request("tools/call", again, meta)


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


for _kind, _code in (("internal", -32603), ("params", -32602), ("server", -32050)):
    wrong(f"sends-again-after-{_kind}-error", _SendsAgainAfterAnError, code=_code)


class KeepsTheLastContentOnly(SmallClient):
    def merged(self, results):
        # Where the chain failed or was merged to one result, other checks look.
        if self.context["name"] in ("failures", "waiting", "merged"):
            return super().merged(results)
        return super().merged(results[-1:])


class ForgetsOnFailure(SmallClient):
    when_lost = False
    failed = False

    def on_failure(self, results, error):
        self.failed = isinstance(error, Lost) is self.when_lost
        return "failed"

    def merged(self, results):
        return [] if self.failed else super().merged(results)


class AsksTheModelToTryAgain(SmallClient):
    def is_settled(self, number, results):
        return number < len(results) - 1 or number >= len(self.started)


class KeepsNextStep(SmallClient):
    def structured(self, results):
        own = results[0].get("structuredContent") if results else None
        return super().structured(results) and own


class AResultForEachStep(SmallClient):
    def lines(self, results, outcome):
        steps = [json.dumps({"content": result.get("content", [])}) for result in results[:-1]]
        return [*steps, *super().lines(results, outcome)]


class ComparesMarksByEquality(SmallClient):
    def is_wording(self, item):
        return (item.get("_meta") or {}).get(ID) == {"describes": "nextTool"}


class TellsUnknownAsMade(SmallClient):
    def in_words(self, follow_up):
        told = "made" if follow_up["status"] == "unknown" else follow_up["status"]
        return super().in_words({**follow_up, "status": told})


class TellsLaterStepsAsTheyAre(SmallClient):
    def merged(self, results):
        later = [
            result["structuredContent"] for result in results[1:] if "structuredContent" in result
        ]
        told = [{"type": "text", "text": json.dumps(each)} for each in later]
        return [*super().merged(results), *told]


class ReadsAnotherAlias(_Lenient):
    alias, member = "toolName", "tool"

    def repair(self, value):
        if isinstance(value, dict) and self.alias in value:
            return {**value, self.member: value[self.alias]}
        return value


class FollowsHalfAPair(SmallClient):
    def writable(self, value):
        return super().writable(
            json.loads(re.sub(r"\\ud[89ab]..(?!\\ud[c-f])", "", json.dumps(value)))
        )


class TellsMadeInStructuredContent(SmallClient):
    def told_in_structured(self, follow_ups):
        return super().told_in_structured([{**each, "status": "made"} for each in follow_ups])


class NamesNoFollowUp(SmallClient):
    def in_words(self, follow_up):
        return {
            "type": "text",
            "text": "More was done.",
            "annotations": {"audience": ["assistant"]},
        }


class TellsArguments(SmallClient):
    def in_words(self, follow_up):
        item = super().in_words(follow_up)
        return {**item, "text": f"{item['text']} With {json.dumps(follow_up['arguments'])}."}


class TellsNamesOfArguments(SmallClient):
    def in_words(self, follow_up):
        item = super().in_words(follow_up)
        return {**item, "text": f"{item['text']} With {', '.join(follow_up['arguments'])}."}


class TellsWhyArgumentsAreInvalid(SmallClient):
    def in_words(self, follow_up):
        item = super().in_words(follow_up)
        if self.outcome != "invalid_arguments":
            return item
        return {**item, "text": f"{item['text']} Invalid: {json.dumps(follow_up['arguments'])}."}


class TellsWhatIsMalformed(SmallClient):
    def merged(self, results):
        told = [self.for_model(json.dumps(result.get("_meta"))) for result in results]
        return super().merged(results) + told * (self.outcome == "malformed_directive")


class ReplacesFollowUps(SmallClient):
    def structured(self, results):
        structured = dict(results[0].get("structuredContent") or {}) if results else {}
        structured.pop("nextStep", None)
        return structured or None


class ForgetsLostAnswers(SmallClient):
    how = int
    """What `Lost` has: the HTTP status, a text about the stream, or a TimeoutError."""

    def on_failure(self, results, error):
        if isinstance(error, Lost) and isinstance(error.args[0], self.how):
            self.record.doubts.clear()
        return super().on_failure(results, error)


class ComparesArgumentsOfDoubtfulCalls(SmallClient):
    def counts(self, entry, tool, arguments):
        return entry[1] == self.same(arguments) and super().counts(entry, tool, arguments)


class DoubtsLostCallsInEqualChainsOnly(SmallClient):
    def doubt(self, tool, arguments, first):
        super().doubt(tool, arguments, self.first)


class DoubtsErrorsEverywhere(SmallClient):
    def on_result(self, tool, arguments, result, is_first):
        super().on_result(tool, arguments, result, is_first)
        if result.get("isError") and not is_first:
            self.doubt(tool, arguments, None)


class ForgetsErrors(SmallClient):
    def on_result(self, tool, arguments, result, is_first):
        super().on_result(tool, arguments, {}, is_first)


class ForgetsLostFirstCalls(SmallClient):
    def on_no_result(self, tool, arguments, error):
        if (tool, self.same(arguments)) != self.first:
            super().on_no_result(tool, arguments, error)


class ForgetsErrorsOfFirstCalls(SmallClient):
    def on_no_result(self, tool, arguments, error):
        if isinstance(error, Lost) or (tool, self.same(arguments)) != self.first:
            super().on_no_result(tool, arguments, error)


class ForgetsCancelledCalls(SmallClient):
    def on_no_result(self, tool, arguments, error):
        if not self.cancelled:
            super().on_no_result(tool, arguments, error)


class EndsADoubtByAnotherResult(SmallClient):
    def clear(self, tool, arguments):
        self.record.doubts[:] = [each for each in self.record.doubts if each[0] != tool]


class EndsADoubtByAnError(SmallClient):
    def on_result(self, tool, arguments, result, is_first):
        self.clear(tool, arguments)
        super().on_result(tool, arguments, result, is_first)


class IgnoresACancellationWhileItReads(SmallClient):
    reads = False

    def read_list(self):
        self.reads = True
        super().read_list()
        self.reads = False

    def cancel(self):
        if not self.reads:
            super().cancel()


class TrustsHalfAList(SmallClient):
    def trusts_list(self):
        return True


class DoubtsAfterAYes(SmallClient):
    def begin(self, tool, arguments):
        kept = list(self.record.doubts)
        ends = super().begin(tool, arguments)
        self.record.doubts[:] = kept
        return ends


class ForgetsTasks(SmallClient):
    only_in = LEGACY

    def on_no_result(self, tool, arguments, error):
        if not isinstance(error, Task):
            super().on_no_result(tool, arguments, error)


class DeclinesWhatRuns(SmallClient):
    def begin(self, tool, arguments):
        running = [name for _, name, _ in self.record.running]
        return "declined" if tool in running else super().begin(tool, arguments)


class DeclinesWhatAnEqualChainRuns(SmallClient):
    def begin(self, tool, arguments):
        return "declined" if self.is_held(tool, arguments) else super().begin(tool, arguments)


class HoldsWhatRuns(SmallClient):
    def is_held(self, tool, arguments):
        return tool in [name for _, name, _ in self.record.running]


class HoldsEqualCallsOnly(SmallClient):
    def is_held(self, tool, arguments):
        return (self.first, tool, self.same(arguments)) in self.record.running


class LooksAtTheRecordBeforeItWaits(SmallClient):
    seen = None

    def begin(self, tool, arguments):
        self.seen = super().in_doubt(tool, arguments)
        return super().begin(tool, arguments)

    def in_doubt(self, tool, arguments):
        return self.seen if self.seen is not None else super().in_doubt(tool, arguments)


class BelievesOldHints(SmallClient):
    def hints(self, tool, name, value):
        old = vars(self).setdefault("old", self.tools)
        return super().hints(old.get(tool.get("name"), tool), name, value)


class TakesATrueValueForAHint(SmallClient):
    def hints(self, tool, name, value):
        given = (tool.get("annotations") or {}).get(name)
        return super().hints(tool, name, value) or (value and bool(given) and self.trusts_hints())


class TakesNothingForFalse(SmallClient):
    def hints(self, tool, name, value):
        hints = {k: v or False for k, v in (tool.get("annotations") or {}).items()}
        return super().hints({"annotations": hints}, name, value)


class ReadsHintsInText(SmallClient):
    def hints(self, tool, name, value):
        given = (tool.get("annotations") or {}).get(name)
        return super().hints(tool, name, value) or (
            given == json.dumps(value) and self.trusts_hints()
        )


class SuggestsRefusedCalls(SmallClient):
    def may_suggest(self, outcome, name, arguments):
        return outcome == "declined" or super().may_suggest(outcome, name, arguments)


class SuggestsHiddenTools(SmallClient):
    def may_suggest(self, outcome, name, arguments):
        return outcome == "limit_reached" or super().may_suggest(outcome, name, arguments)


class SuggestsDoubtfulCalls(SmallClient):
    def may_suggest(self, outcome, name, arguments):
        doubtful = bool(self.in_doubt(name, arguments))
        nobody = self.context.get("consent") == "nobody"
        return (doubtful and nobody) or super().may_suggest(outcome, name, arguments)


class SuggestsWithoutTheMark(SmallClient):
    def suggestion(self, outcome):
        return [self.for_model(item["text"]) for item in super().suggestion(outcome)]


class ShowsLaterDataToTheUser(SmallClient):
    def merged(self, results):
        data = [json.dumps(self.data(result)) for result in results[1:]]
        for_user = {"annotations": {"audience": ["user"]}}
        return [i | for_user if i.get("text") in data else i for i in super().merged(results)]


class NamesToolsAsTheyAre(SmallClient):
    def named(self, tool):
        return tool[:120] if '"' in tool else super().named(tool)


class NamesToolsInFullLength(SmallClient):
    def named(self, tool):
        return json.dumps(tool) if len(tool) > 120 else super().named(tool)


class IsErrorOfTheLast(SmallClient):
    looked_at = -1

    def is_error(self, results):
        failed = results and results[self.looked_at].get("isError")
        return bool(failed) or self.lost(results)


class HandsOnTheDirective(SmallClient):
    def handed_on_meta(self, results):
        return dict(results[-1].get("_meta") or {}) if results else {}


class ShowsTitlesToTheModel(SmallClient):
    def merged(self, results):
        titles = [
            {"type": "text", "text": title}
            for result in results
            if isinstance(directive := (result.get("_meta") or {}).get("nextTool"), dict)
            and (title := directive.get("title"))
        ]
        return super().merged(results) + titles


class ProvenanceOnce(SmallClient):
    def meta(self, chain_id, level, previous):
        return super().meta(chain_id, level, previous) if level < 3 else {}


class FollowsALongerName(SmallClient):
    key = "com.example/tool-chaining/nextTool"

    def read(self, result):
        longer = (result.get("_meta") or {}).get(self.key)
        return super().read(result) if longer is None else self.read_directive(longer)


class DeclinesUnknownSettings(SmallClient):
    def trusts_server(self):
        return not set(self.advertised or {}) - {"version"} and super().trusts_server()


class FollowsNextStep(SmallClient):
    def read(self, result):
        step = (result.get("structuredContent") or {}).get("nextStep")
        return super().read(result) or (self.read_directive(step) if step else None)


class ReadsText(SmallClient):
    phrase = r"call (\w+) once, with (.*)\."

    def read(self, result):
        words = [item["text"] for item in result.get("content", []) if self.is_wording(item)]
        found = re.search(self.phrase, "\n".join(words))
        return super().read(result) or (found and (found[1], json.loads(found[2])))


class KeepsWordsOfADeclinedStep(SmallClient):
    def is_settled(self, number, results):
        return self.outcome != "declined"


class AddsStepsBesideDirectives(SmallClient):
    def read(self, result):
        rule = "addedStep" in self.context and not self.started
        return None if rule else super().read(result)


class MakesAddedStepsUnasked(SmallClient):
    def may_follow(self, name, tool):
        return "addedStep" in self.context or super().may_follow(name, tool)


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


class RemembersAYes(SmallClient):
    def in_doubt(self, tool, arguments):
        return []

    def user_agrees(self, tool):
        yes = vars(self).setdefault("agreed_to", set())
        if tool["name"] in yes or super().user_agrees(tool):
            yes.add(tool["name"])
        return tool["name"] in yes


class DeclinesLaterSettings(SmallClient):
    def trusts_server(self):
        return (self.advertised or {}).get("version", 1) == 1 and super().trusts_server()


class SecondPlaceDecides(SmallClient):
    def connect(self):
        places = super().connect()["capabilities"]
        if ID in places.get("experimental", {}):
            self.advertised = self.read_settings(places["experimental"][ID])


class TakesBlanksForNoName(SmallClient):
    def read_directive(self, value):
        tool, arguments = super().read_directive(value)
        if not tool.strip():
            raise Malformed
        return tool, arguments


class KeepsAMalformedDirective(SmallClient):
    def handed_on_meta(self, results):
        malformed = self.outcome == "malformed_directive"
        return results[-1]["_meta"] if malformed else super().handed_on_meta(results)


def twice(self, tool, tools):
    return [each["name"] for each in tools].count(tool["name"]) > 1


def hinted(name, value):
    """Return a policy that takes a hint for a consent."""
    return lambda self, tool: (
        (tool.get("annotations") or {}).get(name) is value or SmallClient.consents(self, tool)
    )


wrong("settings-version-text", settings=lambda self: {"version": "1"})
wrong("never-declares", capabilities=lambda self, method: {"elicitation": {"form": {}}})
wrong("hands-on-the-instruction", is_settled=lambda self, number, _: number >= len(self.started))
wrong("hands-on-the-words-of-the-last", is_settled=lambda self, n, _: n < len(self.started))
wrong("validates-nothing", fits=lambda self, schema, arguments: True)
wrong("goes-on-when-cancelled", cancel=lambda self: None)
wrong("takes-true-for-a-version", is_version=lambda self, v: isinstance(v, int) and v >= 1)
wrong("is-error-of-the-first", IsErrorOfTheLast, looked_at=0)
wrong("follows-nothing", read=lambda self, result: None, added=lambda self, *of: None)
wrong("no-limit", limit=1000)
wrong("limit-of-four", limit=4)
wrong("compares-arguments-as-text", same=lambda self, arguments: json.dumps(arguments))
wrong("calls-hidden-tools", hidden=lambda self, tool: False)
wrong("consents-to-everything", consents=lambda self, tool: True)
wrong("no-provenance", meta=lambda self, chain_id, level, previous: {})
wrong("follows-unadvertised-servers", trusts_server=lambda self: True)
wrong("reads-experimental-everywhere", places=lambda self: ["extensions", "experimental"])
wrong("reads-extensions-alone", places=lambda self: ["extensions"])
wrong("reads-experimental-alone", places=lambda self: SmallClient.places(self)[-1:])
wrong(
    "believes-errors-about-the-request",
    refusals=(*SmallClient.refusals, -32700, -32600, -32601),
)
wrong("believes-invalid-params", TakesAFailedCallForNotMade, case="invalid-params")
wrong("forgets-when-the-connection-breaks", ForgetsOnFailure, when_lost=True)
wrong("forgets-unknown-effects", in_doubt=lambda self, tool, arguments: [])
wrong("never-ends-a-doubt", clear=lambda self, tool, arguments: None)
wrong("forgets-what-was-not-delivered", not_delivered=lambda self, results: None)
wrong("doubts-errors-of-idempotent-tools", may_be_repeated=lambda self, name: False)
wrong("takes-a-missing-capability-for-unknown", refusals=(-32020, -32022))
wrong("takes-refused-headers-for-unknown", refusals=(-32021, -32022))
wrong("takes-status-403-for-unknown", unauthorized=(401,))
wrong("holds-nothing", is_held=lambda self, tool, arguments: False)
wrong("takes-the-last-of-two", disagrees=lambda self, tool, tools: False)
wrong("takes-every-name-twice-for-unknown", disagrees=twice)
wrong("merges-foreign-results", leaves_as_it_is=lambda self: False)
wrong("drops-later-data", data=lambda self, result: {})
wrong("names-unlisted-tools", named=lambda self, tool: json.dumps(tool[:120]))
wrong("one-chain-id-for-ever", chain_id=lambda self: "8d0eb1a5-6c13-4a6c-9d5f-0a1e7d3f2b11")
wrong("an-unknown-effect-is-no-error", lost=lambda self, results: False)
wrong("tells-follow-ups-in-text-alone", told_in_structured=lambda self, follow_ups: {})

wrong("forgets-lost-streams", ForgetsLostAnswers, how=str)
wrong("forgets-after-a-time-limit", ForgetsLostAnswers, how=TimeoutError)
wrong("believes-untrusted-hints", trusts_hints=lambda self: True)
wrong("believes-untrusted-idempotent-hints", SendsAgainWhatWasLost, what="pay-standing")
wrong("believes-untrusted-read-only-hints", SendsAgainWhatWasLost, what="look-up")
wrong("obeys-status-503", SendsAgainWhatWasLost, what="pay-abroad", case="status-503")
wrong("believes-idempotent-words", SendsAgainWhatWasLost, case="idempotent-text")
wrong("takes-idempotent-for-harmless", consents=hinted("idempotentHint", True))
wrong("takes-a-closed-world-for-harmless", consents=hinted("openWorldHint", False))
wrong("takes-what-only-adds-for-harmless", consents=hinted("destructiveHint", False))
wrong("one-chain-id-a-session", chain_id=lambda self: vars(self).setdefault("id", uuid.uuid4().hex))
wrong("believes-status-400", TakesAFailedCallForNotMade, case="status-400")
wrong("reads-the-words-of-the-guide", ReadsText, phrase=r'call the tool "(\w+)" .*: ({.*})')
wrong("reads-a-prefixed-key", FollowsALongerName, key=ID)
wrong("reads-input-as-arguments", ReadsAnotherAlias, alias="input", member="arguments")
after(
    "drops-items-for-the-assistant",
    "merged",
    lambda self, all: [
        item
        for item in all
        if item.get("annotations") != {"audience": ["assistant"]} or item["text"][0] == "{"
    ],
)
after("drops-blanks", "merged", lambda self, all: [i for i in all if i.get("text", "x").strip()])
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
after("drops-image", "merged", lambda self, items: [i for i in items if i["type"] != "image"])
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
after("follow-ups-always", "told_in_structured", lambda self, told: {"followUps": [], **told})
after(
    "strips-a-foreign-next-step",
    "structured",
    lambda self, own: {key: own[key] for key in own or {} if key != "nextStep"} or None,
)
before("structured-content-of-the-last", "structured", lambda self, results: (results[-1:],))
after(
    "drops-null-arguments",
    "read_directive",
    lambda self, read: (read[0], {k: v for k, v in read[1].items() if v is not None}),
)
after("resolves-names-by-case", "read_directive", lambda self, read: (read[0].lower(), read[1]))
after(
    "tells-made-from-nothing",
    "follow_ups",
    lambda self, told: [{**each, "status": "made"} for each in told],
)
before(
    "names-follow-ups-without-numbers",
    "in_words",
    lambda self, told: (told | {"number": "again"},),
)
before(
    "stops-without-content", "read", lambda self, result: (result if result.get("content") else {},)
)
before(
    "follows-infinite-numbers",
    "writable",
    lambda self, value: (json.loads(json.dumps(value).replace("Infinity", "0")),),
)
before(
    "looks-at-arguments-alone-for-numbers",
    "writable",
    lambda self, value: ([value.get("tool"), value.get("arguments")],),
)
before(
    "follows-unwritable-titles",
    "writable",
    lambda self, value: ({key: part for key, part in value.items() if key != "title"},),
)
before(
    "ignores-enum",
    "fits",
    lambda self, schema, given: (json.loads(json.dumps(schema).replace("enum", "title")), given),
)
before(
    "a-chain-id-for-each-call",
    "provenance",
    lambda self, _, level, previous: (str(uuid.uuid4()), level, previous),
)
before(
    "sends-null-for-no-arguments",
    "call",
    lambda self, tool, given, meta: (tool, None if tool == "status" else given, meta),
)
changes(
    "normalizes-text",
    lambda given: json.loads(
        unicodedata.normalize("NFC", json.dumps(given, ensure_ascii=False)),
    ),
)
changes(
    "rounds-numbers",
    lambda given: json.loads(json.dumps(given), parse_float=lambda text: round(float(text), 6)),
)
changes("changes-line-ends", lambda given: json.loads(json.dumps(given).replace("\\r\\n", "\\n")))
changes(
    "cuts-long-arguments",
    lambda given: {k: v[:5000] if isinstance(v, str) else v for k, v in given.items()},
)
changes("drops-duplicates", lambda given: json.loads(json.dumps(given).replace("1, 1", "1")))

CLIENT_MUTANTS |= by_name(vars(), SmallClient)
