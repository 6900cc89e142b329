"""The project's address comes from outside, and links of the description lead there."""

import re
from pathlib import Path

import pytest

from hatch_build import ProjectMetadataHook, linked, urls
from tests.cases import for_each
from tests.documents import ROOT

URL = "https://example.org/project"


@for_each(
    ("text", "expected"),
    [
        ("[a](docs/a.md)", f"[a]({URL}/blob/main/docs/a.md)"),
        ("![a](examples/demo.png)", f"![a]({URL}/raw/main/examples/demo.png)"),
        ("[`a`](docs/a.md#b), [c](https://c.org)", f"[`a`]({URL}/blob/main/docs/a.md#b), [c](https://c.org)"),
        ("[here](#documentation)", "[here](#documentation)"),
        ("`f(x)[0](y)`\n[two\nwords](LICENSE)", None),
    ],
)
def test_links_to_files_become_absolute(text: str, expected: str | None) -> None:
    found = linked(text, URL)
    if expected is None:
        assert f"[two\nwords]({URL}/blob/main/LICENSE)" in found
    else:
        assert found == expected


def test_every_link_of_the_readme_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(rf"\]\({re.escape(URL)}/(?:blob|raw)/main/([^)#]+)", linked(text, URL))
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []
    assert re.findall(r"\]\((?!https://|#)[^)]+\)", linked(text, URL)) == []


def metadata(monkeypatch: pytest.MonkeyPatch, url: str | None) -> dict[str, object]:
    monkeypatch.delenv("PROJECT_URL", raising=False)
    if url is not None:
        monkeypatch.setenv("PROJECT_URL", url)
    found: dict[str, object] = {}
    ProjectMetadataHook(str(ROOT), {}).update(found)
    return found


def test_no_address_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata(monkeypatch, None)
    assert found["urls"] == {}
    assert found["readme"] == {"content-type": "text/markdown", "text": Path(ROOT / "README.md").read_text("utf-8")}


def test_an_address_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    found = metadata(monkeypatch, URL + "/")
    assert found["urls"] == urls(URL)
    assert set(urls(URL)) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(address.startswith(URL) for address in urls(URL).values())


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"PROJECT_URL: 'example\.org'; it must start with https://"):
        metadata(monkeypatch, "example.org")
