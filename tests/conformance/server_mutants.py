"""Deliberately wrong servers, each a few lines away from `SmallServer`.

Which check each one fails stands in `specs/conformance/mutants.yaml`.
"""

from .small_server import ID, Refusal, SmallServer

SERVER_MUTANTS = {}


def mutant(name):
    def register(kind):
        SERVER_MUTANTS[name] = kind
        return kind

    return register


def sends(name, value):
    """Register a server whose directive at `pick_colour` is `value`."""
    SERVER_MUTANTS[name] = type(name, (SmallServer,), {"colour_directive": lambda self: value})


sends("directive-is-text", "notify_team")
sends("arguments-are-a-list", {"tool": "notify_team", "arguments": ["1"]})
sends("directive-names-nothing", {"arguments": {"order": "1"}})
sends("tool-is-empty", {"tool": "", "arguments": {"order": "1"}})
sends(
    "sends-the-alias-too",
    {"tool": "notify_team", "name": "notify_team", "arguments": {"order": "1"}},
)
sends("sends-the-alias-alone", {"name": "notify_team", "arguments": {"order": "1"}})
sends(
    "sends-parameters",
    {"tool": "notify_team", "arguments": {"order": "1"}, "parameters": {"order": "1"}},
)
sends("names-unlisted-tool", {"tool": "notifyTeam", "arguments": {"order": "1"}})
sends("names-app-tool", {"tool": "app_view", "arguments": {"order": "1"}})
sends("argument-missing", {"tool": "notify_team", "arguments": {}})
sends("argument-of-wrong-type", {"tool": "notify_team", "arguments": {"order": 1}})
sends("argument-undeclared", {"tool": "notify_team", "arguments": {"order": "1", "urgent": True}})
sends("secret-in-arguments", {"tool": "notify_team", "arguments": {"order": "1 (hunter2-secret)"}})


@mutant("settings-version-zero")
class SettingsVersionZero(SmallServer):
    def settings(self):
        return {"version": 0}


@mutant("refuses-unknown-settings")
class RefusesUnknownSettings(SmallServer):
    def attach(self, result, directive, request):
        if request.capabilities.get("extensions", {}).get(ID) in (None, {"version": 1}):
            super().attach(result, directive, request)


@mutant("silent-in-discover")
class SilentInDiscover(SmallServer):
    def discover(self):
        return {**super().discover(), "capabilities": {"tools": {}}}


@mutant("silent-in-initialize")
class SilentInInitialize(SmallServer):
    def initialize(self):
        return {**super().initialize(), "capabilities": {"tools": {}}}


@mutant("gates-on-declaration")
class GatesOnDeclaration(SmallServer):
    def attach(self, result, directive, request):
        if request.declared:
            super().attach(result, directive, request)


@mutant("words-without-arguments")
class WordsWithoutArguments(SmallServer):
    def in_words(self, directive):
        return {**super().in_words(directive), "text": f"Next: {directive['tool']}."}


@mutant("words-for-everybody")
class WordsForEverybody(SmallServer):
    def in_words(self, directive):
        return {**super().in_words(directive), "annotations": {"audience": ["user", "assistant"]}}


@mutant("words-come-first")
class WordsComeFirst(SmallServer):
    def attach(self, result, directive, request):
        super().attach(result, directive, request)
        result["content"].reverse()


@mutant("words-unmarked")
class WordsUnmarked(SmallServer):
    def in_words(self, directive):
        return {key: value for key, value in super().in_words(directive).items() if key != "_meta"}


@mutant("words-for-declared-client")
class WordsForDeclaredClient(SmallServer):
    def attach(self, result, directive, request):
        super().attach(result, directive, request)
        if request.declared and request.modern:
            result["content"].append(self.in_words(directive))


@mutant("directive-on-interim-result")
class DirectiveOnInterimResult(SmallServer):
    def interim(self, request):
        return {**super().interim(request), "_meta": {"nextTool": self.colour_directive()}}


@mutant("directive-on-tools-list")
class DirectiveOnToolsList(SmallServer):
    def list_tools(self, request):
        return {**super().list_tools(request), "_meta": {"nextTool": self.colour_directive()}}


@mutant("no-content-of-its-own")
class NoContentOfItsOwn(SmallServer):
    def attach(self, result, directive, request):
        result["content"] = []
        super().attach(result, directive, request)


@mutant("chain-opens-doors")
class ChainOpensDoors(SmallServer):
    def refund(self, request):
        return self.says("Refunded.") if request.provenance else super().refund(request)


@mutant("cycle")
class Cycle(SmallServer):
    def run(self, name, arguments, request):
        if name == "notify_team":
            return self.says("Asking again."), self.directive("ask_manager", arguments)
        return super().run(name, arguments, request)


@mutant("chain-of-eight")
class ChainOfEight(SmallServer):
    def run(self, name, arguments, request):
        level = int(arguments.get("reason") or 0) + 1
        if name != "ask_manager" or level > 5:
            return super().run(name, arguments, request)
        onward = {"order": arguments["order"], "reason": str(level)}
        return self.says("Escalated."), {"tool": "ask_manager", "arguments": onward}


@mutant("different-every-time")
class DifferentEveryTime(SmallServer):
    def place_order(self, arguments, request):
        result, directive = super().place_order(arguments, request)
        if directive is not None:
            directive["arguments"]["order"] += f" #{self.calls}"
        return result, directive


@mutant("provenance-ends-chain")
class ProvenanceEndsChain(SmallServer):
    def place_order(self, arguments, request):
        result, directive = super().place_order(arguments, request)
        shown = request.provenance if isinstance(request.provenance, dict) else {}
        return result, None if shown.get("level") == 2 else directive


@mutant("rejects-malformed-provenance")
class RejectsMalformedProvenance(SmallServer):
    def call(self, request):
        shown = request.provenance or {"chainId": "none"}
        if not isinstance(shown, dict) or not isinstance(shown.get("chainId"), str):
            raise Refusal(-32602, "Malformed provenance")
        return super().call(request)
