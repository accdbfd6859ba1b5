"""The named values of a running scenario; reports redact the secret ones."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from tool_chaining_conformance.errors import ScenarioError
from tool_chaining_conformance.message import Json
from tool_chaining_conformance.report.redaction import Redaction
from tool_chaining_conformance.server.reading import ending
from tool_chaining_conformance.server.scenario import Capture, ServerScenario
from tool_chaining_conformance.target.channel import Target
from tool_chaining_conformance.target.connection import ToolCall
from tool_chaining_conformance.values import at_pointer, texts_in


def read_environment(
    scenario: ServerScenario, *, over_http: bool
) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the values that a scenario begins with, and the headers of each other caller.

    Raises ScenarioError if an environment variable that it names is not set. `over_http`: the
    server has a URL, so callers have headers.
    """

    def variable(name: str, place: str) -> str:
        if not os.environ.get(name):
            place = f"scenario {scenario.name}: {place}"
            raise ScenarioError(f"{place}: the environment variable {name} is not set")
        return os.environ[name]

    values = {
        name: value.value if value.environment is None else variable(value.environment, name)
        for name, value in scenario.values.items()
    }
    headers = {
        name: {
            header: variable(holder, f"caller {name}: {header}")
            for header, holder in caller.headers.items()
        }
        for name, caller in (scenario.callers.items() if over_http else ())
    }
    return values, headers


class Values:
    """The values that are known so far, and the headers of each other caller.

    `problem` receives a text about a value that cannot be captured. Raises ScenarioError if an
    environment variable that the scenario names is not set.
    """

    def __init__(
        self,
        target: Target,
        scenario: ServerScenario,
        redaction: Redaction,
        problem: Callable[[str], None],
    ) -> None:
        self._redaction = redaction
        self._problem = problem
        self.named, self.headers = read_environment(scenario, over_http=target.url is not None)
        for name, value in self.named.items():
            if scenario.values[name].is_secret:
                self.keep_secret(value)
        for headers in (target.headers, *self.headers.values()):
            for value in headers.values():
                self.keep_secret(value.removeprefix("Bearer "))

    def keep_secret(self, value: Any) -> None:
        """Redact a value and its parts in reports."""
        for text in texts_in(value):
            self._redaction.add(text)

    def captured(
        self, place: str, captures: Mapping[str, Capture], call: ToolCall
    ) -> dict[str, Any]:
        """Return the captured values of a result, by name. `place` is the step that made it."""
        found: dict[str, Any] = {}
        for name, capture in captures.items():
            value = _captured(capture, call.final.result or {})
            if value is None:
                self._problem(f"step {place}: no value to capture as {name!r}: {ending(call)}")
                continue
            found[name] = value
            if capture.secret:
                self.keep_secret(value)
        return found


def _captured(capture: Capture, result: Json) -> Any:
    """Return the value that a capture selects, or None if the result does not have it."""
    if capture.pointer is not None:
        return at_pointer(capture.pointer, result)
    content = result.get("content")
    for item in content if isinstance(content, list) else []:
        text = item.get("text") if isinstance(item, dict) else None
        match = re.search(capture.text or "", text) if isinstance(text, str) else None
        if match is not None:
            return match[1] if match.re.groups else match[0]
    return None
