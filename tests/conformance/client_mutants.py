"""Deliberately wrong clients, each a few lines away from `SmallClient`.

Which check each one fails stands in `specs/conformance/mutants.yaml`.
"""

import http.client
import json
from urllib.parse import urlsplit

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.validators import validator_for
from referencing import Registry, Resource

from .small_client import Malformed, SmallClient

CLIENT_MUTANTS = {}


def mutant(name):
    def register(kind):
        CLIENT_MUTANTS[name] = kind
        return kind

    return register


class Lenient(SmallClient):
    """Repairs a directive before reading it."""

    def repair(self, value):
        raise NotImplementedError

    def read_directive(self, value):
        return super().read_directive(self.repair(value))


@mutant("takes-text-for-a-directive")
class TakesTextForADirective(Lenient):
    def repair(self, value):
        if isinstance(value, str):
            return {"tool": value, "arguments": {"text": "x"}}
        return value[0] if isinstance(value, list) else value


@mutant("takes-name-where-tool-is-null")
class TakesNameWhereToolIsNull(Lenient):
    def repair(self, value):
        if isinstance(value, dict) and value.get("tool", "") is None:
            return {key: item for key, item in value.items() if key != "tool"}
        return value


@mutant("drops-bad-arguments")
class DropsBadArguments(Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("arguments"), list | None):
            return {key: item for key, item in value.items() if key != "arguments"}
        return value


@mutant("invents-arguments")
class InventsArguments(SmallClient):
    def call(self, name, arguments, meta):
        if name == "status" and self.context["case"] == "absent-arguments":
            arguments = {"reason": "none given"}
        return super().call(name, arguments, meta)


@mutant("refuses-unknown-members")
class RefusesUnknownMembers(SmallClient):
    def read_directive(self, value):
        if isinstance(value, dict) and set(value) - {"tool", "name", "arguments"}:
            raise Malformed
        return super().read_directive(value)


@mutant("reads-no-alias")
class ReadsNoAlias(SmallClient):
    def read_directive(self, value):
        if isinstance(value, dict) and "tool" not in value:
            raise Malformed
        return super().read_directive(value)


@mutant("prefers-tool-over-name")
class PrefersToolOverName(Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("tool"), str):
            return {key: item for key, item in value.items() if key != "name"}
        return value


@mutant("refuses-name-beside-tool")
class RefusesNameBesideTool(SmallClient):
    def read_directive(self, value):
        if isinstance(value, dict) and "tool" in value and "name" in value:
            raise Malformed
        return super().read_directive(value)


@mutant("turns-numbers-into-names")
class TurnsNumbersIntoNames(Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("tool"), int):
            return {**value, "tool": str(value["tool"])}
        return value


@mutant("parses-arguments-out-of-text")
class ParsesArgumentsOutOfText(Lenient):
    def repair(self, value):
        if isinstance(value, dict) and isinstance(value.get("arguments"), str):
            return {**value, "arguments": json.loads(value["arguments"])}
        return value


@mutant("reads-other-keys")
class ReadsOtherKeys(SmallClient):
    def read(self, result):
        meta = result.get("_meta") or {}
        if "nextTool" not in meta and "nexttool" in meta:
            return self.read_directive(meta["nexttool"])
        return super().read(result)


@mutant("follows-interim-result")
class FollowsInterimResult(SmallClient):
    def on_question(self, interim):
        directive = self.read(interim)
        if directive is not None:
            self.request("tools/call", {"name": directive[0], "arguments": directive[1]})


@mutant("follows-tools-list")
class FollowsToolsList(SmallClient):
    def request(self, method, params, meta=None):
        result = super().request(method, params, meta)
        if method == "tools/list":
            self.from_list = self.read(result)
        return result

    def read(self, result):
        directive = super().read(result)
        return directive or ("tools" not in result and self.from_list) or None


@mutant("follows-text")
class FollowsText(SmallClient):
    def read(self, result):
        return super().read(result) or super().read(result.get("structuredContent") or {})


@mutant("settings-version-text")
class SettingsVersionText(SmallClient):
    def settings(self):
        return {"version": "1"}


@mutant("refuses-unknown-settings")
class RefusesUnknownSettings(SmallClient):
    def read(self, result):
        return None if (self.advertised or {}).get("version", 1) > 1 else super().read(result)


@mutant("first-call-names-a-previous-tool")
class FirstCallNamesAPreviousTool(SmallClient):
    def provenance(self, chain_id, level, previous):
        shown = super().provenance(chain_id, level, previous)
        return {**shown, "previousTool": "none"} if level == 1 else shown


@mutant("never-declares")
class NeverDeclares(SmallClient):
    def capabilities(self, method):
        return {"elicitation": {"form": {}}}


@mutant("declares-in-calls-only")
class DeclaresInCallsOnly(SmallClient):
    def capabilities(self, method):
        declared = super().capabilities(method)
        return declared if method == "tools/call" else {"elicitation": {"form": {}}}


@mutant("follows-advertised-servers-only")
class FollowsAdvertisedServersOnly(SmallClient):
    def read(self, result):
        return None if self.advertised is None else super().read(result)


@mutant("ignores-some-directives")
class IgnoresSomeDirectives(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        if len(made) == 2 and self.context["case"] == "visible-tool":
            return "completed"
        return super().obstacle(tool_name, arguments, made)


@mutant("follows-nothing")
class FollowsNothing(SmallClient):
    def read(self, result):
        return None


@mutant("stops-at-errors")
class StopsAtErrors(SmallClient):
    def read(self, result):
        return None if result.get("isError") else super().read(result)


@mutant("drops-null-arguments")
class DropsNullArguments(SmallClient):
    def read_directive(self, value):
        tool, arguments = super().read_directive(value)
        return tool, {key: item for key, item in arguments.items() if item is not None}


@mutant("calls-the-other-server")
class CallsTheOtherServer(SmallClient):
    def call(self, name, arguments, meta):
        other = self.context.get("otherServerUrl")
        if other is None or name != "shared":
            return super().call(name, arguments, meta)
        client = SmallClient(other, self.era, self.context)
        client.connect()
        client.call(name, arguments, meta)
        return super().call(name, arguments, meta)


@mutant("calls-again-on-malformed")
class CallsAgainOnMalformed(SmallClient):
    def read(self, result):
        try:
            return super().read(result)
        except Malformed:
            self.call("begin", {"story": "again"}, None)
            raise


@mutant("no-limit")
class NoLimit(SmallClient):
    limit = 1000


@mutant("limit-of-seven")
class LimitOfSeven(SmallClient):
    limit = 7


@mutant("limit-of-four")
class LimitOfFour(SmallClient):
    limit = 4


@mutant("counts-questions")
class CountsQuestions(SmallClient):
    asked = 0

    def on_question(self, interim):
        self.asked += 1

    def obstacle(self, tool_name, arguments, made):
        if len(made) + self.asked >= self.limit:
            return "limit_reached"
        return super().obstacle(tool_name, arguments, made)


@mutant("calls-unknown-tools")
class CallsUnknownTools(SmallClient):
    def find(self, name):
        anything = {"inputSchema": {}, "annotations": {"readOnlyHint": True}}
        return super().find(name) or anything


@mutant("reads-one-page")
class ReadsOnePage(SmallClient):
    def list_tools(self):
        return {tool["name"]: tool for tool in self.request("tools/list", {})["tools"]}


@mutant("reads-the-list-once")
class ReadsTheListOnce(SmallClient):
    def find(self, name):
        return self.tools.get(name)


@mutant("validates-nothing")
class ValidatesNothing(SmallClient):
    def fits(self, schema, arguments):
        # Leaves alone what other checks look at: another dialect, and a schema elsewhere.
        return super().fits(schema, arguments) or (
            set(arguments) & {"text", "copies"} != set()
            and ("elsewhere" not in self.context["case"])
        )


@mutant("validates-by-draft-7")
class ValidatesByDraft7(SmallClient):
    def fits(self, schema, arguments):
        try:
            return Draft7Validator(schema, registry=Registry()).is_valid(arguments)
        except Exception:
            return False


@mutant("fetches-references")
class FetchesReferences(SmallClient):
    def fits(self, schema, arguments):
        def fetch(uri):
            where = urlsplit(uri)
            connection = http.client.HTTPConnection(where.hostname, where.port)
            connection.request("GET", where.path)
            return Resource.opaque(json.loads(connection.getresponse().read()))

        try:
            dialect = validator_for(schema, default=Draft202012Validator)
            dialect(schema, registry=Registry(retrieve=fetch)).is_valid(arguments)
        except Exception:
            return False
        return super().fits(schema, arguments)


@mutant("calls-what-it-cannot-validate")
class CallsWhatItCannotValidate(SmallClient):
    def fits(self, schema, arguments):
        try:
            return Draft202012Validator(schema, registry=Registry()).is_valid(arguments)
        except Exception:
            return True


@mutant("goes-round-once")
class GoesRoundOnce(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        outcome = super().obstacle(tool_name, arguments, made)
        again = self.context["case"] in ("cycle-of-one", "cycle-through-first-call")
        return None if outcome == "cycle" and again and len(made) < 3 else outcome


@mutant("compares-arguments-as-text")
class ComparesArgumentsAsText(SmallClient):
    def same(self, arguments):
        return json.dumps(arguments)


@mutant("no-tool-twice")
class NoToolTwice(SmallClient):
    def obstacle(self, tool_name, arguments, made):
        if self.context["case"] == "same-tool-new-arguments" and tool_name in dict(made):
            return "cycle"
        return super().obstacle(tool_name, arguments, made)


@mutant("calls-hidden-tools")
class CallsHiddenTools(SmallClient):
    def hidden(self, tool):
        return False


@mutant("consents-to-everything")
class ConsentsToEverything(SmallClient):
    def consents(self, tool):
        return True


@mutant("keeps-the-last-content-only")
class KeepsTheLastContentOnly(SmallClient):
    def merged(self, results):
        # Where the chain failed or was worded, other checks look.
        if self.context["case"] in ("protocol-error", "content-for-user-and-model"):
            return super().merged(results)
        return results[-1]["content"]


@mutant("forgets-on-failure")
class ForgetsOnFailure(SmallClient):
    def on_failure(self, results):
        results.clear()
        return "failed"


@mutant("hands-on-the-instruction")
class HandsOnTheInstruction(SmallClient):
    def is_wording(self, item):
        return False


@mutant("always-completed")
class AlwaysCompleted(SmallClient):
    def printed(self, results, outcome):
        return {**super().printed(results, outcome), "outcome": "completed"}


@mutant("no-provenance")
class NoProvenance(SmallClient):
    def meta(self, chain_id, level, previous):
        return {}


@mutant("a-chain-id-for-each-call")
class AChainIdForEachCall(SmallClient):
    def provenance(self, chain_id, level, previous):
        return super().provenance(f"{chain_id}-{level}", level, previous)


@mutant("one-chain-id-for-ever")
class OneChainIdForEver(SmallClient):
    def chain_id(self):
        return "chain"


@mutant("levels-from-zero")
class LevelsFromZero(SmallClient):
    def provenance(self, chain_id, level, previous):
        # Well-formed still: the first call says nothing.
        return super().provenance(chain_id, max(level - 1, 2), previous)

    def meta(self, chain_id, level, previous):
        return {} if level == 1 else super().meta(chain_id, level, previous)


@mutant("names-the-first-tool")
class NamesTheFirstTool(SmallClient):
    def follow(self, tool, arguments):
        self.first = tool
        return super().follow(tool, arguments)

    def provenance(self, chain_id, level, previous):
        return super().provenance(chain_id, level, None if previous is None else self.first)
