"""What the README shows is what happens."""

import os
import re
import subprocess
import sys
from datetime import time
from decimal import Decimal
from pathlib import Path

from banking_server.agent import ModelSettings
from banking_server.server.settings import Settings

README = Path(__file__).parents[1] / "README.md"


def block(marker: str, language: str) -> str:
    """Return the first code block of `language` after the HTML comment `marker`."""
    text = README.read_text(encoding="utf-8").split(f"<!-- {marker} -->", 1)[1]
    found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"no {language} block after {marker}"
    return found.group(1)


def test_the_examples_of_the_extension_run_as_shown(tmp_path: Path) -> None:
    for name in ("orders.py", "client.py"):
        (tmp_path / name).write_text(block(name, "python"), encoding="utf-8")
    shown = block("client.py", "text")
    ran = subprocess.run(
        [sys.executable, "client.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == shown, ran.stderr


def test_the_demo_prints_what_is_shown() -> None:
    def lasting(text: str) -> str:
        """Without what differs from run to run: ids and times."""
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=ho_)[0-9a-f]{16}", "ID", text)
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)

    ran = subprocess.run(
        [sys.executable, "-m", "banking_server", "demo"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        timeout=60,
    )
    assert lasting(ran.stdout).strip() == lasting(block("demo", "text")).strip(), ran.stderr


def test_every_setting_stands_in_the_table_in_its_own_words() -> None:
    rows = ["| variable | default | |", "| --- | --- | --- |"]
    for model in (Settings, ModelSettings):
        for name, field in model.model_fields.items():
            plain = isinstance(field.default, str | int | float | Decimal | time)
            default = f"`{field.default}`" if plain else ""
            variable = f"{model.model_config['env_prefix']}{name.upper()}"
            rows.append(f"| `{variable}` | {default} | {field.description} |")
    text = README.read_text(encoding="utf-8")
    assert text.split("<!-- settings -->\n", 1)[1].split("<!-- /settings -->")[0].strip() == (
        "\n".join(rows)
    )
