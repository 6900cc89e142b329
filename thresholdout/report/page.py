"""The page: a report as one HTML document."""

from __future__ import annotations

import math
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, get_args

from thresholdout.mechanisms.base import AnswerSource
from thresholdout.plotting import drawable, plot_history
from thresholdout.report import sentences as words
from thresholdout.report.report_pictures import MOST_DRAWN, plot_against_train, plot_budget, svg_image, thinned

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.report.contents import GuardReport

__all__ = ["embedded", "render"]

MOST_ROWS = 500
_MOST_RANGES = 3

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif; color: #1c1c1c; background: #fff; margin: 0; }
main { max-width: 56rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
.quiet { color: #5c5c5c; font-size: .9rem; overflow-wrap: anywhere; }
.lead { font-size: 1.05rem; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem; margin: 1.5rem 0; }
dl.facts div { border: 1px solid #d5d5d5; border-radius: .4rem; padding: .6rem .8rem; }
dl.facts dt { color: #5c5c5c; font-size: .85rem; }
dl.facts dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0 1.5rem; break-inside: avoid; }
figure img { width: 100%; height: auto; display: block; }
figcaption { color: #5c5c5c; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
th { color: #5c5c5c; font-weight: 600; }
th.text, td.text { text-align: left; overflow-wrap: anywhere; }
tr.holdout td { background: #fdf1e7; }
tr.chosen td { font-weight: 600; }
thead { display: table-header-group; }
tr { break-inside: avoid; }
@media print {
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; }
  tr.holdout td, dl.facts div { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
@page { size: A4; margin: 18mm 15mm; }
"""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def render(report: GuardReport) -> str:
    """Return the page of a report; no script, no address, nothing that is loaded."""
    parts = [
        f'<h1>{escape(report.title)}</h1>\n<p class="quiet">Guard {escape(report.identity)}, '
        f"head {escape(report.head)}</p>",
        f'<p class="lead">{escape(words.summary(report))}</p>',
        _facts(report),
        *_pictures(report),
        _certificate(report),
        _listed("What this rests on", words.limits(report)),
        _looks(report),
        _mechanism(report),
        _questions(report),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def embedded(report: GuardReport) -> str:
    """Return the page in a frame of its own, for a notebook, whose style it leaves alone."""
    return (
        f'<iframe srcdoc="{escape(render(report))}" sandbox="" title="{escape(report.title)}" '
        'style="width: 100%; height: 40rem; border: 1px solid #d5d5d5"></iframe>'
    )


def _facts(report: GuardReport) -> str:
    most = report.declared.queries
    facts = [
        ("questions", f"{report.questions:,}" + ("" if most is None else f" of {most:,}")),
        ("from the holdout", f"{report.from_holdout:,}"),
        ("confidence", f"{report.declared.confidence:g}"),
    ]
    if report.budget is not None:
        facts.insert(2, ("budget left", f"{report.remaining:,} of {report.budget:,}"))
    if report.told is not None:
        facts.append(("told so far", f"{report.told:.3g} nats"))
    elif report.certificate is not None:
        tolerance = report.certificate.tolerance
        shown = f"{tolerance:.3g} of the range" if math.isfinite(tolerance) else "grows"
        facts.append(("largest half-width from now on", shown))
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{rows}</dl>'


def _pictures(report: GuardReport) -> list[str]:
    answers = drawable(report.answers)
    if not len(answers):
        return []
    few = ""
    if len(answers) > MOST_DRAWN:
        few = f" Drawn are {len(thinned(answers)):,} of {len(answers):,} answers, those from the holdout first."
    found = ["<h2>What was answered</h2>"]
    ranges = list(answers.groupby(["lower", "upper"], sort=True))
    for (low, high), rows in ranges[:_MOST_RANGES]:
        about = f" with a range of {low:g} to {high:g}" if len(ranges) > 1 else ""
        caption = f"Answers{about}, question by question. Bars are certified intervals: all hold at once.{few}"
        found.append(_figure(svg_image(partial(plot_history, thinned(rows)), escape(caption)), caption))
        caption = f"Answers{about} against training values. Off the diagonal, the training part was wrong.{few}"
        image = svg_image(partial(plot_against_train, thinned(rows)), escape(caption), 4.2)
        found.append(_figure(image, caption))
    if len(ranges) > _MOST_RANGES:
        found.append(f"<p>Questions with {len(ranges) - _MOST_RANGES} more ranges are in the table only.</p>")
    caption = "Where the holdout was used."
    found.append(_figure(svg_image(partial(plot_budget, answers, report.budget), caption, 2.6), caption))
    return found


def _figure(image: str, caption: str) -> str:
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>"


def _certificate(report: GuardReport) -> str:
    heading = "<h2>What the answers are worth</h2>"
    if report.certificate is None:
        return (
            f"{heading}<p>Each answer's half-width was certified when it was given. The certificate itself is not in "
            "the ledger: make the report from the guard, which knows how its records depend on each other.</p>"
        )
    routes = report.certificate.routes
    rows = []
    for name, route in routes[routes["guards"]].sort_values("tolerance", kind="stable").iterrows():
        value = f"{route['tolerance']:.4g}" if math.isfinite(route["tolerance"]) else "none"
        why = route["why_not"] or route["assumes"]
        kind = ' class="chosen"' if route["chosen"] else ""
        cells = f'<td class="text">{escape(str(name))}</td><td>{value}</td><td class="text">{escape(why)}</td>'
        rows.append(f"<tr{kind}>{cells}</tr>")
    return (
        f"{heading}<p>{escape(report.certificate.statement)}</p>"
        '<div class="scroll"><table><thead><tr><th class="text">route</th><th>half-width, of the range</th>'
        f'<th class="text">assumes, or why not</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _listed(heading: str, lines: list[str]) -> str:
    return f"<h2>{escape(heading)}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _looks(report: GuardReport) -> str:
    return _listed("Other looks at the holdout", list(report.looks)) if report.looks else ""


def _mechanism(report: GuardReport) -> str:
    rows = "".join(
        f'<tr><td class="text">{escape(name)}</td><td class="text">{escape(value)}</td></tr>'
        for name, value in words.parameters(report)
    )
    return (
        f"<h2>How questions are answered</h2><p>{escape(words.mechanism(report))}</p>"
        f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
    )


def _questions(report: GuardReport) -> str:
    history = report.history
    if not len(history):
        return ""
    shown, which = history, ""
    if len(history) > MOST_ROWS:
        shown = _last(history)
        which = f"<p>Of {len(history):,} questions: the last ones, and earlier ones that the holdout answered.</p>"
    head = ("question", "name", "training value", "answer", "interval", "from", "budget left")
    kinds = ["", ' class="text"', "", "", "", ' class="text"', ""]
    cells = "".join(f"<th{kind}>{name}</th>" for name, kind in zip(head, kinds, strict=True))
    rows = "".join(_row(row, kinds) for row in shown.itertuples())
    return (
        f'<h2>Questions and answers</h2>{which}<div class="scroll"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _last(history: pd.DataFrame, most: int = MOST_ROWS) -> pd.DataFrame:
    """Return the last questions, and before them as many that the holdout answered, at most `most` in all."""
    last = history.iloc[-most // 2 :]
    earlier = history.iloc[: len(history) - len(last)]
    earlier = earlier[earlier["source"] == "holdout"].iloc[-(most - len(last)) :]
    import pandas as pd

    return pd.concat([earlier, last])


def _row(row: Any, kinds: list[str]) -> str:
    import pandas as pd

    answered = row.source in get_args(AnswerSource)
    values = (
        f"{row.query:,}",
        escape(f"{row.name}: {row.candidate}" if row.candidate else str(row.name)),
        f"{row.train:.4f}",
        f"{row.value:.4f}" if answered else "",
        f"{row.low:.4f} to {row.high:.4f}" if answered else "",
        escape(str(row.source)),
        "" if pd.isna(row.remaining) else f"{row.remaining:,}",
    )
    cells = "".join(f"<td{kind}>{value}</td>" for value, kind in zip(values, kinds, strict=True))
    kind = ' class="holdout"' if row.source == "holdout" else ""
    return f"<tr{kind}>{cells}</tr>"
