"""A parcel service, as somebody wrote it who knows neither this suite nor an SDK.

Callers sign in by a tool and from then on stand in `_meta` of every request, or in a header. Tools
are listed for each caller. A directive holds the id of a record that the call made.
"""

import itertools

from .small_server import ID, Refusal, SmallServer, tool

CALLER = "parcels.example/caller"


class Parcels(SmallServer):
    scenario = "parcels.yaml"
    public = (tool("sign_in", ["name", "word"]),)
    tools = (
        tool("open_parcel", ["item"]),
        tool("call_courier", ["parcel"]),
        tool("print_label", ["parcel"]),
    )

    def __init__(self):
        super().__init__()
        self.numbers = itertools.count(1)
        self.known = set()

    def caller(self, request):
        caller = request.meta.get(CALLER)
        return caller if caller in self.known else None

    def listed(self, request):
        return self.public + (self.tools if self.caller(request) else ())

    def run(self, name, arguments, request):
        if name == "sign_in":
            if arguments["word"] != 'say "friend" \\ enter':
                return {**self.says("That is not the word."), "isError": True}, None
            self.known.add(f"caller-of-{arguments['name']}")
            return self.says(f"You are caller-of-{arguments['name']}."), None
        if self.caller(request) is None:
            return {**self.says("Please sign in first."), "isError": True}, None
        if name == "open_parcel":
            parcel = f"parcel-{next(self.numbers)}"
            return self.says("Opened."), {"tool": "call_courier", "arguments": {"parcel": parcel}}
        if name == "call_courier":
            return self.says("The courier is on the way."), self.label(arguments)
        if name == "print_label":
            return self.says("Printed."), None
        raise Refusal(-32602, f"Unknown tool: {name}")

    def label(self, arguments):
        return {"tool": "print_label", "arguments": {"parcel": arguments["parcel"]}}


class OpenDoor(Parcels):
    """Lets a stranger in who says that the tool before was `open_parcel`."""

    def caller(self, request):
        shown = request.meta.get(ID)
        if isinstance(shown, dict) and shown.get("previousTool") == "open_parcel":
            return "anybody"
        return super().caller(request)


class OpenChain(Parcels):
    """Lets a stranger in who repeats the chainId of somebody who signed in."""

    def __init__(self):
        super().__init__()
        self.chains = set()

    def caller(self, request):
        shown = request.meta.get(ID)
        chain = shown.get("chainId") if isinstance(shown, dict) else None
        caller = super().caller(request)
        if caller is not None and isinstance(chain, str):
            self.chains.add(chain)
        return caller or ("anybody" if chain in self.chains else None)


class Endless(Parcels):
    """Its chain leads on for ever."""

    def run(self, name, arguments, request):
        result, directive = super().run(name, arguments, request)
        if name == "print_label" and not result.get("isError"):
            onward = {"parcel": arguments["parcel"] + "+"}
            return result, {"tool": "print_label", "arguments": onward}
        return result, directive


class ManyTools(Parcels):
    """Has more tools than anybody reads."""

    page_size = 2
    public = tuple(tool(f"tool_{number}") for number in range(250)) + Parcels.public
