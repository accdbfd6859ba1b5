"""The useful minimum of a client, as `specs/guide.md` names it: every MUST and no SHOULD.

What stands between the marks is the half that a client author writes; above it stands what any MCP
client has: a session that calls and lists tools, and a host that knows what its model may call.
"""

import json

from .small_client import ID, NoResult, Refused, SmallClient, Task

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


def in_doubt(host, tool, calls):
    """Return what the record has against a follow-up call: it counts in all chains, or in equal."""
    return [call for call, first in host.doubts if call[0] == tool and first in (None, calls[0])]


def why_not(host, tool, arguments, calls):
    """Return why a follow-up call is not made, or None."""
    if host.cancelled or len(calls) >= host.limit:
        return "the chain was cancelled or has reached its limit"
    host.read_list()
    listed = host.find(tool)
    if listed is None:
        return "the server does not list it"
    if (tool, canonical(arguments)) in calls:
        return "the same call was made before"
    doubts = [] if host.hints(listed, "readOnlyHint", True) else in_doubt(host, tool, calls)
    if not host.allowed(tool, listed) or (doubts and not host.user_agrees(listed)):
        return "it is not allowed"
    host.doubts[:] = [each for each in host.doubts if each[0] not in doubts]
    return None


def settle(host, calls, result):
    """Note in the record what a result says of the last call."""
    if not result.get("isError"):
        host.doubts[:] = [each for each in host.doubts if each[0] != calls[-1]]
    elif len(calls) > 1 and not host.may_be_repeated(calls[-1][0]):
        host.doubts.append((calls[-1], calls[0]))


def follow(host, tool, arguments):
    """Make a call and what follows it; return the merged result, or None if there is none."""
    results, calls, told, lost = [], [], [], False
    while True:
        calls.append((tool, canonical(arguments)))
        named = f"Call {len(calls)}, {json.dumps(tool[:120])},"
        try:
            results.append(host.call(tool, arguments, {}))
        except Refused:
            told.append(f"{named} was not made: the server refused it.")
            break
        except NoResult as error:
            host.doubts.append((calls[-1], calls[0] if isinstance(error, Task) else None))
            lost = len(calls) > 1
            told.append(f"{named} was started; whether it took effect is not known.")
            break
        settle(host, calls, results[-1])
        if host.advertised is None:
            return results[-1]
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
            named = json.dumps(step[0][:120]) if host.find(step[0]) else "a further tool"
            told.append(f"Call {len(calls) + 1}, {named}, was not made: {reason}.")
            break
        tool, arguments = step
    if host.cancelled:
        host.doubts += [(call, calls[0]) for call in calls[1 : len(results)]]
    # A result without a directive is handed on as it is.
    return merged(results, told, lost) if results and told else next(iter(results), None)


def merged(results, told, lost):
    """Return one result for the whole chain, with what is told of each follow-up call."""
    data = [own_data(result) for result in results[1:]]
    content = [item for result in results for item in result["content"] if not is_marked(item)]
    texts = [item.get("text") for item in content]
    told_data = [text for each in data if each and (text := json.dumps(each)) not in texts]
    audience = {"audience": ["assistant"]}
    content += [
        {"type": "text", "text": text, "annotations": audience} for text in told_data + told
    ]
    own = own_data(results[0])
    kept = "structuredContent" in results[0] and "followUps" not in own
    return {
        "content": content,
        "isError": lost or any(result.get("isError") for result in results),
        **({"structuredContent": own | {"followUps": told}} if kept else {}),
    }


def own_data(result):
    """Return the structured content of a result without the words."""
    data = dict(result.get("structuredContent") or {})
    if "nextTool" in (result.get("_meta") or {}):
        data.pop("nextStep", None)
    return data


def is_marked(item):
    mark = (item.get("_meta") or {}).get(ID)
    return isinstance(mark, dict) and mark.get("describes") == "nextTool"


# The half: end


class LeastClient(SmallClient):
    """The session and the host of the small client, above which the half above runs.

    The host begins one chain after the other, so no call waits for another.
    """

    def __init__(self, *given):
        super().__init__(*given)
        self.doubts = []
        """The record: each doubtful call, and the first call of its chain; None: for all chains."""

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
        further = [] if self.context.get("atOnce") else self.further()
        for call in [(tool, arguments), *((each["tool"], each["arguments"]) for each in further)]:
            self.cancelled = False
            result = follow(self, *call)
        return json.dumps(result) + "\n" if result else ""
