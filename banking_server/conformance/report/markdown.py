"""A report as Markdown, for the summary of a CI step: what the terminal shows."""

import io
from html import escape
from pathlib import Path
from typing import Final

from rich.console import Console

from banking_server.conformance.report.report import Report
from banking_server.conformance.report.summary import print_summary
from banking_server.conformance.report.verdict import Verdict
from banking_server.text import cut

LENGTH: Final = 500_000
"""Characters of the whole file. GitHub shows no summary of a step above 1 MiB."""

_SIGNS: Final = {
    Verdict.CONFORMANT: "✅",
    Verdict.NONCONFORMANT: "❌",
    Verdict.INCONCLUSIVE: "❔",
    Verdict.ERROR: "⚠️",
}


def write_markdown(report: Report, path: Path) -> None:
    """Write the file, and the folders above it. Raises OSError."""
    page = io.StringIO()
    print_summary(report, Console(file=page, color_system=None))
    verdict = report.conclusion.verdict
    # Within `pre`, nothing that a target said is Markdown, and escaped it is no HTML.
    shown = escape(cut(page.getvalue(), LENGTH), quote=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"## {_SIGNS[verdict]} {verdict}\n\n<pre>\n{shown}</pre>\n", encoding="utf-8")
