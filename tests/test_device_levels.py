"""`brute` and `rotation` built by kernels, on the processor through PoCL and on GPUs: bit strings of every bucket, and
files, are native code's."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
from chains import draw_los, hashed, hashes_of

import mphfstore as ms
from mphfstore import _build, _device, _device_levels
from mphfstore._build import build_hashed
from mphfstore._device_build import build_on
from mphfstore._device_keys import Feed
from mphfstore._device_levels import LevelsSearch
from mphfstore._native import ffi, lib
from mphfstore._options import DEFAULT_FANOUTS, Chain, Options

pytestmark = pytest.mark.usefixtures("every_device")
BACKEND, SESSION = "", Any  # every_device sets them

METHODS = ("brute", "rotation")
ALL = re.findall(r"^KERNEL void (\w+)", _device.kernel_text(), re.M)
UNUSED = Chain(DEFAULT_FANOUTS, 0, 0, 1)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often every kernel was started."""
    started: Counter[str] = Counter()
    device = type(SESSION.device)
    launch = device.launch

    def counted(self: Any, kernel: Any, *arguments: Any) -> Any:
        names = (name for name in ALL if getattr(SESSION.kernels, name) is kernel)
        started[next(names)] += 1
        return launch(self, kernel, *arguments)

    monkeypatch.setattr(device, "launch", counted)
    return started


class Way(NamedTuple):
    """A way to search; PoCL itself takes the first."""

    gpu: bool = False
    items: int = 32
    together_from: int = 0  # hashes
    hashes: int = 1 << 22  # of an item in a launch


WAYS = {
    "alone": Way(),
    "together": Way(gpu=True),
    "both": Way(gpu=True, together_from=200),
    "groups of 1": Way(gpu=True, items=1),
    "groups of 3": Way(gpu=True, items=3, together_from=100),
    "groups of 64": Way(gpu=True, items=64),
    "alone, few numbers a launch": Way(hashes=64),
    "both, few numbers a launch": Way(gpu=True, items=4, together_from=200, hashes=64),
}


def take(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    monkeypatch.setattr(SESSION.device, "gpu", way.gpu)
    for name in ("items", "together_from", "hashes"):
        monkeypatch.setattr(_device_levels, name.upper(), getattr(way, name))


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    take(monkeypatch, WAYS[request.param])
    return WAYS[request.param]


class Shape(NamedTuple):
    method: str
    leaf: int
    fanouts: tuple[int, int] | None = None

    def parameters(self) -> Any:
        p = Options(self.method, self.leaf, 1, UNUSED).parameters()
        if self.fanouts:
            p.fanout1, p.fanout2 = self.fanouts
        return p


class Buckets(NamedTuple):
    strings: list[str]
    records: list[list[int]]  # of every bucket, in the order of their indices


def described(bits: Any, starts: _build.Words, los: Sequence[Sequence[int]], hi: Any, ids: Any) -> Buckets:
    count = len(los)
    string = "".join(map(str, np.unpackbits(bits.view(np.uint8), bitorder="little")))
    at = np.concatenate(([0], np.cumsum([len(bucket) for bucket in los]))).tolist()
    assert np.array_equal(hi, hashes_of(los)[0])
    return Buckets(
        [string[starts[i] : starts[i + 1]] for i in range(count)],
        [ids[at[i] : at[i + 1]].tolist() for i in range(count)],
    )


def on_device(shape: Shape, los: Sequence[Sequence[int]]) -> Buckets:
    hi, lo = hashes_of(los)
    sizes = np.array([len(bucket) for bucket in los], np.uint32)
    group = Feed(SESSION, hashed(hi, lo), 0, True).group(len(los), 0, 0, sizes)
    parameters = shape.parameters()
    tables = _build._tables(parameters, int(sizes.max()))
    search = LevelsSearch(parameters, tables, sizes, Options(shape.method, shape.leaf, 1, UNUSED))
    hi_out, ids = np.zeros_like(hi), np.zeros_like(hi)
    done: list[int] = []
    search.run(group, hi_out, ids, done.append)
    assert sum(done) == len(hi)
    return described(*search.strings[0], los, hi_out, ids)


def native(shape: Shape, los: Sequence[Sequence[int]]) -> Buckets:
    hi, lo = hashes_of(los)
    records = np.stack([hi, lo, np.arange(len(hi), dtype=np.uint64)], 1)
    hi_out, ids = np.zeros_like(hi), np.zeros_like(hi)
    partition = ffi.gc(
        lib.mphf_build_partition(
            _build._tables(shape.parameters(), max(map(len, los))), _build.isa(), 0, len(los), len(los),
            ffi.from_buffer("hashed_record[]", records), len(hi), ffi.from_buffer("uint64_t[]", hi_out),
            ffi.from_buffer("uint64_t[]", ids), ffi.new("int *"),
        ), lib.mphf_partition_free,
    )  # fmt: skip
    assert partition.status == lib.STATUS_OK and list(partition.sizes[0 : len(los)]) == [len(bucket) for bucket in los]
    bits = np.frombuffer(ffi.buffer(partition.bits, 8 * (-(-partition.bit_count // 64))), np.uint64)
    starts = np.array([*partition.starts[0 : len(los)], partition.bit_count], np.uint64)
    return described(bits, starts, los, hi_out, ids)


def both(shape: Shape, los: Sequence[Sequence[int]]) -> Buckets:
    built, expected = on_device(shape, los), native(shape, los)
    for i, strings in enumerate(zip(built.strings, expected.strings, strict=True)):
        assert strings[0] == strings[1], f"{shape}: bucket {i} of {len(los[i])} keys"
    assert built == expected
    return built


@pytest.mark.parametrize("shape", [Shape("brute", 5), Shape("rotation", 5), Shape("rotation", 3, (4, 3))])
def test_bit_strings_are_the_reference_s(shape: Shape, way: Way) -> None:
    los = draw_los([*range(41), 60, 1, 0, 0], 11)
    built = both(shape, los)
    params = reference.Params(shape.method, shape.leaf, *(shape.fanouts or ()))
    for bucket, string in zip(los, built.strings, strict=True):
        assert string == reference.build_bucket(params, bucket)


@pytest.mark.parametrize("leaf", range(2, 12))
@pytest.mark.parametrize("method", METHODS)
def test_every_leaf_size(method: str, leaf: int, way: Way) -> None:
    sizes = [*range(2, leaf + 3), 3 * leaf + 1, 100] if leaf < 10 else [leaf, leaf - 1, leaf + 1, 30]
    both(Shape(method, leaf), draw_los(sizes, leaf))


@pytest.mark.parametrize("leaf", range(12, 25))
@pytest.mark.parametrize("method", METHODS)
def test_long_leaves_alone(method: str, leaf: int) -> None:
    """Single nodes: full leaves as long as they are found in reasonable time, then smaller ones."""
    longest = {"brute": 18, "rotation": 20}[method]
    sizes = [leaf] if leaf <= longest else [*range(2, 17)]
    both(Shape(method, leaf), draw_los(sizes, leaf))


@pytest.mark.parametrize("leaf", [12, 15, 16])
@pytest.mark.parametrize("method", METHODS)
def test_long_leaves_together(method: str, leaf: int, monkeypatch: pytest.MonkeyPatch, launches: Counter[str]) -> None:
    take(monkeypatch, Way(gpu=True, hashes=64))
    both(Shape(method, leaf), draw_los([leaf, leaf], leaf))
    assert launches["search_together"] > (leaf > 12) and not launches["search_alone"]


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        (Shape("rotation", 2, (9, 9)), [15, 16, 17, 18, 40]),  # nine parts
        (Shape("brute", 2, (8, 2)), [13, 14, 15, 16]),
        (Shape("brute", 13), [312, 300]),  # parts of a node of more than 255 keys
        (Shape("rotation", 2, (2, 2)), [3000, 1, 2999]),  # halves upon halves
        (Shape("rotation", 7), [9000, 5]),
    ],
)
@pytest.mark.parametrize("name", ["alone", "both"])
def test_splittings(name: str, shape: Shape, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, WAYS[name])
    both(shape, draw_los(sizes, 7))


def test_low_words_that_overflow() -> None:
    """Numbers carry into the upper half of a key's word."""
    draw = random.Random(3)
    for method in METHODS:
        for depth in range(3):
            low = -(depth + 1) * 0x9E3779B97F4A7C15 % (1 << 32)
            keys = [draw.getrandbits(32) << 32 | (low - draw.randrange(300)) % (1 << 32) for _ in range(48)]
            both(Shape(method, 8), [keys[:8], keys[8:]])


@pytest.mark.parametrize("preset", list(ms.PRESETS))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 300, 3000])
def test_files(n: int, method: str, preset: str, launches: Counter[str]) -> None:
    if preset == "smallest" and n > 300:
        n = 600
    keys = [b"key %d" % i for i in range(n)]
    options: dict[str, Any] = {"preset": preset, "method": method, "seed": n, "fingerprint_bits": 7}
    built = [ms.Filter.build(keys, backend=backend, **options).to_bytes() for backend in (BACKEND, "native")]
    assert built[0] == built[1]
    assert bool(launches["place_by_rice"]) == bool(n)


@pytest.mark.parametrize("bucket_size", [1, 2, 7, 1000, 65_535])
def test_bucket_sizes(bucket_size: int) -> None:
    keys = np.arange(70_000 if bucket_size > 1000 else 5000)
    for method in METHODS:
        options: dict[str, Any] = {"method": method, "leaf_size": 6, "bucket_size": bucket_size, "seed": 1}
        built = [ms.MPHF.build(keys, backend=backend, **options).to_bytes() for backend in (BACKEND, "native")]
        assert built[0] == built[1]


def test_groups(monkeypatch: pytest.MonkeyPatch, launches: Counter[str]) -> None:
    monkeypatch.setattr(SESSION.device, "memory", 2 * 56 * 20_000)
    seen: list[tuple[int, int]] = []
    keys, options = np.arange(70_000), {"method": "rotation", "leaf_size": 6, "seed": 1}
    built = ms.MPHF.build(keys, backend=BACKEND, progress=lambda *done: seen.append(done), **options)
    assert built.to_bytes() == ms.MPHF.build(keys, backend="native", **options).to_bytes()
    assert launches["place_by_rice"] == 4 and len(seen) == 5 and seen[-1] == (70_000, 70_000)


def test_launches_do_not_grow_with_n(launches: Counter[str]) -> None:
    counts = []
    for n in (1000, 30_000):
        launches.clear()
        ms.MPHF.build(np.arange(n), method="brute", leaf_size=8, bucket_size=100, seed=1, backend=BACKEND)
        counts.append(sum(launches.values()))
    assert counts[0] == counts[1] < 20


def test_work_of_a_launch_is_bounded(monkeypatch: pytest.MonkeyPatch, launches: Counter[str]) -> None:
    take(monkeypatch, WAYS["alone, few numbers a launch"])
    both(Shape("brute", 8), draw_los([8], 1))
    assert launches["search_alone"] > 10 and launches["look_for_equal"] == 1


# equal keys, and nodes without a solution


def equal_somewhere(m: int, seed: int) -> Iterator[list[int]]:
    for los in draw_los([m] * 2, seed):
        los[-1] = los[0]
        yield los


@pytest.mark.parametrize(("leaf", "m"), [(2, 2), (2, 40), (3, 3), (8, 8), (8, 100), (12, 12), (24, 24), (24, 70)])
@pytest.mark.parametrize("method", METHODS)
def test_equal_words_are_reported(method: str, leaf: int, m: int, way: Way, launches: Counter[str]) -> None:
    for los in [*equal_somewhere(m, 3), [5] * m]:
        if m == 70:
            los = [5] * m  # else its leaves of 24 take for ever
        with pytest.raises(_build._Unsolved):
            on_device(Shape(method, leaf), [[1, 2], los])
    assert sum(launches.values()) < 20_000


def test_duplicates() -> None:
    keys = np.concatenate([np.arange(2000), [7]])
    for method in METHODS:
        with pytest.raises(ms.DuplicateKeyError, match="7 in records 7 and 2000"):
            ms.MPHF.build(keys, method=method, backend=BACKEND)
        one, other = (ms.Filter.build(keys, method=method, seed=1, backend=backend) for backend in (BACKEND, "native"))
        assert one.to_bytes() == other.to_bytes()


def test_a_budget_ends_every_search(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    def cut(self: Any, *arguments: Any) -> None:
        shapes(self, *arguments)
        self.budget[:] = np.minimum(self.budget, 3)

    shapes = _device_levels.Shapes.__init__
    monkeypatch.setattr(_device_levels.Shapes, "__init__", cut)
    with pytest.raises(ms.BuildError, match="9 seeds"):
        ms.MPHF.build(np.arange(300), method="brute", backend=BACKEND)


def test_buckets_beyond_what_a_position_reaches() -> None:
    hi, lo = np.zeros(65_537, np.uint64), np.arange(65_537, dtype=np.uint64)
    options = Options("brute", 5, 65_535, UNUSED)
    with pytest.raises(_build._Unsolved):
        build_hashed(hi, lo, 0, options)
    with pytest.raises(_build._Unsolved):
        build_on([SESSION], hashed(hi, lo), 0, options, records=True, hashed=True)


def test_a_device_that_errs_makes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    over = _device.Session.over

    def broken(self: Any, name: str, count: int, *arguments: Any) -> Any:
        if name == "pack_buckets":  # one number is lost
            count_, slots, starts, offsets, nodes, numbers, *others = arguments
            arguments = count_, slots, starts, offsets, nodes, self.device.zeros(numbers.nbytes), *others
        return over(self, name, count, *arguments)

    monkeypatch.setattr(_device.Session, "over", broken)
    with pytest.raises(ms.BuildError, match="no bijection"):
        ms.MPHF.build(np.arange(1000), method="brute", backend=BACKEND)
