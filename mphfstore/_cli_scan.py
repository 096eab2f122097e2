"""The command that looks for keys in texts: scan."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._cli_streams import ERROR, FOUND, NOT_FOUND, Failure, command, flush, message_of, opened, say, write
from ._device import BACKENDS
from ._format import MAGIC
from ._formats import standard_input
from ._native import ffi, lib
from ._render import json_of
from ._scan import CHUNK, MODES, Scanner
from ._scan_hits import Hits
from ._scan_text import Bytes

SCAN = """\
Prints every occurrence of every key of DICT in the files, overlapping ones too: OFFSET:TEXT, in bytes from 0, and FILE:
before it if there are several files. Those that cannot be read are named on stderr, and the others are searched. DICT
is a store or a filter, or a text of patterns, one a line.

A store or filter that keeps fingerprints alone needs --scan when it is built, or one of the modes words and windows;
its hits are false with the probability that info shows."""

STATUS = "exit status: 0 something was found, 1 nothing was, 2 error"


BATCH = 1 << 14  # hits that become JSON at a time
ROOM = 1 << 20  # bytes that are printed at a time


def scan(options: argparse.Namespace) -> int:
    if options.dict == "-" and "-" in options.files:
        raise Failure("standard input is either the dictionary or a text")
    scanner, files = _scanner(options), options.files
    found, failed = 0, False
    end = b"\0" if options.null else b"\n"
    for name in files:
        try:
            found += _search(options, scanner, name, end)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            flush()
            say(message_of(error))
            failed = True
        if found and options.quiet:
            return FOUND
    return ERROR if failed else FOUND if found else NOT_FOUND


def _search(options: argparse.Namespace, scanner: Scanner, name: str, end: bytes) -> int:
    """Prints what a file has. How many."""
    shown = os.fsencode("<stdin>" if name == "-" else name)
    prefix = shown + b":" if len(options.files) > 1 else b""
    count = 0
    with _reading(name) as read:
        for hits, data, base in scanner.pieces(read, CHUNK, options.threads):
            count += len(hits)
            if count and options.quiet:
                return count
            if not options.count and not options.quiet:
                if options.json:
                    for line in _records(hits, data, base, shown):
                        write(line + end)
                else:
                    _write_lines(hits, data, base, not options.only_matching, prefix, end)
                flush()
    if options.count and not options.quiet:
        record = {"file": shown.decode("utf-8", "replace"), "count": count}
        write((json_of(record) if options.json else b"%s%d" % (prefix, count)) + end)
    return count


def _scanner(options: argparse.Namespace) -> Scanner:
    try:
        with contextlib.nullcontext(standard_input()) if options.dict == "-" else open(options.dict, "rb") as file:
            head = file.read(len(MAGIC))
            store = head == MAGIC and options.dict != "-"
            patterns: Any = None if store else _patterns(head + file.read())
        return Scanner(
            opened(options.dict) if store else patterns, mode=options.mode, width=options.width or None,
            ngrams=options.ngrams or 1, fold=options.fold, backend=options.backend,
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        raise Failure(f"{options.dict}: {error}") from None


def _patterns(content: bytes) -> list[bytes]:
    """The lines of a file, as `build` splits them; empty ones are none."""
    lines = (line.removesuffix(b"\r") for line in content.split(b"\n"))
    return [line for line in lines if line]


@contextlib.contextmanager
def _reading(name: str) -> Iterator[Callable[[int], bytes | None]]:
    """A function that reads up to so many bytes: of a pipe, what there is."""
    if name == "-":
        yield standard_input().read1  # type: ignore[attr-defined]
        return
    with open(name, "rb", buffering=0) as file:
        yield file.read


def _records(hits: Hits, data: Bytes, base: int, name: bytes) -> Iterator[bytes]:
    """Every hit as a JSON object, some at a time: lists of all would be many times their arrays."""
    more = {"probable": True} if hits.probable else {}
    for begin in range(0, len(hits), BATCH):
        columns = (column[begin : begin + BATCH].tolist() for column in (hits.start, hits.length, hits.index))
        for start, length, index in zip(*columns, strict=True):
            text = data[start - base : start - base + length].tobytes()
            record = {"file": name.decode("utf-8", "replace"), "start": start, "length": length, "index": index}
            yield json_of(record | {"text": text} | more)


def _write_lines(hits: Hits, data: Bytes, base: int, offsets: bool, prefix: bytes, end: bytes) -> None:
    """Every hit as a line."""
    out, used = np.empty(ROOM, np.uint8), ffi.new("uint64_t *")
    text, done = ffi.from_buffer("uint8_t[]", data), 0
    while done < len(hits):
        columns = (ffi.from_buffer("int64_t[]", column[done:]) for column in (hits.start, hits.length))
        written = lib.mphf_scan_lines(
            text, base, *columns, len(hits) - done, prefix, len(prefix), offsets, ord(end),
            ffi.from_buffer("uint8_t[]", out), len(out), used,
        )  # fmt: skip
        if not written:  # a hit that is longer than all that
            out = np.empty(2 * len(out), np.uint8)
            continue
        write(out[: used[0]].tobytes())
        done += written


def add_commands(commands: Any) -> None:
    # fmt: off
    add = command(commands, "scan", scan, "find every key of a dictionary in texts", SCAN, STATUS).add_argument
    add("dict", metavar="DICT", help="a store, a filter, or a text of patterns; - is such a text on standard input")
    add("files", metavar="FILE", nargs="+", help="a text; - is standard input")
    add("--mode", choices=MODES, default="anywhere",
        help="find keys at every byte (default); as words; among all stretches of some widths")
    add("--width", type=int, metavar="N", action="append", help="mode windows: bytes of a window; may be repeated")
    add("--ngrams", type=int, metavar="N", action="append",
        help="mode words: keys of so many words, 1 by default; may be repeated. White space between words is one space")
    add("-i", "--fold", action="store_true",
        help="ignore case; a dictionary of fingerprints must have been built of folded keys")
    add("-c", "--count", action="store_true", help="print how many there are in each file")
    add("-o", "--only-matching", action="store_true", help="print the text alone, without the offset")
    add("--json", action="store_true", help="an object for every occurrence or, with --count, every file")
    add("-0", "--null", action="store_true", help="what is printed ends in NUL, not newline: keys may have newlines")
    add("-q", "--quiet", action="store_true", help="print nothing; stop at the first occurrence")
    add("--threads", type=int, metavar="N", help="as many as pay by default")
    add("--backend", choices=BACKENDS, default="native", help="what searches: native code unless told otherwise")
    # fmt: on
