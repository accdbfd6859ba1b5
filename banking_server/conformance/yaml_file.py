"""YAML files: scenarios, scripts, and the list of expected failures."""

from pathlib import Path
from typing import Any

import yaml


class YamlFileError(Exception):
    """A file cannot be read; the message names the file, the place and the mistake."""


class _Twice(Exception):
    """A key stands twice in one mapping."""


class _Loader(yaml.SafeLoader):
    """YAML as JSON: a key stands once, and a plain date stays text, as JSON has no dates."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Before `<<` is filled in: what a mapping says itself may differ from what it takes over.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            mark = key.start_mark
            if key.value in lines:
                raise _Twice(
                    f"line {mark.line + 1}, column {mark.column + 1}: the key {key.value!r} stands "
                    f"twice, first in line {lines[key.value]}; remove or rename one"
                )
            lines[key.value] = mark.line + 1
        return node


class _OwnLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same in C, if PyYAML has it, for what comes with the package and is tested there.

    It takes an eighth of the time, but it overlooks a key that stands twice, and what is nested
    very deeply would end the process.
    """


_Loader.yaml_implicit_resolvers = _OwnLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml_file(path: Path, *, own: bool = False) -> Any:
    """Return what a file holds; `own`: one that comes with the package. Raises YamlFileError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise YamlFileError(f"{path}: cannot be read: {reason}") from error
    try:
        return yaml.load(text, _OwnLoader if own else _Loader)  # noqa: S506 - both are safe
    except _Twice as error:
        raise YamlFileError(f"{path}: {error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFileError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise YamlFileError(f"{path}: it is nested too deeply") from error
