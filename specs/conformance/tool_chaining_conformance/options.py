"""The options of a run. Nothing here loads the suite."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tool_chaining_conformance.errors import UsageError
from tool_chaining_conformance.target.era import Era


def need_jinja(what: str) -> None:
    """Raise UsageError if Jinja2, which makes the HTML page, is not installed."""
    if importlib.util.find_spec("jinja2") is None:
        raise UsageError(f"{what} needs Jinja2; install it with `pip install 'jinja2>=3.1.6,<4'`")


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, for servers and clients."""

    spec_version: Annotated[
        list[Era] | None,
        typer.Option(
            "--spec-version",
            metavar="REVISION",
            help="Test only this protocol revision. Default: both.",
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Seconds that one reply, or one run of a client, may take.",
        ),
    ] = 30.0
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 for a warning too: an unmet SHOULD.")
    ] = False
    output_dir: Annotated[
        Path | None,
        typer.Option("-o", "--output-dir", metavar="DIR", help="The folder for report.json."),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print report.json instead of a summary.")
    ] = False
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file for a JUnit XML report.")
    ] = None
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file for an HTML page.")
    ] = None

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
