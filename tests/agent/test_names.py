"""The page on the room tells of every module in it."""

import re
from pathlib import Path

from banking_server import agent

FOLDER = Path(str(agent.__file__)).parent


def test_every_module_is_told_of() -> None:
    told = re.findall(r"^- `(\w+)`: ", str(agent.__doc__), re.MULTILINE)
    assert sorted(told) == sorted(
        file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__"
    )
