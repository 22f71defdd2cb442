"""pure-ldp: direct encoding, a client call and a server call for each value."""

from __future__ import annotations

from typing import Any

from harness import Job, Task, main
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer


def same(value: int) -> int:
    """Codes are indices already."""
    return value


def prepare(task: Task) -> tuple[list[int], DEClient, DEServer, int]:
    client = DEClient(task.epsilon, task.domain_size, same)
    server = DEServer(task.epsilon, task.domain_size, same)
    return task.codes().tolist(), client, server, task.domain_size


def work(ready: tuple[list[int], DEClient, DEServer, int]) -> Any:
    column, client, server, m = ready
    server.aggregate_all([client.privatise(value) for value in column])
    return server.estimate_all(range(m), suppress_warnings=True) / len(column)


if __name__ == "__main__":
    main({"calls": Job(prepare, work)}, ["pure-ldp", "numpy"])
