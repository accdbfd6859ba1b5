"""Deliberately wrong servers, each a few lines away from `SmallServer`.

Which check each one fails stands in `mutants.yaml`, under the name of its class:
`WordsComeFirst` is `words-come-first`.
"""

import json

from .mutants import by_name
from .small_proxy import JOINED, PREFIX, SmallProxy
from .small_server import ID, LEGACY, Refusal, SmallServer, tool

SERVER_MUTANTS = {}
BIG = 9007199254740993
NOTIFY = {"tool": "notify_team", "arguments": {"order": "1"}}


def wrong(name, like=SmallServer, **members):
    """Register a mutant that differs from a class in these members."""
    SERVER_MUTANTS[name] = type(name, (like,), members)


def sends(name, value):
    """Register a server whose directive at `pick_colour` is `value`."""
    wrong(name, colour_directive=lambda self: value)


def adds(name, method, only_in=None, **more):
    """Register a server whose results of a method have these members, too."""
    right = getattr(SmallServer, method)
    wrong(name, only_in=only_in, **{method: lambda *given: {**right(*given), **more}})


def attaches(name, when):
    """Register a server that sends a directive only to some clients."""

    def attach(self, result, directive, request):
        if when(request):
            SmallServer.attach(self, result, directive, request)

    wrong(name, attach=attach)


def refuses(name, when):
    """Register a server that answers some calls with an error."""

    def call(self, request):
        if when(request):
            raise Refusal(-32602, "Invalid params")
        return SmallServer.call(self, request)

    wrong(name, call=call)


def lets_in(name, when):
    """Register a server that lets in whoever shows this provenance."""
    right = SmallServer.lets_in
    wrong(name, lets_in=lambda self, request: when(request.provenance) or right(self, request))


def merges(name, change):
    """Register an intermediary that changes what it makes of two results."""
    right = SmallProxy.merged
    wrong(
        name,
        SmallProxy,
        merged=lambda self, first, last: {
            **right(self, first, last),
            **change(self, first, last),
        },
    )


adds("silent-in-discover", "discover", capabilities={"tools": {}})
adds("silent-in-initialize", "initialize", LEGACY, capabilities={"tools": {}})
adds("directive-on-ping", "ping", LEGACY, _meta={"nextTool": NOTIFY})
adds("directive-on-interim-result", "interim", _meta={"nextTool": NOTIFY})
adds("directive-on-tools-list", "list_tools", _meta={"nextTool": NOTIFY})
attaches(
    "refuses-unknown-settings",
    lambda request: not request.declared or set(request.settings) <= {"version"},
)
attaches("gates-on-declaration", lambda request: request.declared)
attaches("no-directive-for-empty-settings", lambda request: request.settings != {})
refuses(
    "refuses-later-version",
    lambda request: request.declared and request.settings.get("version", 1) != 1,
)
refuses(
    "refuses-malformed-settings",
    lambda request: request.settings is not None and not request.declared,
)
lets_in("chain-opens-doors", lambda shown: shown is not None)
lets_in("malformed-provenance-opens-doors", lambda shown: isinstance(shown, list))
lets_in(
    "previous-tool-opens-doors",
    lambda shown: isinstance(shown, dict) and shown.get("previousTool") == "ask_manager",
)
merges(
    "followed-directive-stays",
    lambda self, first, _: {
        "_meta": {"nextTool": self.rename_directive(first["_meta"]["nextTool"])}
    },
)
merges(
    "keeps-a-followed-step-as-data",
    lambda self, first, _: {"structuredContent": {"next": first["_meta"]["nextTool"]}},
)
merges(
    "words-of-followed-directive-stay",
    lambda self, first, last: {"content": [*first["content"], *last["content"]]},
)
merges(
    "asks-for-a-followed-step-in-prose",
    lambda self, first, _: {
        "content": [
            {
                "type": "text",
                "text": "Next, call notify_team: "
                + json.dumps({"arguments": first["_meta"]["nextTool"]["arguments"]}),
            }
        ]
    },
)
wrong("settings-version-zero", settings=lambda self: {"version": 0})
wrong("renames-all-but-directives", SmallProxy, rename_directive=lambda self, directive: directive)
wrong(
    "renames-all-but-words",
    SmallProxy,
    in_words=lambda self, directive: SmallProxy.in_words(
        self,
        {
            "tool": directive["tool"].removeprefix(PREFIX),
            "arguments": {"input": directive["arguments"]},
        },
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


class NamesAToolWhoseNameIsANumber(SmallServer):
    tools = (*SmallServer.tools, tool(7, ["order"]))

    def colour_directive(self):
        return {**NOTIFY, "tool": "7"}


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


class DirectiveOnTask(SmallServer):
    def call(self, request):
        result = super().call(request)
        if request.params["name"] == "pick_colour" and "inputResponses" in request.params:
            return {**result, "resultType": "task"}
        return result


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


class TakesMalformedSettings(SmallServer):
    def attach(self, result, directive, request):
        result["_meta"] = {"nextTool": directive}
        if request.settings is None:
            self.attach_words(result, directive)


def takes_capabilities(name, change, only_in=None):
    """Register a server that takes a client's capabilities for what `change` makes of them."""

    def call(self, request):
        request.capabilities = change(request.capabilities)
        return SmallServer.call(self, request)

    wrong(name, call=call, only_in=only_in)


ONE = {"extensions": {ID: {"version": 1}}}

takes_capabilities("reads-extensions-only", lambda given: {**given, "experimental": {}})
takes_capabilities(
    "looks-in-one-place-only",
    lambda given: {**given, "experimental": {}} if "extensions" in given else given,
    LEGACY,
)
takes_capabilities(
    "second-place-decides-for-a-server",
    lambda given: {**given, "extensions": {}} if ID in given.get("experimental", {}) else given,
    LEGACY,
)
takes_capabilities("takes-true-for-one-of-a-client", lambda given: ONE if given == ONE else given)


class NoContentOfItsOwn(SmallServer):
    content = ()

    def attach(self, result, directive, request):
        result["content"] = [*self.content]
        super().attach(result, directive, request)


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


def rejects(name, is_wrong, kind=dict):
    """Register a server for which provenance of this kind is an error if `is_wrong` says so."""

    def when(request):
        shown = request.meta.get(ID, ...)
        return isinstance(shown, kind) and is_wrong(shown)

    refuses(name, when)


rejects("rejects-malformed-provenance", lambda text: True, str)
rejects("rejects-null-provenance", lambda null: True, type(None))
rejects("rejects-list-as-provenance", lambda items: True, list)
rejects("rejects-missing-chain-id", lambda shown: "chainId" not in shown)
rejects("rejects-long-chain-id", lambda shown: len(str(shown.get("chainId"))) > 128)
rejects("rejects-missing-level", lambda shown: "level" not in shown)
rejects("rejects-long-chains", lambda shown: shown.get("level") in range(6, 1000))
rejects("rejects-level-true", lambda shown: shown.get("level") is True)
rejects("rejects-broken-level", lambda shown: shown.get("level") == 1.5)
rejects("rejects-null-previous-tool", lambda shown: shown.get("previousTool", "") is None)
rejects("rejects-empty-previous-tool", lambda shown: shown.get("previousTool") == "")
rejects(
    "rejects-missing-previous-tool",
    lambda shown: shown.get("level") == 2 and "previousTool" not in shown,
)
rejects(
    "rejects-previous-tool-at-level-1",
    lambda shown: shown.get("level") == 1 and "previousTool" in shown,
)
rejects(
    "rejects-unlisted-previous-tool",
    lambda shown: (
        isinstance(name := shown.get("previousTool"), str)
        and name not in [tool["name"] for tool in SmallServer.tools]
    ),
)
rejects(
    "rejects-unknown-members-of-provenance",
    lambda shown: set(shown) - {"chainId", "level", "previousTool"},
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


class UnmarksWordsOfAFollowedDirective(SmallProxy):
    def without_words(self, content):
        return [{key: part for key, part in item.items() if key != "_meta"} for item in content]


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
