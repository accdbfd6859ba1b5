"""The useful minimum of a client, as `specs/guide.md` names it: every MUST and no SHOULD.

What stands between the marks is the half that a client author writes; above it stands what any MCP
client has: a session that calls and lists tools, and a host that knows what its model may call.
"""

import json

from .small_client import ID, NoResult, SmallClient

# The half: begin


def canonical(value):
    """Return what equal arguments have in common. Raises ValueError where RFC 8785 cannot write."""
    return json.dumps(doubles(value), sort_keys=True, allow_nan=False, ensure_ascii=False).encode()


def doubles(value):
    if isinstance(value, dict):
        return {name: doubles(part) for name, part in value.items()}
    if isinstance(value, list):
        return [doubles(part) for part in value]
    return value if isinstance(value, str | bool | None) else float(value)


def next_call(result):
    """Return tool and arguments, or None without a directive. Raises ValueError if malformed."""
    meta = result.get("_meta") or {}
    if "nextTool" not in meta:
        return None
    value = meta["nextTool"]
    canonical(value)
    if not isinstance(value, dict):
        raise ValueError
    tool, arguments = value.get("tool"), value.get("arguments", {})
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise ValueError
    return tool, arguments


def why_not(host, tool, arguments, calls):
    """Return why a follow-up call is not made, or None."""
    if host.cancelled or len(calls) >= host.limit:
        return "the chain was cancelled or has reached its limit"
    listed = host.list_tools().get(tool)
    if listed is None:
        return "the server does not list it"
    if (tool, canonical(arguments)) in calls:
        return "the same call was made before"
    allowed = host.advertised is not None and host.allowed(tool, listed)
    if not allowed or (tool in host.in_doubt and not host.user_agrees(listed)):
        return "it is not allowed"
    return None


def follow(host, tool, arguments):
    """Make a call and what follows it; return the merged result, or None if there is none."""
    results, calls, told, lost = [], [], [], False
    while True:
        calls.append((tool, canonical(arguments)))
        named = f"Call {len(calls)}, {json.dumps(tool[:120])},"
        host.in_doubt.add(tool)
        try:
            results.append(host.call(tool, arguments, {}))
        except NoResult:
            lost = len(calls) > 1
            told.append(f"{named} was started; whether it took effect is not known.")
            break
        host.in_doubt.discard(tool)
        if len(calls) > 1:
            told.append(f"{named} was made.")
        try:
            step = next_call(results[-1])
        except (ValueError, OverflowError):
            told.append("A next step could not be read.")
            break
        if step is None:
            break
        if reason := why_not(host, *step, calls):
            listed = step[0] in host.list_tools()
            named = json.dumps(step[0][:120]) if listed else "a tool that is not listed"
            told.append(f"Call {len(calls) + 1}, {named}, was not made: {reason}.")
            break
        tool, arguments = step
    # A result without a directive is handed on as it is.
    return merged(results, told, lost) if results and told else next(iter(results), None)


def merged(results, told, lost):
    """Return one result for the whole chain, with what is told of each follow-up call."""
    content = [item for result in results for item in result["content"] if not is_marked(item)]
    audience = {"audience": ["assistant"]}
    content += [{"type": "text", "text": text, "annotations": audience} for text in told]
    own = dict(results[0].get("structuredContent") or {})
    kept = "structuredContent" in results[0] and "followUps" not in own
    own.pop("nextStep", None)
    return {
        "content": content,
        "isError": lost or any(result.get("isError") for result in results),
        **({"structuredContent": own | {"followUps": told}} if kept else {}),
    }


def is_marked(item):
    mark = (item.get("_meta") or {}).get(ID)
    return isinstance(mark, dict) and mark.get("describes") == "nextTool"


# The half: end


class LeastClient(SmallClient):
    """The session and the host of the small client, above which the half above runs."""

    def capabilities(self, method):
        return {"elicitation": {"form": {}}}

    def run(self):
        if "cancelUrl" in self.context:
            self.wait_for_cancel()
        self.connect()
        self.read_list()
        tool, arguments = self.context["tool"], self.context["arguments"]
        if self.context.get("firstCallBy") == "model" and not self.model_may_call(tool):
            return ""
        for _ in range(self.context.get("chains", 1)):
            result = follow(self, tool, arguments)
        return json.dumps(result) + "\n" if result else ""
