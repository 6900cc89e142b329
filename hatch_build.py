"""Where the project lives, put into its metadata when it is built: `PROJECT_URL=https://... make dist`.

The address is not written down anywhere else. Without it a distribution has no project URLs, and the links of its
description lead to files of a checkout.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# Links of a Markdown text to files of the project: neither to other sites nor to headings.
_LOCAL = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def linked(text: str, url: str) -> str:
    """Return a Markdown text whose links to files, and pictures, lead to the project's pages."""

    def absolute(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        return f"{picture}[{words}]({url}/{'raw' if picture else 'blob'}/main/{target})"

    return _LOCAL.sub(absolute, text)


def urls(url: str) -> dict[str, str]:
    """Return the project URLs of a package index."""
    return {
        "Homepage": url,
        "Documentation": f"{url}/tree/main/docs",
        "Source": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/main/CHANGELOG.md",
    }


class ProjectMetadataHook(MetadataHookInterface):
    """Sets the description and, where `PROJECT_URL` is given, the project URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the dynamic fields."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        url = os.environ.get("PROJECT_URL", "").rstrip("/")
        if url and not url.startswith("https://"):
            raise ValueError(f"PROJECT_URL: {url!r}; it must start with https://")
        metadata["readme"] = {"content-type": "text/markdown", "text": linked(text, url) if url else text}
        metadata["urls"] = urls(url) if url else {}
