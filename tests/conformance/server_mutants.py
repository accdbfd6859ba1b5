"""Deliberately wrong servers, each a few lines away from `SmallServer`.

Which check each one fails stands in `specs/conformance/mutants.yaml`, under the name of its class:
`WordsComeFirst` is `words-come-first`.
"""

import json

from .mutants import by_name
from .small_proxy import JOINED, PREFIX, SmallProxy
from .small_server import ID, LEGACY, Refusal, SmallServer

SERVER_MUTANTS = {}
PHRASE = 'open "sesame" \\ now'
BIG = 9007199254740993
NOTIFY = {"tool": "notify_team", "arguments": {"order": "1"}}


def wrong(name, like=SmallServer, **members):
    """Register a mutant that differs from a class in these members."""
    SERVER_MUTANTS[name] = type(name, (like,), members)


def sends(name, value):
    """Register a server whose directive at `pick_colour` is `value`."""
    wrong(name, colour_directive=lambda self: value)


wrong("directive-on-ping", only_in=LEGACY, ping=lambda self: {"_meta": {"nextTool": NOTIFY}})
wrong("settings-version-zero", settings=lambda self: {"version": 0})
wrong("renames-all-but-directives", SmallProxy, rename_directive=lambda self, directive: directive)
wrong(
    "renames-all-but-words",
    SmallProxy,
    in_words=lambda self, directive: SmallProxy.in_words(
        self, {**directive, "tool": directive["tool"].removeprefix(PREFIX)}
    ),
)
sends("directive-is-text", "notify_team")
sends("arguments-are-a-list", {"tool": "notify_team", "arguments": ["1"]})
sends("directive-names-nothing", {"arguments": {"order": "1"}})
sends("tool-is-empty", {"tool": "", "arguments": {"order": "1"}})
sends("names-unlisted-tool", {"tool": "notifyTeam", "arguments": {"order": "1"}})
sends("names-app-tool", {"tool": "app_view", "arguments": {"order": "1"}})
sends("argument-missing", {"tool": "notify_team", "arguments": {}})
sends("argument-of-wrong-type", {"tool": "notify_team", "arguments": {"order": 1}})
sends("argument-undeclared", {"tool": "notify_team", "arguments": {"order": "1", "oder": "1"}})
sends("title-is-a-number", {**NOTIFY, "title": 7})
sends("title-too-long", {**NOTIFY, "title": "x" * 201})
sends("title-of-two-lines", {**NOTIFY, "title": "Notify\nthe team"})
sends("title-turned-round", {**NOTIFY, "title": "Notify \u202emaet eht"})
sends("title-with-a-mark-of-direction", {**NOTIFY, "title": "Notify \u200fthe team"})
sends("half-a-surrogate-pair", {"tool": "notify_team", "arguments": {"order": "\ud83d"}})
sends("number-no-double-holds", {"tool": "notify_team", "arguments": {"order": "1", "price": BIG}})


class RefusesUnknownSettings(SmallServer):
    def attach(self, result, directive, request):
        if not request.declared or set(request.settings) <= {"version"}:
            super().attach(result, directive, request)


class SilentInDiscover(SmallServer):
    def discover(self):
        return {**super().discover(), "capabilities": {"tools": {}}}


class SilentInInitialize(SmallServer):
    only_in = LEGACY

    def initialize(self):
        return {**super().initialize(), "capabilities": {"tools": {}}}


class GatesOnDeclaration(SmallServer):
    def attach(self, result, directive, request):
        if request.declared:
            super().attach(result, directive, request)


class WordsUnmarked(SmallServer):
    def in_words(self, directive):
        return {key: value for key, value in super().in_words(directive).items() if key != "_meta"}


class WordsUnmarkedOnLaterCalls(WordsUnmarked):
    def in_words(self, directive):
        first = directive["tool"] == "ask_manager"
        return SmallServer.in_words(self, directive) if first else super().in_words(directive)


class ArgumentsThatAreWrongNowAndThen(SmallServer):
    def directive(self, name, arguments):
        order = arguments["order"] if self.calls % 8 else 8
        return super().directive(name, {"order": order})


class DirectiveOnInterimResult(SmallServer):
    def interim(self, request):
        return {**super().interim(request), "_meta": {"nextTool": self.colour_directive()}}


class DirectiveOnTask(SmallServer):
    def call(self, request):
        result = super().call(request)
        if request.params["name"] == "pick_colour" and "inputResponses" in request.params:
            return {**result, "resultType": "task"}
        return result


class DirectiveOnToolsList(SmallServer):
    def list_tools(self, request):
        return {**super().list_tools(request), "_meta": {"nextTool": self.colour_directive()}}


class ListsForDeclaredOnly(SmallServer):
    def listed(self, request):
        return [tool for tool in self.tools if request.declared or tool["name"] != "ask_manager"]


class NameTwice(SmallServer):
    def written(self, message):
        return super().written(message).replace('{"order": "1"}', '{"order": "2", "order": "1"}')


class NextStepUnderAnotherName(SmallServer):
    def attach(self, result, directive, request):
        super().attach(result, directive, request)
        result["structuredContent"]["next_step"] = {
            "name": directive["tool"],
            "why": "",
            **directive,
        }


class _Says(SmallServer):
    """Repeats a directive in one more content item, or in structured content."""

    def attach_words(self, result, directive):
        super().attach_words(result, directive)
        call = f"Now call {directive['tool']} with {json.dumps(directive['arguments'])}."
        self.say(result, call, {"tool": directive["tool"], "arguments": directive["arguments"]})


def says(name, make):
    """Register a server with an item that `make` returns."""
    wrong(name, _Says, say=lambda self, result, call, _: result["content"].append(make(call)))


says("says-the-call-to-everybody", lambda call: {"type": "text", "text": call})
says(
    "says-the-call-in-a-resource",
    lambda call: {"type": "resource", "resource": {"uri": "file:///next.txt", "text": call}},
)
says(
    "says-the-call-in-a-link",
    lambda call: {"type": "resource_link", "uri": "file:///n", "name": "n", "description": call},
)
wrong(
    "says-the-call-as-json-text",
    _Says,
    say=lambda self, result, _, call: result["structuredContent"].update(next=json.dumps(call)),
)


class NextStepInContent(SmallServer):
    def attach_words(self, result, directive):
        super().attach_words(result, directive)
        text = json.dumps(result["structuredContent"])
        result["content"].insert(0, {"type": "text", "text": text})


class NoDirectiveForEmptySettings(SmallServer):
    def attach(self, result, directive, request):
        if request.settings != {}:
            super().attach(result, directive, request)


class RefusesLaterVersion(SmallServer):
    def call(self, request):
        if (request.settings or {}).get("version", 1) != 1 and request.declared:
            raise Refusal(-32602, "Unknown version")
        return super().call(request)


class TakesMalformedSettings(SmallServer):
    def attach(self, result, directive, request):
        result["_meta"] = {"nextTool": directive}
        if request.settings is None:
            self.attach_words(result, directive)


class RefusesMalformedSettings(SmallServer):
    def call(self, request):
        if request.settings is not None and not request.declared:
            raise Refusal(-32602, "Malformed settings")
        return super().call(request)


class ReadsExtensionsOnly(SmallServer):
    def call(self, request):
        request.capabilities = {**request.capabilities, "experimental": {}}
        return super().call(request)


class SecondPlaceDecidesForAServer(SmallServer):
    only_in = LEGACY

    def call(self, request):
        if ID in request.capabilities.get("experimental", {}):
            request.capabilities = {**request.capabilities, "extensions": {}}
        return super().call(request)


class NoContentOfItsOwn(SmallServer):
    content = ()

    def attach(self, result, directive, request):
        result["content"] = [*self.content]
        super().attach(result, directive, request)


class ChainOpensDoors(SmallServer):
    def lets_in(self, request):
        return request.provenance is not None or super().lets_in(request)


class PreviousToolOpensDoors(SmallServer):
    def lets_in(self, request):
        shown = request.provenance if isinstance(request.provenance, dict) else {}
        return shown.get("previousTool") == "ask_manager" or super().lets_in(request)


class ChainIdOpensDoors(SmallServer):
    def __init__(self):
        super().__init__()
        self.authorized = set()

    def lets_in(self, request):
        shown = request.provenance if isinstance(request.provenance, dict) else {}
        if super().lets_in(request):
            self.authorized.add(str(shown.get("chainId")))
            return True
        return shown.get("chainId") in self.authorized


class Cycle(SmallServer):
    def notify_team(self, arguments, request):
        return self.says("Asking again."), self.directive("ask_manager", arguments)


class ChainOfEight(SmallServer):
    def run(self, name, arguments, request):
        level = int(arguments.get("reason") or 0) + 1
        if name != "ask_manager" or level > 5 or "chair" not in arguments["order"]:
            return super().run(name, arguments, request)
        onward = {"order": arguments["order"], "reason": str(level)}
        return self.says("Escalated."), {"tool": "ask_manager", "arguments": onward}


def is_follow_up(request):
    """Return whether a call has well-formed provenance of a follow-up call."""
    shown = request.provenance if isinstance(request.provenance, dict) else {}
    previous = shown.get("previousTool")
    return shown.get("level", 1) not in (1, 1.5) and isinstance(previous, str) and previous != ""


class ProvenanceEndsChain(SmallServer):
    def place_order(self, arguments, request):
        result, directive = super().place_order(arguments, request)
        return result, None if is_follow_up(request) else directive


class ProvenanceChangesFollowUp(SmallServer):
    def notify_team(self, arguments, request):
        if is_follow_up(request):
            return self.says("The team knows already."), None
        return super().notify_team(arguments, request)


def refuses_provenance(name, is_wrong):
    """Register a server for which provenance that is malformed in one way is an error."""

    def call(self, request):
        if ID in request.meta and is_wrong(request.meta[ID]):
            raise Refusal(-32602, "Malformed provenance")
        return SmallServer.call(self, request)

    wrong(name, call=call)


def member(name):
    return lambda shown: isinstance(shown, dict) and name(shown)


refuses_provenance("rejects-malformed-provenance", lambda shown: isinstance(shown, str))
refuses_provenance("rejects-null-provenance", lambda shown: shown is None)
refuses_provenance(
    "rejects-long-chain-id", member(lambda shown: len(str(shown.get("chainId"))) > 128)
)
refuses_provenance(
    "rejects-missing-previous-tool",
    member(lambda shown: shown.get("level") == 2 and "previousTool" not in shown),
)
refuses_provenance(
    "rejects-null-previous-tool",
    member(lambda shown: "previousTool" in shown and shown["previousTool"] is None),
)
refuses_provenance(
    "rejects-previous-tool-at-level-1",
    member(lambda shown: shown.get("level") == 1 and "previousTool" in shown),
)
refuses_provenance(
    "rejects-unknown-members-of-provenance",
    member(lambda shown: bool(set(shown) - {"chainId", "level", "previousTool"})),
)
refuses_provenance("rejects-missing-chain-id", member(lambda shown: "chainId" not in shown))
refuses_provenance("rejects-missing-level", member(lambda shown: "level" not in shown))
refuses_provenance("rejects-list-as-provenance", lambda shown: isinstance(shown, list))
refuses_provenance("rejects-level-true", member(lambda shown: shown.get("level") is True))
refuses_provenance("rejects-broken-level", member(lambda shown: shown.get("level") == 1.5))
refuses_provenance(
    "rejects-empty-previous-tool", member(lambda shown: shown.get("previousTool") == "")
)


refuses_provenance(
    "rejects-unlisted-previous-tool",
    member(
        lambda shown: (
            isinstance(name := shown.get("previousTool"), str)
            and name not in [tool["name"] for tool in SmallServer.tools]
        )
    ),
)


class RepeatsOldResults(SmallServer):
    def __init__(self):
        super().__init__()
        self.known = {}

    def key(self, request):
        shown = request.provenance if isinstance(request.provenance, dict) else {}
        return json.dumps([shown.get("chainId"), shown.get("level")]) if shown else None

    def call(self, request):
        key = self.key(request)
        if key is None:
            return super().call(request)
        if key not in self.known:
            self.known[key] = super().call(request)
        return self.known[key]


class RefusesAChainItKnows(RepeatsOldResults):
    def call(self, request):
        key = self.key(request)
        if key is not None and key in self.known:
            raise Refusal(-32602, "This call of the chain was made")
        self.known[key] = True
        return SmallServer.call(self, request)


class MalformedProvenanceOpensDoors(SmallServer):
    def lets_in(self, request):
        return isinstance(request.provenance, list) or super().lets_in(request)


class FollowedDirectiveStays(SmallProxy):
    def merged(self, first, last):
        directive = self.rename_directive(first["_meta"]["nextTool"])
        return {**super().merged(first, last), "_meta": {"nextTool": directive}}


class UnmarksWordsOfAFollowedDirective(SmallProxy):
    def without_words(self, content):
        return [{key: part for key, part in item.items() if key != "_meta"} for item in content]


class KeepsAFollowedStepAsData(SmallProxy):
    def merged(self, first, last):
        return {
            **super().merged(first, last),
            "structuredContent": {"next": first["_meta"]["nextTool"]},
        }


class WordsOfFollowedDirectiveStay(SmallProxy):
    def merged(self, first, last):
        content = [*first["content"], *last["content"]]
        return {**super().merged(first, last), "content": content}


class HandsOnAForeignDirective(SmallProxy):
    def withheld(self, result):
        named = result["_meta"]["nextTool"]["tool"]
        return result if named == JOINED["report"] else super().withheld(result)


class HandsOnForeignWords(SmallProxy):
    def withheld(self, result):
        return {**super().withheld(result), "content": result["content"]}


class _Numbered(SmallServer):
    """Makes a record with each order: its number varies, in the words and in the directive."""

    def place_order(self, arguments, request):
        result, directive = super().place_order(arguments, request)
        if directive is None:
            return result, None
        number = f"no. {self.calls}"
        result = self.says(f"A manager has to agree to order {number} of 500 chairs.")
        directive["arguments"] = {"order": f"{directive['arguments']['order']}, {number}"}
        self.change(result, directive["arguments"], request.provenance, is_follow_up(request))
        return result, directive

    def change(self, result, arguments, shown, follows):
        """What a mutant does with the provenance that was shown; a call may follow by it."""


class RemembersNumbersByProvenance(_Numbered):
    def change(self, result, arguments, shown, follows):
        known = vars(self).setdefault("known", {})
        if follows:
            number = known.setdefault(shown["chainId"] + str(shown["level"]), arguments["order"])
            arguments["order"] = number


class ProvenanceChangesOneArgument(_Numbered):
    def change(self, result, arguments, shown, follows):
        arguments["reason"] = "follow-up" if follows else "first"


class ProvenanceChangesOneMember(_Numbered):
    def change(self, result, arguments, shown, follows):
        result["structuredContent"]["fee"] = {"amount": 0 if follows else 5}


class MalformedProvenanceChangesOneArgument(_Numbered):
    def change(self, result, arguments, shown, follows):
        arguments["reason"] = "none" if shown == {} else "first"


wrong("content-of-no-width", NoContentOfItsOwn, content=({"type": "text", "text": "\u200b"},))
SERVER_MUTANTS |= by_name(vars(), SmallServer)
