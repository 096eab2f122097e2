"""Look-ups on devices, on the processor through PoCL and on GPUs: they find what the handle finds."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import sections_of, with_section

import mphfstore as ms
from mphfstore import _device_keys

pytestmark = pytest.mark.usefixtures("every_device")
BACKEND, SESSION = "", Any  # every_device sets them


KEYS: dict[str, Any] = {
    "texts": [f"{i}" * (i % 9) + "x" * (i % 300) + str(i) for i in range(2000)],
    "S": np.array([b"%d" % (i * i) for i in range(2000)]),
    "u8": np.arange(2000, dtype="<u8"),
    "i2": np.arange(-1000, 1000, dtype="<i2"),
}
ABSENT: dict[str, Any] = {
    "texts": ["", "absent", *(str(i) for i in range(2000, 2500))],
    "S": np.array([b"%d!" % i for i in range(500)]),
    "u8": np.arange(5000, 5500, dtype="<u8"),
    "i2": np.arange(2000, 2500, dtype="<i2"),
}


@pytest.mark.parametrize("kind", list(KEYS))
@pytest.mark.parametrize("method", ["chained", "brute", "rotation"])
def test_look_ups(kind: str, method: str, make: Any) -> None:
    keys, absent = KEYS[kind], ABSENT[kind]
    dtype = keys.dtype if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu" else None
    store = make((keys, np.arange(2000) * 7), values="<i4", key_dtype=dtype, method=method, fingerprint_bits=5)
    there = store.to_device(BACKEND)
    assert len(there) == 2000
    for batch in (keys, absent, keys[:1], keys[:0]):
        assert np.array_equal(there.index_many(batch), store.index_many(batch))
        assert np.array_equal(there.contains_many(batch), store.contains_many(batch))
        assert np.array_equal(there.get_many(batch, -1), store.get_many(batch, -1))
    assert np.array_equal(there.get_many(keys), np.arange(2000) * 7)
    with pytest.raises(KeyError):
        there.get_many(absent)


@pytest.mark.parametrize("kind", list(KEYS))
@pytest.mark.parametrize("mode", ["mmap", "pread"])
def test_exact_stores_are_never_wrong(kind: str, mode: str, tmp_path: Path) -> None:
    keys, absent = KEYS[kind], ABSENT[kind]
    dtype = keys.dtype if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu" else None
    ms.build(
        tmp_path / "s", (keys, np.arange(2000) * 7), values="<i4", key_dtype=dtype, keys="exact", fingerprint_bits=0
    )
    with ms.open(tmp_path / "s", mode=mode) as store:
        there = store.to_device(BACKEND)
        assert np.array_equal(there.get_many(keys, -1), np.arange(2000) * 7)
        assert not there.contains_many(absent).any()


def test_batches_beyond_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_keys, "CHUNK_BYTES", 5000)
    keys = KEYS["texts"]
    built = ms.Filter.build(keys, seed=1)
    assert np.array_equal(built.to_device(BACKEND).index_many(keys), built.index_many(keys))


@pytest.mark.parametrize(("preset", "bucket"), [("quick", 1), ("fast", None), ("smallest", None), ("balanced", 20_000)])
@pytest.mark.parametrize("bits", [0, 1, 8, 13, 32])
def test_look_ups_in_every_kind_of_directory(preset: str, bucket: int | None, bits: int) -> None:
    keys = np.arange(40_000, dtype=np.uint32)
    built = ms.Filter.build(keys, preset=preset, bucket_size=bucket, seed=3, fingerprint_bits=bits)
    there = built.to_device(BACKEND)
    every = np.arange(60_000, dtype=np.uint32)
    assert np.array_equal(there.index_many(every), built.index_many(every))


def test_look_ups_of_a_function() -> None:
    function = ms.MPHF.build([b"%d" % i for i in range(3000)], seed=1)
    there = function.to_device(BACKEND)
    keys = [b"%d" % i for i in range(5000)]
    assert np.array_equal(there.index_many(keys), function.index_many(keys))
    with pytest.raises(TypeError):
        there.contains_many(keys)
    empty = ms.MPHF.build([]).to_device(BACKEND)
    with pytest.raises(ValueError, match="no keys"):
        empty.index_many([b"a"])


@pytest.mark.parametrize(
    ("values", "value"),
    [
        ("bytes", lambda i: b"%d" % i),
        ("bytes", lambda i: b"%04d" % i),
        ([("a", "<f8"), ("b", "S3")], lambda i: (i / 7, b"xy")),
    ],
)
def test_values_of_other_kinds(values: Any, value: Any, make: Any) -> None:
    keys = [f"k{i}" for i in range(500)]
    store = make([(key, value(i)) for i, key in enumerate(keys)], values=values)
    there = store.to_device(BACKEND)
    expected, got = store.get_many(keys), there.get_many(keys)
    assert type(expected) is type(got) and list(expected) == list(got)
    assert len(there.get_many([])) == 0


def test_no_values(make: Any) -> None:
    there = make(["a"], values=None).to_device(BACKEND)
    with pytest.raises(TypeError, match="contains_many"):
        there.get_many(["a"])
    assert there.contains_many(["a", "b"]).tolist() == [True, False]


def test_integers_that_the_dtype_does_not_have_are_absent(make: Any) -> None:
    there = make((np.arange(10, dtype=np.uint8), np.arange(10)), values="<i8").to_device(BACKEND)
    assert there.contains_many([1, 300, -1]).tolist() == [True, False, False]
    with pytest.raises(TypeError):
        there.contains_many(["a"])
    with pytest.raises(TypeError, match="single key"):
        there.contains_many("a")


def current(there: Any) -> Any:
    """What makes arrays in the device's memory usable in this thread."""
    return there._session.device if BACKEND == "cuda" else nullcontext()


def to_memory(there: Any, array: Any) -> Any:
    if BACKEND == "cuda":
        from pycuda import gpuarray

        return gpuarray.to_gpu(array)
    import pyopencl.array

    return pyopencl.array.to_device(there.queue, array)


def test_arrays_on_the_device_stay_there(make: Any) -> None:
    keys = np.arange(3000, dtype=np.uint64)
    store = make((keys, keys * 3), values="<u8", fingerprint_bits=9)
    there = store.to_device(BACKEND)
    with current(there):
        asked = np.arange(1000, 5000, dtype=np.uint64)
        given = to_memory(there, asked)
        for call, options in (("index_many", ()), ("contains_many", ()), ("get_many", (5,))):
            got, expected = getattr(there, call)(given, *options), getattr(store, call)(asked, *options)
            assert type(got) is type(given) and got.dtype == expected.dtype
            assert np.array_equal(got.get(), expected)
        with pytest.raises(KeyError):
            there.get_many(given)
        with pytest.raises(TypeError, match="uint64"):
            there.index_many(to_memory(there, asked.astype(np.int32)))
        rows = np.frombuffer(b"".join(b"%08d" % i for i in range(1000)), np.uint8).reshape(1000, 8)
        texts = make([b"%08d" % i for i in range(900)], values=None).to_device(BACKEND)
        assert texts.contains_many(to_memory(texts, rows)).get()[:900].all()


def test_a_contradictory_file_gives_an_exception() -> None:
    data = ms.Filter.build(np.arange(3000), seed=1).to_bytes()
    directory = bytearray(sections_of(data)[3])
    directory[64:80] = b"\xff" * 16  # sizes of the first buckets
    there = ms.Filter.from_bytes(with_section(data, 3, bytes(directory))).to_device(BACKEND)
    with pytest.raises(ms.FormatError, match="contradicts"):
        there.index_many(np.arange(3000))
    with current(there):
        keys = to_memory(there, np.arange(3000))
    with pytest.raises(ms.FormatError, match="contradicts"):
        there.index_many(keys)


def test_threads_share_what_is_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_keys, "CHUNK_BYTES", 5000)
    built = ms.Filter.build(np.arange(30_000), seed=1)
    there = built.to_device(BACKEND)
    batches = [np.arange(begin, begin + 20_000) for begin in range(0, 40_000, 5000)]
    with ThreadPoolExecutor(4) as pool:
        for batch, found in zip(batches, pool.map(there.index_many, batches), strict=True):
            assert np.array_equal(found, built.index_many(batch))


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads that take turns wherever they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_use_the_same_kernels(make: Any, impatient: None) -> None:
    stores = [make((np.arange(500) * step, np.arange(500) + step), values="<i8") for step in (1, 7)]
    there = [store.to_device(BACKEND) for store in stores]
    expected = [store.get_many(np.arange(700), -1) for store in stores]

    def ask(number: int) -> bool:
        own = number % 2
        return all(np.array_equal(there[own].get_many(np.arange(700), -1), expected[own]) for _ in range(150))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(4)))


def test_keys_of_any_length_on_the_device() -> None:
    keys = [b"%d" % i * (i % 5) for i in range(1, 2000)]
    built = ms.Filter.build(keys, seed=1, on_duplicate="first")
    there = built.to_device(BACKEND)
    asked = [*keys, b"absent", b""]
    offsets = np.zeros(len(asked) + 1, np.uint64)
    np.cumsum([len(key) for key in asked], out=offsets[1:])
    data = np.frombuffer(b"".join(asked), np.uint8)
    with current(there):
        given = to_memory(there, data.copy()), to_memory(there, offsets)
        assert np.array_equal(there.index_many(given).get(), built.index_many(asked))
        with pytest.raises(TypeError, match="offsets as uint64"):
            there.index_many((given[0], to_memory(there, offsets.astype(np.int32))))


SECTIONS = {"trees": 2, "directory": 3, "fingerprints": 16, "keys": 20, "offsets of keys": 21}


@pytest.mark.parametrize("method", ["chained", "brute", "rotation"])
@pytest.mark.parametrize("section", list(SECTIONS))
def test_damaged_files_give_native_code_s_answers(section: str, method: str, tmp_path: Path, random_seed: int) -> None:
    draw = random.Random(random_seed)
    keys = [b"%d:" % i + b"x" * (i % 4) for i in range(300)]
    ms.build(tmp_path / "s", keys, values=None, keys="exact", method=method, bucket_size=20, seed=1, fingerprint_bits=3)
    data = (tmp_path / "s").read_bytes()
    part = sections_of(data)[SECTIONS[section]]
    asked = [*keys, *(b"no %d" % i for i in range(100))]
    for _ in range(25):
        damaged = bytearray(part)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(part))
            damaged[at : at + draw.choice([1, 1, 8])] = draw.choice([b"\xff" * 8, b"\0" * 8, draw.randbytes(8)])[
                : len(part) - at
            ]
        damaged = damaged[: len(part)]
        try:
            store = ms.Store.from_bytes(with_section(data, SECTIONS[section], bytes(damaged)))
        except ms.FormatError:
            continue
        answers = []
        for find in (store.index_many, store.to_device(BACKEND).index_many):
            try:
                answers.append(find(asked).tolist())
            except ms.FormatError:
                answers.append("refused")
        assert answers[0] == answers[1]
