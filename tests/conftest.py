"""What the tests share: building a store, taking a file apart and putting it together again, running Python in a
process of its own."""

from __future__ import annotations

import os
import random
import secrets
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import settings

import mphfstore
from mphfstore import _cuda, _device, _opencl

HEADER, ENTRY, BLOCK, BLOCK_SUMS = 128, 32, 65_536, 4  # FORMAT.md §1

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("mphfstore", deadline=None, max_examples=40, print_blob=True)
settings.load_profile("mphfstore")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., mphfstore.Store]]:
    """make(items, **options): the store of these items, opened; a file of its own every time."""
    opened: list[mphfstore.Store] = []

    def made(items: Any, **options: Any) -> mphfstore.Store:
        path = tmp_path / f"{len(opened)}.mph"
        mphfstore.build(path, items, **options)
        store = mphfstore.open(path)
        assert isinstance(store, mphfstore.Store)
        opened.append(store)
        return store

    yield made
    for store in opened:
        store.close()


@pytest.fixture
def random_seed() -> int:
    """Another one in every run, unless MPHFSTORE_TEST_SEED gives it; pytest shows the line when a test fails."""
    seed = int(os.environ.get("MPHFSTORE_TEST_SEED") or secrets.randbits(32))
    print(f"MPHFSTORE_TEST_SEED={seed}")
    return seed


def described(value: object) -> str:
    """A parameter in a test's name, the same in every process."""
    return "object" if type(value) is object else f"{value!r:.30}"


def names_in(directory: Path) -> list[str]:
    """Everything in a directory, hidden files too."""
    return sorted(os.listdir(directory))


def python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs code in an interpreter that may die without taking the tests with it."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def start_python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """The same in the background. The code prints a line when it is ready, which is waited for here."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise AssertionError(process.communicate()[1])
    return process


def table(data: bytes) -> dict[int, tuple[int, int]]:
    """Offset and length of every section, by its kind."""
    (count,) = struct.unpack_from("<H", data, 10)
    entries = struct.iter_unpack("<IIQQQ", data[HEADER : HEADER + ENTRY * count])
    return {kind: (offset, length) for kind, _, offset, length, _ in entries}


def sections_of(data: bytes) -> dict[int, bytes]:
    """The contents of every section."""
    return {kind: data[offset : offset + length] for kind, (offset, length) in table(data).items()}


def assemble(header: bytes, sections: dict[int, bytes]) -> bytes:
    """A file of these sections in which every length, offset and checksum is right; all other fields of the header,
    and the contents, are as given. Block sums are made anew."""
    sections = {kind: content for kind, content in sections.items() if kind != BLOCK_SUMS}
    runs = {
        kind: b"".join(_sum(content[at : at + BLOCK]) for at in range(0, len(content), BLOCK))
        for kind, content in sorted(sections.items())
        if kind >= 16
    }
    if runs:
        sections[BLOCK_SUMS] = b"".join(runs.values())
    body, entries, start = b"", b"", HEADER + ENTRY * len(sections)
    for kind, content in sorted(sections.items()):
        body += bytes(-(start + len(body)) % 64)
        entries += struct.pack("<IIQQ", kind, 0, start + len(body), len(content)) + _sum(runs.get(kind, content))
        body += content
    counted = header[:10] + struct.pack("<H", len(sections)) + header[12:16] + struct.pack("<Q", start + len(body))
    head = counted + bytes(8) + header[32:HEADER] + entries
    return head[:24] + _sum(head) + head[32:] + body


def patched(data: bytes, offset: int, layout: str, *values: int) -> bytes:
    """A file with other numbers at an offset of its header, and right checksums."""
    header = bytearray(data[:HEADER])
    struct.pack_into("<" + layout, header, offset, *values)
    return assemble(bytes(header), sections_of(data))


def damaged(content: bytes, rng: random.Random) -> bytearray:
    """Bytes of which one or some have a flipped bit."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 4, 30])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return changed


def with_section(data: bytes, kind: int, content: bytes | None) -> bytes:
    """A file with another section, or without it, and right checksums."""
    sections = {**sections_of(data), kind: content}
    return assemble(data[:HEADER], {number: part for number, part in sections.items() if part is not None})


def _sum(data: bytes) -> bytes:
    return struct.pack("<Q", xxhash.xxh3_64_intdigest(data))


RECORDS = {f"key {i}": b"value %d" % i * (i % 5) for i in range(1000)}


@pytest.fixture(scope="module", params=["mmap", "pread", "ram"])
def store(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[mphfstore.Store]:
    path = tmp_path_factory.mktemp("store") / "records.mph"
    mphfstore.build(path, RECORDS, fingerprint_bits=32, seed=1, metadata={"of": "tests"})
    with mphfstore.open(path, mode=request.param) as opened:
        assert isinstance(opened, mphfstore.Store)
        yield opened


DEVICES: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "pocl": ("opencl", lambda: [one for one in _opencl.devices() if not one.gpu]),
    "opencl": ("opencl", lambda: [one for one in _opencl.devices() if one.gpu]),
    "cuda": ("cuda", _cuda.devices),
}
GPUS = [pytest.param(kind, marks=pytest.mark.gpu) for kind in ("opencl", "cuda")]


@cache
def lacks(kind: str) -> str | None:
    """Why the tests cannot run on such a device."""
    backend, finder = DEVICES[kind]
    try:
        return None if finder() else f"{backend} has no {'processor' if kind == 'pocl' else 'GPU'}"
    except mphfstore.UnavailableError as error:
        return str(error)


def pytest_report_header() -> list[str]:
    return [f"not run, tests marked gpu: {reason}" for kind in ("opencl", "cuda") if (reason := lacks(kind))]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Hundreds of skipped tests would hide one that is skipped for another reason."""
    device_of = {item: item.callspec.params.get("every_device") for item in items if hasattr(item, "callspec")}
    left_out = [item for item, kind in device_of.items() if kind in ("opencl", "cuda") and lacks(kind)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="module", params=["pocl", *GPUS])
def every_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs a module's tests on the processor and on real GPUs. Sets its BACKEND and SESSION."""
    if reason := lacks(request.param):
        pytest.skip(reason)
    backend, finder = DEVICES[request.param]
    others = _device._found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_device, "_found", lambda asked: finder() if asked == backend else others(asked))
        patch.setattr(_device, "_sessions", cache(_device._sessions.__wrapped__))
        request.module.BACKEND, request.module.SESSION = backend, _device.sessions(backend)[0]
        yield
