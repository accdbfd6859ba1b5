"""A mistake in the names of a scenario file is said with its step."""

from pathlib import Path
from typing import Any

import pytest

from banking_server.conformance.scenario_file import ScenarioError
from banking_server.conformance.server.scenario import load_server_scenario

from .support import SHOP

pytestmark = pytest.mark.quick


def loaded(tmp_path: Path, *changes: tuple[str, str]) -> Any:
    text = SHOP.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.yaml"
    path.write_text(text)
    return load_server_scenario(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "sku: chair, quantity: 500",
            'sku: "${chiar}", quantity: 500',
            "step large-order: nothing is called ${chiar} here; known are phrase, session, user",
        ),
        (
            "    caller: stranger",
            "    caller: strangr",
            "step stranger: there is no caller 'strangr'; there are stranger under callers",
        ),
        (
            "{value: alice}",
            "{value: alice, environment: ALICE}",
            "give either value or environment",
        ),
        ("    refused: true", "    refused: true\n    follow: true", "has nothing to follow"),
        ("{text: 'session", "{pointer: /a, text: 'session", "give either pointer or text"),
        (
            "values:",
            'spec_versions: ["2025-11-25", "2025-11-25"]\nvalues:',
            "spec_versions: has 2025-11-25 twice",
        ),
    ],
    ids=lambda text: text[-20:],
)
def test_a_mistake_in_names_is_said_with_its_step(
    old: str, new: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as failed:
        loaded(tmp_path, (old, new))
    assert sentence in str(failed.value)
    assert str(failed.value).startswith(f"{tmp_path}/changed.yaml: ")
    assert "\n" not in str(failed.value)
