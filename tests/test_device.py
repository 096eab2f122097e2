"""Kernels, run on the processor through PoCL, and on GPUs where there are any: the device's files are native code's,
byte for byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import FANOUTS, ROOMS, Shape, draw_los, first_hash, hashed, hashes_of

import mphfstore as ms
from mphfstore import _build, _device, _device_chained, _device_keys, _options
from mphfstore._build import Index, build_hashed
from mphfstore._device_build import build_on
from mphfstore._options import Options

pytestmark = pytest.mark.usefixtures("every_device")
BACKEND, SESSION = "", Any  # every_device sets them


def both(monkeypatch: pytest.MonkeyPatch, keys: Any, shape: Shape, bucket_size: int, seed: int = 1) -> ms.Filter:
    """A filter built on the device, after it is compared with native code's."""
    monkeypatch.setitem(_options.PRESETS, "tested", shape.preset(bucket_size))
    options: dict[str, Any] = {"preset": "tested", "seed": seed, "fingerprint_bits": 7}
    built = ms.Filter.build(keys, backend=BACKEND, **options)
    assert built.to_bytes() == ms.Filter.build(keys, backend="native", **options).to_bytes()
    return built


@pytest.fixture
def native_buckets(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many buckets native code built for the device, one entry per group."""
    counts: list[int] = []
    rest = _device_chained.ChainedSearch._build_rest

    def counted(self: Any, group: Any, buckets: Any, *others: Any) -> None:
        counts.append(len(buckets))
        rest(self, group, buckets, *others)

    monkeypatch.setattr(_device_chained.ChainedSearch, "_build_rest", counted)
    return counts


def agree(hi: Any, lo: Any, options: Options) -> None:
    """A function of keys that have these hashes: the device's is compared with native code's."""
    native = build_hashed(hi, lo, 0, options)
    device = build_on([SESSION], hashed(hi, lo), 0, options, records=True, hashed=True)
    for name in Index.__dataclass_fields__:
        if name != "parameters":
            assert np.array_equal(getattr(native, name), getattr(device, name)), name


@pytest.mark.parametrize("preset", list(ms.PRESETS))
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 300, 5000])
def test_files_of_presets(n: int, preset: str, native_buckets: list[int]) -> None:
    keys = [b"key %d" % i for i in range(n)]
    built = [ms.MPHF.build(keys, preset=preset, seed=n, backend=backend).to_bytes() for backend in (BACKEND, "native")]
    assert built[0] == built[1]
    assert sum(native_buckets) == 0


@pytest.mark.parametrize("leaf", range(2, 17))
def test_files_of_every_leaf_size(leaf: int, monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    for number, room in enumerate(ROOMS):
        fanouts = FANOUTS[(leaf + number) % len(FANOUTS)]
        if leaf > 9 and fanouts[0] == 8:  # more than 24 bits for a number
            fanouts = (4, 3, 4)
        shape = Shape(leaf, fanouts, room, ROOMS[(number + 2) % 5], (4, 1, 16)[number % 3])
        both(monkeypatch, np.arange(1500), shape, (1, 5, 40, 100, 30)[number])
    assert len(native_buckets) == 5


@pytest.mark.parametrize("shape", [Shape.of_preset("balanced"), Shape(4, (3, 5, 2), 100, 200, 2)])
def test_every_bucket_alone(shape: Shape, native_buckets: list[int]) -> None:
    """Bit strings compared bucket by bucket: every size up to 60 in one function."""
    hi, lo = hashes_of(draw_los(range(61), 5))
    options = Options("chained", shape.leaf, 30, shape.chain)
    assert -(-len(hi) // 30) == 61
    agree(hi, lo, options)
    assert native_buckets == [0]


def test_buckets_of_thousands_of_keys(native_buckets: list[int]) -> None:
    shape = Shape(14, (4, 4, 4), 10, 13, 10)
    agree(*hashes_of(draw_los([7000, 1, 0, 3000], 5)), Options("chained", shape.leaf, 2501, shape.chain))
    assert native_buckets == [0]


@pytest.mark.parametrize("items", [1, 3, 64])
def test_work_groups_of_other_sizes(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_chained, "ITEMS", {SESSION.device.gpu: items})
    both(monkeypatch, np.arange(3000), Shape.of_preset("fast"), 80)


def test_launches_and_transfers(monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    monkeypatch.setattr(_device_chained, "LAUNCH_BUCKETS", 100)
    monkeypatch.setattr(_device_keys, "CHUNK_BYTES", 5000)
    both(monkeypatch, np.arange(20_000), Shape.of_preset("balanced"), 60)
    both(monkeypatch, [f"{i}" * (i % 40) + f" {i}" for i in range(9000)], Shape.of_preset("balanced"), 60)
    both(monkeypatch, np.array([f"{i:x}" * (i % 4) + f" {i}" for i in range(9000)], "S"), Shape.of_preset("fast"), 60)
    assert native_buckets == [0, 0, 0]


def test_groups_of_buckets(monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    """More keys than the device has memory for."""
    monkeypatch.setattr(SESSION.device, "memory", 2 * 56 * 20_000)
    seen: list[tuple[int, int]] = []
    keys = np.arange(70_000)
    built = ms.Filter.build(keys, seed=1, backend=BACKEND, progress=lambda *done: seen.append(done))
    assert built.to_bytes() == ms.Filter.build(keys, seed=1, backend="native").to_bytes()
    assert native_buckets == [0, 0, 0, 0] and len(seen) == 5
    assert seen[0] == (0, 70_000) and seen == sorted(seen) and seen[-1] == (70_000, 70_000)


def test_several_devices(monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    """They share the groups; here two of the same one."""
    both_devices = [SESSION, _device.Session(_device._found(BACKEND)[0])]
    monkeypatch.setattr(SESSION.device, "memory", 2 * 56 * 10_000)
    keys, ran = np.arange(70_000), set()
    launch = type(SESSION.device).launch

    def noted(self: Any, *given: Any) -> Any:
        ran.add(id(self))
        return launch(self, *given)

    monkeypatch.setattr(type(SESSION.device), "launch", noted)
    monkeypatch.setattr(_device, "sessions", lambda backend: both_devices)
    built = ms.Filter.build(keys, seed=1, backend=BACKEND)
    assert built.to_bytes() == ms.Filter.build(keys, seed=1, backend="native").to_bytes()
    assert ran == {id(session.device) for session in both_devices} and native_buckets == [0] * 7


def test_buckets_too_large_for_local_memory(monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    shape = Shape.of_preset("balanced")
    tables = _build._tables(Options("chained", shape.leaf, 110, shape.chain).parameters(), 200)
    monkeypatch.setattr(SESSION.device, "local_memory", int(_device_chained.Demands(tables, 200).local_bytes()[110]))
    both(monkeypatch, np.arange(5000), Shape.of_preset("balanced"), 110)
    monkeypatch.setattr(SESSION.device, "local_memory", 100)
    both(monkeypatch, np.arange(500), Shape.of_preset("balanced"), 110)
    assert 0 < native_buckets[0] < 46 and native_buckets[1] == 5


def test_buckets_of_too_many_visits(monkeypatch: pytest.MonkeyPatch, native_buckets: list[int]) -> None:
    monkeypatch.setattr(_device_chained, "VISITS_PER_NODE", 1)
    both(monkeypatch, np.arange(5000), Shape.of_preset("balanced"), 100)
    assert native_buckets[0] > 10


def test_root_salts_in_the_side_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for visits in (64, 4):  # of the device's buckets, and of native ones
        monkeypatch.setattr(_device_chained, "VISITS_PER_NODE", visits)
        both(monkeypatch, np.arange(3000), Shape(6, (3, 3, 3), 0, 26, 1), 30)


def test_crowds_of_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of `lo` whose words are equal under even salts: more solutions than are held."""
    draw, shape = random.Random(4), Shape(2, (8, 2, 2), 0, 512, 16)
    los = [lo ^ apart for lo in (draw.getrandbits(64) & ~(1 << 32) for _ in range(8 * 50)) for apart in (0, 1 << 31)]
    hi = np.repeat(np.array([first_hash(i, 50) for i in range(50)], np.uint64), 16)
    options = Options("chained", shape.leaf, 16, shape.chain)
    agree(hi, np.array(los, np.uint64), options)


def test_duplicates() -> None:
    keys = np.concatenate([np.arange(2000), [7]])
    with pytest.raises(ms.DuplicateKeyError, match="7 in records 7 and 2000"):
        ms.MPHF.build(keys, backend=BACKEND)
    one, other = (ms.Filter.build(keys, seed=1, backend=backend) for backend in (BACKEND, "native"))
    assert one.to_bytes() == other.to_bytes()


def test_a_device_that_errs_makes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    launch, others = type(SESSION.device).launch, np.random.default_rng(1).integers(1 << 63, size=1000)

    def erring(self: Any, kernel: Any, *given: Any) -> Any:
        if kernel is SESSION.kernels.build_chained:  # from other keys
            given = (*given[:15], self.upload(others), *given[16:])
        return launch(self, kernel, *given)

    def idle(self: Any, *given: Any) -> None: ...

    for failing, message in ((erring, "no bijection"), (idle, "counted 0 of 1000 keys")):
        monkeypatch.setattr(type(SESSION.device), "launch", failing)
        with pytest.raises(ms.BuildError, match=message):
            ms.MPHF.build(np.arange(1000), backend=BACKEND)


def test_auto_goes_on_natively_when_a_device_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, *given: Any) -> Any:
        raise MemoryError("none left")

    monkeypatch.setattr(_device, "AUTO_KEYS", 0)
    monkeypatch.setattr(SESSION.device, "gpu", True)
    monkeypatch.setattr(type(SESSION.device), "launch", failing)
    with pytest.raises(MemoryError):
        ms.MPHF.build(np.arange(1000), backend=BACKEND)
    with pytest.warns(RuntimeWarning, match="none left; native code builds instead"):
        built = ms.MPHF.build(np.arange(1000), seed=1)
    assert built.to_bytes() == ms.MPHF.build(np.arange(1000), seed=1, backend="native").to_bytes()


def test_a_store(tmp_path: Path) -> None:
    records = {f"key {i}": i for i in range(3000)}
    for backend in (BACKEND, "native"):
        ms.build(tmp_path / backend, records, values="<u4", seed=2, backend=backend)
    assert (tmp_path / BACKEND).read_bytes() == (tmp_path / "native").read_bytes()


def test_root_salts_of_the_side_table_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    built = both(monkeypatch, np.arange(3000), Shape(6, (3, 3, 3), 0, 26, 1), 30)
    assert np.array_equal(built.to_device(BACKEND).index_many(np.arange(3000)), built.index_many(np.arange(3000)))


def test_what_progress_raises_is_not_a_device_s_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int, all: int) -> None:
        raise RuntimeError("stop, please")

    monkeypatch.setattr(_device, "AUTO_KEYS", 0)
    monkeypatch.setattr(SESSION.device, "gpu", True)
    for backend in ("auto", BACKEND):
        with pytest.raises(RuntimeError, match="stop, please"):
            ms.MPHF.build(np.arange(1000), backend=backend, progress=stop)


def test_fewer_buckets_than_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SESSION.device, "memory", 56 * 20)
    both(monkeypatch, np.arange(100), Shape.of_preset("balanced"), 40)


def test_progress_goes_on_with_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_chained, "LAUNCH_BUCKETS", 10)
    seen: list[int] = []
    ms.MPHF.build(np.arange(5000), seed=1, backend=BACKEND, progress=lambda done, all: seen.append(done))
    assert len(seen) == 5 and seen == sorted(seen) and seen[-1] == 5000
