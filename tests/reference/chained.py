"""`chained`: numbers of fixed widths, hashed with the bits before them (§4).

The builder solves nodes as §4 defines it – every number is tried that its classes of keys, each looked at alone, leave
possible – and knows no join beyond the look-up of class 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import NamedTuple

from .bits import M32, ceil_div, number, require, to_bits
from .tree import Tree

LONGEST_LEAF = 16
WIDEST = 24 * 256  # bits of a number, in 1/256


class Parts(NamedTuple):
    """A number taken apart: the rotation and a sub-seed for every class of keys."""

    rotation: int
    subseeds: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """What is common to all nodes of m keys."""

    m: int
    leaf: bool
    unit: int  # 1 in a leaf
    sizes: tuple[int, ...]  # keys of every part; those of a leaf are its positions
    classes: int
    most_rotated: int  # ρ_max
    width: int  # in 1/256 bit

    def cut(self, w: int) -> tuple[int, list[int]]:
        """Bits of the rotation, and of the sub-seed of every class, in a number of w bits."""
        rotated = min(self.most_rotated, max(0, w - 9))
        fields = [w - rotated]
        while len(fields) < self.classes:
            fields = [half for bits in fields for half in (ceil_div(bits, 2), bits // 2)]
        return rotated, fields

    def take_apart(self, f: int, w: int) -> Parts:
        subseeds, at = [], 0
        for bits in self.cut(w)[1]:
            subseeds.append(f >> at & (1 << bits) - 1)
            at += bits
        return Parts(f >> at, tuple(subseeds))

    def key_class(self, z: int) -> int:
        return (z & 0xFFFF) * self.classes >> 16

    def part(self, z: int, subseed: int) -> int:
        """Part of a key with word z, before any rotation."""
        h = (z >> 16) * multiplier(subseed) & 0xFFFF
        if len(self.sizes) == 2:
            return int(h >= ceil_div(65536 * self.unit, self.m))
        if self.leaf:
            return h * self.m >> 16
        return h * ceil_div(2048 * self.m, self.unit) >> 27

    def place(self, z: int, f: int, w: int) -> int:
        """Part of a key with word z – its position, in a leaf – under the number f of w bits."""
        rotation, subseeds = self.take_apart(f, w)
        key_class = self.key_class(z)
        part = self.part(z, subseeds[key_class])
        return (part + rotation) % self.m if self.leaf and key_class == 1 else part

    def solved_by(self, zs: list[int], f: int, w: int) -> bool:
        """Whether the number f of w bits solves this node for keys with words `zs`: the definition."""
        places = [self.place(z, f, w) for z in zs]
        return all(places.count(part) == size for part, size in enumerate(self.sizes))

    def solutions(self, zs: list[int], w: int) -> Iterator[int]:
        """All numbers of w bits that solve this node, ascending.

        The keys in the parts are counted in lanes of 17 bits: the counts of the classes have to add up to `sizes`.
        """
        rotated, fields = self.cut(w)
        wanted = sum(size << 17 * part for part, size in enumerate(self.sizes))
        possible = [self._counts([z for z in zs if self.key_class(z) == c], bits) for c, bits in enumerate(fields)]
        lowest: dict[int, list[int]] = {}
        for subseed, counts in possible[0]:
            lowest.setdefault(counts, []).append(subseed)

        def below(key_class: int, left: int, above: int) -> Iterator[int]:
            """Numbers whose bits above those of `key_class` are `above`, while `left` is still to be reached."""
            if key_class == 0:
                for subseed in lowest.get(left, ()):
                    yield above << fields[0] | subseed
                return
            for subseed, counts in possible[key_class]:
                yield from below(key_class - 1, left - counts, above << fields[key_class] | subseed)

        ring = 17 * self.m
        for rotation in range(1 << rotated):
            if not rotated:
                yield from below(self.classes - 1, wanted, 0)
                return
            turn = 17 * rotation
            for subseed, counts in possible[1]:
                turned = counts << turn & (1 << ring) - 1 | counts >> ring - turn
                yield from below(0, wanted - turned, rotation << fields[1] | subseed)

    def _counts(self, zs: list[int], bits: int) -> list[tuple[int, int]]:
        """(sub-seed, keys in every part) under all sub-seeds that send nowhere more keys than belong there."""
        found = []
        for subseed in range(1 << bits):
            counts = [0] * len(self.sizes)
            for z in zs:
                counts[self.part(z, subseed)] += 1
            if all(n <= size for n, size in zip(counts, self.sizes, strict=True)):
                found.append((subseed, sum(n << 17 * part for part, n in enumerate(counts))))
        return found


class Number(NamedTuple):
    """A number in the bit string of a bucket."""

    node: Node
    begin: int
    w: int
    parent: int  # which number sends keys here, and to which of its parts; −1 at the root
    part: int


class Params(Tree):
    """Tree shape with three fanouts, room of the numbers in 1/256 bit, and bits of a root salt."""

    method = "chained"

    def __init__(
        self, leaf: int, fanouts: tuple[int, int, int], leaf_room: int, split_room: int, root_bits: int
    ) -> None:
        super().__init__(leaf, fanouts, LONGEST_LEAF, widest=8)
        require(max(leaf_room, split_room) <= 512, "more than 512/256 bits of room")
        require(1 <= root_bits <= 16, f"{root_bits} bits of a root salt, 1 … 16 allowed")
        self.leaf_room, self.split_room, self.root_bits = leaf_room, split_room, root_bits
        self.escape = (1 << root_bits) - 1  # stands for a root salt in the side table
        self._cached: dict[int, Node] = {}
        self._totals = {0: 0, 1: 0}

    def above(self, m: int) -> tuple[int, int]:
        unit = self.units[3]
        while m > 2 * unit:
            unit *= 2
        return ceil_div(m, unit), unit

    def node(self, m: int) -> Node:
        """The node of m ≥ 2 keys."""
        if m not in self._cached:
            parts, leaf = self.parts(m), m <= self.leaf
            room = self.leaf_room if leaf else self.split_room
            width = ceil_div(self.log2_inverse_p(m), 1 << 24) + room
            require(width <= WIDEST, f"the number of a node of {m} keys is too wide")
            if leaf:
                classes, most_rotated = (1, 0) if m < 8 else (2, 3) if m < 16 else (2, 4)
            else:
                classes, most_rotated = (2 if len(parts) == 2 else 4), 0
            unit, sizes = (1, (1,) * m) if leaf else (parts[0], tuple(parts))
            self._cached[m] = Node(m, leaf, unit, sizes, classes, most_rotated, width)
        return self._cached[m]

    def total(self, m: int) -> int:
        """T(m), in 1/256 bit."""
        if m not in self._totals:
            self._totals[m] = self.node(m).width + sum(map(self.total, self.parts(m)))
        return self._totals[m]

    def length(self, m: int) -> int:
        """Bits in the string of a bucket of m keys."""
        return (256 * self.root_bits + self.total(m)) // 256 if m > 1 else 0

    def numbers(self, m: int) -> list[Number]:
        """The numbers in the bit string of a bucket of m keys, in their order."""
        found: list[Number] = []

        def visit(m: int, a: int, parent: int, part: int) -> None:
            if m < 2:
                return
            node, own = self.node(m), len(found)
            end = a + node.width
            found.append(Number(node, a // 256, end // 256 - a // 256, parent, part))
            parts = self.parts(m)
            for i, size in enumerate(parts):
                visit(size, end + i * self.total(parts[0]), own, i)

        visit(m, 256 * self.root_bits, -1, 0)
        return found


@cache
def multiplier(s: int) -> int:
    """M(s), odd and of 16 bits."""
    v = (s + 1) * 0x9E3779B9 & M32
    v = (v ^ v >> 16) * 0x85EBCA6B & M32
    v = (v ^ v >> 13) * 0xC2B2AE35 & M32
    return v >> 16 | 1


def key_word(lo: int, salt: int) -> int:
    """z, of 32 bits."""
    t = (lo ^ salt * 0x7F4A7C15) & M32
    u = (lo >> 32 ^ salt * 0x9E3779B9) & M32
    z = (t | 1) * u & M32
    return (z ^ z >> 15) * 0x85EBCA6B & M32


class Visit:
    """The solutions of a node, one after the other, under one choice of all that comes before."""

    def __init__(self, place: Number, los: list[int], before: int, sigma: int) -> None:
        self.place, self.los, self.before = place, los, before
        self.words = [key_word(lo, sigma) for lo in los]
        self.solutions = place.node.solutions(self.words, place.w)
        self.parts: list[list[int]] = []  # keys of each under the present solution
        self.after = before  # all bits up to the present solution

    def advance(self) -> bool:
        """Take the next solution, if there is one."""
        f = next(self.solutions, None)
        if f is None:
            return False
        node, begin, w, *_ = self.place
        self.parts = [[] for _ in node.sizes]
        for lo, z in zip(self.los, self.words, strict=True):
            self.parts[node.place(z, f, w)].append(lo)
        self.after = self.before | f << begin
        return True


class Bucket(NamedTuple):
    """A bucket built."""

    bits: str
    salt: int  # of the root, as found: the bits hold no more than 2^r − 1
    visits: int  # below the root, and root salts given up


def build_bucket(params: Params, los: list[int]) -> Bucket | None:
    """The bit string of a bucket of keys with distinct `lo`; None where the limit of visits is reached."""
    numbers = params.numbers(len(los))
    if not numbers:
        return Bucket("", 0, 0)
    limit, visits = 64 * len(numbers) + 1000, 0
    for salt in count():
        path = [Visit(numbers[0], los, min(salt, params.escape), salt)]
        while path and visits <= limit:
            if not path[-1].advance():
                path.pop()
            elif len(path) == len(numbers):
                return Bucket(to_bits(path[-1].after, params.length(len(los))), salt, visits)
            else:
                place, before = numbers[len(path)], path[-1].after
                sigma = before >> max(0, place.begin - 32)
                path.append(Visit(place, path[place.parent].parts[place.part], before, sigma))
                visits += 1
        visits += 1  # at the root: its salt given up
        if visits > limit:
            return None
    raise AssertionError


def locate(params: Params, lo: int, m: int, bits: str, at: int, beside: int | None) -> int:
    """Position of a key in a bucket of m ≥ 1 keys whose bit string starts at bits[at]; `beside` is the bucket's root
    salt in the side table."""
    a, position = 256 * params.root_bits, 0
    sigma = number(bits, at, params.root_bits)
    if m > 1 and sigma == params.escape:
        require(beside is not None, "a root salt is missing in the side table")
        sigma = beside or 0
    while m > 1:
        node, begin = params.node(m), a // 256
        end = (a + node.width) // 256
        if a > 256 * params.root_bits:
            k = min(32, begin)
            sigma = number(bits, at + begin - k, k)
        part = node.place(key_word(lo, sigma), number(bits, at + begin, end - begin), end - begin)
        position += node.unit * part
        if node.leaf:
            break
        a += node.width + part * params.total(node.unit)
        m = node.sizes[part]
    return position
