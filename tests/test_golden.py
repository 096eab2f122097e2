"""Files written by earlier releases open for ever: tests/golden/v1-*.mph are committed and never written again.

A new format version adds files beside them. `python tests/test_golden.py NAME` writes one that is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference

import mphfstore as ms
from mphfstore._options import PRESETS, Chain, Preset

FOLDER = Path(__file__).parent / "golden"
WORDS = [f"word{i}" for i in range(300)]
MANY = [f"word{i}" for i in range(5000)]
TEXTS = {w: f"größe {i}" for i, w in enumerate(WORDS)}
NESTED = [{"of": [i % 7, None, 0.5, "ä"]} for i in range(300)]
ROW = np.dtype([("x", "<f4"), ("y", "<u2", (2,))])


def store(path: Path, items: Any, **options: Any) -> None:
    ms.build(path, items, seed=2026, threads=1, **options)


def rows() -> np.ndarray:
    array = np.zeros(300, ROW)
    array["x"], array["y"][:, 1] = np.arange(300) / 4, np.arange(300)
    return array


# The shipped presets may change; these never do.
PINNED = {
    "few nodes": Preset(12, 160, Chain((5, 3, 4), 150, 220, 4), (8, 100)),
    "many nodes": Preset(11, 2000, Chain((4, 4, 4), 77, 128, 5), (8, 100)),
    "wide": Preset(16, 80, Chain((8, 2, 2), 150, 220, 1), (8, 100)),
}


@pytest.fixture(autouse=True)
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, preset in PINNED.items():
        monkeypatch.setitem(PRESETS, name, preset)


FILES: dict[str, Callable[[Path], None]] = {
    "v1-brute-bytes": lambda p: store(p, {w: w[4:].encode() for w in WORDS}, method="brute", metadata={"source": "é"}),
    "v1-rotation-fixed": lambda p: store(p, {w: w[-2:].encode() for w in WORDS}, method="rotation", fingerprint_bits=8),
    "v1-rotation-rows": lambda p: store(p, (WORDS, rows()), values=ROW, method="rotation", leaf_size=5, bucket_size=5),
    "v1-brute-integers": lambda p: store(
        p, (np.arange(300, dtype="<u4"), np.arange(300) * 3), values="<i8", method="brute", leaf_size=10, bucket_size=60
    ),
    "v1-empty": lambda p: store(p, {}, method="rotation"),
    "v1-filter": lambda p: ms.Filter.build(WORDS, fingerprint_bits=13, seed=2026, method="brute").save(p),
    "v1-mphf": lambda p: ms.MPHF.build(WORDS, seed=2026, method="rotation", leaf_size=12, bucket_size=300).save(p),
    "v1-chained-bytes": lambda p: store(p, {w: w[4:].encode() for w in WORDS}, preset="few nodes", metadata=["é"]),
    "v1-chained-filter": lambda p: ms.Filter.build(MANY, fingerprint_bits=7, seed=2026, preset="many nodes").save(p),
    "v1-chained-mphf": lambda p: ms.MPHF.build(MANY, seed=2026, preset="wide").save(p),
    "v1-exact-text": lambda p: store(p, TEXTS, values="str", keys="exact", preset="few nodes"),
    "v1-exact-integers": lambda p: store(
        p, (np.arange(300, dtype="<u2"), NESTED), values="json", keys="exact", dedupe=True, preset="few nodes"
    ),
    "v1-compressed": lambda p: store(
        p, {w: w[4:].encode() * 9 for w in MANY}, keys="exact", compression="zstd", preset="few nodes"
    ),
    "v1-scan": lambda p: store(
        p, [f"{i}-" * (1 + i % 8) for i in range(300)], values=None, scan=True, preset="few nodes"
    ),
}
OF_A_LIBRARY = {"v1-compressed"}  # another release of Zstandard writes other bytes


@pytest.mark.parametrize("name", sorted(set(FILES) - OF_A_LIBRARY))
def test_what_is_written_today_is_what_was_written_then(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    assert (tmp_path / name).read_bytes() == (FOLDER / f"{name}.mph").read_bytes()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mph")), ids=lambda path: path.stem)
def test_every_golden_file_opens_and_verifies(path: Path) -> None:
    with ms.open(path) as opened:
        opened.verify()
        assert opened.info()["format_version"] == 1
        reader = reference.Reader(path.read_bytes())
        reader.verify()
        assert len(opened) == reader.n


def test_every_golden_file_is_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.mph")) == sorted(FILES)


def test_contents_are_what_they_were() -> None:
    texts = ms.open(FOLDER / "v1-brute-bytes.mph")
    assert texts.get_many(WORDS) == [w[4:].encode() for w in WORDS]
    assert texts.info()["metadata"] == {"source": "é"}
    assert ms.open(FOLDER / "v1-rotation-fixed.mph").get_many(WORDS) == [w[-2:].encode() for w in WORDS]
    assert np.array_equal(ms.open(FOLDER / "v1-rotation-rows.mph").get_many(WORDS), rows())
    assert ms.open(FOLDER / "v1-brute-integers.mph").get_many(range(300)).tolist() == [3 * i for i in range(300)]
    assert "word1" not in ms.open(FOLDER / "v1-empty.mph")
    assert ms.open(FOLDER / "v1-filter.mph").contains_many(WORDS).all()
    assert sorted(ms.open(FOLDER / "v1-mphf.mph").index_many(WORDS)) == list(range(300))
    texts = ms.open(FOLDER / "v1-chained-bytes.mph")
    assert texts.get_many(WORDS) == [w[4:].encode() for w in WORDS]
    assert ms.open(FOLDER / "v1-chained-filter.mph").contains_many(MANY).all()
    assert sorted(ms.open(FOLDER / "v1-chained-mphf.mph").index_many(MANY)) == list(range(5000))
    assert ms.open(FOLDER / "v1-exact-text.mph") == TEXTS
    assert ms.open(FOLDER / "v1-exact-integers.mph") == dict(enumerate(NESTED))
    assert ms.open(FOLDER / "v1-compressed.mph") == {w: w[4:].encode() * 9 for w in MANY}
    scanned = ms.scan("0-, 17-17-, 299-299-299-299-", ms.open(FOLDER / "v1-scan.mph"))
    assert set(zip(scanned.start.tolist(), scanned.length.tolist(), strict=True)) >= {(0, 2), (4, 6), (12, 16)}


if __name__ == "__main__":
    target = FOLDER / f"{sys.argv[1]}.mph"
    if target.exists():
        sys.exit(f"{target} is there already: golden files are never written again")
    PRESETS.update(PINNED)
    FILES[sys.argv[1]](target)
