"""Agents in a file: what is read, and what each mistake is told in one line."""

from pathlib import Path

import pytest

from banking_server.agent.configuration import ConfigurationMistake, load_agent

pytestmark = [pytest.mark.anyio, pytest.mark.quick]

MISTAKES = {
    "agents: [": ": cannot be used: ",
    "agents: [{id: a, tools: }]": "must be a list; leave it out to allow all tools",
    "workflows: {}\nagents: [{id: a}]": "workflows: is not known here",
    "agents: [{id: a}, {id: a}]": "two agents have the id 'a'",
    "agents: [{id: a}, {id: b}]": "choose an agent: a, b",
}


@pytest.mark.parametrize(("text", "told"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_a_mistake_is_one_line_with_file_and_place(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationMistake) as mistake:
        load_agent(file)
    line = str(mistake.value)
    assert line.startswith(str(file))
    assert told in line
    assert "\n" not in line
