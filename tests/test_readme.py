"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

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
