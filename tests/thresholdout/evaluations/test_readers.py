"""Readers, on small logs that the tools wrote (`tool_logs`) and whose scores are known from elsewhere."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from tests.thresholdout.evaluations.tool_logs import FAILING, question, right
from thresholdout.errors import EvaluationFileError, InputError, LikelyMistakeWarning
from thresholdout.evaluations import Scores, read
from thresholdout.evaluations.scores import fingerprint

KEPT = Path(__file__).parent / "kept"
ITEMS = range(12)
PASSAGES = tuple(f"p{i // 3}" for i in ITEMS)


def expected(seed: int, epochs: int = 1, failing: bool = False) -> list[float]:
    values = [sum(right(i, seed, 1 + e) for e in range(epochs)) / epochs for i in ITEMS]
    return [math.nan if failing and i == FAILING else value for i, value in enumerate(values)]


def same(scores: Scores, values: list[float]) -> None:
    np.testing.assert_array_equal(scores.values, values)


class TestTwoValued:
    @for_each(
        ("name", "arguments", "said"),
        [
            ("inspect_main.eval", {"metric": "match"}, True),
            ("lm_eval_main.jsonl", {"only": {"filter": "strict-match"}}, True),
            ("promptfoo_main.json", {"metric": "success"}, True),
            ("promptfoo_main.json", {"metric": "correct"}, False),
            ("openai_evals.jsonl", {"metric": "match"}, True),
            ("mlflow_table.json", {"item": "question"}, False),
            ("mlflow_traces.json", {}, True),
        ],
    )
    def test_logs_that_say_so(self, name: str, arguments: dict[str, Any], said: bool) -> None:
        scores = read(KEPT / name, **arguments)
        assert (scores.binary, scores.two_valued) == (True, said)

    def test_a_scorer_with_partial_credit_may_give_half(self, tmp_path: Path) -> None:
        log = json.loads((KEPT / "inspect_main.json").read_text())
        next(each for each in log["eval"]["scorers"] if each["name"] == "match")["options"] = {"partial_credit": True}
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        assert not read(path, "match").two_valued

    @for_each(
        ("column", "said"),
        [([True, False], True), (["yes", "no"], True), (["C", "N"], False), ([1, 0], False), (["1", True], False)],
    )
    def test_tables_by_their_types(self, column: list[object], said: bool) -> None:
        assert read(pd.DataFrame({"id": [1, 2], "score": column})).two_valued == said


class TestInspect:
    @for_each("name", ["inspect_main.eval", "inspect_main.json", "inspect_long.eval"])
    def test_letters_clusters_and_slices(self, name: str) -> None:
        """The long one is read from its samples, since its summaries were cut."""
        scores = read(KEPT / name, "match", cluster="metadata.passage_id", by="metadata.tag")
        same(scores, expected(1))
        assert scores.clusters == PASSAGES
        assert scores.tags == ("hard", "easy") * 6
        assert scores.items == tuple(map(str, ITEMS))
        assert scores.binary

    def test_a_summary_that_was_cut_gives_no_fingerprint(self) -> None:
        """Texts of 6,000 characters are cut after 5,120 there."""
        scores = read(KEPT / "inspect_long.eval", "match")
        whole = [fingerprint(f"{question(i, 6000)}\0{i + 1}") for i in ITEMS]
        assert list(scores.contents) == whole

    def test_epochs_are_samples_of_one_item(self) -> None:
        scores = read(KEPT / "inspect_epochs.eval", "match")
        same(scores, expected(3, epochs=2))
        assert scores.samples.tolist() == [2] * 12
        assert not scores.binary

    def test_a_failed_sample_is_missing(self) -> None:
        scores = read(KEPT / "inspect_errors.eval", "match")
        same(scores, expected(1, failing=True))
        assert scores.errors == 1

    def test_summaries_and_samples_have_the_same_fingerprints(self) -> None:
        one, other = read(KEPT / "inspect_main.eval", "match"), read(KEPT / "inspect_main.json", "match")
        assert one.contents == other.contents
        assert len(set(one.contents)) == 12
        assert one.digest() == other.digest()

    def test_several_scorers_are_listed(self) -> None:
        with pytest.raises(InputError, match="characters, match"):
            read(KEPT / "inspect_main.eval")

    def test_a_range_maps_scores(self) -> None:
        scores = read(KEPT / "inspect_main.eval", "characters", range=(0, 8))
        answers = [len(str(i + 1)) if right(i, 1) else len("none") for i in ITEMS]
        same(scores, [length / 8 for length in answers])

    def test_a_score_out_of_range_names_the_item(self) -> None:
        with pytest.raises(
            EvaluationFileError, match=r"Item '0' has the score 4, outside of 0 to 1\. Pass both ends by range="
        ):
            read(KEPT / "inspect_main.eval", "characters")

    def test_a_truncated_zip(self, tmp_path: Path) -> None:
        cut = tmp_path / "cut.eval"
        cut.write_bytes((KEPT / "inspect_main.eval").read_bytes()[:9000])
        with pytest.raises(EvaluationFileError, match="not a complete zip"):
            read(cut, "match")

    def test_a_damaged_member(self, tmp_path: Path) -> None:
        data = bytearray((KEPT / "inspect_main.eval").read_bytes())
        at = data.find(b"summaries.json")
        data[at + 60 : at + 90] = bytes(30)
        for name in (b"summaries.json", b"header.json"):
            at = data.find(name)
            data[at + len(name) + 4 : at + len(name) + 40] = bytes(36)
        damaged = tmp_path / "damaged.eval"
        damaged.write_bytes(bytes(data))
        with pytest.raises(EvaluationFileError, match=r"is damaged|not a complete"):
            read(damaged, "match")

    def test_a_run_that_was_cut_off(self, tmp_path: Path) -> None:
        """The journal alone: what is left of a process that was killed."""
        data = (KEPT / "inspect_main.eval").read_bytes().replace(b"header.json", b"header.jsoX")
        cut = tmp_path / "cut.eval"
        cut.write_bytes(data)
        with pytest.raises(EvaluationFileError, match="The run was interrupted"):
            read(cut, "match")

    @for_each("status", ["error", "cancelled", "started"])
    def test_a_run_that_did_not_succeed(self, tmp_path: Path, status: str) -> None:
        log = json.loads((KEPT / "inspect_main.json").read_text())
        log["status"] = status
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        with pytest.raises(EvaluationFileError, match=f"status '{status}' and is incomplete"):
            read(path, "match")

    def test_a_log_that_lost_samples(self, tmp_path: Path) -> None:
        log = json.loads((KEPT / "inspect_main.json").read_text())
        log["samples"] = log["samples"][:10]
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        with pytest.raises(EvaluationFileError, match="10 of 12 samples"):
            read(path, "match")

    def test_letters_of_partial_answers(self, tmp_path: Path) -> None:
        log = json.loads((KEPT / "inspect_main.json").read_text())
        for sample, value in zip(log["samples"], ["C", "I", "P", "N", True, 0.25], strict=False):
            sample["scores"]["match"]["value"] = value
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        assert read(path, "match").values[:6].tolist() == [1.0, 0.0, 0.5, 0.0, 1.0, 0.25]

    def test_a_part_of_a_score_of_several(self, tmp_path: Path) -> None:
        log = json.loads((KEPT / "inspect_main.json").read_text())
        for sample in log["samples"]:
            sample["scores"]["match"]["value"] = {"right": 0.75, "long": 3}
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        assert read(path, "match.right").values.tolist() == [0.75] * 12
        with pytest.raises(EvaluationFileError, match="several values"):
            read(path, "match")


class TestLmEval:
    def test_one_filter(self) -> None:
        scores = read(KEPT / "lm_eval_main.jsonl", only={"filter": "strict-match"}, cluster="doc.passage_id")
        same(scores, expected(1))
        assert scores.clusters == PASSAGES
        assert scores.metric == "exact_match,strict-match"

    def test_the_other_filter_by_the_harness_own_name(self) -> None:
        same(read(KEPT / "lm_eval_main.jsonl", "exact_match,flexible-extract"), [1.0] * 12)

    def test_filters_are_listed(self) -> None:
        with pytest.raises(InputError, match="flexible-extract, strict-match"):
            read(KEPT / "lm_eval_main.jsonl")

    def test_documents_match_by_hash_and_not_by_position(self, tmp_path: Path) -> None:
        lines = (KEPT / "lm_eval_main.jsonl").read_text().splitlines()
        turned = tmp_path / "samples_sums_2026.jsonl"
        turned.write_text("\n".join(reversed(lines)))
        one, other = (read(path, "exact_match,strict-match") for path in (KEPT / "lm_eval_main.jsonl", turned))
        assert dict(zip(one.items, one.values, strict=True)) == dict(zip(other.items, other.values, strict=True))
        assert one.digest() == other.digest()

    def test_a_file_that_was_cut_off(self, tmp_path: Path) -> None:
        path = tmp_path / "samples_sums.jsonl"
        path.write_text((KEPT / "lm_eval_main.jsonl").read_text()[:-200])
        with pytest.raises(EvaluationFileError, match="Line 24 is not JSON: the file was cut off"):
            read(path, "exact_match,strict-match")

    def test_a_list_is_no_score(self, tmp_path: Path) -> None:
        rows = [json.loads(line) for line in (KEPT / "lm_eval_main.jsonl").read_text().splitlines()]
        rows[0]["exact_match"] = [-3.2, 7]
        path = tmp_path / "samples_sums.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        with pytest.raises(EvaluationFileError, match="a score of several values"):
            read(path, "exact_match,strict-match")


class TestPromptfoo:
    @for_each("metric", [None, "correct", "score", "success"])
    def test_scores(self, metric: str | None) -> None:
        scores = read(KEPT / "promptfoo_main.json", metric, cluster="metadata.passage_id")
        same(scores, expected(1))
        assert scores.clusters == PASSAGES

    def test_another_prompt_has_the_same_items(self) -> None:
        one, other = read(KEPT / "promptfoo_main.json"), read(KEPT / "promptfoo_pr.json")
        assert one.items == other.items

    def test_repeats_are_samples_and_an_error_is_missing(self) -> None:
        scores = read(KEPT / "promptfoo_repeat.json")
        same(scores, expected(1, epochs=2, failing=True))
        assert (scores.samples + scores.missing).tolist() == [2] * 12
        assert scores.errors == 2

    def test_providers_are_listed(self, tmp_path: Path) -> None:
        log = json.loads((KEPT / "promptfoo_main.json").read_text())
        more = json.loads((KEPT / "promptfoo_pr.json").read_text())["results"]["results"]
        log["results"]["results"] += more
        path = tmp_path / "out.json"
        path.write_text(json.dumps(log))
        with pytest.raises(InputError, match=r"got 2 of them in .*: table-1, table-2"):
            read(path)
        same(read(path, only={"provider": "table-2"}), expected(2))


class TestOtherLogs:
    def test_openai_evals(self) -> None:
        """Item 3 has an error and no match."""
        scores = read(KEPT / "openai_evals.jsonl")
        same(scores, expected(1, failing=True))
        assert scores.errors == 1

    def test_openai_evals_cut_off(self, tmp_path: Path) -> None:
        lines = (KEPT / "openai_evals.jsonl").read_text().splitlines()
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join(lines[:-1]))
        with pytest.raises(EvaluationFileError, match="no final report"):
            read(path)

    def test_two_runs_in_one_file(self, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        path.write_text((KEPT / "openai_evals.jsonl").read_text() * 2)
        with pytest.raises(EvaluationFileError, match="It has 2 runs"):
            read(path)

    def test_mlflow_table(self) -> None:
        scores = read(KEPT / "mlflow_table.json", item="question")
        same(scores, expected(1))
        assert scores.metric == "right"
        with pytest.raises(InputError, match="question, answer, said, right/score"):
            read(KEPT / "mlflow_table.json")

    def test_mlflow_traces(self) -> None:
        """yes and no; the expectation is no score; items are requests, not traces."""
        scores = read(KEPT / "mlflow_traces.json", cluster="tags.passage_id")
        assert dict(zip(scores.items, scores.values, strict=True)).keys() == set(scores.items)
        assert sorted(scores.values) == sorted(expected(1))
        assert sorted(scores.clusters or ()) == sorted(PASSAGES)
        assert not any(item.startswith("tr-") for item in scores.items)


class TestTables:
    FRAME = pd.DataFrame(
        {"prompt": [f"q{i}" for i in ITEMS], "right": [right(i, 1) for i in ITEMS], "passage": PASSAGES}
    )

    @for_each("form", ["csv", "jsonl", "parquet", "frame", "json"])
    def test_forms(self, tmp_path: Path, form: str) -> None:
        path = tmp_path / f"scores.{form}"
        if form == "csv":
            self.FRAME.to_csv(path, index=False)
        elif form == "parquet":
            self.FRAME.to_parquet(path)
        elif form == "jsonl":
            self.FRAME.to_json(path, orient="records", lines=True)
        elif form == "json":
            self.FRAME.to_json(path, orient="records")
        scores = read(self.FRAME if form == "frame" else path, "right", item="prompt", cluster="passage")
        same(scores, expected(1))
        assert scores.clusters == PASSAGES

    def test_a_property_of_items_in_place_of_their_names_is_likely_a_mistake(self) -> None:
        frame = pd.DataFrame({"subject": list("abcde") * 100, "right": [1, 0] * 250, "seed": range(500)})
        with pytest.warns(LikelyMistakeWarning) as said:
            read(frame, "right", item="subject")
        assert str(said[0].message) == (
            "the frame: its 500 rows have only 5 values of 'subject', and up to 100 rows count as samples of one item. "
            "If they are other items, name the column that tells items apart by item=. If they are repeats, name the "
            "column that numbers them by sample=."
        )
        uneven = pd.DataFrame({"id": [0, 1, 1, 1, 2, 2, 2], "score": 1})
        with pytest.warns(LikelyMistakeWarning, match="7 rows have only 3 values of 'id', and up to 3 rows"):
            read(uneven)
        assert len(read(frame, "right", item="subject", sample="seed")) == 5
        assert len(read(pd.concat([uneven.drop_duplicates()] * 10))) == 3

    def test_an_empty_cell_is_missing_and_nan_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.csv"
        path.write_text("item,score\na,1\nb,\n")
        scores = read(path)
        assert scores.errors == 1
        assert math.isnan(scores.values[1])
        path.write_text("item,score\na,1\nb,nan\n")
        with pytest.raises(EvaluationFileError, match="Item 'b' has the score NaN"):
            read(path)

    @for_each("column", ["error", "failure"])
    def test_a_row_with_an_error_is_missing(self, tmp_path: Path, column: str) -> None:
        named = None if column == "error" else column
        for form in ("csv", "jsonl"):
            path = tmp_path / f"scores.{form}"
            if form == "csv":
                path.write_text(f"item,score,{column}\na,1,\nb,0,timed out\nc,0,False\n")
            else:  # the first row lacks the field
                path.write_text(
                    f'{{"item": "a", "score": 1}}\n{{"item": "b", "score": 0, "{column}": {{"code": 5}}}}\n'
                )
            scores = read(path, error=named)
            assert scores.missing.tolist()[:2] == [0, 1]
            assert scores.errors == 1

    def test_a_metric_called_error_is_no_failure(self) -> None:
        assert read(pd.DataFrame({"id": [1, 2], "error": [1.0, 0.0]}), "error").errors == 0

    def test_a_column_of_errors_has_to_be_there(self) -> None:
        with pytest.raises(InputError, match=r"column with entries for failures; got 'failure'. Columns: id, score"):
            read(pd.DataFrame({"id": [1], "score": [1]}), error="failure")
        with pytest.raises(InputError, match="a tool's log"):
            read(KEPT / "inspect_main.eval", "match", error="failure")

    def test_seeds_are_samples(self) -> None:
        frame = pd.DataFrame({"id": [1, 1, 2, 2], "seed": [0, 1, 0, 1], "score": [1.0, 0.0, 1.0, 1.0]})
        assert read(frame, sample="seed").values.tolist() == [0.5, 1.0]
        with pytest.raises(EvaluationFileError, match="Item '1' has sample 0 twice"):
            read(pd.concat([frame, frame]), sample="seed")

    def test_words(self) -> None:
        frame = pd.DataFrame({"id": range(6), "score": ["Yes", "no", "PASS", "fail", "0.25", "True"]})
        assert read(frame).values.tolist() == [1.0, 0.0, 1.0, 0.0, 0.25, 1.0]
        with pytest.raises(EvaluationFileError, match="Item '0' has the score 'maybe'"):
            read(pd.DataFrame({"id": [0], "score": ["maybe"]}))

    @for_each(
        ("text", "reason"),
        [
            ("", "It is empty"),
            ("item,score\n", "no rows"),
            ("item,score\na,1,2\n", "Row 2 has another number of cells"),
        ],
    )
    def test_tables_that_cannot_be_used(self, tmp_path: Path, text: str, reason: str) -> None:
        path = tmp_path / "scores.csv"
        path.write_text(text)
        with pytest.raises(EvaluationFileError, match=reason):
            read(path)

    def test_clusters_that_differ_within_an_item(self) -> None:
        frame = pd.DataFrame({"id": [1, 1], "score": [1, 0], "c": ["a", "b"]})
        with pytest.raises(EvaluationFileError, match="different clusters"):
            read(frame, cluster="c")

    def test_other_files(self, tmp_path: Path) -> None:
        with pytest.raises(EvaluationFileError, match="The file does not exist"):
            read(tmp_path / "none.eval")
        path = tmp_path / "odd.json"
        path.write_text('{"a": 1}')
        with pytest.raises(EvaluationFileError, match="not that of a known tool"):
            read(path)
        path.write_text('{"a": ')
        with pytest.raises(EvaluationFileError, match="not complete JSON"):
            read(path)
        path.write_bytes(struct.pack("<I", 0x04034B50))
        with pytest.raises(EvaluationFileError, match="not a complete zip"):
            read(path)
