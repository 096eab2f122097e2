"""Building `brute` and `rotation` on a device, level by level (cuda/levels.h).

    host      lists the nodes of a bucket of every size, a list per level: shapes depend on sizes alone
    device    the nodes of all buckets from that; the numbers of splittings, level after level, and of all leaves; bit
              strings; every record at its index

Nothing here is too large for a device: keys stay in global memory, so that there is no bucket to be built natively.
Numbers are the smallest that solve their nodes, so bits are native code's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _build
from ._build import Words
from ._device import NUMBERS_AT_ONCE, UNFOUND, Session, table_buffers
from ._device_keys import Group, Placing
from ._native import ffi, lib
from ._options import Options

ITEMS = 32  # of a group that has a node to itself: a round of theirs is 256 numbers
HASHES = 1 << 22  # of an item in a launch, about
GROUPS_PER_UNIT = 32  # that a device has work for at a time
TOGETHER_FROM = 1024  # hashes that a node takes on average, for a group to have it
MEANS = 32  # a launch tries so many times as many numbers as a node takes on average, if not too many

Integers = NDArray[np.int64]
# Of a bucket of every size: rows of a node's first key, keys, slot of its number, depth, and which of the sizes.
Patterns = NDArray[np.uint32]


class Shapes:
    """What nodes of 0 … `largest` keys are."""

    def __init__(self, tables: Any, largest: int) -> None:
        names = ("budget", "unit", "fixed", "nodes", "fanout", "tau")
        layout = np.dtype(list(zip(names, ("<u8", "<u4", "<u4", "<u4", "u1", "u1"), strict=True)), align=True)
        assert layout.itemsize == ffi.sizeof("rice_shape")
        shapes = np.zeros(largest + 1, layout)
        lib.mphf_rice_shapes(tables, largest + 1, ffi.from_buffer("rice_shape[]", shapes))
        self.budget: Words = np.ascontiguousarray(shapes["budget"])
        self.unit, self.nodes, self.fanout, self.tau = (
            shapes[name].astype(np.int64) for name in ("unit", "nodes", "fanout", "tau")
        )

    def levels(self, sizes: Integers) -> Iterator[tuple[Patterns, Patterns]]:
        """Splittings and leaves of every depth, of a bucket of each of these sizes, all at least 2."""
        firsts = slots = np.zeros_like(sizes)
        owners, depth = np.arange(len(sizes)), 0
        while len(sizes):
            split = self.fanout[sizes] > 1
            rows = np.stack([firsts, sizes, slots, np.full_like(sizes, depth), owners], 1).astype(np.uint32)
            yield rows[split], rows[~split]
            sizes, firsts, slots, owners = sizes[split], firsts[split], slots[split], owners[split]
            fanouts, units = self.fanout[sizes], self.unit[sizes]
            parent = np.repeat(np.arange(len(sizes)), fanouts)
            part = np.arange(len(parent)) - np.repeat(np.cumsum(fanouts) - fanouts, fanouts)
            unit = units[parent]
            at = part * unit
            firsts, slots, owners = firsts[parent] + at, slots[parent] + 1 + part * self.nodes[unit], owners[parent]
            sizes = np.where(part + 1 < fanouts[parent], unit, sizes[parent] - at)
            some = sizes > 1
            sizes, firsts, slots, owners = sizes[some], firsts[some], slots[some], owners[some]
            depth += 1


class LevelsSearch:
    """The search for one function."""

    def __init__(self, parameters: Any, tables: Any, sizes: NDArray[np.uint32], options: Options) -> None:
        self._sizes, self._leaf = sizes, int(parameters.leaf)
        self._rotates = parameters.method == lib.METHOD_ROTATION
        self._tables, self._shapes = tables, Shapes(tables, int(sizes.max()))
        self.strings: dict[int, tuple[Words, Words]] = {}  # by a group's first bucket: bits, and where each one's start

    def run(self, group: Group, hi: Words | None, ids: Words | None, report: Callable[[int], None]) -> None:
        """Finds the bit strings of a group and puts its records in the order of their indices."""
        session, device, count = group.session, group.session.device, len(group.sizes)
        nodes, budgets = table_buffers(device, self._tables)[0], device.upload(self._shapes.budget)
        slots = np.zeros(count + 1, np.uint32)
        np.cumsum(self._shapes.nodes[group.sizes], out=slots[1:], dtype=np.uint32)
        keys = device.empty(8 * len(group)), device.empty(8 * len(group))
        session.over("copy_words", len(group), group.lo, np.uint64(len(group)), keys[0])
        begins = group.there, device.upload(slots)
        numbers = Numbers(session, self._shapes, (nodes, budgets), keys, group.sizes, begins)
        self._solve(numbers)

        buckets, starts, slots_there = np.uint32(count), np.zeros(count + 1, np.uint64), begins[1]
        lengths_there = device.empty(8 * count)
        session.over("measure_buckets", count, buckets, slots_there, numbers.found, numbers.taus, lengths_there)
        device.download(lengths_there, starts[1:])
        np.cumsum(starts, out=starts)
        bits = np.empty(int(starts[-1]) // 64 + 3, np.uint64)
        starts_there, bits_there = device.upload(starts), device.zeros(bits.nbytes)
        session.over(
            "pack_buckets", count, buckets, slots_there, starts_there, group.there, nodes, numbers.found,
            numbers.taus, bits_there,
        )  # fmt: skip
        with Placing(group, hi, ids) as placing:
            session.over(
                "place_by_rice", len(group), np.uint32(len(group)), np.uint64(group.all), np.uint64(group.first),
                np.uint32(self._leaf), np.uint32(self._rotates), nodes, group.lo, group.hi, group.ids, group.there,
                starts_there, bits_there, np.uint64(starts[-1]), *placing.arguments,
            )  # fmt: skip
        device.download(bits_there, bits)
        self.strings[group.first] = bits, starts
        report(len(group))

    def _solve(self, numbers: Numbers) -> None:
        leaves = [np.zeros((0, 5), np.uint32)]
        for splittings, leaves_here in self._shapes.levels(numbers.sizes):
            numbers.solve(splittings)
            leaves.append(leaves_here)
        all_leaves = np.concatenate(leaves)
        rotated = (all_leaves[:, 1] == self._leaf) & self._rotates
        numbers.solve(all_leaves[rotated], self._leaf)
        numbers.solve(all_leaves[~rotated])

    def sections(self) -> tuple[Words, Words]:
        """Trees and directory of the whole function."""
        pieces = [self.strings[first] for first in sorted(self.strings)]
        joined = [(ffi.from_buffer("uint64_t[]", bits), int(starts[-1]), starts[:-1]) for bits, starts in pieces]
        return _build.join_strings(joined, self._sizes)


class Numbers:
    """The numbers of a group's nodes. `sizes`: those that its buckets have, from 2 on."""

    def __init__(
        self, session: Session, shapes: Shapes, tables: tuple[Any, Any], keys: tuple[Any, Any],
        sizes: NDArray[np.uint32], begins: tuple[Any, Any],
    ) -> None:  # fmt: skip
        device = session.device
        self._session, self._shapes, self._keys, self._begins = session, shapes, keys, begins
        self._nodes, self._budgets = tables
        slots = int(shapes.nodes[sizes].sum())
        self.found, self.taus = device.zeros(8 * slots), device.zeros(slots)
        counts = np.bincount(sizes)
        self.sizes = 2 + np.flatnonzero(counts[2:])
        self._buckets_of = counts[self.sizes]  # how many buckets have each of the sizes
        some = np.flatnonzero(sizes > 1).astype(np.uint32)
        self._by_size = device.upload(some[np.argsort((sizes[some] - 2).astype(np.uint16), kind="stable")])
        self._starts = device.upload((np.cumsum(self._buckets_of) - self._buckets_of).astype(np.uint32))

    def _list(self, patterns: Patterns) -> tuple[Any, int]:
        """The nodes of all buckets that these are patterns of."""
        device, ends = self._session.device, np.cumsum(self._buckets_of[patterns[:, 4]]).astype(np.uint32)
        count = int(ends[-1])
        tasks, there = device.zeros(16 * count), (device.upload(patterns), device.upload(ends))
        bounds = np.uint32(len(patterns)), np.uint32(count)
        self._session.over("list_tasks", count, *bounds, *there, self._starts, self._by_size, *self._begins, tasks)
        return tasks, count

    def solve(self, patterns: Patterns, step: int = 1) -> None:
        """Finds the numbers of nodes: splittings of one level, whose keys are parted then, or leaves. `step`: the
        rotations of a number, where leaves have them. Raises _Unsolved."""
        if not len(patterns):
            return
        device, shapes = self._session.device, self._shapes
        sizes = patterns[:, 1].astype(np.int64)
        hashes = sizes << shapes.tau[sizes]
        order = np.argsort(-hashes, kind="stable")  # alike beside each other
        patterns, hashes = patterns[order], hashes[order]
        widest, tau, splits = int(sizes.max()), int(shapes.tau[sizes].max()), bool(shapes.fanout[sizes[0]] > 1)
        hard = int(self._buckets_of[patterns[hashes >= TOGETHER_FROM, 4]].sum())
        (listed, count), begin, looked = self._list(patterns), 0, False
        while count:
            if not looked and (begin or 1 << tau >> 8) >= widest:  # it costs no more than what was searched, or little
                self._look_for_equal(listed, count, widest)
                looked = True
            together = hard if device.gpu else 0
            slices, span = self._plan(together, widest, tau, step)
            found = self._launch(listed, count, together, slices, begin, span, step)
            listed, count = self._settle(splits, listed, count, found, begin, span * step)
            begin, hard = begin + span * step, count

    def _look_for_equal(self, listed: Any, count: int, widest: int) -> None:
        outcome, limits = self._session.device.zeros(8), (np.uint32(count), np.uint32(widest))
        self._session.over("look_for_equal", count * widest, listed, *limits, *self._keys, outcome)
        self._check(outcome)

    def _check(self, outcome: Any) -> int:
        """Raises _Unsolved; else, how many nodes are to be searched on."""
        counts = np.empty(2, np.uint32)
        self._session.device.download(outcome, counts)
        again, failed = counts
        if failed:
            raise _build._Unsolved
        return int(again)

    def _settle(self, splits: bool, listed: Any, count: int, found: Any, begin: int, numbers: int) -> tuple[Any, int]:
        """After a launch that tried so many numbers: what it found goes to its places. The nodes to search on."""
        session, device = self._session, self._session.device
        again, outcome = device.zeros(16 * count), device.zeros(8)
        tables = self._nodes, self._budgets, self.found, self.taus
        settling = found, np.uint64(begin), np.uint64(numbers), *tables, again, outcome
        if splits:
            cursors = 4 * lib.MPHF_WIDEST_FANOUT
            device.launch(session.kernels.part_keys, count, ITEMS, cursors, listed, *settling, *self._keys)
        else:
            session.over("note_leaves", count, listed, np.uint32(count), *settling)
        return again, self._check(outcome)

    def _plan(self, together: int, widest: int, tau: int, step: int) -> tuple[int, int]:
        """For so many nodes that groups have to themselves: groups for each, and how many steps of numbers are tried
        of every node in a launch, whose nodes have up to `widest` keys and `tau` bits of fixed part."""
        numbers = NUMBERS_AT_ONCE * (ITEMS if together else 1)  # of a round
        rounds = -(-(MEANS << tau) // (step * numbers))
        slices = min(GROUPS_PER_UNIT * self._session.device.units // together, rounds) if together else 1
        slices = max(1, slices)
        chunk = min(-(-rounds // slices), max(1, HASHES // (widest * NUMBERS_AT_ONCE))) * numbers
        slices = min(slices, (1 << 31) // (chunk * step))
        return slices, slices * chunk

    def _launch(self, listed: Any, count: int, together: int, slices: int, begin: int, span: int, step: int) -> Any:
        """Searches; of every task, the number found."""
        session, device = self._session, self._session.device
        found = device.upload(np.full(count, UNFOUND, np.uint32)) if together else device.zeros(4 * count)
        searched = np.uint64(begin), np.uint32(span), np.uint32(step > 1), self._nodes, *self._keys, found
        if together:
            groups = together * slices
            device.launch(session.kernels.search_together, groups, ITEMS, 16, listed, np.uint32(slices), *searched)
        if together < count:
            alone = np.uint32(together), np.uint32(count)
            session.over("search_alone", count - together, listed, *alone, *searched)
        return found
