"""A comparison as a picture: SVG, in the light or dark colours of whoever looks at it."""

from collections.abc import Iterable, Sequence
from typing import Final
from xml.sax.saxutils import escape

from banking_server.comparison.figures import Summary, summarize
from banking_server.comparison.record import Measured, latest
from banking_server.comparison.table import percents, wrong_actions
from banking_server.comparison.ways import WITH_MODEL

_WIDTH: Final = 1000
_BARS: Final = 200
"""Where the bars begin."""
_LENGTH: Final = 360
"""Of a bar of 100 %."""
_WORDS: Final = _BARS + _LENGTH + 16
_ROW: Final = 26
_BAR: Final = 14
_MARK: Final = 4
"""Of wrong actions, below the bar: a run that is right may have one."""
_TOP: Final = 112
_PERCENTS: Final = (0, 25, 50, 75, 100)

_STYLE: Final = """
  :root { color-scheme: light dark }
  svg { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
  .paper { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .track { fill: #e4e8ed } .right { fill: #2f6fdb } .wrong { fill: #c62828 }
  .wrong-text { fill: #b42318; font-weight: 600 }
  .interval { stroke: #1f2328; stroke-width: 1.5 } .grid { stroke: #c9d1d9 }
  .heading { font-size: 18px; font-weight: 600 } .task { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .text { fill: #f0f6fc } .quiet { fill: #9198a1 }
    .track { fill: #2a313c } .right { fill: #3f7fee } .wrong { fill: #f2645a }
    .wrong-text { fill: #ff8b82 }
    .interval { stroke: #f0f6fc } .grid { stroke: #3d444d }
  }"""


def as_svg(runs: Iterable[Measured]) -> str:
    """Return a bar for each task and way: how often it did what was asked, and what nobody did."""
    made = latest(runs)
    summaries = summarize(made)
    models = sorted({str(run.conditions.model["name"]) for run in made if run.conditions.model})
    subtitle = f"Model: {', '.join(models)}." if models else "Ways without a model only."
    body: list[str] = []
    y = _TOP
    for task in dict.fromkeys(line.task for line in summaries):
        y += 14
        body.append(_text(24, y, task, "text task"))
        y += 10
        lines = [line for line in summaries if line.task is task]
        for percent in _PERCENTS:
            x = _BARS + _LENGTH * percent // 100
            body.append(
                f'<line class="grid" x1="{x}" y1="{y}" x2="{x}" y2="{y + _ROW * len(lines)}"/>'
            )
        for line in lines:
            body += _bar(line, y)
            y += _ROW
        y += 8
    height = y + 14
    scale = [
        _text(_BARS + _LENGTH * percent / 100, _TOP - 12, f"{percent} %", "quiet", "middle")
        for percent in _PERCENTS
    ]
    scale.append(_text(_WIDTH - 24, _TOP - 12, "tokens, median", "quiet", "end"))
    title = "How often each way of chaining tools did what was asked"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{title}</title>',
            f'<desc id="desc">{escape(_in_words(summaries))}</desc>',
            f"<style>{_STYLE}\n</style>",
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
            _text(24, 34, title, "text heading"),
            _text(24, 56, f"{subtitle} Judged by the bank's database.", "quiet"),
            *_legend(),
            *scale,
            *body,
            "</svg>\n",
        ]
    )


def _legend() -> list[str]:
    parts = []
    x = 24
    for kind, words, width in (
        ("right", "as asked", 92),
        ("track", "not as asked", 116),
        ("wrong", "wrong action: what nobody asked for, done or refused", 400),
    ):
        parts.append(f'<rect class="{kind}" x="{x}" y="68" width="12" height="12" rx="2"/>')
        parts.append(_text(x + 18, 79, words, "quiet"))
        x += width
    parts += [*_interval(x, x + 24, 74), _text(x + 32, 79, "95 % interval", "quiet")]
    return parts


def _bar(line: Summary, y: int) -> list[str]:
    """Return one row: the way, its bar, and the figures in words."""
    top, base = y + (_ROW - _BAR) / 2, y + _ROW / 2 + 4.5
    right, wrong = (_LENGTH * count / line.runs for count in (line.right, line.wrong))
    low, high = (_BARS + _LENGTH * share for share in line.interval)
    harm = (
        f' <tspan class="wrong-text">wrong action: {wrong_actions(line)}</tspan>'
        if line.wrong
        else ""
    )
    tokens = line.prompt_tokens + line.completion_tokens
    cost = f"{tokens:,.0f} tokens" if line.way in WITH_MODEL else "no model"
    share = escape(f"{line.right} of {line.runs}  ({percents(line)})")
    return [
        _text(_BARS - 12, base, line.way, "text", "end"),
        _rectangle("track", _BARS, top, _LENGTH),
        _rectangle("right", _BARS, top, right),
        _rectangle("wrong", _BARS, top + _BAR, wrong, _MARK),
        *_interval(low, high, y + _ROW / 2),
        f'<text class="text" x="{_WORDS}" y="{base:g}">{share}{harm}</text>',
        _text(_WIDTH - 24, base, cost, "quiet", "end"),
    ]


def _rectangle(kind: str, x: float, y: float, width: float, height: int = _BAR) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height}"/>'


def _interval(low: float, high: float, y: float) -> list[str]:
    ends = [(low, y, high, y), *((x, y - 4, x, y + 4) for x in (low, high))]
    return [
        f'<line class="interval" x1="{a:.1f}" y1="{b:g}" x2="{c:.1f}" y2="{d:g}"/>'
        for a, b, c, d in ends
    ]


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def _in_words(summaries: Sequence[Summary]) -> str:
    """Say the same to whoever cannot see it."""
    return " ".join(
        f"{line.task}, {line.way}: {line.right} of {line.runs} as asked, 95 % interval "
        f"{percents(line)}, wrong action: {wrong_actions(line)}."
        for line in summaries
    )
