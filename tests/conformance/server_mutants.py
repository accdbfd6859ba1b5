"""Deliberately wrong servers, each a few lines away from `SmallServer`: two for each check.

Which check each one fails stands in `mutants.yaml`, under the name of its class:
`WordsUnmarked` is `words-unmarked`.
"""

from .mutants import by_name
from .small_proxy import JOINED, PREFIX, SmallProxy
from .small_server import ID, LEGACY, Refusal, SmallServer

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
refuses("rejects-malformed-provenance", lambda request: isinstance(request.meta.get(ID), str))
lets_in("malformed-provenance-opens-doors", lambda shown: isinstance(shown, list))
merges(
    "followed-directive-stays",
    lambda self, first, _: {
        "_meta": {"nextTool": self.rename_directive(first["_meta"]["nextTool"])}
    },
)
wrong("settings-version-zero", settings=lambda self: {"version": 0})
wrong("settings-are-a-version", settings=lambda self: 1)
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
sends("names-the-tool-under-name", {"name": "notify_team", "arguments": {"order": "1"}})
sends("names-unlisted-tool", {"tool": "notifyTeam", "arguments": {"order": "1"}})
sends("argument-missing", {"tool": "notify_team", "arguments": {}})
sends("title-too-long", {**NOTIFY, "title": "x" * 201})
sends("title-turned-round", {**NOTIFY, "title": "Notify \u202emaet eht"})
sends("number-no-double-holds", {"tool": "notify_team", "arguments": {"order": "1", "price": BIG}})


class WordsUnmarked(SmallServer):
    def in_words(self, directive):
        return {key: value for key, value in super().in_words(directive).items() if key != "_meta"}


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


class TakesMalformedSettings(SmallServer):
    def attach(self, result, directive, request):
        result["_meta"] = {"nextTool": directive}
        if request.settings is None:
            self.attach_words(result, directive)


def within_settings(capabilities):
    settings = capabilities.get("extensions", {}).get(ID)
    right = isinstance(settings, dict) and type(settings.get("version", 1)) is int
    return settings if right else {}


def takes_capabilities(name, change, only_in=None):
    """Register a server that takes a client's capabilities for what `change` makes of them."""

    def call(self, request):
        request.capabilities = change(request.capabilities)
        return SmallServer.call(self, request)

    wrong(name, call=call, only_in=only_in)


takes_capabilities("reads-extensions-only", lambda given: {**given, "experimental": {}})
takes_capabilities(
    "looks-in-one-place-only",
    lambda given: {**given, "experimental": {}} if "extensions" in given else given,
    LEGACY,
)
takes_capabilities(
    "takes-later-settings-for-none",
    lambda given: {} if within_settings(given).get("version", 1) > 1 else given,
)
takes_capabilities(
    "takes-unknown-settings-for-none",
    lambda given: {} if len(within_settings(given)) > 1 else given,
)


class NoContentOfItsOwn(SmallServer):
    def attach(self, result, directive, request):
        result["content"] = []
        super().attach(result, directive, request)


class LaterWordsAlone(NoContentOfItsOwn):
    only_in = LEGACY

    def attach(self, result, directive, request):
        later = directive["tool"] != "ask_manager" and not request.declared
        (super() if later else super(NoContentOfItsOwn, self)).attach(result, directive, request)


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


class ProvenanceChangesOneArgument(SmallServer):
    """It makes a record with each order: the number varies, in the words and in the directive."""

    def place_order(self, arguments, request):
        result, directive = super().place_order(arguments, request)
        if directive is None:
            return result, None
        number = f"no. {self.calls}"
        result = self.says(f"A manager has to agree to order {number} of 500 chairs.")
        directive["arguments"] = {"order": f"{directive['arguments']['order']}, {number}"}
        directive["arguments"]["reason"] = "follow-up" if is_follow_up(request) else "first"
        return result, directive


SERVER_MUTANTS |= by_name(vars(), SmallServer)
