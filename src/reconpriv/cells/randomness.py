"""The only source of randomness: a secret key makes a release a function of its cells.

A cell's id is the sum of keyed hashes of its values, so it does not depend on any order; a trial's
two words are AES-256 of [cell id, trial index], so they do not depend on batches, threads or
retries.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from reconpriv.columns.schema import Column, Value, value_text
from reconpriv.errors import KeyFileError
from reconpriv.messages.arguments import checked
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.remedies import make_key
from reconpriv.theory.arrays import Floats, Ints

Words = NDArray[np.uint64]

KEY_BYTES = 32
_LONGEST_KEY_FILE = 1 << 16
_NONCE_BYTES = 12
CHUNK = 1 << 16  # trials encrypted at a time: their 1 MB stays in a core's cache

# Trial indices count up from 0; these, at the other end, are reserved.
SAMPLING_COIN = np.uint64(2**64 - 1)
GROUP_OFFSET = np.uint64(2**64 - 2)

# Column labels start with their length, which cannot be this.
_SENSITIVE_LABEL = b"\xff" * 8

_TEST_SECRET = hashlib.blake2b(b"reconpriv: a key for tests, known to all", digest_size=32).digest()


@dataclass(frozen=True)
class Key:
    """A secret 256-bit key. Never printed, never written into a release.

    ``file`` is where it was read from, if it was: its ledger lies beside it.
    """

    secret: bytes = field(repr=False)
    ephemeral: bool = False
    file: Path | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse anything that is not 32 bytes, or is plainly not random."""
        if not isinstance(self.secret, bytes) or len(self.secret) != KEY_BYTES:
            raise KeyFileError("A key is exactly 32 bytes (256 bits).", hint=make_key())
        if len(set(self.secret)) < 8:
            raise KeyFileError("This key is not random: it repeats a few bytes.", hint=make_key())

    @classmethod
    def generate(cls, *, ephemeral: bool = False) -> Key:
        """A fresh key from the operating system."""
        return cls(secrets.token_bytes(KEY_BYTES), ephemeral)

    @classmethod
    def test(cls) -> Key:
        """The fixed key for tests and examples; a release made with it says so."""
        return cls(_TEST_SECRET)

    @property
    def is_test(self) -> bool:
        """True if this is the test key, which everybody knows."""
        return secrets.compare_digest(self.secret, _TEST_SECRET)

    @classmethod
    def from_hex(cls, text: str) -> Key:
        """A key from 64 hexadecimal digits."""
        try:
            secret = bytes.fromhex(text.strip())
        except (ValueError, TypeError, AttributeError):
            secret = b""
        if len(secret) != KEY_BYTES:
            raise KeyFileError("A key is written as 64 hexadecimal digits.", hint=make_key())
        return cls(secret)

    @classmethod
    @checked
    def from_file(cls, path: str | os.PathLike[str]) -> Key:
        """Read a key file; it must be complete and readable only by its owner."""
        file, shown = Path(path), shown_path(path)
        try:
            mode = file.stat().st_mode
            if not stat.S_ISREG(mode):
                raise KeyFileError(f"The key file {shown} is not a regular file.")
            with file.open("rb") as stream:
                content = stream.read(_LONGEST_KEY_FILE)
        except FileNotFoundError:
            if re.fullmatch(r"[A-Za-z0-9+/=_-]{32,}", os.fspath(path)):
                raise KeyFileError(
                    "There is no such key file; a key is given as a file, not as its text.",
                    hint=make_key(),
                ) from None
            raise KeyFileError(f"There is no key file at {shown}.", hint=make_key(shown)) from None
        except OSError as error:
            raise KeyFileError(f"The key file {shown} cannot be read: {error.strerror}.") from None
        text = content.strip()
        if not re.fullmatch(rb"[0-9a-fA-F\s]*", text):
            raise KeyFileError(
                f"{shown} is not a key file: that holds 64 hexadecimal digits and nothing else.",
                hint=make_key(),
            )
        # Only a key has to be secret: a table that was given in its place is left as it is.
        if os.name == "posix" and mode & 0o077:
            raise KeyFileError(
                f"The key file {shown} is readable by others (mode {stat.S_IMODE(mode):04o}).",
                hint=f"Make it readable by you alone: chmod 600 {shown}.",
            )
        if len(text) != 2 * KEY_BYTES:
            raise KeyFileError(
                f"Key file {shown} is {'too short' if len(text) < 2 * KEY_BYTES else 'too long'}:"
                f" 64 hexadecimal digits (256 bits) are needed.",
                hint=make_key(),
            )
        key = cls.from_hex(text.decode("ascii", errors="replace"))
        return replace(key, file=file.resolve())

    @checked
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the key with mode 0600, never over an existing file."""
        file, shown = Path(path), shown_path(path)
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise KeyFileError(
                f"There is a file at {shown} already; a key is never overwritten.",
                hint="Choose another name.",
            ) from None
        except OSError as error:
            raise KeyFileError(f"The key cannot be written to {shown}: {error.strerror}.") from None
        try:
            if os.name == "posix":
                os.fchmod(handle, 0o600)  # whatever the umask takes away
            with os.fdopen(handle, "w") as stream:
                stream.write(self.secret.hex() + "\n")
        except OSError as error:
            file.unlink(missing_ok=True)
            raise KeyFileError(f"The key cannot be written to {shown}: {error.strerror}.") from None


def repeatable_key(text: str) -> Key:
    """A key that everybody can make again, for attacks and studies: never for a release."""
    return Key(hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest())


def as_key(key: Key | bytes | str | os.PathLike[str] | None) -> Key:
    """A key from whatever was given: an object, 32 bytes, hex digits, a file, or nothing."""
    if key is None:
        return Key.generate(ephemeral=True)
    if isinstance(key, Key):
        return key
    if isinstance(key, bytes):
        return Key(key)
    # Hexadecimal digits are a key, well-formed or not; as a path they would be printed.
    if isinstance(key, str) and re.fullmatch(r"\s*(0x)?[0-9a-fA-F\s]{32,}", key):
        return Key.from_hex(key)
    return Key.from_file(key)


class Randomness:
    """Keyed hashes of values and keyed words of trials."""

    def __init__(self, key: Key, purpose: bytes = b"") -> None:
        """Derive one key for hashing and one for the trial words, both bound to the purpose."""
        self._hash_key = _derive(key.secret, b"hash", purpose)
        self._word_key = _derive(key.secret, b"words", purpose)

    def hash_values(self, column: Column, values: Sequence[Value]) -> Words:
        """H(name, value): 64 bits of keyed BLAKE2b over an unambiguous encoding."""
        label = column.name.encode()
        return self._hash(len(label).to_bytes(8, "little") + label, column, values)

    def hash_sensitive(self, column: Column, domain: Sequence[Value]) -> Words:
        """H of every sensitive value, under a label that no column can have."""
        return self._hash(_SENSITIVE_LABEL, column, domain)

    def _hash(self, prefix: bytes, column: Column, values: Sequence[Value]) -> Words:
        result = np.empty(len(values), dtype=np.uint64)
        for i, value in enumerate(values):
            digest = hashlib.blake2b(
                prefix + encoded(column, value), digest_size=8, key=self._hash_key
            ).digest()
            result[i] = int.from_bytes(digest, "little")
        return result

    def words(self, ids: Words, indices: Words | np.uint64) -> Words:
        """Two independent 64-bit words for each [id, index], as an array of two columns."""
        blocks = np.empty((ids.size, 2), dtype="<u8")
        blocks[:, 0] = ids
        blocks[:, 1] = indices
        out = np.empty(blocks.nbytes + 16, dtype=np.uint8)
        encryptor = Cipher(algorithms.AES(self._word_key), modes.ECB()).encryptor()
        written = encryptor.update_into(blocks.reshape(-1).view(np.uint8).data, out.data)
        return out[:written].view("<u8").reshape(-1, 2)

    def trials(self, ids: Words, trials: Ints) -> Iterator[tuple[Ints, Words]]:
        """Words of the trials 0, 1, … of each cell, as (cell position, words), in chunks."""
        ends = np.cumsum(trials)
        total = int(ends[-1]) if ends.size else 0
        starts = ends - trials
        for first in range(0, total, CHUNK):
            last = min(first + CHUNK, total)
            low = int(np.searchsorted(ends, first, side="right"))
            high = int(np.searchsorted(ends, last, side="left"))
            within = np.minimum(ends[low : high + 1], last) - np.maximum(
                starts[low : high + 1], first
            )
            cell = np.repeat(np.arange(low, high + 1), within)
            index = np.arange(first, last) - starts[cell]
            yield cell, self.words(ids[cell], index.astype(np.uint64))


def unit_interval(words: Words) -> Floats:
    """Words as numbers in [0, 1), from their top 53 bits."""
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def perturb_words(words: Words, own: Ints, *, retention: float, domain_size: int) -> Ints:
    """Eq. 1 with one word per trial: u < p keeps, else (u-p)/(1-p)·m indexes the sorted domain."""
    u = unit_interval(words)
    result = own.astype(np.int64, copy=True)
    replaced = np.flatnonzero(u >= retention)
    drawn = ((u[replaced] - retention) * (domain_size / (1.0 - retention))).astype(np.int64)
    result[replaced] = np.minimum(drawn, domain_size - 1)
    return result


def draw_words(words: Words, own: Ints, matrix: Floats) -> Ints:
    """One word per trial: the first value at which the sums of the own row of P exceed u."""
    u = unit_interval(words)
    sums = np.cumsum(matrix, axis=1)
    sums /= sums[:, -1:]  # the last value that is possible ends at 1, which no u reaches
    order = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[order], np.arange(matrix.shape[0] + 1))
    result = np.empty(own.size, dtype=np.int64)
    for value in np.flatnonzero(np.diff(starts)):
        some = order[starts[value] : starts[value + 1]]
        result[some] = np.searchsorted(sums[value], u[some], side="right")
    return result


def purpose(number: float, column: Column, domain: Sequence[Value], use: bytes = b"") -> bytes:
    """What words are bound to: p or another number, the sensitive column, its domain, and a use.

    Words shared by two retentions would disclose values: one that changes between them was kept. So
    would those of two variances of noise, and with the word the count: its ``use`` ends with a
    digest of all true counts. That of a post-randomisation ends with one of its matrix.
    """
    parts = [float(number).hex().encode(), column.name.encode()]
    parts += [encoded(column, value) for value in domain]
    return use + b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def encoded(column: Column, value: Value) -> bytes:
    """A value of a column as unambiguous bytes, the same in every input format."""
    if value is None:
        return b"null"
    return column.kind.value.encode() + b":" + value_text(column.kind, value).encode()


def ledger_key(key: Key, use: bytes) -> bytes:
    """A key for what is kept beside the key file; ``use`` is at most six bytes."""
    return _derive(key.secret, use, b"ledger")


def new_salt() -> str:
    """Eight random bytes in hexadecimal digits, for a hash that needs no key."""
    return secrets.token_hex(8)


def seal(key: Key, content: bytes) -> bytes:
    """What only the key opens, and what cannot be changed without it (AES-256-GCM)."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(ledger_key(key, b"trials")).encrypt(nonce, content, None)


def unseal(key: Key, sealed: bytes) -> bytes | None:
    """What was sealed, or None if it was changed or sealed with another key."""
    nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(ledger_key(key, b"trials")).decrypt(nonce, text, None)
    except (InvalidTag, ValueError):
        return None


def _derive(secret: bytes, use: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, digest_size=32, key=secret, person=b"reconpriv-" + use).digest()
