"""What is made from other files has been made anew."""

from .files import SPECS
from .publish import COMMAND, requirements_yaml


def test_the_file_that_is_made_is_up_to_date() -> None:
    found = (SPECS / "requirements.yaml").read_text("utf-8")
    assert found == requirements_yaml(), f"it is made from other files; run: {COMMAND}"
