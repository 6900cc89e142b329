"""The file with which OpenEvolve and ShinkaEvolve have a program judged; it needs nothing but Python."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["evaluator_text", "write_evaluator"]


def write_evaluator(path: Path, url: str) -> None:
    """Write the file, readable by its owner alone, since it has the server's address; an older file is overwritten."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.chmod(path, 0o600)
        file.write(evaluator_text(url))


def evaluator_text(url: str) -> str:
    """Return the file's text: ``evaluate(program_path)``, and a command with ``--program_path`` and ``--results_dir``.

    A program that cannot run, or comes when the guard is exhausted, has the score 0 and no error, so that optimisers do
    not try it again. If the server does not answer there is an error, since nothing was judged.

    Examples
    --------
    >>> text = evaluator_text("http://127.0.0.1:8000/secret")
    >>> compile(text, "evaluator.py", "exec") is not None, "def evaluate(program_path)" in text
    (True, True)
    """
    return _TEXT.replace("URL = ''", f"URL = {url!r}")


_TEXT = '''"""Has a program judged by the guard of a holdout; made by thresholdout, for one run of its server."""
import argparse
import json
import os
import urllib.error
import urllib.request

URL = ''


def asked(program_path):
    """Return what the guard says of a program: score, outcome, and a sentence that says it."""
    with open(program_path, encoding="utf-8") as file:
        body = json.dumps({"candidate": file.read()}).encode()
    request = urllib.request.Request(URL + "/evaluate", body, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request) as answer:
            told = json.load(answer)
    except urllib.error.HTTPError as error:
        told = json.load(error)
        if error.code not in (422, 429):
            raise RuntimeError(told.get("error", "the server of the guard refuses")) from None
    return told


def evaluate(program_path):
    """Evaluate a program for OpenEvolve."""
    from openevolve.evaluation_result import EvaluationResult

    told = asked(program_path)
    info = told.get("info", {})
    artifacts = {"verdict": info.get("says") or told.get("error", "")}
    if info.get("stderr"):
        artifacts["stderr"] = info["stderr"]
    return EvaluationResult(metrics={"combined_score": float(told.get("score") or 0.0)}, artifacts=artifacts)


def main():
    """Evaluate a program for ShinkaEvolve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    given = parser.parse_args()
    told = asked(given.program_path)
    info = told.get("info", {})
    said = info.get("says") or told.get("error", "")
    judged = info.get("outcome") in ("first", "kept", "on the way", "rejected")
    metrics = {
        "combined_score": float(told.get("score") or 0.0),
        "public": {"kept": bool(info.get("kept"))},
        "private": {},
        "text_feedback": "\\n".join(part for part in (said, info.get("stderr")) if part),
    }
    os.makedirs(given.results_dir, exist_ok=True)
    for name, content in (("metrics", metrics), ("correct", {"correct": judged, "error": None if judged else said})):
        with open(os.path.join(given.results_dir, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(content, file)


if __name__ == "__main__":
    main()
'''
