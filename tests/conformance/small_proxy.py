"""A small conforming intermediary: it passes on the tools of a shop under other names.

It renames the tool wherever it stands. One tool, `desk_ask_fully`, it follows by itself. It joins
two more servers, whose directives it may not hand on.
"""

import copy

from .small_server import ID, Refusal, Request, SmallServer, tool

PREFIX = "desk_"
FULLY = f"{PREFIX}ask_fully"
JOINED = {"report": "desk_notify_team", "remind": "remind"}
"""The tools of other servers behind this one, and the tool that their directive names."""


class SmallProxy(SmallServer):
    scenario = "desk.yaml"

    def __init__(self):
        super().__init__()
        self.shop = SmallServer()

    def listed(self, request):
        renamed = [{**each, "name": PREFIX + each["name"]} for each in self.shop.tools]
        return [*renamed, tool(FULLY, ["order"]), *map(tool, JOINED)]

    def call(self, request):
        if request.params["name"] == FULLY:
            return self.follow(request)
        if request.params["name"] in JOINED:
            return self.withheld(self.joined(request))
        return self.passed_on(self.upstream(request, request.params), request)

    def upstream(self, request, params):
        """Make a call of the shop; `params` has the names of this server."""
        if not params["name"].startswith(PREFIX):
            raise Refusal(-32602, f"Unknown tool: {params['name']}")
        meta = dict(request.meta)
        shown = meta.get(ID)
        if isinstance(shown, dict) and isinstance(shown.get("previousTool"), str):
            meta[ID] = {**shown, "previousTool": shown["previousTool"].removeprefix(PREFIX)}
        params = {**params, "name": params["name"].removeprefix(PREFIX), "_meta": meta}
        inner = Request(request.method, params, request.modern, request.capabilities, request.ask)
        return self.shop.call(inner)

    def joined(self, request):
        """Return the result of another server behind this one, with its directive and words.

        `desk_notify_team` is in its list too, and `remind` is of a server that does not advertise.
        """
        directive = {"tool": JOINED[request.params["name"]], "arguments": {"order": "7"}}
        result = {**self.says("Something is to be done."), "_meta": {"nextTool": directive}}
        self.attach_words(result, directive)
        return result

    def withheld(self, result):
        """Take away a directive whose tool is another one here, or is of no such server."""
        structured = {"said": result["structuredContent"]["said"]}
        content = self.without_words(result["content"])
        return {"content": content, "structuredContent": structured}

    def passed_on(self, result, request):
        directive = result.get("_meta", {}).get("nextTool")
        if directive is None:
            return result
        renamed = self.rename_directive(directive)
        words = self.without_words(result["content"]) != result["content"]
        result = {**copy.deepcopy(result), "_meta": {"nextTool": renamed}}
        result["content"] = self.without_words(result["content"])
        if words:
            self.attach_words(result, renamed)
        return result

    def rename_directive(self, directive):
        return {**directive, "tool": PREFIX + directive["tool"]}

    def without_words(self, content):
        return [item for item in content if ID not in item.get("_meta", {})]

    def follow(self, request):
        """Ask the manager, and do by oneself what comes next."""
        # What the shop says to a model is said to this server, which is none.
        capabilities = {}
        me = Request(request.method, request.params, request.modern, capabilities, request.ask)
        ask = {"name": f"{PREFIX}ask_manager", "arguments": request.params["arguments"]}
        first = self.upstream(me, ask)
        directive = first["_meta"]["nextTool"]
        onward = {"name": PREFIX + directive["tool"], "arguments": directive["arguments"]}
        return self.merged(first, self.upstream(me, onward))

    def merged(self, first, last):
        content = [*self.without_words(first["content"]), *last["content"]]
        structured = {"said": first["structuredContent"]["said"]}
        return {"content": content, "structuredContent": structured}
