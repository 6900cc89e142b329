import numpy as np
import pytest

from benchmarks.papers import fixed_size_figures as figures
from tests.cases import for_each
from thresholdout.plotting import axes


def test_figure1() -> None:
    table = figures.figure1()
    assert table[20][2] == pytest.approx(1.175e-7, rel=5e-4)
    assert table[20][4] == pytest.approx(2.351e-7, rel=5e-4)
    assert table[20][6] == pytest.approx(3.528e-7, rel=5e-4)
    assert table[20][8] == pytest.approx(4.705e-7, rel=5e-4)
    jumps = {(20, 10): 2.146, (30, 8): 46.55, (40, 6): 24.7, (60, 6): 407.8, (80, 4): 218}
    for (size, order), value in jumps.items():
        assert table[size][order] == pytest.approx(value, rel=5e-3)
        assert table[size][order - 2] < 1e-6


@for_each(
    ("order", "exact", "three", "four", "five", "wang"),
    [
        (2, 6.769096e-7, 7.045786e-7, 7.007539e-7, 7.007499e-7, 2.707636e-6),
        (5, 1.693760e-6, 1.815807e-6, 1.761601e-6, 1.761386e-6, 6.865630e-6),
        (10, 3.392488e-6, 3.805870e-6, 3.556846e-6, 3.554634e-6, 1.405482e-5),
        (30, 1.023769e-5, 1.364775e-5, 1.112588e-5, 1.105397e-5, 4.611033e-5),
        (60, 2.065983e-5, 3.487469e-5, 2.397443e-5, 2.335006e-5, 1.044015e-4),
    ],
)
def test_figure2(order: float, exact: float, three: float, four: float, five: float, wang: float) -> None:
    row = figures.figure2([order]).iloc[0]
    assert row.iloc[:5].to_numpy() == pytest.approx([exact, three, four, five, wang], rel=1e-6)
    assert exact * (1 - 1e-6) < row["smallest proved"] < four


@pytest.mark.slow
def test_figures_3_and_4() -> None:
    expected = [
        [1.082597, 1.181249, 1.117106, 1.116043, 2.356477, 1.049765, 0.498356],
        [1.347010, 1.486365, 1.393206, 1.391300, 2.891413, 1.306871, 0.644162],
        [1.670163, 1.868431, 1.733077, 1.729650, 3.550670, 1.620867, 0.862604],
    ]
    table = figures.figure3([1e-5, 1e-7, 1e-10])
    assert table.drop(columns="smallest proved").to_numpy() == pytest.approx(np.array(expected), abs=6e-7)
    assert (table["smallest proved"] < table["Theorem 3.4, m=5"]).all()
    top = figures.figure4([1e-5])
    assert list(top.columns) == ["Theorem 3.4, m=4", "Wang upper", "Poisson C.9, m=4"]


def test_figures_6_and_7() -> None:
    assert figures.figure6([63.0]).iloc[0].to_numpy() == pytest.approx([2.17125e-5, 2.29404e-5, 2.17350e-5], rel=5e-6)
    row = figures.figure7([60.0]).iloc[0]
    assert row["Theorem 3.4, m=5"] == pytest.approx(2.335e-5, rel=3e-4)
    assert row["Poisson C.9, m=5, published"] == pytest.approx(1.942e-5, rel=3e-4)
    assert row["Wang upper"] == pytest.approx(1.0440e-4, rel=3e-5)
    assert row["exact add/remove"] == pytest.approx(2.06598e-5, rel=3e-6)
    assert row["Poisson C.9, m=5, proved"] > row["Poisson C.9, m=5, published"]


def test_figure8() -> None:
    table = figures.figure8()
    assert table.loc[2].to_numpy() == pytest.approx([1.72e-6, 5.60e-7, 2.841e-7, 1.735e-7, 1.175e-7], rel=2e-3)
    assert table.loc[200].to_numpy() == pytest.approx([35117.6, 12895.3, 5117.57, 1517.57, 1.1753e-7], rel=1e-4)
    assert table["sigma=2"][20] == pytest.approx(3.883, rel=2e-4)
    assert table["sigma=2"][50] == pytest.approx(1418.02, rel=1e-5)
    assert table["sigma=3"][50] == pytest.approx(29.134, rel=2e-5)
    assert table["sigma=4"][100] == pytest.approx(197.42, rel=5e-5)


def test_figure9() -> None:
    table = figures.figure9([1.5, 2, 2.55, 2.7, 3, 5, 10.0])
    lower = table["Theorem 3.7, last index"].loc[[2, 3, 5, 10]].to_numpy()
    assert lower == pytest.approx([6.77099e-7, 452.440, 2377.03, 6557.36], rel=2e-6)
    upper = table["Theorem 3.6, m=4"].loc[[1.5, 2, 5, 10]].to_numpy()
    assert upper == pytest.approx([5.0867e-7, 301.627, 3675.41, 7855.74], rel=1e-5)
    assert table["exact"][2.55] == pytest.approx(8.63e-7, rel=1e-3)
    assert table["exact"][2.7] == pytest.approx(97.9, rel=1e-3)
    assert (table["without replacement"] < 1e-5).all()


@for_each("name", ["figure1", "figure6", "figure8"])
def test_pictures(name: str) -> None:
    table = getattr(figures, name)()
    ax = axes()
    assert figures.picture(table, ax=ax) is ax
    assert len(ax.lines) == len(table.columns)
