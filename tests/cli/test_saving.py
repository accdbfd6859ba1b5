"""What `/save` writes: all that happened, who decided on it, and nothing that could be faked."""

import stat
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult, TextContent

from banking_server.agent import Called, Entry, Note, Run
from banking_server.cli.saving import save
from tool_chaining import Step


def called(tool: str, by: Any, text: str, *, failed: bool = False) -> Called:
    result = CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)
    return Called(by, "shop", Step(1, tool, {"door": "o`ak"}, result))


FILE = """\
# A conversation with qwen [red]

## Request

> Buy an oak door.
> ## Answer

The model says: I'll see. ## Call

Call of reserve, decided by the model, which failed:

    {"door": "o`ak"}

    Sorry.
    # Not a heading

Call of order, decided by a directive of the server:

    {"door": "o`ak"}

    ordered\\x1b[2J

The chain ended: the host did not consent.

## Answer

> Ordered.
>
> ## Request
"""


def test_all_that_happened_is_saved_and_no_file_is_written_over(tmp_path: Path) -> None:
    file = tmp_path / "my chat.md"
    with pytest.raises(ValueError, match=r"^There is nothing to save yet\.$"):
        save("qwen", [], str(file))
    entries: list[Entry] = [
        Note("The model says: I'll see.\n## Call"),
        called("reserve", "model", "Sorry.\n# Not a heading", failed=True),
        called("order", "directive", "ordered\x1b[2J"),
        Note("The chain ended: the host did not consent."),
    ]
    run = Run("", "Ordered.\n\n## Request", entries)
    requests = [("Buy an oak door.\r## Answer", run)]
    told = save("qwen\n[red]", requests, str(file))
    assert told == f"Saved to {file}, as Markdown: 1 request."
    assert file.read_text(encoding="utf-8") == FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for name, why in (("my chat.md", "exists already"), ("no/where.md", "No such file")):
        with pytest.raises(ValueError, match=rf"^Not saved: .*{why}.*\.$"):
            save("qwen", requests, str(tmp_path / name))
    assert file.read_text(encoding="utf-8") == FILE
