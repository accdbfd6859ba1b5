"""Cases of a script that are made from the directive vectors, `specs/conformance/directives.json`.

In each case the carrier's result has the `_meta` of one vector, and what a reader makes of it says
which call comes next, if any. Template and cases are as they stand, or would stand, in a script.
"""

import json
from collections.abc import Iterator
from functools import cache
from typing import Final

from banking_server.conformance.scenario_file import Json
from banking_server.conformance.specification import read_text

OUTCOMES: Final = {
    "valid": "completed",
    "malformed": "malformed_directive",
    "absent": "completed",
}
"""How the chain ends, by what a reader makes of the directive on the carrier's result."""


def cases_of(template: Json, first_call: Json, carrier: Json) -> Iterator[Json]:
    """Yield a case for each vector that a template (`script.VectorCases`) lists.

    Raises ValueError if there is no vector of that name, or no check for it.
    """
    for name in template["ids"]:
        if (vector := _vectors().get(name)) is None:
            raise ValueError(f"no vector has the id {name}")
        yield _case(vector, template, first_call, carrier)


@cache
def _vectors() -> dict[str, Json]:
    vectors = json.loads(read_text("conformance/directives.json"))["vectors"]
    return {vector["id"]: vector for vector in vectors}


def _case(vector: Json, template: Json, first_call: Json, carrier: Json) -> Json:
    reading = vector["reading"]
    calls = [first_call, carrier]
    if reading["status"] == "valid":
        calls.append({"tool": reading["tool"], "arguments": reading["arguments"]})
    answer: Json = {"result": {"content": template["content"]}}
    if "text" in vector:
        answer["metaText"] = vector["text"]
    elif vector["meta"] is not None:
        answer["result"]["_meta"] = vector["meta"]
    return {
        "name": vector["id"],
        "description": vector["description"],
        "first_call": first_call,
        "answers": [{"tool": carrier["tool"], "rounds": [answer]}],
        "expect": {"calls": calls, "outcome": OUTCOMES[reading["status"]]},
        "checks": list(_checks(vector, template)),
    }


def _checks(vector: Json, template: Json) -> Iterator[Json]:
    """Yield the checks for every such reading, and the first one that cites a sentence of it."""
    own = False
    for row in template["checks"]:
        cites = row.get("cites")
        if row["reading"] != vector["reading"]["status"]:
            continue
        if cites is not None and (own or cites not in vector["requirements"]):
            continue
        own = own or cites is not None
        yield row["check"]
    if not own:
        raise ValueError(f"no check cites a sentence of the vector {vector['id']}")
