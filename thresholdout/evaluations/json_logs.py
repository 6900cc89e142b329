"""Logs of lm-eval, promptfoo and OpenAI evals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import EvaluationFileError, InputError
from thresholdout.evaluations.scores import Row, Scores, choose, collect, fingerprint, lookup

if TYPE_CHECKING:
    from thresholdout.evaluations.reading import Fields

__all__ = ["json_lines", "read_lm_eval", "read_openai_evals", "read_promptfoo"]

_ERROR: Final = 2  # promptfoo's `failureReason` where the provider gave no answer
_TWO_VALUED: Final = {"exact_match", "acc", "acc_norm"}  # 0 or 1 for one document by lm-eval's definition
_NOT_SCORES: Final = {"sampling", "raw_sample", "function_call", "cond_logp", "embedding", "extra", "error"}


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Decode a file with one JSON object in each line."""
    decode = json.JSONDecoder().raw_decode
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            try:
                row, end = decode(line)
                if not line[end:].isspace() and end < len(line):
                    raise ValueError
            except ValueError:
                raise EvaluationFileError(
                    str(path), f"Line {number} is not JSON: the file was cut off or changed. Write it again."
                ) from None
            if not isinstance(row, dict):
                raise EvaluationFileError(
                    str(path), f"Line {number} is not a JSON object. Each line must be one sample."
                )
            yield row


def read_lm_eval(path: Path, fields: Fields) -> Scores:
    """Read `samples_*.jsonl`: a row for each document and filter, matched by the document's hash."""
    where, only = str(path), dict(fields.only)
    metric, wanted = fields.metric, only.pop("filter", None)
    _known(only, ("filter",), where)
    if metric is not None and "," in metric:
        metric, wanted = metric.split(",", 1)
    first = next(json_lines(path))
    metric = choose("metric", first["metrics"], metric, where)
    filters: set[str] = set()

    def rows() -> Iterator[Row]:
        for row in json_lines(path):
            name = row.get("filter", "none")
            filters.add(name)
            if wanted is not None and name != wanted:
                continue
            if metric not in row:
                raise EvaluationFileError(
                    where, f"Document {row.get('doc_id')} has no {metric}: the file was changed. Write it again."
                )
            hashed = row["doc_hash"]
            yield Row(
                hashed if fields.item is None else str(lookup(row, fields.item, where)),
                row[metric],
                None if fields.sample is None else str(lookup(row, fields.sample, where)),
                hashed,
                _named(row, fields.cluster, where),
                _named(row, fields.by, where),
            )

        # a file may hold each document once per filter: two filters need a choice, or they would count as repeats
        choose("filter", filters, wanted, where, "its name in only=")

    scores = collect(rows(), where, metric, fields.scale, two_valued=metric in _TWO_VALUED)
    return scores if len(filters) < 2 else replace(scores, metric=f"{metric},{wanted}")


def read_promptfoo(path: Path, log: Mapping[str, Any], fields: Fields) -> Scores:
    """Read `-o out.json`; repeats of an item are recognised by equal variables alone."""
    where, only = str(path), dict(fields.only)
    results = log["results"]["results"]
    chosen = {kind: only.pop(kind, None) for kind in ("prompt", "provider")}
    _known(only, ("prompt", "provider"), where)
    prompt = choose(
        "prompt", (str(each["promptIdx"]) for each in results), chosen["prompt"], where, "--only prompt=INDEX"
    )
    provider = choose(
        "provider", (each["provider"]["id"] for each in results), chosen["provider"], where, "--only provider=ID"
    )
    kept = [each for each in results if str(each["promptIdx"]) == prompt and each["provider"]["id"] == provider]
    named = {name for each in kept for name in each.get("namedScores") or ()}
    if fields.metric in (None, "score", "success"):
        metric = fields.metric or ("score" if not named else "")
    else:
        metric = fields.metric
    if metric not in ("score", "success"):
        metric = choose("metric", named, metric or None, where, "metric= (or score, or success)")

    def rows() -> Iterator[Row]:
        for each in kept:
            variables = {key: value for key, value in each["vars"].items() if key != "_conversation"}
            content = fingerprint(variables)
            failed = each.get("failureReason") == _ERROR
            value = each[metric] if metric in ("score", "success") else (each.get("namedScores") or {}).get(metric)
            row = {**each.get("testCase", {}), **each}
            yield Row(
                content if fields.item is None else str(lookup(row, fields.item, where)),
                None if failed else value,
                None if fields.sample is None else str(lookup(row, fields.sample, where)),
                content,
                _named(row, fields.cluster, where),
                _named(row, fields.by, where),
            )

    return collect(rows(), where, metric, fields.scale)


def read_openai_evals(path: Path, fields: Fields) -> Scores:
    """Read the events of a LocalRecorder; its first prompt identifies an item."""
    where = str(path)
    _known(dict(fields.only), (), where)
    prompts: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    failed: set[str] = set()
    specs, ended = 0, False
    for event in json_lines(path):
        specs += "spec" in event
        ended = ended or "final_report" in event
        if "sample_id" not in event:
            continue
        sample, kind, data = event["sample_id"], event["type"], event["data"]
        scores = found.setdefault(sample, {})
        if kind == "sampling" and sample not in prompts:
            prompts[sample] = data.get("prompt")
        elif kind == "match":
            scores["match"] = data["correct"]
        elif kind == "error":
            failed.add(sample)
        elif kind not in _NOT_SCORES:
            scores.update((name, value) for name, value in data.items() if isinstance(value, bool | int | float))
    if specs != 1:
        raise EvaluationFileError(where, f"It has {specs} runs. Write one run to one file.")
    if not ended:
        raise EvaluationFileError(where, "The run was interrupted: it has no final report. Run it to its end.")
    names = (name for scores in found.values() for name in scores)
    metric = choose("metric", names, fields.metric, where)
    if fields.cluster is not None or fields.by is not None:
        argument = "by" if fields.cluster is None else "cluster"
        raise InputError(
            argument, fields.cluster or fields.by, "left out for logs of OpenAI evals", "They have no such fields."
        )

    def rows() -> Iterator[Row]:
        for sample, scores in found.items():
            content = fingerprint(prompts[sample]) if sample in prompts else ""
            value = None if sample in failed and metric not in scores else scores.get(metric)
            yield Row(content or sample, value, None, content)

    return collect(rows(), where, metric, fields.scale)


def _known(rest: Mapping[str, str], kinds: Iterable[str], where: str) -> None:
    if rest:
        names = " or ".join(kinds)
        raise InputError("only", ", ".join(rest), f"by {names} for {where}" if names else f"left out for {where}")


def _named(row: Mapping[str, Any], path: str | None, where: str) -> str | None:
    if path is None:
        return None
    found = lookup(row, path, where)
    return found if isinstance(found, str) else json.dumps(found, sort_keys=True, default=str)
