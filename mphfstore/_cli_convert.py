"""The commands that list what is in stores: export, dump and diff."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import Store
from ._cli_build import layout_arguments, layout_of
from ._cli_streams import DIFFERENT, FOUND, SAME, Failure, command, flush, refuse_same_file, write, writing_to
from ._contents import chunks_of, described, types_of
from ._formats import WRITABLE, format_by_suffix, open_with_keys
from ._formats import write as write_records
from ._progress import Progress
from ._records import Chunk, Kind
from ._text import field, json_bytes, json_form


def export(options: argparse.Namespace) -> int:
    kind = options.output_format or ("tsv" if options.out == "-" else format_by_suffix(options.out))
    if kind not in WRITABLE:
        raise Failure(f"{options.out}: --format is one of {', '.join(WRITABLE)}")
    refuse_same_file(options.store, options.out)
    name = "<stdout>" if options.out == "-" else options.out
    with open_with_keys(options.store) as store, writing_to(name), Progress(options.no_progress) as progress:

        def chunks(writing: bool) -> Iterator[Chunk]:
            done = 0
            for chunk in chunks_of(store):
                yield chunk
                done += len(chunk.keys)
                if writing and options.out != "-":
                    progress.writing(done, len(store))

        write_records(options.out, kind, layout_of(options), *types_of(store), chunks)
    return FOUND


def diff(options: argparse.Namespace) -> int:
    status = SAME
    with open_with_keys(options.a) as a, open_with_keys(options.b) as b, Progress(options.no_progress) as progress:
        of_a, of_b = described(*types_of(a)), described(*types_of(b))
        if of_a != of_b:
            raise Failure(f"{options.a}: {of_a}; {options.b}: {of_b}")
        for mark, key, values in _differences(a, b, progress):
            status = DIFFERENT
            if options.quiet:
                break
            write((json_bytes({"key": json_form(key), **values}) if options.json else mark + field(key)) + b"\n")
    flush()
    return status


def _differences(a: Store, b: Store, progress: Progress) -> Iterator[tuple[bytes, Any, dict[str, Any]]]:
    """What is in one store and not, or not the same, in the other: first by the order of `a`, then by that of `b`.
    Their orders have nothing in common, so every key is looked up in the other one."""
    (_, kind), total, done = types_of(a), len(a) + len(b), 0
    for chunk in chunks_of(a):
        there = b.contains_many(chunk.keys)
        found = iter(() if kind is None else b.get_many(_compressed(chunk.keys, there)))
        for key, value, known in zip(chunk.keys, _values(chunk), there, strict=True):
            if not known:
                yield b"< ", key, {"a": _json(value, kind)}
            elif kind is not None and not _same(value, other := next(found), kind):
                yield b"! ", key, {"a": _json(value, kind), "b": _json(other, kind)}
        done += len(chunk.keys)
        progress.writing(done, total)
    for chunk in chunks_of(b):
        there = a.contains_many(chunk.keys)
        for key, value, known in zip(chunk.keys, _values(chunk), there, strict=True):
            if not known:
                yield b"> ", key, {"b": _json(value, kind)}
        done += len(chunk.keys)
        progress.writing(done, total)


def _compressed(keys: Any, there: Any) -> Any:
    return keys[there] if isinstance(keys, np.ndarray) else list(itertools.compress(keys, there))


def _values(chunk: Chunk) -> Any:
    return itertools.repeat(True, len(chunk.keys)) if chunk.values is None else chunk.values


def _json(value: Any, kind: Kind) -> Any:
    return value if kind is None or kind == "json" else json_form(value)


def _same(one: Any, other: Any, kind: Kind) -> bool:
    """Equal bit by bit; JSON as it is written, in whatever order its objects have their names."""
    if isinstance(kind, np.dtype):
        return bool(one.tobytes() == other.tobytes())
    if kind == "json":
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return bool(one == other)


# arguments

EXPORT = """\
Writes the records of a store to a file, which appears whole, or not at all (lmdb: in a new directory). build reads it
back. The store has to keep its keys (--keys exact); the order is that of its index.

  tsv      refuses keys and values with tabs or ends of lines in them, unless they are escaped (--escape).
  csv      quotes where it must; bytes that are not UTF-8 stay as they are.
  jsonl    {"key": ..., "value": ...}; bytes that are not UTF-8 are {"base64": "..."}, and numbers that are not finite
           are "NaN", "Infinity" and "-Infinity".
  cdbmake  +klen,dlen:key->data, and an empty line at the end: for cdbmake.
  parquet  columns key and value: strings where all are UTF-8, else binary; numbers of their type. So it is with arrow.
  lmdb     keys of 1 to 511 bytes.
  sqlite   a table named records: TEXT where bytes are UTF-8 without NULs, else BLOB; a unique index over the keys.

In tsv, csv, cdbmake and lmdb a number is its decimal text, and a record of several fields is JSON."""

DUMP = """\
Prints the records of a store, as export writes them. The store has to keep its keys (--keys exact); the order is that
of its index."""

DIFF = """\
Compares the records of two stores that keep their keys (--keys exact), in whatever order. Prints a line per difference:

  < KEY    is in A only
  > KEY    is in B only
  ! KEY    is in both, with different values

With --json the values, too: {"key": ..., "a": ..., "b": ...}, without "a" or "b" where the key is not in it."""


def add_commands(commands: Any) -> None:
    # fmt: off
    add = command(commands, "export", export, "write the records of a store to a file", EXPORT).add_argument
    add("store", metavar="STORE", help="a store that keeps its keys")
    add("out", metavar="OUT", help="the file to write, replaced in the end; - is standard output")
    add("--format", dest="output_format", choices=WRITABLE, help="told by OUT's suffix; tsv for standard output")
    layout_arguments(add)
    add("--no-progress", action="store_true", help="no progress on a terminal")

    added = command(commands, "dump", export, "print the records of a store", DUMP)
    added.set_defaults(out="-", no_progress=True)
    add = added.add_argument
    add("store", metavar="STORE", help="a store that keeps its keys")
    add("--format", dest="output_format", choices=WRITABLE, help="tsv by default; none of lmdb and sqlite")
    layout_arguments(add)

    epilog = "exit status: 0 the same, 1 different, 2 error"
    add = command(commands, "diff", diff, "compare the records of two stores", DIFF, epilog).add_argument
    add("a", metavar="A", help="a store that keeps its keys")
    add("b", metavar="B", help="another one")
    add("--json", action="store_true", help="an object per difference")
    add("--quiet", action="store_true", help="print nothing: the exit status tells")
    add("--no-progress", action="store_true", help="no progress on a terminal")
    # fmt: on
