"""The page of mechanisms shows their pictures, and the script that makes them can draw them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.how_pictures import FOLDER, PICTURES, draw
from tests.sizes import corners

PAGE = FOLDER.parents[1] / "how.md"


def test_the_page_shows_the_picture_of_every_mechanism() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert {path.stem for path in FOLDER.iterdir()} == set(PICTURES)
    for name in PICTURES:
        assert f"](how/pictures/{name}.svg)" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(list(PICTURES), 0))
def test_pictures_are_drawn_the_same_each_time(name: str, tmp_path: Path) -> None:
    draw([name], tmp_path / "once")
    draw([name], tmp_path / "again")
    first, second = ((tmp_path / folder / f"{name}.svg").read_bytes() for folder in ("once", "again"))
    assert first == second
    words = {text.text for text in ElementTree.parse(FOLDER / f"{name}.svg").iter("{http://www.w3.org/2000/svg}text")}
    assert words == {text.text for text in ElementTree.fromstring(first).iter("{http://www.w3.org/2000/svg}text")}
