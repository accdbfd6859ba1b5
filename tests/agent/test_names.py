"""The names that the room offers to others, and the modules that it tells of."""

import re
from pathlib import Path

import pytest

from banking_server import agent

from ..kit.lazy_names import names_for_type_checkers

FOLDER = Path(str(agent.__file__)).parent


def test_every_public_name_can_be_imported_and_type_checkers_see_the_same() -> None:
    seen = names_for_type_checkers(agent)
    assert seen == agent._MODULE_OF
    assert sorted(seen) == sorted(agent.__all__)
    assert set(seen) <= set(dir(agent))
    for name in seen:
        assert getattr(agent, name) is not None
    with pytest.raises(AttributeError, match="'nonsense'"):
        _ = agent.nonsense


def test_every_module_is_told_of() -> None:
    told = re.findall(r"^- `(\w+)`: ", str(agent.__doc__), re.MULTILINE)
    assert sorted(told) == sorted(
        file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__"
    )
