"""The rewards of episodes under way: each lane keeps its own, and no more than it needs.

All lanes write into one block, a row for each step. When it is full, each lane takes the rest of its episode over and
the block is used again, so that a lane whose episode is long does not keep the rewards of the others.

    >>> memory = Memory(lanes=2)
    >>> for rewards in ([1.0, 5.0], [2.0, 6.0]):
    ...     memory.add(np.array(rewards))
    >>> memory.begin(np.array([0]))
    >>> memory.add(np.array([3.0, 7.0]))
    >>> memory.episode(0), memory.episode(1)
    (array([3.]), array([5., 6., 7.]))
"""

import numpy as np
from numpy.typing import NDArray

ROWS = 128  # steps in a block
LONGEST = 256 * ROWS  # steps of an episode that are kept, or up to a block more: 256 KiB for a lane


class Memory:
    """What was paid in each lane since its episode began."""

    def __init__(self, lanes: int) -> None:
        self._block = np.empty((ROWS, lanes))
        self._row = 0  # rows that are filled
        self._first = np.zeros(lanes, int)  # the row that the episode of a lane begins with
        self._earlier: dict[int, list[NDArray[np.float64]]] = {}  # of episodes that began before this block

    @property
    def full(self) -> bool:
        """Whether the block has no row left, so that `make_room` has to come before the next step."""
        return self._row == ROWS

    def add(self, rewards: NDArray[np.float64]) -> None:
        """Keep the rewards of one step, (lanes,)."""
        self._block[self._row] = rewards
        self._row += 1

    def episode(self, lane: int) -> NDArray[np.float64]:
        """Return what was paid in a lane since its episode began."""
        own = self._block[self._first[lane] : self._row, lane]
        return np.concatenate([*self._earlier[lane], own]) if lane in self._earlier else own

    def begin(self, lanes: NDArray[np.intp]) -> None:
        """Forget the episodes of some lanes; the next step is the first that is kept."""
        self._first[lanes] = self._row
        if self._earlier:
            for lane in lanes.tolist():
                self._earlier.pop(lane, None)

    def make_room(self, wanted: NDArray[np.bool_]) -> list[int]:
        """Empty the block; lanes that are `wanted` take their rows over. Return those that now keep the most allowed.

        Of the others nothing is kept: nobody will ask for the episodes that they are in.
        """
        self._earlier = {
            lane: [*self._earlier.get(lane, ()), self._block[self._first[lane] :, lane].copy()]
            for lane in np.flatnonzero(wanted).tolist()
        }
        self._row = 0
        self._first[:] = 0
        return [lane for lane, blocks in self._earlier.items() if sum(map(len, blocks)) >= LONGEST]
