"""Values of earlier results, at any depth."""

import pytest

from ..kit.bank import World
from .support import FORM, given, multiplex, request, statuses, take

pytestmark = [pytest.mark.anyio, pytest.mark.quick]


@pytest.mark.usefixtures("with_form")
async def test_references_stand_at_any_depth_and_keep_their_type(world: World) -> None:
    first = {"count": 7, "ratio": 2.5, "agreed": False, "tags": ["red", "blue"]}
    at = "[0].structuredContent.given"
    async with world.customer() as me:
        result = await multiplex(
            me,
            request(1, FORM, first),
            request(
                2,
                FORM,
                {
                    "count": take(f"length({at}.tags)"),
                    "ratio": take(f"{at}.ratio"),
                    "agreed": take(f"{at}.agreed"),
                    "tags": [take(f"{at}.tags[-1]"), "green"],
                    "extra": {"a": [[take(f"{at}.{{n: count}}")]], "$ref": "#/0", "more": 1},
                },
            ),
        )
    assert statuses(result) == ["done", "done"]
    assert given(result) == {
        "count": 2,
        "ratio": 2.5,
        "agreed": False,
        "tags": ["blue", "green"],
        "extra": {"a": [[{"n": 7}]], "$ref": "#/0", "more": 1},
    }
