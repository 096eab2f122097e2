"""Chained seeds: the bits are the lexicographically smallest that solve every node – those of the reference, which
enumerates – on every instruction set, and both readers find the same index for every key, present or not."""

from __future__ import annotations

import random

import numpy as np
import pytest
import reference
from chains import FANOUTS, ROOMS, Shape, draw_los, native, on_every_set, same_on_every_set

from mphfstore import MPHF, Filter, _options


def shape_for(leaf: int, room: int, number: int) -> Shape:
    """One of the shapes with these leaves; fanouts and bits of the root salt take turns."""
    fanouts = FANOUTS[(leaf + number) % len(FANOUTS)]
    if leaf > 9 and fanouts[0] == 8:  # more than 24 bits for a number
        fanouts = (4, 3, 4)
    return Shape(leaf, fanouts, room, ROOMS[(ROOMS.index(room) + number) % 5], (4, 1, 16)[(leaf + number) % 3])


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("leaf", range(2, 17))
def test_buckets_of_0_to_40_keys_equal_the_reference(leaf: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = shape_for(leaf, room, leaf + room)
    los = draw_los(range(41), leaf * 1000 + room)
    built = same_on_every_set(monkeypatch, shape, los)
    assert built.function == reference.build_function(shape.params(), los)
    built.check(shape)


LARGER = [
    *((Shape.of_preset(name), 800) for name in ("fast", "balanced", "compact", "smallest")),
    (Shape(2, (2, 2, 2), 26, 26, 4), 300),
    (Shape(5, (3, 5, 2), 0, 0, 4), 200),  # no room: one solution in the mean, often none
    (Shape(8, (8, 4, 4), 300, 512, 16), 400),
    (Shape(16, (5, 2, 8), 26, 100, 4), 300),
]


@pytest.mark.parametrize(("shape", "m"), LARGER)
def test_larger_buckets_equal_the_reference(shape: Shape, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    los = draw_los([m], m)
    built = same_on_every_set(monkeypatch, shape, los)
    assert built.function == reference.build_function(shape.params(), los)
    built.check(shape)


@pytest.mark.parametrize("shape", [shape for shape, _ in LARGER] + [Shape(3, (2, 2, 2), 512, 512, 1)])
def test_buckets_of_0_to_300_keys_are_bijections(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = list(range(300)) if shape.leaf_room > 26 else list(range(101))  # little room is not enough for many nodes
    same_on_every_set(monkeypatch, shape, draw_los(sizes, 1)).check(shape)


def some_keys(n: int, kind: str) -> list[bytes]:
    return [b"%s %d" % (kind.encode(), i) for i in range(n)]


@pytest.mark.parametrize(
    ("n", "bucket", "shape"),
    [
        *((n, 100, Shape.of_preset("balanced")) for n in (1, 2, 3, 50, 1000)),
        (3000, 80, Shape.of_preset("fast")),
        (3000, 2000, Shape.of_preset("compact")),
        (2500, 2000, Shape.of_preset("smallest")),
        (20_000, 100, Shape.of_preset("quick")),
        (700, 1, Shape(4, (2, 2, 2), 100, 100, 1)),  # most buckets empty or of one key
        (2000, 7, Shape(3, (3, 3, 3), 26, 300, 1)),
        (3000, 65_535, Shape(16, (3, 3, 3), 100, 100, 8)),
    ],
)
def test_files_equal_the_references(n: int, bucket: int, shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_options.PRESETS, "tested", shape.preset(bucket))
    keys, absent = some_keys(n, "key"), some_keys(300, "absent")
    built = Filter.build(keys, preset="tested", seed=11, fingerprint_bits=13)
    expected = reference.build(
        [(key, None) for key in keys],
        params=shape.params(),
        bucket_size=bucket,
        seed=11,
        fingerprint_bits=13,
        kind=2,
        schema={"key_type": "bytes", "keys": "fingerprint", "value_width": None, "values": None},
    )
    assert built.to_bytes() == expected
    reader = reference.Reader(expected)
    reader.verify()
    assert built.contains_many(keys).all()
    assert built.contains_many(absent).tolist() == [reader.contains(key) for key in absent]


@pytest.mark.parametrize("n", [1, 2, 5, 17, 64, 300, 1000, 3000, 20_000])
@pytest.mark.parametrize("preset", ["fast", "balanced", "compact"])
def test_every_reader_finds_the_same_index(n: int, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of keys of the set and of others: with an empty bucket, others have none for the reference."""
    keys, absent = some_keys(n, "key"), some_keys(500, "absent")
    data = MPHF.build(keys, preset=preset, seed=n).to_bytes()
    reader = reference.Reader(data)
    mine, others = [reader.index(key) for key in keys], [reader.index(key) for key in absent]
    assert sorted(i for i in mine if i is not None) == list(range(n))
    for name in ("baseline", ""):
        monkeypatch.setenv("MPHFSTORE_ISA", name) if name else monkeypatch.delenv("MPHFSTORE_ISA", raising=False)
        function = MPHF.from_bytes(data)
        assert function.index_many(keys).tolist() == mine
        found = function.index_many(absent).tolist()
        assert found == [function.index(key) for key in absent]
        assert 0 <= min(found) <= max(found) < n
        assert all(b in (None, a) for a, b in zip(found, others, strict=True))


def test_root_salts_escape_into_the_side_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(6, (3, 3, 3), 0, 26, 1)
    los = draw_los([30] * 100, 5)
    built = same_on_every_set(monkeypatch, shape, los)
    assert built.function == reference.build_function(shape.params(), los)
    salts = built.reader(shape).salts
    assert len(salts) > 50 and max(salts.values()) > 20 and min(salts.values()) == 1
    built.check(shape)


def paired(pairs: int, draw: random.Random) -> list[int]:
    """Pairs of `lo` whose words are equal under even salts: of such, nodes have crowds of solutions or none."""
    los = [draw.getrandbits(64) & ~(1 << 32) for _ in range(pairs)]
    return [lo ^ apart for lo in los for apart in (0, 1 << 31)]


def test_a_solution_beyond_those_a_builder_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root's 26th number is the first that the leaves can follow: found by trial."""
    shape, los = Shape(4, (8, 2, 2), 0, 512, 1), paired(16, random.Random(2949))
    params = shape.params()
    bucket, root = reference.chained.build_bucket(params, los), params.numbers(32)[0]
    assert bucket is not None and bucket.salt == 1
    words = [reference.chained.key_word(lo, 1) for lo in los]
    solutions = list(root.node.solutions(words, root.w))
    assert solutions.index(reference.bits.number(bucket.bits, 1, root.w)) == 25
    built = same_on_every_set(monkeypatch, shape, [los])
    assert built.function == reference.build_function(params, [los])


def test_nodes_with_more_than_48_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under salt 0, where no leaf can follow any of them."""
    shape, draw, los = Shape(2, (8, 2, 2), 0, 512, 16), random.Random(4), []
    params = shape.params()
    root = params.numbers(16)[0]
    while len(los) < 20:
        bucket = paired(8, draw)
        words = [reference.chained.key_word(lo, 0) for lo in bucket]
        if sum(1 for _ in root.node.solutions(words, root.w)) > 48:
            los.append(bucket)
    built = same_on_every_set(monkeypatch, shape, los)
    assert built.function == reference.build_function(params, los)
    built.check(shape)


def test_no_room_fails_where_the_reference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of these buckets take more visits than are allowed."""
    shape, outcomes = Shape(2, (2, 2, 2), 0, 0, 16), set()
    for seed in (4, 5, 6, 7, 8):
        los = draw_los([150], seed)
        expected = reference.build_function(shape.params(), los)
        outcomes.add(expected is None)
        for built in on_every_set(monkeypatch, shape, los):
            assert (built and built.function) == expected, f"seed {seed}"
    assert outcomes == {True, False}


def test_enumeration_is_the_definition() -> None:
    """The reference's solutions against each number tried by itself."""
    draw = random.Random(8)
    for leaf, m in ((8, 2), (8, 7), (8, 8), (9, 9), (4, 6), (4, 12), (4, 15), (3, 24), (3, 30)):
        node = Shape(leaf, (4, 3, 4), 300, 300, 4).params().node(m)
        for extra in (0, 1):
            zs = [draw.getrandbits(32) for _ in range(m)]
            w = min(12, node.width // 256 + extra)
            assert list(node.solutions(zs, w)) == [f for f in range(1 << w) if node.solved_by(zs, f, w)]


def test_words_of_a_node_repeat_in_no_half() -> None:
    """`lo` that differ in their upper or in their lower half alone are told apart as soon as others."""
    draw = np.random.default_rng(5)
    for half in (0, 32):
        los = [7 << half | int(x) << 32 - half for x in draw.integers(1, 1 << 32, 50)]
        shape = Shape(5, (4, 3, 4), 100, 200, 4)
        built = native(shape, [los])
        assert built is not None
        assert built.function == reference.build_function(shape.params(), [los])
