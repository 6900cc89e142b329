"""Logs of Inspect, `.eval` and JSON, read without Inspect."""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from json import JSONDecoder
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from thresholdout.errors import EvaluationFileError, InputError
from thresholdout.evaluations.scores import Row, Scores, choose, collect, fingerprint, lookup

if TYPE_CHECKING:
    from thresholdout.evaluations.reading import Fields

__all__ = ["read_eval", "read_inspect_json"]

_ZSTD: Final = 93  # method of a zip's member
_LOCAL_HEADER: Final = 30  # bytes before a member's name
_CUT: Final = "...\n(content truncated)"  # how a summary marks a text that it cut
_REMOVED: Final = "Key removed from summary (> 1k)"
_EVENTS: Final = re.compile(r',\s*"events"\s*:')
_HEAD: Final = {"id", "epoch", "input", "target", "scores", "metadata"}
_SHORT: Final = 1000  # characters of metadata that a summary never cuts


class _Incomplete(Exception):
    """The summaries lack content that the samples have."""


def read_eval(path: Path, fields: Fields) -> Scores:
    """Read the summaries, or the samples where the summaries were cut."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise EvaluationFileError(str(path), "It is not a complete zip file. Copy or write the log again.") from None
    with archive, path.open("rb") as file:
        members = {info.filename: info for info in archive.infolist()}
        if "header.json" not in members:
            raise EvaluationFileError(
                str(path), "The run was interrupted: the log has a journal but no header. Finish the run."
            )
        load = _loader(file, str(path))
        header = json.loads(load(members["header.json"]))
        _check_status(header, str(path))
        if "summaries.json" in members:
            try:
                text = load(members["summaries.json"]).decode()
                return _scores(_listed(text, str(path)), header, path, fields, whole=False)
            except _Incomplete:
                pass
        samples = [info for name, info in members.items() if name.startswith("samples/")]
        roots = {name.split(".")[0] for name in (fields.item, fields.sample, fields.cluster, fields.by) if name}
        wanted = _HEAD | roots
        return _scores((_sample(load(info).decode(), wanted) for info in samples), header, path, fields, whole=True)


def read_inspect_json(path: Path, log: Mapping[str, Any], fields: Fields) -> Scores:
    """Read a log in the form of `--log-format json`."""
    _check_status(log, str(path))
    return _scores(iter(log.get("samples") or ()), log, path, fields, whole=True)


def _sample(text: str, wanted: set[str]) -> Any:
    """Decode a sample, without its events where these are not needed: they are nine tenths of it."""
    found = _EVENTS.search(text)
    if found is not None and text.find('"error"', found.end()) < 0:  # of the sample, or of an event
        try:
            head = json.loads(text[: found.start()] + "}")  # valid JSON only if the events are the sample's own
        except ValueError:
            head = {}
        if wanted <= head.keys():
            return head
    return json.loads(text)


def _loader(file: IO[bytes], where: str) -> Callable[[zipfile.ZipInfo], bytes]:
    """Return the function that decompresses a member; `zipfile` reads zstd only from Python 3.14 on."""
    decompress: list[Callable[[bytes], bytes]] = []

    def load(info: zipfile.ZipInfo) -> bytes:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        name, extra = struct.unpack("<HH", local[26:30])
        file.seek(name + extra, 1)
        packed = file.read(info.compress_size)
        if info.compress_type == zipfile.ZIP_STORED:
            return packed
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return zlib.decompress(packed, -15)
        if info.compress_type != _ZSTD:
            raise EvaluationFileError(
                where,
                f"{info.filename} is compressed by method {info.compress_type}, not by zstd. Write the log again.",
            )
        if not decompress:
            try:
                import zstandard
            except ImportError:
                raise EvaluationFileError(
                    where, "Reading .eval files needs zstandard: pip install 'thresholdout[evals]'."
                ) from None
            unpacker = zstandard.ZstdDecompressor()
            decompress.append(lambda data: unpacker.decompressobj().decompress(data))
        return decompress[0](packed)

    def checked(info: zipfile.ZipInfo) -> bytes:
        try:
            return load(info)
        except EvaluationFileError:
            raise
        except Exception as error:
            raise EvaluationFileError(where, f"{info.filename} is damaged ({error}). Copy the log again.") from None

    return checked


def _listed(text: str, where: str) -> Iterator[dict[str, Any]]:
    """Decode a list one element at a time, so that only one of 100,000 is in memory."""
    decode, at = JSONDecoder().raw_decode, text.index("[") + 1
    while True:
        while text[at : at + 1] in (" ", "\n", "\r", "\t", ","):
            at += 1
        if text[at : at + 1] == "]":
            return
        try:
            value, at = decode(text, at)
        except ValueError:
            raise EvaluationFileError(where, "Its summaries are cut off. Copy or write the log again.") from None
        yield value


def _check_status(header: Mapping[str, Any], where: str) -> None:
    status = header.get("status")
    if status != "success":
        raise EvaluationFileError(where, f"The run ended with status {status!r} and is incomplete. Run it to its end.")


class _Metric(NamedTuple):
    scorer: str
    part: str | None
    judge: str
    graded: bool


def _metric(header: Mapping[str, Any], named: str | None, where: str) -> _Metric:
    """Return the requested scorer, and the key of its value where that is a dict."""
    found = (header.get("results") or {}).get("scores") or header["eval"].get("scorers") or ()
    scorers = {str(each.get("scorer") or each["name"]) for each in found}
    part = None
    if named is not None and named not in scorers and "." in named:
        head, tail = named.split(".", 1)
        if head in scorers:
            named, part = head, tail
    scorer = choose("metric", scorers, named, where)
    settings = [each for each in header["eval"].get("scorers") or () if each["name"] == scorer]
    options = [each.get("options") for each in settings]
    # a model as judge may grade P although no sample of this log has partial credit
    graded = any((each or {}).get("partial_credit") for each in options)
    return _Metric(scorer, part, fingerprint(options) if settings else "", graded)


def _scores(
    samples: Iterator[dict[str, Any]], header: Mapping[str, Any], path: Path, fields: Fields, *, whole: bool
) -> Scores:
    where = str(path)
    if fields.only:
        raise InputError("only", dict(fields.only), "left out", f"{where} is a log of one task.")
    metric = _metric(header, fields.metric, where)
    total = ((header.get("results") or {}).get("total_samples")) or 0
    count = 0

    def rows() -> Iterator[Row]:
        nonlocal count
        for sample in samples:
            count += 1
            yield _row(sample, metric, fields, where, whole)

    name = metric.scorer if metric.part is None else f"{metric.scorer}.{metric.part}"
    scores = collect(rows(), where, name, fields.scale, metric.judge, False if metric.graded else None)
    if count < total:
        raise EvaluationFileError(
            where, f"It has {count} of {total} samples. Copy the log again, or run the evaluation again."
        )
    return scores


def _row(sample: dict[str, Any], metric: _Metric, fields: Fields, where: str, whole: bool) -> Row:
    item = str(sample["id"] if fields.item is None else _field(sample, fields.item, where, whole))
    repeat = str(sample["epoch"] if fields.sample is None else _field(sample, fields.sample, where, whole))
    score = (sample.get("scores") or {}).get(metric.scorer)
    value = None if score is None or sample.get("error") else score["value"]
    if value is not None and metric.part is not None:
        value = lookup(value if isinstance(value, dict) else {}, metric.part, where)
    cluster = None if fields.cluster is None else _field(sample, fields.cluster, where, whole)
    tag = None if fields.by is None else _field(sample, fields.by, where, whole)
    return Row(
        item,
        value,
        repeat,
        _content(sample["input"], sample.get("target"), whole),
        None if cluster is None else _name(cluster),
        None if tag is None else _name(tag),
    )


def _content(given: Any, target: Any, whole: bool) -> str:
    if isinstance(given, str):
        if not whole and given.endswith(_CUT):
            raise _Incomplete
        text = given
    else:
        # identifiers of messages differ between runs, so only roles and texts count
        parts = [[each.get("role"), each.get("content")] for each in given]
        if not whole and any(not isinstance(part, str) or part.endswith(_CUT) for _, part in parts):
            raise _Incomplete
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    if isinstance(target, str):
        if not whole and target.endswith(_CUT):
            raise _Incomplete
        return fingerprint(f"{text}\0{target}")
    return fingerprint([text, target])


def _field(sample: dict[str, Any], path: str, where: str, whole: bool) -> Any:
    if not whole:
        try:
            found = lookup(sample, path, where)
        except EvaluationFileError:
            raise _Incomplete from None
        if found == _REMOVED or (isinstance(found, str) and len(found) > _SHORT):
            raise _Incomplete
        return found
    return lookup(sample, path, where)


def _name(value: Any) -> str:
    """Return a cluster's name, with single spaces as in summaries."""
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
