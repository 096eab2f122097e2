"""The adapter for PyCUDA, over a stand-in for that (pycuda_double): the same bytes and answers as native code's, and no
context, memory or thread left in a state that PyCUDA minds."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import Shape

import mphfstore as ms
from mphfstore import _cuda, _cuda_arrays, _device, _device_chained, _device_keys, _dlpack, _opencl, _options

pytest.importorskip("pyopencl", exc_type=ImportError)
try:
    _opencl.devices()
except ms.UnavailableError as error:
    pytest.skip(str(error), allow_module_level=True)

import pycuda_double
from pycuda_double import driver, gpuarray


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PyCUDA is the stand-in, and at the end finds nothing to complain of and all memory freed."""
    with pycuda_double.installed():
        monkeypatch.setattr(_cuda_arrays, "place_of", driver.place_of)
        monkeypatch.setattr(_device, "_sessions", cache(_device._sessions.__wrapped__))
        yield
        _device._sessions.cache_clear()
        gc.collect()
        assert driver.Context.get_current() is None
        assert driver.blocks == {}
    faults, driver.FAULTS[:] = list(driver.FAULTS), []
    assert faults == []


def in_a_thread(call: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found.pop()


@pytest.mark.parametrize("preset", list(ms.PRESETS))
@pytest.mark.parametrize("n", [0, 1, 2, 300, 5000])
def test_files(n: int, preset: str) -> None:
    keys = [b"key %d" % i for i in range(n)]
    built = [ms.MPHF.build(keys, preset=preset, seed=n, backend=backend).to_bytes() for backend in ("cuda", "native")]
    assert built[0] == built[1]


def test_a_store(tmp_path: Path) -> None:
    records = {f"key {i}" * (i % 5 + 1): i for i in range(3000)}
    for backend in ("cuda", "native"):
        ms.build(tmp_path / backend, records, values="<u4", seed=2, backend=backend)
    assert (tmp_path / "cuda").read_bytes() == (tmp_path / "native").read_bytes()


def test_transfers_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Page-locked memory is used again and again, for keys that do not fit the device at once."""
    monkeypatch.setattr(_device_keys, "CHUNK_BYTES", 5000)
    monkeypatch.setattr(_device_chained, "LAUNCH_BUCKETS", 100)
    monkeypatch.setattr(driver.Device, "total_memory", lambda self: 2 * 56 * 20_000)
    for keys in (np.arange(50_000), [f"{i}" * (i % 40) + f" {i}" for i in range(50_000)]):
        one, other = (ms.Filter.build(keys, seed=1, backend=backend).to_bytes() for backend in ("cuda", "native"))
        assert one == other


def test_several_devices_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "DEVICES", [2])
    monkeypatch.setattr(driver.Device, "total_memory", lambda self: 2 * 56 * 10_000)
    keys, ran = np.arange(70_000), set()
    record = driver.Event.record

    def noted(self: Any, stream: None = None) -> Any:
        ran.add(driver.Context.get_device()._number)
        return record(self, stream)

    monkeypatch.setattr(driver.Event, "record", noted)
    one, other = (ms.Filter.build(keys, seed=1, backend=backend).to_bytes() for backend in ("cuda", "native"))
    assert one == other and ran == {0, 1}


def test_much_shared_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    set_attribute = pycuda_double.compiler.Function.set_attribute

    def noted(self: Any, attribute: str, value: int) -> None:
        asked.append(value)
        set_attribute(self, attribute, value)

    monkeypatch.setattr(pycuda_double.compiler.Function, "set_attribute", noted)
    shape = Shape.of_preset("balanced")
    monkeypatch.setitem(_options.PRESETS, "tested", shape.preset(7000))
    one, other = (
        ms.Filter.build(np.arange(14_000), preset="tested", seed=1, backend=backend).to_bytes()
        for backend in ("cuda", "native")
    )
    assert one == other
    assert asked and min(asked) > _cuda.USUAL_SHARED_MEMORY


def test_events_take_time_when_they_are_over() -> None:
    device = _device.sessions("cuda")[0].device
    memory, buffer = device.pinned(100), device.empty(100)
    memory[:] = np.arange(100)
    event = device.send(buffer, memory)
    assert event.seconds() == 1e-3
    event.wait()
    out = np.empty(50, np.uint8)
    device.download(buffer, out, 20)
    assert out.tolist() == list(range(20, 70))


@pytest.mark.parametrize("keys", [np.arange(2000, dtype="<u8"), [f"{i}" * (i % 30 + 1) for i in range(2000)]])
def test_look_ups(keys: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device_keys, "CHUNK_BYTES", 5000)
    store = make((keys, np.arange(2000) * 7), values="<i4", keys="exact")
    there = store.to_device("cuda")
    for batch in (keys, keys[:1], keys[:0]):
        assert np.array_equal(there.get_many(batch, -1), store.get_many(batch, -1))
        assert np.array_equal(there.contains_many(batch), store.contains_many(batch))


class Exporting:
    """What another library's array is here: the same memory by `__cuda_array_interface__` or by DLPack."""

    def __init__(self, array: Any, dlpack: bool = False, **others: Any) -> None:
        self._array, face = array, array.__cuda_array_interface__
        if not dlpack:
            self.__cuda_array_interface__ = {**face, "strides": None, "stream": 7, "data": (face["data"][0], True)}
            return
        shape = (ctypes.c_int64 * len(face["shape"]))(*face["shape"])
        place = {"data": face["data"][0], "device_type": _dlpack.CUDA, "ndim": len(shape), "shape": shape}
        self._tensor = _dlpack.Tensor(**{**place, "code": 1, "bits": 8 * array.dtype.itemsize, "lanes": 1, **others})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.device_type, self._tensor.device_id

    def __dlpack__(self, stream: int | None = None) -> Any:
        assert stream == 1
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self._tensor), b"dltensor", None)


@pytest.fixture
def context() -> Iterator[Any]:
    """The primary context, current as `pycuda.autoprimaryctx` makes it."""
    primary = driver.Device(0).retain_primary_context()
    primary.push()
    yield primary
    assert driver.Context.get_current() is primary
    primary.pop()


@pytest.mark.parametrize("as_given", [lambda a: a, Exporting, lambda a: Exporting(a, dlpack=True)])
def test_arrays_on_the_device_stay_there(as_given: Any, context: Any, make: Any) -> None:
    keys = np.arange(3000, dtype=np.uint64)
    store = make((keys, keys * 3), values="<u8", fingerprint_bits=9)
    there = store.to_device("cuda")
    asked = np.arange(1000, 5000, dtype=np.uint64)
    memory = gpuarray.to_gpu(asked)
    for part, expected in ((memory, asked), (memory[100:700], asked[100:700]), (memory[:0], asked[:0])):
        given = as_given(part)
        for call, options in (("index_many", ()), ("contains_many", ()), ("get_many", (5,))):
            got, wanted = getattr(there, call)(given, *options), getattr(store, call)(expected, *options)
            assert isinstance(got, gpuarray.GPUArray) and got.dtype == wanted.dtype
            assert np.array_equal(got.get(), wanted)
    with pytest.raises(KeyError, match="2000"):
        there.get_many(as_given(memory))
    with pytest.raises(TypeError, match="uint64"):
        there.index_many(as_given(gpuarray.to_gpu(asked.astype(np.uint32))))
    rows = np.frombuffer(b"".join(b"%08d" % i for i in range(1000)), np.uint8).reshape(1000, 8)
    texts = make([b"%08d" % i for i in range(900)], values=None).to_device("cuda")
    assert texts.contains_many(as_given(gpuarray.to_gpu(rows))).get()[:900].all()


def test_arrays_that_cannot_be_taken(context: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = make(np.arange(10, dtype=np.uint64), values=None).to_device("cuda")
    keys = gpuarray.to_gpu(np.arange(10, dtype=np.uint64))
    with pytest.raises(ValueError, match="not contiguous"):
        there.index_many(keys[::2])
    with pytest.raises(TypeError, match="uint64"):
        there.index_many(Exporting(keys, dlpack=True, code=0))
    for place, message in (((0x1000, 1), "on CUDA device 1"), ((0x2000, 0), "autoprimaryctx")):
        with monkeypatch.context() as patch:
            patch.setattr(_cuda_arrays, "place_of", lambda address, place=place: place)
            for given in (keys, Exporting(keys), Exporting(keys, dlpack=True)):
                with pytest.raises(ValueError, match=message):
                    there.index_many(given)
    with monkeypatch.context() as patch:
        patch.setattr(_cuda_arrays, "place_of", lambda address: (0, 0))  # of a pool
        there.index_many(keys)


def test_memory_of_the_host_is_sent(make: Any) -> None:
    """numpy's arrays have DLPack's methods, too."""
    there = make(np.arange(10, dtype=np.uint64), values=None).to_device("cuda")
    assert there.contains_many(np.arange(20, dtype=np.uint64)).tolist() == [True] * 10 + [False] * 10


def test_any_thread_looks_up_and_lets_go(make: Any) -> None:
    store = make((np.arange(100), np.arange(100)), values="<i4")
    held = [in_a_thread(lambda: store.to_device("cuda"))]
    assert np.array_equal(held[0].get_many(np.arange(100)), np.arange(100))
    assert in_a_thread(lambda: held[0].get_many(np.arange(100))).sum() == 4950
    in_a_thread(held.clear)
    in_a_thread(_device._sessions.cache_clear)


def test_a_context_of_the_users_stays_current(make: Any) -> None:
    other = driver.Device(0).retain_primary_context()
    other.handle = 0x5000
    other.push()
    there = make(np.arange(100), values=None).to_device("cuda")
    assert there.contains_many(np.arange(100)).all()
    assert driver.Context.get_current() is other
    other.pop()


def test_a_forked_child_is_told(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = make(np.arange(100), values=None).to_device("cuda")
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        with pytest.raises(ms.UnavailableError, match="fork"):
            there.contains_many(np.arange(100))
    assert there.contains_many(np.arange(100)).all()


def test_no_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*given: Any, **others: Any) -> Any:
        raise OSError("error invoking 'nvcc --version'")

    monkeypatch.setattr(pycuda_double.compiler, "SourceModule", failing)
    with pytest.raises(ms.UnavailableError, match=r"nvcc of CUDA's toolkit in PATH \(error invoking"):
        ms.MPHF.build(np.arange(100), backend="cuda")


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "DEVICES", [0])
    with pytest.raises(ms.UnavailableError, match="finds no device"):
        _cuda.devices()

    def failing(flags: int = 0) -> None:
        raise driver.LogicError("cuInit failed: no CUDA-capable device is detected")

    monkeypatch.setattr(driver, "init", failing)
    with pytest.raises(ms.UnavailableError, match="no CUDA-capable device"):
        _cuda.devices()


def test_the_command_lists_it() -> None:
    listed = [one for one in _device.devices() if one["backend"] == "cuda"]
    assert listed == [{"backend": "cuda", "name": "stand-in 0", "gpu": True, "units": 2, "memory": 1 << 32}]
