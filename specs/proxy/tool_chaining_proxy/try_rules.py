"""`--rules FILE --try RESULT.json`: which rule matches a result, and why the others do not."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tool_chaining import Step
from tool_chaining.directive import Malformed
from tool_chaining.errors import ForPeople
from tool_chaining.rules import Rule, Rules, as_seen
from tool_chaining.text import one_line, quoted, read_small

_JSON: Final = re.compile(r"(?<![\w.])json\b")


def try_on(rules: Rules, path: Path) -> None:
    """Print what the rules say about each step of a result in a file. Raises `ForPeople`.

    The file has an object with `tool`, `arguments` and the members of the result, or what
    `banking-server call --json` prints.
    """
    try:
        found = json.loads(read_small(path))
        written = found.get("steps", [found])
        steps = [
            Step(level, one["tool"], one.get("arguments") or {}, one.get("result", one))
            for level, one in enumerate(written, 1)
        ]
        lines = [line for n in range(len(steps)) for line in _tried(rules, steps[: n + 1])]
    except OSError as error:
        raise ForPeople(f"Cannot read {str(path)!r}: {(error.strerror or '').lower()}.") from None
    except (ValueError, AttributeError, KeyError, TypeError, IndexError, RecursionError):
        form = '{"tool": …, "arguments": {…}, "content": […], "structuredContent": {…}}'
        raise ForPeople(f"{str(path)!r} must be a JSON object such as {form}.") from None
    for line in lines:
        print(one_line(line))


def _tried(rules: Rules, steps: Sequence[Step]) -> Iterator[str]:
    """Yield a line for each rule, and for what follows the last of these steps."""
    step = steps[-1]
    place = f"Step {step.level}, {quoted(step.tool)}"
    seen = as_seen(step)
    uses = [e for rule in rules.rules if rule.concerns(step) for e in rule.expressions()]
    if seen["json"] is None and seen["content"] and any(map(_JSON.search, map(str, uses))):
        yield f"{place}: the text is not JSON, so `json` is null."
    matching: Rule | None = None
    for rule in rules.rules:
        if matching is not None:
            yield f"{place}: rule {rule.number} is not tried, since rule {matching.number} matches."
            continue
        said: list[str] = []
        match = Rules((rule,)).next(steps, said.append)
        number = f"{place}: rule {rule.number}"
        if match is None:
            yield f"{number} does not match: {_why_not(rule, step, said)}."
        elif isinstance(match.reading, Malformed) or match.unfilled:
            problem = match.unfilled or getattr(match.reading, "reason", "")
            why = problem.removeprefix(f"rule {rule.number}: ")
            yield f"{number} matches, and ends the chain: {why}."
            matching = rule
        else:
            directive = match.reading.directive
            call = f"{quoted(directive.tool)} with {quoted(directive.arguments)}"
            asked = "The person would be asked." if rule.ask else "Nobody would be asked."
            yield f"{number} matches. It would call {call}. {asked}"
            matching = rule
    if matching is None:
        yield f"{place}: no rule matches. Nothing would be called."


def _why_not(rule: Rule, step: Step, said: Sequence[str]) -> str:
    if not fnmatchcase(step.tool, rule.after):
        return f"its after is {quoted(rule.after)}"
    if not rule.concerns(step):
        kind = "an error" if step.is_error else "no error"
        return f"its on is {rule.on}, and the result is {kind}"
    if said:
        return said[-1].partition(": ")[2]
    if rule.repeats(str(rule.then), step):
        return "its after is a pattern, and the step is a call of the tool that it calls"
    if isinstance(rule.when, Mapping):
        return f"its pattern does not match the text in {quoted(rule.when['in'])}"
    return "its when is not met" if rule.when else "its then has no value"
