"""
An agent that climbs over MCP
=============================

An agent improves a model by trial and error, and asks a service whose labels it never sees whether to keep a change.

The service here is a real one, in a thread of this script; ``thresholdout serve`` starts the same in a process of its
own. The agent has a key and an address, and calls a tool, as a language model would: predictions go in, and one bit
comes out, whether they are certified to be better than the champion, which they then replace. It also repeats earlier
proposals, which are free.

Run with ``python examples/agent_over_mcp.py``.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pandas as pd
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.serving import serving_here

SETTINGS: dict[str, list[float]] = {
    "max_depth": [2, 4, 12],
    "min_samples_leaf": [1, 2],
    "max_features": [0.3, 1.0],
}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training part and the holdout, as their owner has them."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X, columns=[f"pixel{k}" for k in range(X.shape[1])]).assign(id=np.arange(len(y)), digit=y)
    train, holdout = train_test_split(table, test_size=0.6, random_state=4)
    return train, holdout


async def climb(url: str, key: str, train: pd.DataFrame, features: pd.DataFrame, steps: int) -> None:
    """Propose changes, keep what the service keeps, and print what was kept."""
    rng = np.random.default_rng(0)
    kept: dict[str, Any] = {name: values[0] for name, values in SETTINGS.items()}
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    async with http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as service:

        async def told(settings: dict[str, Any]) -> dict[str, Any]:
            model = DecisionTreeClassifier(random_state=0, **settings)
            model.fit(train.drop(columns=["id", "digit"]), train["digit"])
            predictions = features[["id"]].assign(prediction=model.predict(features.drop(columns="id")))
            arguments = {"holdout": "digits", "predictions": predictions.to_csv(index=False)}
            return (await service.call_tool("submit", arguments)).structured_content or {}

        print("the first one:", (await told(kept))["says"])
        for _ in range(steps):
            name = str(rng.choice(list(SETTINGS)))
            candidate = kept | {name: rng.choice(SETTINGS[name]).item()}
            answer = await told(candidate)
            if answer["verdict"] == "better" and not answer["repeated"]:
                kept = candidate
                print(f"{name} = {candidate[name]:g}: {answer['says']}")
        history = await service.call_tool("my_history", {"holdout": "digits", "count": 100})
        listed = (history.structured_content or {})["result"]
        print(f"{steps + 1} proposals, {len(listed)} of them different; scores that the agent was told:", end=" ")
        print(sum(row["value"] is not None or row["low"] is not None for row in listed))


def main(steps: int = 15) -> None:
    """Start the service, make a holdout and a key, and let the agent climb."""
    train, holdout = tables()
    with tempfile.TemporaryDirectory() as folder:
        service = EvaluationService.open(Path(folder, "leaderboard.db"))
        owner = service.authenticate(service.first_admin_token())
        service.create_holdout(owner, "digits", train, holdout, label="digit", feedback="verdict")
        key, _ = service.new_token(owner, "team", "climber")
        with serving_here(service) as url:
            asyncio.run(climb(url, key, train, holdout.drop(columns="digit"), steps))


if __name__ == "__main__":
    main()
