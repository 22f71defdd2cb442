"""A kernel whose work is watched: everybody sees each batch, and what is drawn of it, once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import seal, unseal
from reconpriv.errors import OutputError
from reconpriv.protect.kernel import Draw, Kernel, PublishedBatch


class Watcher(Protocol):
    """Gathers something about the groups that are published, on one machine or on many."""

    def see(self, batch: CellBatch, draw: Draw) -> None:
        """See a batch of whole protection groups, and what is drawn of them."""
        ...

    def join(self, part: Any) -> None:
        """Add what another machine gathered of other groups."""
        ...

    def small(self) -> Any:
        """What was gathered, small enough to be sent."""
        ...


PublishFunction = Callable[[CellBatch], Iterator[PublishedBatch]]


@dataclass(frozen=True)
class Watched:
    """Publishes as a kernel does; picklable, so that tasks can carry it."""

    kernel: Kernel
    watchers: tuple[Watcher, ...] = ()

    def __call__(self, batch: CellBatch) -> Iterator[PublishedBatch]:
        """Publish the batch."""
        draw = self.kernel.draw(batch)
        for watcher in self.watchers:
            watcher.see(batch, draw)
        return self.kernel.publish(batch, draw)

    def told(self) -> bytes:
        """What the watchers gathered on this machine, for :meth:`join` and nobody else."""
        return seal(self.kernel.key, pickle.dumps([one.small() for one in self.watchers]))

    def join(self, told: bytes) -> None:
        """Add what they gathered on another machine."""
        opened = unseal(self.kernel.key, told)
        if opened is None:
            raise OutputError(
                "What a task noted was changed before it was read.", hint="Publish it again."
            )
        for watcher, part in zip(self.watchers, pickle.loads(opened), strict=True):
            watcher.join(part)


def fresh(publish: PublishFunction) -> PublishFunction:
    """The same with watchers of its own, as they are before anything is published."""
    if not isinstance(publish, Watched):
        return publish
    return replace(publish, watchers=deepcopy(publish.watchers))
