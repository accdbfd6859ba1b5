"""What is made from other files has been made anew."""

import pytest

from banking_server.conformance.publish import COMMAND, published

from .files import SPECS

PUBLISHED = published()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_file_that_is_made_is_up_to_date(name: str) -> None:
    found = (SPECS / name).read_text("utf-8")
    assert found == PUBLISHED[name], f"specs/{name} is made from other files; run: {COMMAND}"
