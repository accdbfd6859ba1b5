"""Judges a server: plays every scenario in every era, and makes the checks."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from tool_chaining_conformance.report.judgement import Judge, NotApplicable, Untestable
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.report.run import STOPPED, Run
from tool_chaining_conformance.server.checks import CHECKS
from tool_chaining_conformance.server.checks.registry import ServerCheck
from tool_chaining_conformance.server.evidence import (
    Evidence,
    Greeting,
    Missing,
    Observation,
    Problem,
    Subject,
)
from tool_chaining_conformance.server.exercise import Exercise
from tool_chaining_conformance.server.scenario import PASSIVE, ServerScenario
from tool_chaining_conformance.server.ways import PROVENANCE
from tool_chaining_conformance.target.channel import Target, TargetFailure
from tool_chaining_conformance.target.era import Era


def run_server(
    target: Target,
    scenarios: Sequence[ServerScenario],
    eras: Sequence[Era],
    redaction: Redaction,
    progress: Callable[[str], None],
) -> Run:
    """Play every scenario in every era, and judge what the server sends.

    Without scenarios it calls no tool.
    """
    run = Run("server")

    def play(scenario: ServerScenario, era: Era) -> _Judging:
        progress(f"{scenario.name}, {era}")
        judging = _Judging(scenario, Judge(scenario.name, era))
        exercise = Exercise(
            replace(target, environment=scenario.environment),
            scenario,
            era,
            redaction,
            judging.observe,
        )
        with contextlib.closing(exercise):
            try:
                if run.stopped:
                    raise TargetFailure(STOPPED)
                exercise.open()
                exercise.play()
            except TargetFailure as failure:
                judging.failure = str(failure)
            except SystemExit as signalled:  # The judgements so far are kept.
                run.stopped = int(signalled.code or 0)
                judging.failure = STOPPED
        judging.finish()
        return judging

    for scenario in scenarios or (PASSIVE,):
        for era in eras:
            play(scenario, era).report_to(run)
    run.excuse_unspoken_eras()
    return run


class _Judging:
    """Makes the checks on the evidence of one exercise, as it arrives."""

    def __init__(self, scenario: ServerScenario, judge: Judge) -> None:
        self._scenario = scenario
        self._judge = judge
        self._seen: set[Subject] = set()
        self._greeting: Greeting | None = None
        self._problems: list[str] = []
        self._dropped: list[str] = []
        self._not_compared: list[Missing] = []
        self.failure: str | None = None
        """The reason why the exercise ended early."""

    def observe(self, observation: Observation) -> None:
        """Judge a piece of evidence, or note what is missing."""
        match observation:
            case Problem(sentence, dropped):
                notes = self._dropped if dropped else self._problems
                notes.append(f"{self._judge.scenario}, {self._judge.era}, {sentence}")
            case Missing(judged=NotApplicable()):
                # Recorded at the end, after the results of all steps.
                self._not_compared.append(observation)
            case Missing():
                self._record(observation)
            case Evidence():
                if isinstance(observation, Greeting):
                    self._greeting = observation
                self._have_judged(observation)

    def _record(self, missing: Missing) -> None:
        for check in CHECKS.values():
            if check.subject in missing.subjects:
                self._judge.record(check.id, missing.judged, step=missing.step)

    def _have_judged(self, evidence: Evidence) -> None:
        self._seen.add(evidence.subject)
        for check in CHECKS.values():
            if evidence.subject != check.subject or not self._judge.wants(check.id):
                continue
            judged = check.judge(evidence)
            for one in judged if isinstance(judged, Sequence) else [judged]:
                if one is not None:
                    self._judge.record(
                        check.id, one, step=evidence.step, messages=evidence.messages
                    )

    def finish(self) -> None:
        """Record a reason for each check that was skipped, or made only in part."""
        for check in CHECKS.values():
            if not self._judge.wants(check.id):
                continue
            reached = self._judge.reached(check.id)
            if self.failure is not None and (check.on.calls_tools or not reached):
                # The steps that were not played might have had another result.
                self._judge.record(check.id, Untestable(self.failure), crashed=True)
            elif not reached:
                self._judge.record(check.id, self._why_unseen(check))
        for missing in self._not_compared:
            self._record(missing)

    def _why_unseen(self, check: ServerCheck) -> Untestable | NotApplicable:
        if self._scenario is PASSIVE and check.on.calls_tools:
            return Untestable("there is no scenario file, which says how to exercise this server")
        if not isinstance(check.unseen, Untestable):
            return check.unseen
        steps = self._scenario.steps
        follows = all(step.followed or step.withheld or step.refused for step in steps)
        if follows and check.on.calls_tools and check.id != PROVENANCE:
            return NotApplicable("the server follows each directive by itself, so none can be seen")
        if check.subject in self._seen:
            return Untestable("the results show nothing that this check compares")
        return check.unseen

    def report_to(self, run: Run) -> None:
        """Add the results to the run."""
        if (greeting := self._greeting) is not None:
            run.spoke(greeting.era)
            name, version = greeting.server_info.get("name"), greeting.server_info.get("version")
            run.name = run.name or (name if isinstance(name, str) else None)
            run.version = run.version or (version if isinstance(version, str) else None)
        run.problems += self._problems
        run.dropped += self._dropped
        if self.failure is not None:
            run.ended_early(self._judge.scenario, self._judge.era, self.failure)
        run.judgements += self._judge.judgements
