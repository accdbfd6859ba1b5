"""What the README shows is what happens."""

import os
import re
import subprocess
import sys
from datetime import time
from decimal import Decimal
from pathlib import Path

import pytest

from banking_server.agent import ModelSettings
from banking_server.server.settings import Settings

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = ("README.md", "CONTRIBUTING.md", "banking_server/README.md")


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


def test_the_demo_prints_what_is_shown_and_leaves_nothing(tmp_path: Path) -> None:
    def lasting(text: str) -> str:
        """Without what differs from run to run: each id becomes its number, a time a word."""
        ids = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=ho_)[0-9a-f]{16}")
        number = {found: f"ID{n}" for n, found in enumerate(dict.fromkeys(ids.findall(text)))}
        text = ids.sub(lambda found: number[found[0]], text)
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)

    # Settings of the person who runs it stay out of it, even bad ones.
    settings = {"BANKING_DATABASE": "/nowhere/bank.db", "BANKING_PORT": "none"}
    ran = subprocess.run(
        [sys.executable, "-m", "banking_server", "demo"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **settings},
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert lasting(ran.stdout).strip() == lasting(block("demo", "text")).strip()
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    assert links
    missing = [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    """A path in backticks is one of the repository, of the package, or of its tests."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|md|yaml|json))`", text))
    roots = (ROOT, ROOT / "banking_server", ROOT / "banking_server" / "bank")
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert missing == []


def test_the_number_of_sentences_is_the_specifications() -> None:
    counted = re.search(r"(\d+) numbered sentences", README.read_text(encoding="utf-8"))
    assert counted is not None
    text = (ROOT / "specs" / "requirements.yaml").read_text(encoding="utf-8")
    assert int(counted[1]) == len(set(re.findall(r"\bTC-[DSC]-\d\d\b", text)))
