"""Whatever JSON a tool is called with, the answer is one of the bank's own."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.types import CallToolResult

from banking_server.tools import TOOLS

from ..kit.bank import World, audiences, copy_of, everything, structured, words
from ..kit.words import EVERYDAY, FOREIGN, LOCKED, SAVINGS

PYDANTIC = ("function-", "Input should", "validation", "Field required", "valid ", "instance")
"""Words of the validator's own; no message of ours has them, values apart."""

TELLING = ("Traceback", "sqlite", "sqlalchemy", "pydantic", ".py", "banking_server", "Resolver")
"""What no answer says, unless the caller said it first."""

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300, max_value=10**310),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(), max_size=20),  # Lone surrogates and control characters included.
    st.sampled_from(
        [EVERYDAY, SAVINGS, LOCKED, FOREIGN, "confirm", "cancel", "null", "2026-03-09"]
    ),
    st.sampled_from([0.01, 25, 19.999, 10_001, 1e15, "", "x" * 5000]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    tool = draw(st.sampled_from(TOOLS))
    names = sorted(tool.parameters["properties"])
    unknown = draw(st.dictionaries(st.text(max_size=10), VALUES, max_size=1))
    known = {name: draw(VALUES) for name in names if draw(st.integers(0, 3))}
    return tool.name, {**known, **(unknown if draw(st.integers(0, 9)) == 0 else {})}


@contextmanager
def listening() -> Iterator[list[logging.LogRecord]]:
    """Collect what is logged as an error: pytest's own fixture does not go with Hypothesis."""
    heard: list[logging.LogRecord] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record)

    listener = Listener(logging.ERROR)
    logging.getLogger().addHandler(listener)
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(listener)


def test_any_arguments_get_an_answer(tmp_path: Path, filled: Path) -> None:
    world = World(copy_of(filled, tmp_path))

    async def everyone(batch: list[tuple[str, dict[str, Any]]]) -> list[CallToolResult]:
        def pick(question: Any) -> Any:
            options = question.field.get("oneOf")
            return {"picked": options[0]["const"]} if options else "decline"

        async with world.customer(can_be_asked=True) as customer:
            results = []
            for tool, arguments in batch:
                customer.answers = [pick] * 3
                results.append(await customer.call(tool, **arguments))
            customer.answers = []
        return results

    @settings(
        max_examples=8,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(batch=st.lists(calls(), min_size=8, max_size=16))
    def property_(batch: list[tuple[str, dict[str, Any]]]) -> None:
        last = len(world.events())
        with listening() as heard:
            results = anyio.run(everyone, batch)
        assert heard == [], [(record.getMessage(), batch) for record in heard]
        for (tool, arguments), result in zip(batch, results, strict=True):
            case = (tool, arguments, structured(result))
            assert structured(result).get("status") != "unavailable", case
            if structured(result).get("status") == "invalid_arguments":
                rules = [line.partition("but was ")[0] for line in words(result).splitlines()]
                assert not any(word in rule for word in PYDANTIC for rule in rules), case
            if result.is_error:
                told = [detail for detail in TELLING if detail in words(result)]
                assert all(detail in str(arguments) for detail in told), case
                assert len(everything(result)) < 4_000
                for block in result.content:
                    assert audiences(block) in (None, ["user"], ["assistant"])
        if all(tool != "multiplex_tools" for tool, _ in batch):
            assert len(world.events()) == last + len(batch)
        world.books_balance()

    property_()
    assert not world.sql("SELECT 1 FROM posting WHERE kind = 'transfer'"), "nobody said yes"
