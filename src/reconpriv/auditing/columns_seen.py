"""What is kept of the cells that pass, to tell what public columns give away."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from reconpriv.auditing.giveaways import Giveaway, told_alone, told_together
from reconpriv.auditing.joint_counts import JointCounts
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import CellKeeper
from reconpriv.columns.schema import Schema, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconpriv.cells.cube import Cube
    from reconpriv.protect.kernel import Draw

T = TypeVar("T")
# Of larger tables, only single columns are looked at.
_FEW_CELLS = 1 << 18


@dataclass
class ColumnsSeen:
    """Pairs of values and, if there are few, all cells."""

    joint: JointCounts
    cells: CellKeeper

    @classmethod
    def of(cls, schema: Schema) -> ColumnsSeen:
        """Nothing seen yet."""
        return cls(JointCounts(schema), CellKeeper(_FEW_CELLS))

    def add(self, batch: CellBatch) -> None:
        """See the next batch of whole groups."""
        self.joint.add(batch)
        self.cells.add(batch)

    def see(self, batch: CellBatch, draw: Draw) -> None:  # noqa: ARG002
        """See a batch that is published."""
        self.add(batch)

    def join(self, part: JointCounts) -> None:
        """Add the pairs that another machine has seen."""
        self.joint.join([part])

    def small(self) -> JointCounts:
        """What one machine sends to another: the pairs, but no cells."""
        return self.joint

    def giveaways(
        self, harmless: Collection[Value], cube: Cube | None = None
    ) -> tuple[Giveaway, ...]:
        """What the columns give away, alone or two together; ``cube`` are all cells, if kept."""
        alone = told_alone(self.joint, harmless)
        if cube is None and self.cells.cells:
            cube = self.cells.cube(self.joint.schema)
        return alone if cube is None else (*alone, *told_together(cube, harmless, alone))


@dataclass(frozen=True)
class WithPairs(Generic[T]):
    """Does some work on a part of the table, and counts pairs of values on the way."""

    work: Callable[[Iterator[CellBatch]], T]
    schema: Schema

    def __call__(self, batches: Iterator[CellBatch]) -> tuple[T, JointCounts]:
        """The result of the work, and the pairs."""
        joint = JointCounts(self.schema)

        def seen() -> Iterator[CellBatch]:
            for batch in batches:
                joint.add(batch)
                yield batch

        return self.work(seen()), joint
