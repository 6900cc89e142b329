"""Guards in other processes: one owner, one budget, and nothing of the holdout on the way."""

import copy
import functools
import io
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from graphs import Groups
from tests.patience import PATIENCE, wait_until
from tests.sizes import corners
from thresholdout import BudgetExhausted, Claims, SparseVector, Thresholdout
from thresholdout.errors import (
    GuardExhaustedWarning,
    InputError,
    SearchExhausted,
    SearchFailed,
    SharingError,
    ThresholdoutError,
)
from thresholdout.guard.holdout import origin
from thresholdout.guard.registered_guard import RegisteredGuard
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.scorer import GuardScorer, _RemoteScorer
from thresholdout.guard.sharing import shared_objects as sharing
from thresholdout.guard.sharing.shared_objects import Reference, reference_of, same, share
from thresholdout.privacy.accounting import BlackBox
from thresholdout.scoring import metrics

X, Y = load_digits(return_X_y=True)
TRAIN, HOLDOUT = (X[:900], Y[:900]), (X[900:], Y[900:])
FORK = multiprocessing.get_context("fork")


def make(**changes: Any) -> Thresholdout:
    given: dict[str, Any] = {"queries": 100, "mechanism": SparseVector(0.1, 0.01, budget=50)}
    return Thresholdout(HOLDOUT, train=TRAIN, **{**given, **changes})


def shared(guard: Thresholdout) -> Thresholdout:
    """What asks the guard from other processes."""
    there = share(guard)
    assert type(there) is not Thresholdout
    return there


def in_workers(calls: list[Any], backend: str = "loky") -> list[Any]:
    """Run what `joblib.delayed` returned in two other processes."""
    with joblib.parallel_config(backend, n_jobs=2):
        return list(joblib.Parallel()(calls))


def in_child(function: Callable[..., Any], *args: Any) -> Any:
    """Run a function in a forked child, which gets everything by memory, and return its result or exception."""
    receiving, sending = FORK.Pipe(duplex=False)

    def run() -> None:
        try:
            result: tuple[bool, Any] = (True, function(*args))
        except BaseException as error:
            result = (False, error)
        sending.send(result)

    child = FORK.Process(target=run)
    child.start()
    assert receiving.poll(PATIENCE)
    fine, result = receiving.recv()
    child.join(PATIENCE)
    if not fine:
        raise result
    return result


def used(guard: Any, depth: int) -> tuple[Any, ...]:
    """Use all that a guard has, and say in which process."""
    model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(*guard.train)
    answers = [
        guard.ask(lambda X, y: X[:, depth] == y, name="first pixel"),
        guard.ask(0.5, np.arange(guard.n) % 2, name="parity", bounds=(0.0, 2.0)),
        guard.score(model, "accuracy", cv="training"),
        guard.score(model, metrics.log_loss(3.0), cv=2),
    ]
    public = (
        guard.n,
        guard.certificate.confidence,
        guard.parameters,
        guard.dependence.describe(),
        guard.status.exhausted,
    )
    return os.getpid(), answers, public, guard.status.answers_left is not None, len(guard.history) >= 4, repr(guard)


@pytest.mark.slow
@pytest.mark.parametrize("backend", corners(["loky", "multiprocessing"], 0))
def test_a_guard_is_used_from_other_processes(backend: str) -> None:
    guard = make()
    results = in_workers([joblib.delayed(used)(guard, depth) for depth in (1, 2, 3)], backend)
    assert os.getpid() not in {result[0] for result in results}
    answers = [answer for result in results for answer in result[1]]
    assert sorted(answer.query for answer in answers) == list(range(1, 13))
    history = guard.history.set_index("query")
    for answer in answers:
        row = history.loc[answer.query]
        assert (answer.value, answer.half_width, answer.source) == (row["value"], row["half_width"], row["source"])
    assert Counter(history["name"]) == {"first pixel": 3, "parity": 3, "accuracy": 3, "log_loss(clip=3.0)": 3}
    public = (897, 0.95, guard.parameters, guard.dependence.describe(), None)
    for _, _, seen, remaining, asked, text in results:
        assert seen == public
        assert remaining
        assert asked
        assert text.endswith(f"; in process {os.getpid()} on {os.uname().nodename}>")


def test_where_it_lives_a_pickle_is_the_guard_itself() -> None:
    guard = make()
    for copied in (copy.copy(guard), copy.deepcopy(guard), clone(guard, safe=False), pickle.loads(pickle.dumps(guard))):
        assert copied is guard
    stream = io.BytesIO()
    joblib.dump({"guard": guard, "split": guard.split()}, stream)
    stream.seek(0)
    assert joblib.load(stream)["split"].guard is guard
    assert reference_of(guard) == reference_of(guard) == pickle.loads(pickle.dumps(reference_of(guard)))
    assert same(guard, guard)
    assert not same(guard, make())


def test_nothing_of_the_holdout_is_in_a_pickle() -> None:
    rng = np.random.default_rng(0)
    secret, weights = rng.integers(2**62, 2**63, size=(50, 4)), rng.random(50)
    labels = np.array([f"label {k}" for k in range(50)])
    guard = Thresholdout(
        (secret, labels), train=(np.zeros((50, 4)), labels), queries=10, mechanism=Claims(holdout_answers=2)
    )
    guard.ask(0.5, np.arange(50) % 2)
    for thing in (guard, guard.scorer(sample_weight=(np.ones(50), weights), cv="training"), guard.split()):
        text = pickle.dumps(thing)
        assert len(text) < 1000
        needles = [value.tobytes() for value in (*secret.ravel(), *weights)] + [b"label 7"]
        needles += [guard._ledger.state(guard._id).encode(), guard._id.encode()]
        assert not any(needle in text for needle in needles)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The scorer got training records:UserWarning")
def test_what_is_sent_for_a_decision_is_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a query takes the estimator only: no request holds records, no reply per-record values of the holdout."""
    guard = make()
    scorer = guard.scorer(cv="training")
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(*TRAIN)
    reference = reference_of(scorer)

    def watched() -> tuple[float, list[bytes]]:
        seen: list[bytes] = []
        original = sharing._Clients.take

        def take(self: Any, to: Reference) -> Any:
            connection = original(self, to)
            return Watched(connection, seen)

        monkeypatch.setattr(sharing._Clients, "take", take)
        elsewhere: Any = _RemoteScorer(reference)
        free = elsewhere(model, *TRAIN)
        elsewhere(model, np.repeat(TRAIN[0][:1], 3, axis=0))
        return free, seen

    free, seen = in_child(watched)
    assert free == model.score(*TRAIN)
    assert len(guard.history) == 1
    assert sum(len(text) for text in seen) < 90_000  # the records have 460,000 bytes, both hashes of 900 have 28,800
    for row in (TRAIN[0][5], HOLDOUT[0][5], HOLDOUT[1][:50]):
        assert not any(row.tobytes() in text for text in seen)
    predictions = model.predict(HOLDOUT[0])
    assert not any(predictions[:50].tobytes() in text for text in seen)


class Watched:
    """A connection that keeps what goes through it."""

    def __init__(self, connection: Any, seen: list[bytes]) -> None:
        self._connection = connection
        self._seen = seen

    def send_bytes(self, text: bytes) -> None:
        self._seen.append(text)
        self._connection.send_bytes(text)

    def recv_bytes(self) -> bytes:
        text: bytes = self._connection.recv_bytes()
        self._seen.append(text)
        return text

    def close(self) -> None:
        self._connection.close()


def test_a_forked_child_asks_its_parent_and_not_its_memory() -> None:
    guard = make(random_state=1)
    scorer = guard.scorer(cv="training")
    there, scorer_there = shared(guard), share(scorer)
    assert isinstance(scorer_there, GuardScorer)

    def ask() -> tuple[str, int]:
        there.ask(0.5, np.arange(897) % 2)
        scorer_there(DecisionTreeClassifier(max_depth=1).fit(*TRAIN), np.repeat(TRAIN[0][:1], 2, axis=0))
        return type(guard).__name__, scorer_there.asked

    assert in_child(ask) == ("Thresholdout", 1)
    assert (len(guard.history), scorer.asked) == (2, 1)
    assert type(guard) is Thresholdout
    assert list(guard.history["query"]) == [1, 2]


@pytest.mark.slow
def test_a_forked_child_of_a_guard_that_nobody_shared_is_refused() -> None:
    guard = make()
    scorer = guard.scorer(cv="training")
    with pytest.raises(SharingError, match="belongs to the process that made it"):
        in_child(guard.ask, 0.5, np.arange(897) % 2)
    with pytest.raises(SearchFailed, match=r"sharing.share\(scorer\), called before the fork"):
        in_child(scorer, DecisionTreeClassifier().fit(*TRAIN), np.repeat(TRAIN[0][:1], 2, axis=0))
    assert guard.history.empty


def test_a_forked_child_refuses_also_where_its_parent_shares() -> None:
    """Whether something was shared makes no difference to what a fork has copied; its pickle asks the parent."""
    guard = make()
    there = shared(guard)

    def ask() -> tuple[bool, int]:
        with pytest.raises(SharingError, match=r"the result of thresholdout.guard.sharing.share\(guard\)"):
            guard.ask(0.5, np.ones(897))
        sent = pickle.loads(pickle.dumps(guard))
        return same(sent, there), sent.ask(0.5, np.ones(897)).query

    assert in_child(ask) == (True, 1)
    assert len(guard.history) == 1


def test_a_forked_child_goes_on_in_the_same_file(tmp_path: Path) -> None:
    guard = make(ledger=tmp_path / "guard.db")
    share(guard)
    assert in_child(lambda: guard.ask(0.5, np.ones(897)).query) == 1
    assert guard.ask(0.5, np.ones(897)).query == 2


def test_locks_that_a_fork_has_copied_are_not_waited_for() -> None:
    """A thread of the parent holds them at the fork, and is not there in the child, which would wait for ever."""
    guard = make(queries=None, mechanism=None)
    model = DecisionTreeClassifier(max_depth=2).fit(*TRAIN)
    gate, scorer = guard.gate(model), guard.scorer(cv="training")
    uses: list[Callable[[], Any]] = [
        lambda: gate.propose(clone(model), cv="training"),
        lambda: gate.last_evaluation(),
        lambda: gate.champion,
        lambda: gate.certified,
        lambda: gate.on_the_way,
        lambda: scorer(model, np.repeat(TRAIN[0][:1], 2, axis=0)),
        lambda: guard.ask(0.5, np.ones(897)),
        lambda: guard.history,
        lambda: guard.status.answers_left,
        lambda: guard.releases.record(BlackBox(0.01)),
        lambda: guard._ledger.put_document(guard._id, "name", "text"),
    ]
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with gate._lock, scorer._lock, guard._ledger._lock:  # type: ignore[attr-defined]
            held.set()
            release.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(PATIENCE)
    try:
        refused = in_child(lambda: [type(caught_in(use)).__name__ for use in uses])
    finally:
        release.set()
        holder.join()
    assert refused == ["SharingError", "InputError", *["SharingError"] * 3, "SearchFailed", *["SharingError"] * 5]
    assert gate.champion is model
    assert repr(gate).startswith("<Gate: accuracy")


@pytest.mark.slow
def test_grandchildren_ask_the_same_owner() -> None:
    guard = make()
    text = pickle.dumps(guard)

    def child() -> int:
        inherited = pickle.loads(text)
        in_child(lambda: inherited.ask(0.5, np.arange(897) % 2).query)
        received = pickle.loads(pickle.dumps(inherited))
        assert same(inherited, received)
        return int(received.ask(0.25, np.arange(897) % 2).query)

    assert in_child(child) == 2
    assert len(guard.history) == 2


def ask_in_turn(guard: Any, mine: int, turn: Any, depths: list[int]) -> None:
    """Ask every second query, when it is its turn."""
    for k in range(mine, len(depths), 2):
        while turn.value != k:
            time.sleep(0.001)
        guard.score(
            DecisionTreeClassifier(max_depth=depths[k], random_state=0).fit(*TRAIN), key=f"query {k}", cv="training"
        )
        with turn.get_lock():
            turn.value += 1


@pytest.mark.slow
@pytest.mark.parametrize("ledger", corners([None, "guard.db"], 1))
def test_the_same_queries_in_the_same_order_have_the_same_answers(ledger: str | None, tmp_path: Path) -> None:
    """Bit for bit, whether one process asks or two others in turn: the noise is drawn where the guard is."""
    depths = [1, 9, 2, 12, 3, 5, 10, 4]
    settings: dict[str, Any] = {"mechanism": SparseVector(0.1, 0.01, budget=50)}
    stores = [None if ledger is None else tmp_path / f"{k} {ledger}" for k in range(2)]
    alone = make(random_state=7, ledger=stores[0], **settings)
    for k, depth in enumerate(depths):
        alone.score(
            DecisionTreeClassifier(max_depth=depth, random_state=0).fit(*TRAIN), key=f"query {k}", cv="training"
        )
    guard, turn = make(random_state=7, ledger=stores[1], **settings), FORK.Value("i", 0)
    children = [FORK.Process(target=ask_in_turn, args=(shared(guard), mine, turn, depths)) for mine in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE)
    assert [child.exitcode for child in children] == [0, 0]
    columns = ["query", "name", "train", "value", "half_width", "source", "remaining"]
    pd.testing.assert_frame_equal(guard.history[columns], alone.history[columns], check_exact=True)
    assert set(guard.history["source"]) == {"train", "holdout"}


def ask_often(guard: Any, times: int) -> list[int]:
    return [guard.ask(0.5, np.arange(897) % 2, name="often").query for _ in range(times)]


@pytest.mark.slow
def test_charges_are_exact_under_processes_and_threads() -> None:
    guard = make(queries=100, mechanism=SparseVector(0.001, 1e-5, budget=100))
    calls = [joblib.delayed(ask_often)(guard, 10) for _ in range(6)]
    own = threading.Thread(target=lambda: [guard.ask(0.5, np.ones(897)) for _ in range(20)])
    own.start()
    queries = [query for part in in_workers(calls) for query in part]
    own.join()
    assert len(set(queries)) == 60
    assert list(guard.history["query"]) == list(range(1, 81))
    assert guard.status.answers_left == 100 - (guard.history["source"] == "holdout").sum() <= 80


@pytest.mark.slow
def test_a_query_whose_answer_was_lost_is_charged_once() -> None:
    guard = make()
    reference = reference_of(guard)

    def ask() -> tuple[int, int, bool]:
        lost = 2
        original = sharing._Clients.take

        def take(self: Any, to: Reference) -> Any:
            nonlocal lost
            connection = original(self, to)
            if lost:
                lost -= 1
                return Losing(connection)
            return connection

        sharing._Clients.take = take  # type: ignore[method-assign, assignment]
        answer = RemoteGuard(reference).ask(lambda X, y: X[:, 0] == y, name="lost")
        return lost, answer.query, answer.repeated

    assert in_child(ask) == (0, 1, True)
    assert len(guard.history) == 1


class Losing(Watched):
    """A connection that breaks when the answer is there."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection, [])

    def recv_bytes(self) -> bytes:
        super().recv_bytes()
        raise EOFError


@pytest.mark.slow
def test_a_connection_that_always_breaks_is_given_up() -> None:
    guard = make()
    reference = reference_of(guard)

    def ask() -> None:
        original = sharing._Clients.take
        sharing._Clients.take = lambda self, to: Losing(original(self, to))  # type: ignore[assignment, method-assign, return-value]
        RemoteGuard(reference).ask(0.5, np.ones(897))

    with pytest.raises(SharingError, match="broke 3 times"):
        in_child(ask)
    assert len(guard.history) == 1


@pytest.mark.slow
def test_exceptions_come_back_as_themselves() -> None:
    owned = make(queries=1)
    guard = shared(owned)

    class Local(Exception):
        pass

    def fails(X: Any, y: Any) -> Any:
        raise Local("on the training part")

    def unreadable(X: Any, y: Any) -> Any:
        error = ValueError("cannot be sent")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(InputError, match=r"holdout_values.*897") as caught:
        in_child(lambda: guard.ask(0.5, [1.0]))
    assert caught.value.argument == "holdout_values"
    with pytest.raises(KeyboardInterrupt):
        in_child(lambda: guard.ask(interrupted))

    def refused_unreadably(X: Any, y: Any) -> Any:
        error = ThresholdoutError("cannot be sent")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(SharingError, match="ThresholdoutError in the process that holds the guard: cannot be sent"):
        in_child(lambda: guard.ask(refused_unreadably))
    unread = in_child(lambda: caught_in(lambda: guard.ask(unreadable)))
    assert isinstance(unread, InputError)
    assert "a function that raises ValueError on the training part" in str(unread)
    failed = in_child(lambda: str(getattr(caught_in(lambda: guard.ask(fails)), "__cause__", None)))
    assert failed == "on the training part"
    with pytest.raises(SharingError, match="belongs to the process that made it"):
        in_child(owned.ask, 0.5, np.ones(897))
    assert owned.history.empty
    in_child(lambda: guard.ask(0.5, np.ones(897)))
    with pytest.raises(BudgetExhausted) as refused:
        in_child(lambda: guard.ask(0.5, np.ones(897)))
    assert (refused.value.what, refused.value.spent, refused.value.limit) == ("queries", 1, 1)
    assert in_child(lambda: guard.status.exhausted) == "queries"


def interrupted(X: Any, y: Any) -> Any:
    raise KeyboardInterrupt


def caught_in(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except BaseException as error:
        return error
    return None


def test_scorers_counted_in_the_owner() -> None:
    guard = make(queries=1)
    scorer = guard.scorer(exhausted="train", cv="training")
    there = share(scorer)
    assert isinstance(there, GuardScorer)
    placeholder = np.repeat(TRAIN[0][:1], 2, axis=0)
    models = [DecisionTreeClassifier(max_depth=depth).fit(*TRAIN) for depth in (1, 2, 3)]

    def ask() -> tuple[Any, ...]:
        scores = [there(model, placeholder) for model in models]
        return scores[1:], there.asked, there.replaced, there.exhausted, repr(there), there.metrics

    with pytest.warns(GuardExhaustedWarning):
        result = in_child(ask)
    trained = pytest.approx([model.score(*TRAIN) for model in models[1:]])
    assert result == (trained, 1, 2, "queries", "GuardScorer(accuracy)", ("accuracy",))
    assert (scorer.asked, scorer.replaced) == (1, 2)


@pytest.mark.slow
def test_a_scorer_made_elsewhere_lives_with_the_guard() -> None:
    guard = make(queries=2)
    there = shared(guard)
    placeholder = np.repeat(TRAIN[0][:1], 2, axis=0)
    model = DecisionTreeClassifier(max_depth=2).fit(*TRAIN)

    def ask() -> tuple[Any, ...]:
        scorer = there.scorer(metrics.log_loss(3.0), cv=2).set_score_request(sample_weight="weights")
        score = scorer(model, placeholder)
        requests = scorer.get_metadata_routing().score.requests
        ((fit, _),) = there.split().split(TRAIN[0])
        return score, scorer.asked, requests, len(fit), origin(there, HOLDOUT[0]), origin(there, X)

    score, asked, requests, size, holdout, mixed = in_child(ask)
    assert (-score, asked, size) == (guard.history["value"].iloc[0], 1, 900)
    assert requests == {"sample_weight": "weights"}
    assert (holdout, mixed) == ("holdout", "other")

    def exhausted() -> None:
        scorer = there.scorer(exhausted="raise", cv="training")
        for depth in (3, 4):
            scorer(DecisionTreeClassifier(max_depth=depth).fit(*TRAIN), placeholder)

    with pytest.raises(SearchExhausted, match="All 2 queries"):
        in_child(exhausted)


@pytest.mark.slow
def test_a_big_estimator() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, 200))
    model = KNeighborsClassifier(1).fit(features, np.zeros(20_000))
    guard = Thresholdout(
        (features[:20] + 1.0, np.zeros(20)),
        train=(features[:20] - 1.0, np.zeros(20)),
        queries=3,
        mechanism=Claims(holdout_answers=1),
    )
    there = shared(guard)
    assert len(pickle.dumps(model)) > 32_000_000
    assert in_child(lambda: there.score(model, cv="training", key="big").query) == 1


@pytest.mark.slow
def test_an_interrupted_query_leaves_no_stray_answer() -> None:
    """The answer to a query that was interrupted must not be taken for that of the next one."""
    guard = make()
    there = shared(guard)

    def ask() -> tuple[bool, str]:
        interrupting = functools.partial(interrupt, os.getpid())
        stopped = isinstance(caught_in(lambda: there.ask(interrupting, name="slow", key="slow")), KeyboardInterrupt)
        return stopped, there.ask(0.5, np.ones(897), name="next").name

    assert in_child(ask) == (True, "next")
    wait_until(lambda: len(guard.history) == 2)
    assert sorted(guard.history["name"]) == ["next", "slow"]


def interrupt(asking: int, X: Any, y: Any) -> Any:
    """Interrupt the process that asks, which waits for the answer, and go on for a while."""
    if len(y) == len(TRAIN[1]):
        os.kill(asking, signal.SIGINT)
        time.sleep(0.3)
    return y == 0


@pytest.mark.slow
def test_a_guard_on_other_groups_keeps_its_model_elsewhere() -> None:
    guard = make(dependence=Groups(np.arange(897) // 3))
    there = shared(guard)
    inflation = in_child(lambda: there.dependence.variance_inflation())
    assert inflation == guard.dependence.variance_inflation() == pytest.approx(3.0)
    assert in_child(lambda: there.certificate.half_width(1, 0, "train")) == guard.certificate.half_width(1, 0, "train")


def test_a_proxy_is_one_of_the_class_that_it_stands_for_and_stays_it() -> None:
    there = shared(make())
    assert issubclass(type(there), RemoteGuard)
    assert not issubclass(RemoteGuard, Thresholdout)
    assert isinstance(there, Thresholdout)
    assert copy.copy(there) is copy.deepcopy(there) is clone(there) is there
    assert Thresholdout.__mro__ == (Thresholdout, RegisteredGuard, object)
    with pytest.raises(AttributeError, match="a proxy of a Thresholdout stays one"):
        there.__class__ = Thresholdout
