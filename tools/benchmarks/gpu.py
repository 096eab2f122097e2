"""`bench.py gpu`: builds and look-ups on a device, stage by stage, beside native code.

A stage is a kernel or a direction of transfer: its seconds on the device by the driver's own clock, its calls and
bytes; of a kernel also work-groups, items and local memory of each, and on CUDA how many warps a multiprocessor holds
of those it could (`occupancy`). Keys are 16 random bytes, and lie in the host's memory when a build begins."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np

from mphfstore import PRESETS, Filter, UnavailableError
from mphfstore._build import build_hashed, hash_batch
from mphfstore._device import Session, kernel_text, sessions
from mphfstore._device_build import build_on
from mphfstore._device_lookup import OnDevice, kernel_name
from mphfstore._format import Kind
from mphfstore._handle import write
from mphfstore._keys import BytesKeys, KeyBatch
from mphfstore._options import Options
from mphfstore._publish import Memory
from mphfstore._source import aligned

from . import record
from .measure import Timings, ratio
from .mphf import options_of
from .rounds import Record
from .subject import check

WIDTH = 16  # bytes of a key


def add_command(commands: Any) -> None:
    parser = commands.add_parser("gpu", help=str(__doc__).split(": ", 1)[1].partition("\n")[0])
    parser.add_argument("points", nargs="*", default=list(PRESETS), help="as for mphf (default: all presets)")
    parser.add_argument("--backend", default="opencl", choices=("cuda", "opencl"))
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1, help="of native code")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-native", action="store_true", help="the device alone")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    points = {point: options_of(point, arguments.threads) for point in arguments.points}
    try:
        session = sessions(arguments.backend)[0]
    except UnavailableError as error:
        raise SystemExit(f"bench.py gpu: {error}") from None
    device = session.device
    about = {"backend": device.backend, "device": device.name, "is_gpu": device.gpu, "units": device.units}
    asked = {name: getattr(arguments, name) for name in ("keys", "threads", "repeats", "seed")}
    rng = np.random.default_rng(arguments.seed)
    rows = rng.integers(1, 256, (arguments.keys, WIDTH), np.uint8)  # no NUL: numpy would take it for padding
    for point, options in points.items():
        record.say(f"gpu, {point}")
        result = bench(point, options, Watched(session), rows, arguments)
        version = record.version("mphfstore")
        record.emit({"benchmark": "gpu", **result, **about, **asked, "version": version, **record.environment()})


class Watched:
    """A session whose device notes what it is asked to do."""

    def __init__(self, session: Session) -> None:
        self._device = session.device
        self.session: Any = Session.__new__(Session)
        self.session.device, self.session.kernels = self, _Named(session.device.compile(kernel_text()))
        self.stages: dict[str, Record] = {}
        self._pending: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def _note(self, name: str, event: Any, **more: Any) -> Any:
        stage = self.stages.setdefault(name, {"calls": 0, "bytes": 0, "ms": 0.0})
        stage["calls"] += 1
        stage["bytes"] += more.pop("bytes", 0)
        stage.update(more)
        if event is not None:
            self._pending.append((name, event))
        return event

    def launch(self, kernel: Any, groups: int, items: int, local_bytes: int, *arguments: Any) -> Any:
        name, function = kernel
        event = self._device.launch(function, groups, items, local_bytes, *arguments)
        shape = {"groups": groups, "items": items, "local_bytes": local_bytes}
        full = occupancy(self._device, function, items, local_bytes)
        return self._note(name, event, **shape, **({} if full is None else {"occupancy": full}))

    def send(self, buffer: Any, array: Any) -> Any:
        return self._note("send", self._device.send(buffer, array), bytes=array.nbytes)

    def upload(self, array: Any) -> Any:
        self._note("upload", None, bytes=array.nbytes)
        return self._device.upload(array)

    def download(self, buffer: Any, out: Any, begin: int = 0) -> None:
        self._note("download", None, bytes=out.nbytes)
        self._device.download(buffer, out, begin)

    def settled(self) -> dict[str, Record]:
        """What was noted since the last time."""
        for name, event in self._pending:
            self.stages[name]["ms"] = round(self.stages[name]["ms"] + 1e3 * event.seconds(), 3)
        stages, self.stages, self._pending = self.stages, {}, []
        return stages


class _Named:
    """Kernels that go with their names."""

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels

    def __getattr__(self, name: str) -> tuple[str, Any]:
        return name, getattr(self._kernels, name)


def occupancy(device: Any, function: Any, items: int, local_bytes: int) -> float | None:
    """Warps that a CUDA multiprocessor holds, of those it could: by registers, shared memory and blocks."""
    if device.backend != "cuda":
        return None
    from pycuda.tools import DeviceData, OccupancyRecord

    with device:
        held = OccupancyRecord(DeviceData(), items, local_bytes + function.shared_size_bytes, function.num_regs)
    return round(float(held.occupancy), 3)


def bench(point: str, options: Options, watched: Watched, rows: Any, arguments: Any) -> Record:
    """Builds from keys in memory; looks up keys that lie on the device, and keys that do not."""
    keys, count, seed, timings = (
        KeyBatch(rows.reshape(-1), len(rows), width=WIDTH),
        len(rows),
        arguments.seed,
        Timings(),
    )
    build_on([watched.session], KeyBatch(rows[:1000].reshape(-1), 1000, width=WIDTH), seed, options, records=False)
    stages: list[dict[str, Record]] = []
    for _ in range(arguments.repeats):
        watched.settled()
        built = timings.run("build", count, lambda: build_on([watched.session], keys, seed, options, records=False))
        stages.append(watched.settled())
        if not arguments.no_native:
            native = timings.run("native", count, lambda: native_build(rows, options, seed))
    if not arguments.no_native:
        check(np.array_equal(built.trees, native), f"{point}: the device's bits are not native code's")
    memory, kind = Memory(), BytesKeys()
    write(memory, build_on([watched.session], keys, seed, options, records=True), Kind.FILTER, kind, fingerprint_bits=8)
    filter = Filter(aligned(memory.data))
    there = OnDevice(filter._current(), watched.session)
    queries = rows[np.random.default_rng(seed).permutation(count)].view(f"S{WIDTH}").reshape(-1)
    resident = watched.upload(queries)
    given = resident, resident, np.uint32(0), np.uint64(WIDTH), np.uint32(0), np.uint64(count)
    resident_ms = []
    for _ in range(arguments.repeats):
        found = timings.run("batched", count, lambda: there.index_many(queries))
        watched.settled()
        there._find(given, count, watched.zeros(4))
        resident_ms.append(watched.settled()[kernel_name("look_up", filter._current().file.header)]["ms"])
    check(bool((found >= 0).all()), f"{point}: keys that are not found")
    fields = timings.fields()
    return {
        "subject": point,
        "bits_per_key": round(8 * (built.trees.nbytes + built.directory.nbytes) / count, 4),
        **fields,
        "resident_ns": round(1e6 * float(np.median(resident_ms)) / count, 3),
        "build_ratio": ratio(fields["build_ns"], fields.get("native_ns")),
        "stages": median_stages(stages),
    }


def native_build(rows: Any, options: Options, seed: int) -> Any:
    """The bits that native code finds."""
    hi, lo = hash_batch(KeyBatch(rows.reshape(-1), len(rows), width=WIDTH), seed)
    return build_hashed(hi, lo, seed, options).trees


def median_stages(runs: Iterable[dict[str, Record]]) -> dict[str, Record]:
    """The stages of the last run, with the medians of their times."""
    listed = list(runs)
    return {
        name: {**stage, "ms": float(np.median([run[name]["ms"] for run in listed if name in run]))}
        for name, stage in listed[-1].items()
    }
