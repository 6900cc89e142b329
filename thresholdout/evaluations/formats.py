"""A comparison as text, Markdown, JSON and JUnit."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape, quoteattr

from thresholdout.evaluations.difference import Difference, Ranking, Slice

__all__ = ["as_json", "as_junit", "as_markdown", "as_text", "line", "points"]


def points(value: float, signed: bool = True) -> str:
    """Return a fraction in points, which are hundredths of the range."""
    return f"{100.0 * value + 0.0:{'+' if signed else ''}.1f}"


def line(found: Difference) -> str:
    """Return the comparison in one line: ``-15.0 points [-22.1, -7.9], 100 items, 1 sample each: worse``."""
    clusters = f" in {found.clusters} clusters" if found.clustered else ""
    return (
        f"{points(found.difference)} points [{points(found.low)}, {points(found.high)}], "
        f"{found.items} items{clusters}, {_samples(found)}: {_verdict(found)}"
    )


def as_text(found: Difference | Ranking) -> str:
    """Return the comparison with its tests and its slices."""
    if isinstance(found, Ranking):
        shown = [f"{each.candidate}: {line(each)}" for each in found.differences]
        ranks = [f"{name}: rank {_rank(best, worst)}" for name, best, worst in found.ranks]
        return "\n".join([*shown, f"certified ranks ({_percent(_level(found))} % together):", *ranks])
    return "\n".join([line(found), *_details(found), *map(_slice_line, found.slices)])


def as_markdown(found: Difference | Ranking) -> str:
    """Return the comparison for a comment on a pull request."""
    many = found.differences if isinstance(found, Ranking) else (found,)
    rows = [
        "| candidate | difference | normal 95 % interval | items | verdict |",
        "|---|---|---|---|---|",
        *(
            f"| {_cell(each.candidate)} | {points(each.difference)} | {points(each.low)} to {points(each.high)} | "
            f"{each.items} | **{_verdict(each)}** |"
            for each in many
        ),
    ]
    if isinstance(found, Ranking):
        ranks = [f"| {_cell(name)} | {_rank(best, worst)} |" for name, best, worst in found.ranks]
        return "\n".join([*rows, "", "| run | certified rank |", "|---|---|", *ranks])
    rows += ["", *(f"- {detail}" for detail in _details(found))]
    if found.slices:
        rows += ["", "| slice | items | difference | normal 95 % interval | worse (Holm) |", "|---|---|---|---|---|"]
        rows += [
            f"| {_cell(each.name)} | {each.items} | {points(each.difference)} | "
            f"{points(each.low)} to {points(each.high)} | {'yes' if each.worse else '-'} |"
            for each in found.slices
        ]
    return "\n".join(rows)


def as_json(found: Difference | Ranking, allow_unclear: bool = False) -> str:
    """Return the comparison for programs."""
    if isinstance(found, Difference):
        return json.dumps(found.as_dict(allow_unclear))
    return json.dumps(
        {
            "schema": "thresholdout.eval.rank/1",
            "candidates": [{"name": each.candidate, **each.as_dict(allow_unclear)} for each in found.differences],
            "ranks": [{"name": name, "best": best, "worst": worst} for name, best, worst in found.ranks],
            "exit": found.exit(allow_unclear),
        }
    )


def as_junit(found: Difference | Ranking, allow_unclear: bool = False) -> str:
    """Return a JUnit report with a case for each candidate."""
    many = found.differences if isinstance(found, Ranking) else (found,)
    cases, failures, skipped = [], 0, 0
    for each in many:
        inner = f"<system-out>{escape(line(each))}</system-out>"
        if each.verdict == "worse":
            failures += 1
            inner = f"<failure message={quoteattr(line(each))}/>"
        elif each.verdict == "unclear":
            if allow_unclear:
                skipped += 1
                inner = f"<skipped message={quoteattr(line(each))}/>"
            else:
                failures += 1
                inner = f"<failure message={quoteattr(line(each))}/>"
        cases.append(
            f"<testcase classname={quoteattr(each.metric)} name={quoteattr(each.candidate)}>{inner}</testcase>"
        )
    head = f'<testsuite name="thresholdout eval diff" tests="{len(many)}" failures="{failures}" skipped="{skipped}">'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + head + "".join(cases) + "</testsuite>"


def _verdict(found: Difference) -> str:
    if found.verdict == "not worse":
        return f"not worse by {100.0 * found.margin:g} points"
    return found.verdict


def _samples(found: Difference) -> str:
    base, candidate = found.samples
    if base == candidate:
        return f"{base:g} sample{'' if base == 1 else 's'} each"
    return f"{base:g} and {candidate:g} samples each"


def _details(found: Difference) -> list[str]:
    drop = (
        "no drop can be shown with this set"
        if found.smallest_drop is None
        else f"smallest drop that this set shows with power .8: {points(found.smallest_drop, signed=False)} points"
    )
    tested = f"test: {found.test}, level {found.level:g}, margin {100.0 * found.margin:g} points"
    details = [tested, "the interval is a normal 95 % interval", drop]
    if found.assumption:
        details.append(found.assumption)
    if any(found.errors):
        details.append(f"samples without a score: {found.errors[0]} of the base, {found.errors[1]} of the candidate")
    return details


def _slice_line(each: Slice) -> str:
    return (
        f"  {each.name}: {points(each.difference)} points [{points(each.low)}, {points(each.high)}], {each.items} items"
        + (": worse (Holm's correction)" if each.worse else "")
    )


def _rank(best: int, worst: int) -> str:
    return f"{best}" if best == worst else f"{best} to {worst}"


def _level(found: Ranking) -> float:
    return 1.0 - found.differences[0].level * len(found.differences)


def _percent(level: float) -> str:
    return f"{100.0 * level:g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
