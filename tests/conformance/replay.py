"""What a client does just as the conforming one did is not run again.

The mock server gives the same answers to the same requests. So a client is first given the answers
that the conforming client got in a case. If it asks for just these, in this order, and ends with
the same output, then the conforming client's run of the case is its run, too. At the first
difference it is left, and run for real.
"""

import json
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from banking_server.conformance.client import run as runner
from banking_server.conformance.client.evidence import CaseRun, ClientEnd
from banking_server.conformance.client.programs import RunClient
from banking_server.conformance.client.script import Case, ClientScript
from banking_server.conformance.target.era import Era

from . import small_client
from .small_client import Lost, SmallClient


@dataclass
class Turn:
    """One message that the conforming client posted, and what came of it."""

    asked: tuple[str, ...]
    answer: str | None = None
    """The answer as JSON; None if there was none."""
    streamed: list[bytes] | None = None
    """The lines of the answer, if they came as a stream."""


@dataclass
class Recording:
    """One run of the conforming client."""

    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    turns: list[Turn] = field(default_factory=list[Turn])
    chain_id: str | None = None
    end: tuple[Any, ...] = ()
    case_run: CaseRun | None = None


class Differs(BaseException):
    """It does something that the conforming client did not. Not to be caught by a client."""


def asked(client: SmallClient, message: Any, headers: Any) -> tuple[str, ...]:
    return json.dumps(message), json.dumps(headers), json.dumps(client.authorization(message))


def recorded_by(recording: Recording) -> type[SmallClient]:
    """Return the conforming client, noting what it does."""

    class Recorded(SmallClient):
        def post(self, message: Any, headers: Any) -> Any:
            turn = Turn(asked(self, message, headers))
            recording.turns.append(turn)
            answer = super().post(message, headers)
            turn.answer = json.dumps(answer)
            return answer

        def listen(self, stream: Any) -> Any:
            recording.turns[-1].streamed = lines = []

            def noted() -> Iterator[bytes]:
                for line in stream:
                    lines.append(line)
                    yield line

            return super().listen(noted())

        def chain_id(self) -> str:
            recording.chain_id = super().chain_id()
            return recording.chain_id

    return Recorded


def replayed_to(kind: type[SmallClient], turns: Iterator[Turn]) -> type[SmallClient]:
    """Return a client of this kind that is given the answers of `turns`."""

    class Replayed(kind):  # type: ignore[misc, valid-type]
        def post(self, message: Any, headers: Any) -> Any:
            turn = next(turns, None)
            if turn is None or turn.asked != asked(self, message, headers):
                raise Differs
            if turn.streamed is not None:
                return self.listen(iter(turn.streamed))
            if turn.answer is None:
                raise Lost
            return json.loads(turn.answer)

    return Replayed


def refuse(*arguments: Any) -> Any:
    raise Differs


def does_the_same(kind: type[SmallClient], recording: Recording) -> bool:
    """Whether a client asks for what the conforming one asked for, and ends alike."""
    turns = iter(recording.turns)
    ids = iter([uuid.UUID(recording.chain_id)] if recording.chain_id else [])
    fresh = uuid.uuid4
    connect = socket.socket.connect
    # By hand, since it is done for each case of each client: a patch takes half as long as a case.
    uuid.uuid4 = lambda: next(ids, None) or fresh()
    socket.socket.connect = refuse
    try:
        client = replayed_to(kind, turns)
        end = small_client.run(client, recording.url, recording.environment)
    except Differs:
        return False
    finally:
        uuid.uuid4 = fresh
        socket.socket.connect = connect
    return end == recording.end and next(turns, None) is None


play = runner.play
_recordings: dict[tuple[str, str, Era], Recording] = {}


def recording_of(script: ClientScript, case: Case, era: Era) -> Recording:
    """Return what the conforming client does in a case; it is run there once."""
    key = script.scenario, case.name, era
    if key not in _recordings:
        recording = Recording()

        def run_once(url: str, environment: Mapping[str, str], timeout: float) -> ClientEnd:
            recording.url, recording.environment = url, environment
            recording.end = small_client.run(recorded_by(recording), url, environment)
            return ClientEnd(*recording.end)

        recording.case_run = play(run_once, script, case, era, 20)
        _recordings[key] = recording
    return _recordings[key]


def shows_all_in_messages(script: ClientScript, case: Case) -> bool:
    """Whether nothing but the one conversation counts: no time, no second server."""
    told = case.context
    return not (told.timeout_seconds or told.cancel or script.other_server)


@contextmanager
def replaying(kind: type[SmallClient]) -> Iterator[None]:
    """Have the suite take the conforming client's run of a case where `kind` does the same.

    One run at a time: what a client may do is narrowed for the whole process meanwhile.
    """

    def play_or_replay(
        run_once: RunClient, script: ClientScript, case: Case, era: Era, timeout: float
    ) -> CaseRun:
        if kind is SmallClient or shows_all_in_messages(script, case):
            recording = recording_of(script, case, era)
            if kind is SmallClient or does_the_same(kind, recording):
                assert recording.case_run is not None
                return recording.case_run
        return play(run_once, script, case, era, timeout)

    assert (kind.post, kind.listen) == (SmallClient.post, SmallClient.listen)
    with mock.patch.object(runner, "play", play_or_replay):
        yield
