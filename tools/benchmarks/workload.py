"""Workloads: keys, values and queries, from one seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEY_WIDTH = 16  # hex characters
Words = NDArray[np.uint64]


def distinct_words(count: int, rng: np.random.Generator) -> Words:
    """Random 64-bit words, no two equal, in random order."""
    while True:
        words = rng.integers(0, 1 << 64, count, np.uint64)
        if len(np.unique(words)) == count:
            return words


def hex_keys(words: Words) -> list[bytes]:
    data = words.astype(">u8").tobytes().hex().encode()
    return [data[at : at + KEY_WIDTH] for at in range(0, len(data), KEY_WIDTH)]


@dataclass(frozen=True)
class StoreWorkload:
    """Keys of 16 random hex characters with values of 8 random bytes; queries for all of them in another order, and
    as many absent keys.

    `queries` are the very objects of `keys`, scattered in memory: a dict need not compare their bytes, everybody else
    pays a cache miss for each. Or, if `fresh`, objects of their own, one behind the other, as of keys that were read a
    moment ago: then the dict is slower and everybody else faster."""

    keys: list[bytes]
    values: list[bytes]
    numbers: Words  # the values, as integers (little-endian)
    queries: list[bytes]
    query_array: NDArray[np.bytes_]  # the queries once more, of dtype S16
    expected: Words  # the queries' values
    absent: list[bytes]

    @classmethod
    def make(cls, count: int, seed: int, fresh: bool = False) -> StoreWorkload:
        rng = np.random.default_rng(seed)
        words = distinct_words(2 * count, rng)
        numbers = rng.integers(0, (1 << 64) - 1, count, np.uint64)  # the greatest word means absent to fastconstmap
        data = numbers.astype("<u8").tobytes()
        keys, values = hex_keys(words[:count]), [data[at : at + 8] for at in range(0, len(data), 8)]
        order = rng.permutation(count)
        queries = hex_keys(words[:count][order]) if fresh else [keys[i] for i in order.tolist()]
        absent = hex_keys(words[count:])
        return cls(keys, values, numbers, queries, fixed_width(queries), numbers[order], absent)

    def pairs(self) -> Any:
        return zip(self.keys, self.values, strict=True)


def fixed_width(keys: list[bytes]) -> NDArray[np.bytes_]:
    return np.array(keys, f"S{KEY_WIDTH}")


@dataclass(frozen=True)
class FilterWorkload:
    """Random integers of 64 bits, as an array and as a list, queries for all in another order, and as many absent
    ones."""

    keys: Words
    key_list: list[int]
    queries: Words
    query_list: list[int]
    absent: Words
    absent_list: list[int]

    @classmethod
    def make(cls, count: int, seed: int) -> FilterWorkload:
        rng = np.random.default_rng(seed)
        words = distinct_words(2 * count, rng)
        keys, absent = words[:count], words[count:]
        order, key_list = rng.permutation(count), keys.tolist()
        query_list = [key_list[i] for i in order.tolist()]  # the same objects
        return cls(keys, key_list, keys[order], query_list, absent, absent.tolist())


WORKLOADS: dict[str, Callable[[int, int], Any]] = {"store": StoreWorkload.make, "filter": FilterWorkload.make}
