"""Which parts records consist of: independent groups, and blocks that are revealed one after another."""

from __future__ import annotations

from graphs.numerics.arguments import IntArray
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["Parted"]


class Parted:
    """The part of a dependence model that says which parts its records consist of."""

    n: int

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of independent groups of records, if the model consists of such groups.

        Returns
        -------
        ndarray of int, or None
            Sizes that add up to n (arbitrary dependence inside a group, none across); None for other models.
        """
        return None

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return how many records change with each block when records are revealed block after block.

        Parameters
        ----------
        missed : float
            How large the probabilities that more records change may be, those of all blocks together.

        Returns
        -------
        RevealedBlocks
            For independent groups each group is a block, for series a stretch; one block of all records where nothing
            better is known. See `graphs/PROOFS.md`, section on revealed blocks.

        Examples
        --------
        >>> from graphs import Groups, MovingWindow
        >>> Groups(["ann", "ann", "bob"]).revealed_blocks()
        RevealedBlocks(changes=(1, 2), counts=(1, 1), missed=0.0)
        >>> MovingWindow(1000, 2).revealed_blocks().changes
        (2, 4)
        """
        sizes = self.independent_groups()
        return RevealedBlocks.of_groups([self.n] if sizes is None else sizes)
