"""Pictures of the comparison tables."""

import pytest

from benchmarks.papers.bound_pictures import plot_composition, plot_high_probability, plot_kl, plot_on_average
from benchmarks.papers.bound_tables import compare_composition, compare_high_probability, compare_kl, compare_on_average


@pytest.mark.slow
def test_pictures(tmp_path: object) -> None:
    drawn = [
        plot_high_probability(compare_high_probability([0.02, 0.05], 1e-6, 20_000, 0.1)),
        plot_on_average(compare_on_average([0.1, 1.0], 1e-6, draws=3)),
        plot_kl(compare_kl([0.1, 1.0])),
        plot_composition(compare_composition(0.1, 1e-6, [10, 100], 1e-6)),
    ]
    for ax in drawn:
        ax.figure.savefig(f"{tmp_path}/picture.png")
        assert ax.get_legend() is not None
        assert plot_kl(compare_kl([0.1]), ax) is ax
