"""The package's errors: one tree under `Error`. An absent key is a plain `KeyError`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any


class Error(Exception):
    """Base of all errors of this package."""


class DuplicateKeyError(Error, ValueError):
    """A key occurs more than once. `key` is the one whose repetition comes first, `positions` are its first two
    records (from 0). `repeated` has every such key with the positions of all its records if `on_duplicate="list"`
    asked for them, else this one with these."""

    def __init__(self, key: object, positions: tuple[int, int], repeated: dict[Any, list[int]] | None = None) -> None:
        shown = repr(key)
        if len(shown) > 100:
            shown = shown[:97] + "..."
        others = f"; {len(repeated)} keys occur more than once" if repeated else ""
        super().__init__(
            f"duplicate key {shown} in records {positions[0]} and {positions[1]} (counted from 0){others}; "
            "on_duplicate='first' or 'last' keeps one of them"
        )
        self.key = key
        self.positions = positions
        self.repeated = repeated or {key: list(positions)}

    def __reduce__(self) -> tuple[type[DuplicateKeyError], tuple[Any, ...]]:
        return type(self), (self.key, self.positions, self.repeated)


class FormatError(Error, ValueError):
    """Not a file of this package, truncated, or contradicting itself."""


@contextlib.contextmanager
def naming(source: object) -> Iterator[None]:
    """FormatErrors of a file say which, if it was given by its path."""
    try:
        yield
    except FormatError as error:
        if isinstance(source, str | os.PathLike):
            raise type(error)(f"{os.fsdecode(source)}: {error}") from None
        raise


class FormatVersionError(FormatError):
    """Written by a newer release than this one can read."""


class ChecksumError(FormatError):
    """Some bytes of the file have changed since it was written."""


class BuildError(Error, RuntimeError):
    """No function could be built for these keys."""


class StaleError(Error, RuntimeError):
    """A pickled handle's path leads to another file by now."""


class UnavailableError(Error, RuntimeError):
    """Something optional is not at hand on this machine; the message says how to get it."""


def contradiction() -> FormatError:
    """For what no builder writes, and checksums do not show."""
    return FormatError("the file contradicts itself: it was not written by mphfstore")


def sound(status: int) -> None:
    """Raises for what a native call on a file gave unless that is STATUS_OK."""
    if status:
        raise contradiction()
