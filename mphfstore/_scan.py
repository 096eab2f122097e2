"""Scanning texts for all keys of a dictionary.

    text      → bytes, folded if asked for           (_scan_text)
    patterns  → native reader and prefilter          (_scan_patterns, _scan_filter)
    bytes     → stretches, on threads                here; native/scan_anywhere.h, scan_words.h, scan_one.h
    hits      → offsets in the text as it was given  here, _scan_hits

A native call finds what begins in a stretch, and may read on behind it: stretches, and the chunks of a file, change no
hit."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._batch import MOST_THREADS, run
from ._build import isa
from ._device import chosen
from ._errors import sound
from ._handle import Handle
from ._keys import listed
from ._native import ffi, lib
from ._scan_hits import Found, Hits, as_code_points, joined
from ._scan_patterns import Single, dictionary
from ._scan_text import Bytes, border_before, cut_off, fold_key, fold_text, letters, text_bytes

if TYPE_CHECKING:
    from ._device_scan import DeviceScan

MODES = ("anywhere", "words", "windows")
STRETCH = 1 << 20  # bytes that a native call gets
CHUNK = 1 << 24  # bytes of a file that are held at a time
MOST_WORDS = 64  # of an n-gram


class Scanner:
    """Patterns that are ready to be looked for: what `scan` and `scan_file` make of theirs at every call; options are
    those of `scan`. Immutable, and safe to use from several threads. It goes on with the file that a handle had open,
    whatever becomes of the handle."""

    def __init__(
        self,
        patterns: Any,
        *,
        mode: str = "anywhere",
        width: int | Iterable[int] | None = None,
        ngrams: int | Iterable[int] = 1,
        fold: bool = False,
        backend: str = "native",
    ) -> None:
        if not isinstance(patterns, Handle | os.PathLike | str | bytes | bytearray | memoryview):
            patterns = listed(patterns)
        options = {"mode": mode, "width": width, "ngrams": ngrams, "fold": fold, "backend": backend}
        self._given: tuple[Any, dict[str, Any]] = patterns, options
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(map(repr, MODES))}, not {mode!r}")
        if (width is None) == (mode == "windows"):
            raise ValueError("mode 'windows' needs a width, and no other mode has one")
        if mode != "words" and ngrams != 1:
            raise ValueError("ngrams are for mode 'words'")
        self._mode, self._fold = mode, fold
        self._widths = sizes("width", 1 if width is None else width, 1 << 40)
        self._grams = sizes("ngrams", ngrams, MOST_WORDS)
        self._dictionary = dictionary(patterns, fold_key if fold else None, single=mode == "anywhere")
        self._native, self._overlap = self._prepare()
        self._device = self._on_device(backend)

    def __repr__(self) -> str:
        return f"<mphfstore.Scanner, mode {self._mode!r}, of {len(self._dictionary)} patterns>"

    def __reduce__(self) -> Any:
        """As what it was made of: a path, a list, a handle."""
        patterns, options = self._given
        return partial(Scanner, **options), (patterns,)

    def _prepare(self) -> tuple[Callable[[Any, bool, Any], int], int]:
        """The native call, and how many bytes behind a place decide what begins there."""
        of = self._dictionary
        if isinstance(of, Single):
            pattern, one = of.pattern, lib.mphf_scan_one
            return (lambda s, last, out: one(isa(), pattern, len(pattern), s, out)), len(pattern) - 1
        reader = of.reader
        if self._mode == "words":
            if not of.opened.keys.text:
                raise TypeError("integer keys are no words")
            grams, known, words = ffi.new("uint32_t[]", self._grams), letters(), lib.mphf_scan_words
            return (lambda s, last, out: words(reader, s, known, grams, len(grams), last, out)), 0
        if self._mode == "windows":
            found, call = of.known_prefilter(), lib.mphf_scan_windows
            filter = ffi.NULL if found is None else found.native
            widths = ffi.new("uint64_t[]", self._widths)
            return (lambda s, last, out: call(reader, filter, s, widths, len(widths), out)), self._widths[-1] - 1
        prefilter = of.prefilter()
        return (lambda s, last, out: lib.mphf_scan_anywhere(reader, prefilter.native, s, out)), prefilter.longest - 1

    def _on_device(self, backend: str) -> DeviceScan | None:
        """Raises UnavailableError, ValueError."""
        if self._mode == "words" and backend in ("cuda", "opencl"):
            raise ValueError("words are found by native code: leave out the backend")
        sessions = chosen(backend)
        if self._mode == "words" or not sessions:
            return None
        from ._device_scan import DeviceScan

        return DeviceScan(sessions[0], self._dictionary, self._widths if self._mode == "windows" else None)

    def scan(self, text: Any, *, threads: int | None = None) -> Hits:
        """All occurrences in a text. `text` and `threads` as `mphfstore.scan` has them."""
        data = text_bytes(text)
        if self._fold:
            at = 0

            def read(size: int) -> bytes:
                nonlocal at
                at += size
                return data[at - size : at].tobytes()

            parts = [hits for hits, _, _ in self.pieces(read, CHUNK, threads)]
            hits = joined(parts, self._dictionary.false_positive_rate)
        else:
            hits = self._chunk(data, True, threads)[0]
        return as_code_points(hits, data) if isinstance(text, str) and len(data) != len(text) else hits

    def scan_file(
        self, path: str | os.PathLike[str], *, chunk: int = CHUNK, threads: int | None = None
    ) -> Iterator[Hits]:
        """The occurrences in a file, chunk by chunk. `path`, `chunk` and `threads` as `mphfstore.scan_file` has
        them."""
        if chunk < 1:
            raise ValueError(f"a chunk has at least 1 byte, not {chunk}")
        with open(path, "rb", buffering=0) as file:
            for hits, _, _ in self.pieces(file.read, chunk, threads):
                yield hits

    def pieces(
        self, read: Callable[[int], bytes | None], chunk: int, threads: int | None
    ) -> Iterator[tuple[Hits, Bytes, int]]:
        """What begins in every chunk that `read` gives, the chunk's bytes and where it begins. The last read gives
        none."""
        rest, base, last = b"", 0, False
        while not last:
            block = read(max(chunk, len(rest))) or b""
            last = not block
            while len(block) < len(rest) and (more := read(len(rest) - len(block))):  # a pipe gives little at a time
                block += more
            whole = rest + block
            data = np.frombuffer(whole, np.uint8)
            hits, used = self._folded_chunk(whole, last, threads) if self._fold else self._chunk(data, last, threads)
            yield Hits(hits.start + base, hits.length, hits.index, hits.false_positive_rate), data, base
            rest, base = whole[used:], base + used

    def _folded_chunk(self, whole: bytes, last: bool, threads: int | None) -> tuple[Hits, int]:
        whole = whole if last else whole[: len(whole) - cut_off(whole)]
        folded = fold_text(whole)
        hits, used = self._chunk(folded.data, last, threads)
        own_used = border_before(whole, int(folded.original(np.array([used]))[0][0]))
        start, begins = folded.original(hits.start)
        end, ends = folded.original(hits.end)
        own = begins & ends & ((start < own_used) | last)
        return Hits(start[own], (end - start)[own], hits.index[own], hits.false_positive_rate), own_used

    def _chunk(self, data: Bytes, last: bool, threads: int | None) -> tuple[Hits, int]:
        """What begins in a chunk, and up to where that is all. last: nothing comes behind it."""
        end = len(data) if last else max(0, len(data) - self._overlap)
        if self._device is not None:
            start, length, index = self._device.find(data, end)
            numbers, rate = self._dictionary.numbers, self._dictionary.false_positive_rate
            return Hits(start, length, index if numbers is None else numbers[index], rate), end
        memory = ffi.from_buffer("uint8_t[]", data)
        # A native call for one pattern may take the time of their product.
        size = (
            STRETCH * 64 // max(64, len(self._dictionary.pattern)) if isinstance(self._dictionary, Single) else STRETCH
        )
        borders = [0]
        while borders[-1] < end:
            border = min(borders[-1] + max(1, size), end)
            if self._mode == "words":
                border = lib.mphf_scan_gap(memory, end, border)
            borders.append(border)
        count = self._threads(threads, end)
        each = max(1, -(-(len(borders) - 1) // (count if count == 1 else 4 * count)))  # stretches that a task has
        tasks = [borders[first : first + each + 1] for first in range(0, len(borders) - 1, each)]
        results: list[tuple[Hits, int]] = [(joined([], 0.0), 0)] * len(tasks)
        stop = threading.Event()

        def find(number: int) -> None:
            try:
                results[number] = self._stretches(memory, tasks[number], last, stop)
            except BaseException:
                stop.set()
                raise

        run([partial(find, number) for number in range(len(tasks))], count)
        rate, parts = self._dictionary.false_positive_rate, []
        for (hits, used), task in zip(results, tasks, strict=True):
            parts.append(hits)
            if used < task[-1]:  # a word that may go on
                return joined(parts, rate), used
        return joined(parts, rate), end

    def _threads(self, threads: int | None, size: int) -> int:
        if threads is None:
            return max(1, min(size // (2 * STRETCH), len(os.sched_getaffinity(0)), MOST_THREADS))
        if threads < 1:
            raise ValueError(f"threads is at least 1, not {threads}")
        return threads

    def _stretches(self, memory: Any, borders: list[int], last: bool, stop: threading.Event) -> tuple[Hits, int]:
        """What begins between some borders, and up to where that is all; anything once it is to stop."""
        size = borders[-1] - borders[0]
        found = Found(size // 8, self._dictionary.numbers)
        stretch = ffi.new("scan_stretch *", {"text": memory, "length": len(memory)})
        stretch.begin = borders[0]
        for border in borders[1:]:
            stretch.end, full = border, True
            while full and not stop.is_set():
                status = self._native(stretch, last, found.native)
                full = status == lib.SCAN_FULL
                if full:
                    found.grow()
                elif status == lib.STATUS_NO_MEMORY:
                    raise MemoryError
                else:
                    sound(status)
                stretch.begin = found.native.next
            if stretch.begin < border:
                break
        return found.hits(self._dictionary.false_positive_rate), stretch.begin


def sizes(name: str, given: int | Iterable[int], most: int) -> list[int]:
    """One number or several, ascending, each once. Raises ValueError if one is out of bounds, or there is none."""
    numbers = [given] if isinstance(given, int | np.integer) else given
    if isinstance(numbers, str | bytes) or not isinstance(numbers, Iterable):
        raise TypeError(f"{name} is a number or several, not {given!r}")
    found = sorted({operator.index(one) for one in numbers})
    if not found or found[0] < 1 or found[-1] > most or len(found) > lib.SCAN_MOST_WIDTHS:
        raise ValueError(f"{name} is 1 to {most}, or up to {lib.SCAN_MOST_WIDTHS} such numbers, not {given!r}")
    return found


def scan(
    text: Any,
    patterns: Any,
    *,
    mode: str = "anywhere",
    width: int | Iterable[int] | None = None,
    ngrams: int | Iterable[int] = 1,
    fold: bool = False,
    threads: int | None = None,
    backend: str = "native",
) -> Hits:
    """Every occurrence of every key of a dictionary in a text, overlapping ones too.

    text: bytes or any buffer of bytes (also a mapping or an array of uint8); a `str`, whose offsets are those of its
    code points; or a path (`pathlib.Path`, not a `str`), of a file that is mapped and must not be truncated
    meanwhile. patterns: one of bytes or `str`; an iterable of such; or a `Store`, a `Filter` or the path of one.
    Patterns are sought as the bytes that they are, `str` as UTF-8. Of equal patterns the first one's index is given.
    Keys of no bytes in a store do not occur. Patterns in an iterable are prepared at every call: a `Scanner` keeps
    them. Of a file in mode "pread", fingerprints and keys are read into memory at the first scan.

    mode:
    - "anywhere": keys at every byte. Needs a prefilter, which stores and filters have from `scan=True`; of keys that
      are stored (`keys="exact"`) one is made at the first call and stays with the handle.
    - "words": keys that are words of the text. A word is a run of letters, digits, underscores (`str.isalnum`) and
      combining marks; whatever is no UTF-8 parts words. ngrams: keys of so many words, up to 64, or of any of several
      numbers. Such a key is spelled as the text is from the first word's begin to the last one's end, but white space
      of ASCII between two words is one space.
    - "windows": keys among all stretches of `width` bytes, or of any of several widths.

    fold: keys and text are compared after case folding (`str.casefold`); offsets are those of the text as it is, and
    a hit begins and ends between its characters. A store or filter that keeps fingerprints alone must have been built
    of folded keys. threads: as many as pay by default. backend: "cuda" or "opencl" scans on a device, in modes
    "anywhere" and "windows"; "auto" on a GPU if there is one.

    Raises ValueError for an empty pattern, TypeError for what is no text or dictionary, or a file that has neither
    its keys nor the prefilter it needs."""
    scanner = Scanner(patterns, mode=mode, width=width, ngrams=ngrams, fold=fold, backend=backend)
    return scanner.scan(text, threads=threads)


def scan_file(
    path: str | os.PathLike[str],
    patterns: Any,
    *,
    mode: str = "anywhere",
    width: int | Iterable[int] | None = None,
    ngrams: int | Iterable[int] = 1,
    fold: bool = False,
    chunk: int = CHUNK,
    threads: int | None = None,
    backend: str = "native",
) -> Iterator[Hits]:
    """As `scan`, for a file of any size: the hits of a chunk at a time, each once, with offsets in the whole file. Hits
    that span chunks are found.

    path: of the file. chunk: bytes that are read at a time; longer ones where a key or a word is longer.

    Raises, at the first step, OSError for a file that cannot be read."""
    scanner = Scanner(patterns, mode=mode, width=width, ngrams=ngrams, fold=fold, backend=backend)
    return scanner.scan_file(path, chunk=chunk, threads=threads)
