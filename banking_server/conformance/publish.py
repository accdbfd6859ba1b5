"""Writes the files of `specs/` that are made: python -m banking_server.conformance.publish

- `requirements.yaml`, from the sentences of the text and the registry of checks, in the grammar of
  the official suite;
- the tables of `conformance/README.md` between their marks, from the registry;
- `conformance/schemas/`, from the models that read the files.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from banking_server.chaining.directive import IDENTIFIER
from banking_server.conformance.client.output import ClientOutput
from banking_server.conformance.client.script import ClientScript
from banking_server.conformance.formats import Mutants, Registry, Requirements, Vectors
from banking_server.conformance.report.format import ReportJson
from banking_server.conformance.requirements import (
    Requirement,
    Side,
    load_registry,
    load_requirements,
)
from banking_server.conformance.server.scenario import ServerScenario
from banking_server.conformance.specification import read_text

COMMAND: Final = "python -m banking_server.conformance.publish"
README: Final = "conformance/README.md"
SCHEMAS: Final[Mapping[str, tuple[type, str]]] = {
    "checks": (Registry, "The registry of checks"),
    "directives": (Vectors, "Directive vectors"),
    "mutants": (Mutants, "Deliberately wrong implementations"),
    "server-scenario": (ServerScenario, "Server scenario: how one server is exercised"),
    "requirements": (Requirements, "Each sentence, and what tests it"),
    "report": (ReportJson, "Report of one run of the conformance suite"),
    "client-script": (ClientScript, "A script for clients"),
    "client-output": (ClientOutput, "What a client under test may print"),
}
"""The name of each schema, what reads the files that it describes, and its title."""


def published() -> Mapping[str, str]:
    """Return what each file that is made should contain, by its path in `specs/`."""
    return {
        "requirements.yaml": _requirements(),
        README: _readme(read_text(README)),
        **{
            f"conformance/schemas/{name}.schema.json": _schema(name, model, title)
            for name, (model, title) in SCHEMAS.items()
        },
    }


def main() -> None:
    """Write what is made, in a checkout of the repository."""
    folder = Path(__file__).parents[2] / "specs"
    if not folder.is_dir():
        sys.exit(f"There is no {folder}: run this in a checkout of the repository.")
    for name, content in published().items():
        file = folder / name
        if not file.is_file() or file.read_text("utf-8") != content:
            file.write_text(content, "utf-8")
            print(f"written: {file}")


def _requirements() -> str:
    rows = "".join(f"{line}\n" for row in load_requirements() for line in _row(row))
    return f"""\
# Traceability: each normative sentence of tool-chaining.md, word for word, with the checks that
# test it. A row has either `check` (one id or a list) or `excluded` with `testable_if`. A sentence
# with MUST or MUST NOT is judged FAILURE, one with SHOULD or SHOULD NOT is judged WARNING. Do not
# edit this file: it is made from tool-chaining.md and conformance/checks.yaml by
# {COMMAND}
extension: {IDENTIFIER}
spec: tool-chaining.md
requirements:
{rows}"""


def _row(requirement: Requirement) -> Iterator[str]:
    yield f"  - id: {requirement.id}"
    match requirement.checks:
        case ():
            pass
        case (check,):
            yield f"    check: {check}"
        case checks:
            yield "    check:"
            yield from (f"      - {check}" for check in checks)
    yield f"    text: {_quoted(requirement.text)}"
    if requirement.excluded is not None:
        yield f"    excluded: {_quoted(requirement.excluded)}"
        yield f"    testable_if: {_quoted(requirement.testable_if or '')}"


def _quoted(text: str) -> str:
    """Return a text as YAML writes it between single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _readme(text: str) -> str:
    """Return the text with the tables of what the checks need made anew between their marks."""
    sides: tuple[Side, ...] = ("server", "client")
    for side in sides:
        begin, end = f"<!-- made by {COMMAND}: {side} -->\n", "<!-- end -->"
        before, after = text.split(begin)
        text = before + begin + _needs_table(side) + end + after.split(end, maxsplit=1)[1]
    return text


def _needs_table(side: Side) -> str:
    registry, prefix = load_registry(), f"tool-chaining-{side}-"
    needed: list[tuple[str | None, str]] = [(None, "nothing"), *registry.needs.items()]
    rows = [f"| Checks `{prefix}…` | Read | Need |", "| --- | --- | --- |"]
    for reads, seen in _READS.items():
        for needs, words in needed:
            named = ", ".join(
                f"`{check.id.removeprefix(prefix)}`"
                for check in registry.checks
                if check.id.startswith(prefix) and (check.reads, check.needs) == (reads, needs)
            )
            if named:
                rows.append(f"| {named} | {seen} | {words} |")
    return "".join(f"{row}\n" for row in rows)


_READS: Final = {"wire": "the messages", "printed": "what the client prints"}


class _Schemas(GenerateJsonSchema):
    """JSON Schema for people: no titles that repeat a name, an absent member in place of null."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        if "patternProperties" in made:  # It would let names through that the pattern forbids.
            ((pattern, values),) = made.pop("patternProperties").items()
            made |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return made

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        made: JsonSchemaValue = _in_order(value, parent_key)
        return made


_FIRST: Final = ("description", "type", "required", "additionalProperties", "properties", "items")
_LAST: Final = ("if", "then", "examples", "$defs")
_LEFT_OUT: Final = ("title", "discriminator")


def _in_order(value: Any, parent: str | None = None) -> Any:
    """Return a schema with its keywords as people read them, and without the titles of Pydantic."""
    if parent == "description":
        return " ".join(value.split())
    if isinstance(value, list):
        return [_in_order(part, parent) for part in value]
    if not isinstance(value, dict) or parent in ("examples", "const", "enum"):
        return value
    if parent in ("properties", "patternProperties", "$defs"):
        return {name: _in_order(part) for name, part in value.items()}
    middle = [name for name in value if name not in (*_FIRST, *_LAST, *_LEFT_OUT)]
    if value.get("additionalProperties") is True:
        del value["additionalProperties"]
    order = [name for name in (*_FIRST, *middle, *_LAST) if name in value]
    return {name: _in_order(value[name], name) for name in order}


def _schema(name: str, model: type, title: str) -> str:
    made = TypeAdapter(model).json_schema(schema_generator=_Schemas)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://example.com/tool-chaining/{name}.schema.json",
        "title": title,
    }
    return _json(head | made) + "\n"


def _json(value: Any, indent: str = "", used: int = 0) -> str:
    """Write JSON with what fits on a line on one line; `used` of it is taken already."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + used + len(line) < 100:
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        names = [json.dumps(name, ensure_ascii=False) for name in value]
        parts = [
            f"{name}: {_json(part, deeper, len(name) + 2)}"
            for name, part in zip(names, value.values(), strict=True)
        ]
    else:
        parts = [_json(part, deeper) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{closing}"


if __name__ == "__main__":
    main()
