"""The model's settings and the agents in a file: what is read, and what a mistake is told."""

from pathlib import Path

import pytest

from banking_server.client.agent import settings

from ..kit.pages import block

pytestmark = pytest.mark.quick

KEY = "sk-secret-of-mine"


def test_the_agents_of_the_page_are_read(tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(block("banking_server/client/agent/README.md", "agents.yaml", "yaml"))
    teller = settings.load_agent(file, "teller")
    assert teller.system_prompt == "You work at the counter. Be brief."
    assert teller.tools == ("list_accounts", "get_account_balance")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("agents: [", "cannot be read as YAML: "),
        ("agents: [{id: a, tools: }]", "agents.0.tools: Input should be a valid tuple"),
        ("workflows: {}\nagents: [{id: a}]", "workflows: Extra inputs are not permitted"),
        ("agents: [{id: a}, {id: b}]", "choose one of the agents a, b"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_place(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text(text)
    with pytest.raises(settings.ConfigurationMistake) as mistake:
        settings.load_agent(file)
    assert str(mistake.value).startswith(f"{file}: {told}")
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "^BANKING_MODEL_NAME is not set. A model needs BANKING_MODEL_URL "),
        ({"NAME": "qwen3"}, "^BANKING_MODEL_URL is not set.*and BANKING_MODEL_NAME"),
        ({"URL": "http://localhost:1/v1"}, "^BANKING_MODEL_NAME is not set"),
        ({"URL": "http://192.0.2.1/v1", "NAME": "m", "KEY": KEY}, "^BANKING_MODEL_KEY: .*http"),
        ({"URL": "http://user:pass@192.0.2.1/v1"}, "^BANKING_MODEL_URL: .*http"),
        ({"URL": "https://192.0.2.1/v1", "NAME": "m", "KEY": KEY}, None),
    ],
)
def test_settings_come_from_the_environment_and_no_key_goes_away_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: str | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"BANKING_MODEL_{name}", value)
    if told is None:
        assert KEY not in repr(settings.load_model_settings())
        return
    with pytest.raises(settings.ModelNotConfigured, match=told) as caught:
        settings.load_model_settings()
    assert KEY not in str(caught.value)
    assert "pass@" not in str(caught.value)
