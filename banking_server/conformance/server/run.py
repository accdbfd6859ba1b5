"""Judges a server: plays every scenario in every era, and lets the checks judge what it did."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from banking_server.conformance.report.judgement import Judge, Untestable
from banking_server.conformance.report.keeping import Keeper
from banking_server.conformance.report.redaction import Redaction
from banking_server.conformance.report.run import Run
from banking_server.conformance.server.checks import CHECKS
from banking_server.conformance.server.evidence import (
    Evidence,
    Greeting,
    Missing,
    Observation,
    Problem,
)
from banking_server.conformance.server.exercise import Exercise
from banking_server.conformance.server.scenario import ServerScenario
from banking_server.conformance.target.channel import Target, TargetFailure
from banking_server.conformance.target.era import Era

PASSIVE: Final = "passive"
"""Scenario name used when the user gave none: no tool is called."""


Progress = Callable[[str], None]


def run_server(
    target: Target,
    scenarios: Sequence[ServerScenario],
    eras: Sequence[Era],
    chosen: frozenset[str],
    redaction: Redaction,
    progress: Progress,
) -> Run:
    """Play every scenario in every era, and judge what the server sends.

    Without scenarios it does only what calls no tool.
    """
    run = Run("server")
    for scenario, era in _plan(scenarios, eras):
        name = scenario.name if scenario else PASSIVE
        progress(f"{name}, {era}")
        judging = _Judging(run, scenario, Judge(name, era, chosen, Keeper(redaction)))
        environment = scenario.environment if scenario else {}
        exercise = Exercise(
            replace(target, environment=environment), scenario, era, redaction, judging.observe
        )
        failure: str | None = None
        with contextlib.closing(exercise):
            try:
                exercise.open()
                exercise.play()
            except TargetFailure as stopped:
                failure = str(stopped)
        if failure is not None:
            run.broke_off(name, era, failure)
        judging.finish(failure)
    run.excuse_unspoken_eras()
    return run


def _plan(
    scenarios: Sequence[ServerScenario], eras: Sequence[Era]
) -> list[tuple[ServerScenario | None, Era]]:
    return [
        (scenario, era)
        for scenario in (scenarios or (None,))
        for era in eras
        if scenario is None or era in scenario.spec_versions
    ]


class _Judging:
    """Has the checks judge what one exercise brings, as it comes."""

    def __init__(self, run: Run, scenario: ServerScenario | None, judge: Judge) -> None:
        self._run = run
        self._scenario = scenario
        self._judge = judge
        self._seen: set[type[Evidence]] = set()

    def observe(self, observation: Observation) -> None:
        """Judge a piece of evidence, or note what is missing."""
        match observation:
            case Problem(sentence):
                self._run.problems.append(f"{self._judge.scenario}, {self._judge.era}, {sentence}")
            case Missing(step, kinds, reason, messages):
                for check in CHECKS.values():
                    if not set(check.on).isdisjoint(kinds):
                        self._judge.record(
                            check.id, Untestable(reason), step=step, messages=messages
                        )
            case Evidence():
                if isinstance(observation, Greeting):
                    self._note_server(observation)
                self._have_judged(observation)

    def _note_server(self, greeting: Greeting) -> None:
        self._run.spoke(greeting.era)
        name, version = greeting.server_info.get("name"), greeting.server_info.get("version")
        self._run.name = self._run.name or (name if isinstance(name, str) else None)
        self._run.version = self._run.version or (version if isinstance(version, str) else None)

    def _have_judged(self, evidence: Evidence) -> None:
        self._seen.add(type(evidence))
        for check in CHECKS.values():
            if type(evidence) not in check.on or not self._judge.wants(check.id):
                continue
            judged = check.judge(evidence)
            for one in judged if isinstance(judged, Sequence) else [judged]:
                if one is not None:
                    self._judge.record(
                        check.id, one, step=evidence.step, messages=evidence.messages
                    )

    def finish(self, failure: str | None) -> None:
        """Give a reason for each check that got no judgement; `failure` is why the run stopped."""
        for check in CHECKS.values():
            if self._judge.reached(check.id) or not self._judge.wants(check.id):
                continue
            unseen = check.unseen
            if failure is not None:
                unseen = Untestable(failure)
            elif self._scenario is None and check.on[0].calls_tools:
                unseen = Untestable("no scenario file says how this server is exercised")
            elif isinstance(unseen, Untestable) and not self._seen.isdisjoint(check.on):
                unseen = Untestable(
                    "what came holds nothing to compare: no directive, or a malformed one"
                )
            self._judge.record(check.id, unseen, refused=failure is not None)
        self._run.judgements += self._judge.judgements
