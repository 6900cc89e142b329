"""Evidence for others: signed receipts, checkpoints at a witness, and audit reports."""
