"""A run as a table for people, and as JSON."""

import json
from dataclasses import asdict

from banking_server import __version__
from banking_server.benchmark.figures import Figure
from banking_server.benchmark.run import Report


def as_text(report: Report) -> str:
    """Return the machine and a table of what was measured."""
    machine = report.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    lines = [
        f"{machine.cores} cores ({machine.architecture}), Python {machine.python}, "
        f"SQLite {machine.sqlite}, {packages}",
        f"databases on {machine.filesystem or 'a file system of unknown kind'}, "
        f"one fsync there: {machine.fsync_ms:.2f} ms",
        f"rounds: {report.rounds}, {report.seconds:g} s a measurement; the figures are medians",
        "",
        "| measured | against | bank | ratio | rounds | must be | |",
        "| --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for result in report.results:
        lines += [_line(figure) for figure in result.figures]
        if result.failed:
            lines.append(f"| {result.row} | | | | | | FAILED |")
    loads = [result.load_cpu for result in report.results if result.load_cpu is not None]
    calls = sum(result.calls for result in report.results)
    lines.append("")
    if loads:
        lines.append(
            f"{calls:,} answers came, those before the measurements included, each the right one. "
            f"The load itself took at most {max(loads):.0%} of one core."
        )
    lines.append(_CONDITIONS)
    lines += [f"{each.row} failed: {each.failed}" for each in report.results if each.failed]
    return "\n".join(lines)


_CONDITIONS = """\
The bank's limits for each customer are off, since a few customers make all the calls. Its process
sets up Python's garbage collector for that (server/http.py); the bare one is as the SDK leaves it.
The four readers are one customer, whose statements are read one at a time. Memory has one round."""

_MET = {True: "met", False: "NOT MET", None: ""}


def _line(figure: Figure) -> str:
    low, high = min(figure.ratios), max(figure.ratios)
    return (
        f"| {figure.what} | {figure.against}: {_number(figure.median(figure.against))} "
        f"| {_number(figure.median(figure.bank))} {figure.unit} | {figure.ratio:.2f} "
        f"| {low:.2f} to {high:.2f} | {figure.target} | {_MET[figure.is_met]} |"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def as_json(report: Report) -> str:
    """Return everything that was measured, round by round."""
    return json.dumps(
        {
            "measuredAt": report.measured_at.isoformat(timespec="seconds"),
            "version": __version__,
            "machine": asdict(report.machine),
            "rounds": report.rounds,
            "seconds": report.seconds,
            "rows": [
                {
                    "row": result.row,
                    "failed": result.failed,
                    "calls": result.calls,
                    "loadCpu": result.load_cpu,
                    "seconds": result.seconds,
                    "figures": [
                        {
                            **asdict(figure),
                            "ratio": figure.ratio,
                            "ratios": figure.ratios,
                            "met": figure.is_met,
                        }
                        for figure in result.figures
                    ],
                }
                for result in report.results
            ],
        },
        indent=2,
    )
