"""
A network of torch, accounted for
=================================

A training loop of your own in PyTorch (on the CPU) keeps a log of noise, batch and steps, and has an epsilon from it:
for batches of a fixed size, of which Opacus has no accountant, and as it would be with other loaders.

Run with ``python examples/torch_digits.py``; needs torch.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from thresholdout.privacy.accounting import best_epsilon, training_events

NOISE, CLIP, BATCH, STEPS, RATE = 8.0, 1.0, 256, 120, 1.0


def main() -> None:
    """Train on handwritten digits with clipped gradients and noise, and print epsilons."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.2, random_state=0)
    X_train, X_test, y_train, y_test = (torch.as_tensor(part) for part in parts)
    X_train, X_test, records = X_train.float(), X_test.float(), len(X_train)

    model = torch.nn.Linear(64, 10)
    parameters = {name: torch.zeros_like(value) for name, value in model.named_parameters()}

    def loss(current: dict[str, torch.Tensor], row: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return cross_entropy(functional_call(model, current, (row[None],)), label[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))  # one for each record
    log = []
    for _ in range(STEPS):
        batch = torch.randperm(records)[:BATCH]  # a fresh batch of a fixed size in every step
        found = gradients(parameters, X_train[batch], y_train[batch])
        norms = torch.stack([each.flatten(1).square().sum(1) for each in found.values()]).sum(0).sqrt()
        shares = (CLIP / norms).clamp(max=1.0)
        for name, each in found.items():
            total = torch.tensordot(shares, each, dims=1)
            noisy = total + NOISE * CLIP * torch.randn_like(total)
            parameters[name] = parameters[name] - RATE * noisy / BATCH
        log.append((NOISE, BATCH / records, 1))

    right = (functional_call(model, parameters, (X_test,)).argmax(1) == y_test).float().mean()
    print(f"more than 6 of 10 new digits are read: {bool(right > 0.6)}")
    for sampling in ("without_replacement", "with_replacement", "poisson", "shuffled"):
        events = training_events(log, sampling=sampling, records=records)
        print(f"{sampling:20s} epsilon {best_epsilon(events, 1e-5).epsilon:6.3f} at delta 1e-5, one record replaced")
    print("The first is the epsilon of this loop; the last is that of a loader that shuffles once in an epoch.")


if __name__ == "__main__":
    main()
