"""The options of a run. Nothing here loads the suite."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tool_chaining_conformance.errors import UsageError
from tool_chaining_conformance.target.era import Era


def need_jinja(what: str) -> None:
    """Raise UsageError if Jinja2, which makes the HTML page, is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        raise UsageError(f"{what} needs Jinja2; install it with `pip install 'jinja2>=3.1.6,<4'`")


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, for servers and clients."""

    spec_version: Sequence[Era] | None
    timeout: float
    strict: bool
    output_dir: Path | None
    as_json: bool
    junit: Path | None
    html: Path | None

    @property
    def eras(self) -> list[Era]:
        """The eras that the user chose."""
        return [era for era in Era if not self.spec_version or era in self.spec_version]

    def make_folders(self) -> None:
        """Make the folders of the reports. Raises UsageError if a report cannot be made."""
        if self.html is not None:
            need_jinja("--html")
        report = self.output_dir and self.output_dir / "report.json"
        files = {"--output-dir": report, "--junit": self.junit, "--html": self.html}
        for option, file in files.items():
            try:
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    # A run that ends early leaves no empty file.
                    is_new = not file.exists()
                    file.open("a").close()
                    if is_new:
                        file.unlink()
            except OSError as error:
                raise UsageError(f"{option}: cannot write {file}: {error.strerror}") from error
