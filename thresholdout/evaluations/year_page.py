"""The page about the year of a guarded evaluation set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thresholdout.evaluations.check_results import Event, Status

__all__ = ["year_page"]

# Of the drawing, in pixels.
_WIDTH: Final = 720
_HEIGHT: Final = 220
_MARGIN: Final = 36

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ s.metric }}: a year of checks</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid #ddd; padding: .25rem .5rem; text-align: left }
svg { width: 100%; height: auto }
.seen { fill: #1f5fa8; opacity: .12 }
.worse { color: #b00020 } .axis { stroke: #888 } .main { fill: none; stroke: #1f5fa8; stroke-width: 2 }
</style></head><body>
<h1>{{ s.metric }}: a year of checks</h1>
<p>{{ s.gate_items }} gate items{% if s.clusters != s.gate_items %} in {{ s.clusters }} clusters{% endif %},
{{ s.dev_items }} dev items. {{ s.done }} of {{ s.checks }} checks and {{ s.surprised }} of {{ s.surprises }} surprises
are used.
{% if s.mode == "proof" %}The next check proves a change without effect with probability
{{ "%.2f"|format(s.proof_power) }}, if a tenth of the items differ.
{% elif s.smallest_drop is none %}No drop can be seen any more: add new items.
{% else %}The next check sees a drop of {{ "%.1f"|format(100 * s.smallest_drop) }} points with power .8, if a tenth of
the items differ.{% endif %}</p>
<h2>Main against the release, on the dev items</h2>
<p>Gate items are not shown: nobody who makes changes may read results on them. The line is main, dots are checks,
crosses are alarms.{% if s.mode == "alarm" %} The shaded part begins at the smallest drop that a check could still
see.{% endif %}</p>
{{ picture }}
<h2>Promise</h2>
<p>{% if s.promise == "year" %}With probability .95 no outcome of all checks is false, whoever makes the changes from
earlier outcomes.{% else %}Each check alone, for changes that were not made from earlier outcomes.{% endif %}
It holds if nobody who makes changes reads gate items or results on them, and the judge stays the same.
Test: {{ test }}.{% if s.assumption %} The {{ s.assumption }}.{% endif %}</p>
<h2>History</h2>
<table><tr><th></th><th>day</th><th>run</th><th>outcome</th><th>on dev items</th></tr>
{% for e in s.history %}<tr><td>{{ e.number }}</td><td>{{ e.day }}</td><td>{{ e.name }}</td>
<td{% if e.outcome == "worse" %} class="worse"{% endif %}>{{ e.outcome }}</td>
<td>{{ "%+.1f"|format(100 * e.dev_difference) }}</td></tr>
{% endfor %}</table>
</body></html>
"""


def year_page(status: Status) -> str:
    """Return the page as HTML without scripts or external files."""
    from jinja2 import Environment
    from markupsafe import Markup

    test = status.tests[0 if status.mode == "alarm" else 1]
    page = Environment(autoescape=True).from_string(_PAGE)
    return page.render(s=status, test=test, picture=Markup(_picture(status.history)))


def _picture(history: Sequence[Event]) -> str:
    """Draw the runs' differences on dev items: main as steps, checks as dots, alarms as crosses."""
    if not history:
        return "<p>No check was made yet.</p>"
    drops = [each.smallest_drop for each in history]
    reach = max(0.01, *(abs(each.dev_difference) for each in history), *(drop for drop in drops if drop is not None))
    across = (_WIDTH - 2 * _MARGIN) / max(1, len(history))

    def place(number: int, value: float) -> tuple[float, float]:
        return _MARGIN + across * number, 0.5 * _HEIGHT - (0.5 * _HEIGHT - 20) * value / reach

    path, main = [f"M{_MARGIN} {0.5 * _HEIGHT:.1f}"], 0.0
    marks = []
    for number, each in enumerate(history, 1):
        x, y = place(number, each.dev_difference)
        if each.outcome == "promoted":
            path.append(f"L{x:.1f} {place(number, main)[1]:.1f} L{x:.1f} {y:.1f}")
            main = each.dev_difference
        elif each.outcome == "worse":
            marks.append(f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="#b00020" stroke-width="2"/>')
        else:
            marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#555"/>')
    path.append(f"L{_WIDTH - _MARGIN} {place(0, main)[1]:.1f}")
    ends = "".join(
        f'<text x="2" y="{place(0, value)[1] + 4:.1f}" font-size="11">{100 * value:+.1f}</text>'
        for value in (reach, 0.0, -reach)
    )
    axis = f'<line class="axis" x1="{_MARGIN}" y1="{_HEIGHT / 2}" x2="{_WIDTH - _MARGIN}" y2="{_HEIGHT / 2}"/>'
    title = "<title>Differences from the release in points: main as a line, checks as dots, alarms as crosses</title>"
    line = f'<path class="main" d="{" ".join(path)}"/>'
    seen = "".join(
        f'<rect class="seen" x="{place(number, 0)[0]:.1f}" y="{place(0, -drop)[1]:.1f}" width="{across:.1f}" '
        f'height="{place(0, -reach)[1] + 20 - place(0, -drop)[1]:.1f}"/>'
        for number, drop in enumerate(drops)
        if drop is not None
    )
    inside = "".join((title, seen, axis, ends, line, *marks))
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{inside}</svg>'
