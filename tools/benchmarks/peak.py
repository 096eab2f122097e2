"""Peak memory of a build, measured in a process of its own: `python -m benchmarks.peak BENCHMARK SUBJECT KEYS SEED
THREADS BITS`."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .catalogue import subjects
from .workload import WORKLOADS


def peak_of_build(benchmark: str, subject: str, keys: int, seed: int, threads: int, bits: int = 0) -> dict[str, Any]:
    """`build_peak_bytes`: the most that the process had in memory while it built, less what it had before, with
    interpreter and input: `build_before_bytes`. Pages of files that it maps count;
    what fits into memory that was free in there does not."""
    arguments = [benchmark, subject, *map(str, (keys, seed, threads, bits))]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "benchmarks.peak", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f"peak memory of {subject}: {lines[-1] if lines else done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _status(field: str) -> int | None:
    """Of /proc/self/status, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), None)


def _peak() -> int:
    """VmHWM where there is one: ru_maxrss begins, in Linux, with the memory of the process that started this one."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    benchmark, name, *numbers = sys.argv[1:]
    keys, seed, threads, bits = map(int, numbers)
    subject: Any = next(item for item in subjects(benchmark, threads) if item.name == name)
    subject.lacks()  # imports it: its code is not part of the build
    work = WORKLOADS[benchmark](keys, seed)
    gc.collect()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # begins the peak anew: making the input had one, too
    before = _status("VmRSS") or _peak()
    with tempfile.TemporaryDirectory() as folder:
        built = subject.build(work, bits if benchmark == "filter" else Path(folder, "built"))
        peak = _peak()
        del built
    print(json.dumps({"build_peak_bytes": peak - before, "build_before_bytes": before}))


if __name__ == "__main__":
    main()
