"""The floor: vectorised randomised response in plain numpy, from AES or from PCG64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from harness import Job, Task, main
from numpy.typing import NDArray

CHUNK = 1 << 16  # what is drawn at a time stays in a core's cache
Uniforms = Callable[[int], NDArray[np.float64]]


def aes() -> Uniforms:
    """Numbers in [0, 1) from the key stream of AES-256 in counter mode, 8 bytes each."""
    encryptor = Cipher(algorithms.AES(bytes(range(32))), modes.CTR(bytes(16))).encryptor()
    zeros = memoryview(bytes(8 * CHUNK))

    def draw(size: int) -> NDArray[np.float64]:
        words = np.frombuffer(encryptor.update(zeros[: 8 * size]), dtype="<u8")
        return np.asarray((words >> np.uint64(11)) * 2.0**-53)

    return draw


def pcg64() -> Uniforms:
    """Numbers in [0, 1) from numpy's own generator, which is not meant to be secret."""
    return np.random.default_rng(20).random


def prepare(task: Task) -> tuple[NDArray[np.int64], Task]:
    return task.codes(), task


def perturb_and_reconstruct(
    ready: tuple[NDArray[np.int64], Task], uniforms: Callable[[], Uniforms]
) -> NDArray[np.float64]:
    """Eq. 1 with one number a record, a count, the inverse."""
    codes, task = ready
    p, m = task.retention, task.domain_size
    draw = uniforms()
    perturbed = np.empty_like(codes)
    for first in range(0, codes.size, CHUNK):
        own = codes[first : first + CHUNK]
        u = draw(own.size)
        drawn = np.minimum(((u - p) * (m / (1 - p))).astype(np.int64), m - 1)
        perturbed[first : first + CHUNK] = np.where(u < p, own, drawn)
    return task.invert(np.bincount(perturbed, minlength=m))


JOBS = {
    "aes": Job(prepare, lambda ready: perturb_and_reconstruct(ready, aes)),
    "pcg64": Job(prepare, lambda ready: perturb_and_reconstruct(ready, pcg64)),
}

if __name__ == "__main__":
    main(JOBS, ["numpy", "cryptography"])
