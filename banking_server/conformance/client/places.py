"""Where in what went over the wire a client is at fault: reports mark the member."""

from collections.abc import Callable, Iterable
from typing import Final

from banking_server.chaining.directive import IDENTIFIER, META_KEY
from banking_server.conformance.client.evidence import CaseRun
from banking_server.conformance.client.mock_server import Operation
from banking_server.conformance.client.script import ScriptCheck
from banking_server.conformance.message import CLIENT_CAPABILITIES_KEY, WireMessage
from banking_server.conformance.report.keeping import Place

DIRECTIVE: Final = f"/result/_meta/{META_KEY}"
PROVENANCE: Final = f"/params/_meta/{IDENTIFIER.replace('/', '~1')}"
CAPABILITIES: Final = f"/params/_meta/{CLIENT_CAPABILITIES_KEY.replace('/', '~1')}/extensions"


def place_at_fault(case_run: CaseRun, check: ScriptCheck) -> Place | None:
    """Return the member that a check which failed is about; None if it is about no single one."""
    log = case_run.other if check.other_server else case_run.log
    calls = log.operations if log is not None else []
    match check.kind:
        case "called" | "arguments":
            number = check.call or 1
            call = case_run.call(number)
            if call is None:
                return _answered(case_run, number - 1)
            return _in(call, "/params/arguments")
        case "calls_end":
            return _in_first(calls[check.witness :], "/params/name")
        case "not_called":
            return _in_first((c for c in reversed(calls) if c.tool == check.tool), "/params/name")
        case "call_count":
            return _in_first(reversed(calls), "/params/name")
        case "declared" if check.place == "initialize":
            return _in_message(case_run, "/params/capabilities", _is_initialize)
        case "declared":
            return _in_message(case_run, CAPABILITIES, _declares_nothing)
        case kind if kind.startswith("provenance"):
            # The last call that has some, or the first follow-up call, which should.
            having = [call for call in reversed(calls) if IDENTIFIER in call.meta]
            return _in_first(having or calls[1:], PROVENANCE)
        case _:
            return None


def _in(call: Operation, pointer: str) -> Place | None:
    return None if call.request is None else Place(pointer, call.request)


def _in_first(calls: Iterable[Operation], pointer: str) -> Place | None:
    return next((_in(call, pointer) for call in calls), None)


def _answered(case_run: CaseRun, number: int) -> Place | None:
    """Return the directive on the answer to a call, which was not followed."""
    calls = case_run.log.operations
    if not 1 <= number <= len(calls) or (request := calls[number - 1].request) is None:
        return None
    return _in_message(
        case_run,
        DIRECTIVE,
        lambda message: (
            message.sender == "server"
            and message.body.get("id") == request.body.get("id")
            and "result" in message.body
        ),
    )


def _in_message(
    case_run: CaseRun, pointer: str, is_meant: Callable[[WireMessage], bool]
) -> Place | None:
    found = [message for message in case_run.log.messages if is_meant(message)]
    return Place(pointer, found[-1]) if found else None


def _is_initialize(message: WireMessage) -> bool:
    return message.body.get("method") == "initialize"


def _declares_nothing(message: WireMessage) -> bool:
    params = message.body.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    declared = meta.get(CLIENT_CAPABILITIES_KEY) if isinstance(meta, dict) else None
    extensions = declared.get("extensions") if isinstance(declared, dict) else None
    is_request = message.sender == "client" and "method" in message.body
    return is_request and not (isinstance(extensions, dict) and IDENTIFIER in extensions)
