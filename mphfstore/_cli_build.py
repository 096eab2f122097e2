"""The commands that write stores: build, import and merge."""

from __future__ import annotations

import argparse
import bisect
import contextlib
import json
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from . import PRESETS, DuplicateKeyError
from ._builder import Builder
from ._cli_streams import FOUND, Failure, command, flush, refuse_same_file, write, writing_to
from ._compress import METHODS as COMPRESSIONS
from ._contents import described
from ._device import BACKENDS
from ._encoded import STRINGS
from ._exact import STORAGE
from ._formats import FORMATS, Layout, Source, format_of, source
from ._options import DUPLICATE_POLICIES, METHODS
from ._progress import Progress
from ._records import Kind, no_constant, readable, shortened, typed
from ._values import _as_descr

CHOSEN = (
    "keys", "fingerprint_bits", "false_positive_rate", "compression", "preset", "method", "leaf_size", "bucket_size",
    "on_duplicate", "seed", "threads", "backend",
)  # fmt: skip


def build(options: argparse.Namespace) -> int:
    kind = options.input_format or format_of(options.input) or "tsv"
    values = options.values
    if values is not None and values not in (*STRINGS, "none"):
        values = _dtype("--values", values, "numbers or strings")
    key_dtype = None if options.key_dtype is None else _dtype("--key-dtype", options.key_dtype, "integers")
    layout = layout_of(options)
    layout.check(kind)
    return _store(options, [(options.input, kind)], layout, key_dtype, values)


def merge(options: argparse.Namespace) -> int:
    options.keys = options.keys or "exact"
    return _store(options, [(path, "store") for path in options.inputs], Layout(), None, options.values)


def layout_of(options: argparse.Namespace) -> Layout:
    return Layout(**{name: getattr(options, name, None) or default for name, default in vars(Layout()).items()})


class _Origins:
    """Where the records of a build came from."""

    def __init__(self) -> None:
        self.positions = array("Q")
        self._sources: list[Source] = []
        self._starts: list[int] = []

    def enter(self, opened: Source) -> None:
        self._sources.append(opened)
        self._starts.append(len(self.positions))

    def _of(self, record: int) -> tuple[Source, int]:
        return self._sources[bisect.bisect_right(self._starts, record) - 1], self.positions[record]

    def repetition(self, key: object, first: int, second: int) -> str:
        """What is wrong with a record whose key another one had."""
        (earlier, there), (later, here) = self._of(first), self._of(second)
        place = earlier.place(there) if earlier is later else f"in {earlier.at(there)}"
        return f"{later.at(here)}: duplicate key {shortened(repr(key))}, first {place}"


def _store(
    options: argparse.Namespace, inputs: list[tuple[str, str]], layout: Layout,
    key_dtype: np.dtype[Any] | None, values: Kind,
) -> int:  # fmt: skip
    """Builds a store of all records; types that are not given are those of the first input."""
    for path, _ in inputs:
        refuse_same_file(path, options.out)
    chosen = {name: getattr(options, name) for name in CHOSEN if getattr(options, name) is not None}
    metadata, origins = _metadata(options.metadata), _Origins()
    quiet, none = options.quiet or options.no_progress, isinstance(values, str) and values == "none"
    try:
        with writing_to(options.out), Progress(quiet) as progress, contextlib.ExitStack() as stack:
            add: Callable[[Any, Any], None] | None = None
            for number, (path, kind) in enumerate(inputs):
                with source(path, kind, layout, values=not none) as opened:
                    types = key_dtype or opened.key_dtype, opened.kind if values is None or none else values
                    if add is None:
                        first = types
                        add = stack.enter_context(
                            Builder(
                                options.out, values=types[1], key_dtype=types[0], metadata=metadata,
                                dedupe=options.dedupe, scan=options.scan,
                                progress=progress.building, **chosen,
                            )
                        ).add_many  # fmt: skip
                    if described(*types) != described(*first):
                        raise Failure(f"{path}: {described(*types)}; {inputs[0][0]}: {described(*first)}")
                    origins.enter(opened)
                    begin = len(origins.positions)
                    for keys, column in typed(opened.chunks, origins.positions, *types):
                        add(keys, column)
                        records = len(origins.positions)
                        part = opened.part_read(records - begin)
                        progress.reading(records, None if part is None else (number + part) / len(inputs))
    except DuplicateKeyError as error:
        if options.on_duplicate == "list":
            raise Failure(_list(error, origins)) from None
        what = origins.repetition(error.key, *error.positions)
        raise Failure(f"{what}; --on-duplicate first or last keeps one of them") from None
    return FOUND


def _list(error: DuplicateKeyError, origins: _Origins) -> str:
    """Prints every repetition in the order of the input, and says how many there are."""
    repeated = sorted((second, first, key) for key, (first, *others) in error.repeated.items() for second in others)
    for second, first, key in repeated:
        write(origins.repetition(key, first, second).encode("utf-8", "surrogateescape") + b"\n")
    flush()
    return f"{len(repeated)} records repeat the keys of {len(error.repeated)} others"


def _dtype(option: str, text: str, what: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(_as_descr(json.loads(text)) if text.startswith("[") else text).newbyteorder("<")
        if dtype.kind in "iu" if what == "integers" else readable(dtype) and dtype.subdtype is None:
            return dtype
    except Exception:  # numpy raises whatever its parser meets
        pass
    raise Failure(f"{option}: {text!r} is no numpy dtype of {what}")


def _metadata(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Failure(f"--metadata is not JSON: {error}") from None


# arguments

FORMATS_TEXT = """\
  tsv      KEY<TAB>VALUE. The first tab ends the key; all that follows is the value, further tabs included. Bytes are
           kept as they are. A line ends in \\n or \\r\\n, which the last one may lack. With --escape, \\t, \\n, \\r and
           \\\\ stand for these bytes.
  csv      fields in quotes may hold delimiters and newlines. Key and value are columns 1 and 2 unless told otherwise.
  jsonl    ["key", value] or {"key": ..., "value": ...}: strings, or numbers where a numpy dtype is given. Bytes that
           are not UTF-8 are {"base64": "..."}.
  cdbmake  +klen,dlen:key->data, and an empty line at the end, as cdbdump writes it.
  parquet  two columns; their types are those of the store. So it is with arrow: an IPC file or stream.
  lmdb     an environment, directory or file: all of its unnamed database, or of --table.
  sqlite   two columns of a table or view; the first row tells whether they are numbers.
  store    a store that keeps its keys (--keys exact)."""

BUILD = f"""\
Builds a store from the records of a file. It appears under its name whole, or not at all: after an error OUT is as it
was.

{FORMATS_TEXT}

Blank lines of csv and jsonl are skipped. With --values none only the keys count; a line of tsv then needs no tab."""

MERGE = """\
Builds one store from the records of several, which must keep their keys (--keys exact) and be of one type. It keeps its
keys, too, unless told otherwise."""


def add_commands(commands: Any) -> None:
    # fmt: off
    for name, summary in (("build", "build a store from text, tables or a database"), ("import", "the same as build")):
        add = command(commands, name, build, summary, BUILD).add_argument
        add("out", metavar="OUT", help="the store to write; a file of this name is replaced in the end")
        add("input", metavar="INPUT", help="the file to read; - is standard input")
        add("--format", dest="input_format", choices=FORMATS,
            help="told by INPUT's first bytes or its suffix; else tsv")
        add("--values", metavar="bytes|str|json|none|DTYPE",
            help="bytes as they are, UTF-8 text, JSON, no values at all, or a numpy dtype: uint32, f8, S16; by default "
                 "what INPUT declares, else bytes")
        add("--key-dtype", metavar="DTYPE", help="keys are integers of this numpy dtype; else as INPUT declares them")
        layout_arguments(add)
        _storage_arguments(add)
    add = command(commands, "merge", merge, "build a store from several stores", MERGE).add_argument
    add("out", metavar="OUT", help="the store to write; a file of this name is replaced in the end")
    add("inputs", metavar="STORE", nargs="+", help="a store that keeps its keys")
    add("--values", choices=("none",), help="none: take the keys alone")
    _storage_arguments(add)
    # fmt: on


def layout_arguments(add: Any) -> None:
    # fmt: off
    add("--key-column", metavar="COLUMN",
        help="jsonl: name of the field; csv (with --header), parquet, arrow and sqlite: name or number from 1")
    add("--value-column", metavar="COLUMN", help="the same for the value")
    add("--table", metavar="NAME", help="sqlite: the table, needed if there are several; lmdb: a named database")
    add("--header", action="store_true", help="csv: the first line names the columns")
    add("--delimiter", metavar="CHAR", help="csv: what parts the columns, a comma by default; \\t is a tab")
    add("--escape", action="store_true", help="tsv: a backslash and t, n, r or another one stand for such a byte")
    # fmt: on


def _storage_arguments(add: Any) -> None:
    # fmt: off
    add("--on-duplicate", choices=DUPLICATE_POLICIES,
        help="which record of a key to keep; error by default; list: name every repetition and build nothing")
    add("--keys", choices=STORAGE, help="keep fingerprints of the keys (default), or the keys themselves: exact")
    add("--compression", choices=COMPRESSIONS, help="compress bytes, str and json; needs the package zstandard")
    add("--dedupe", action="store_true", help="store equal values once: bytes, str and json")
    add("--scan", action="store_true", help="add the prefilter that lets scan find the keys anywhere in a text")
    add("--fingerprint-bits", type=int, metavar="N",
        help="0 to 32, default 16: an absent key passes for a stored one with probability 2^-N")
    add("--false-positive-rate", type=float, metavar="P", help="the same as a probability, at most: 0.001")
    add("--preset", choices=tuple(PRESETS), help="quickest build, quickest look-ups, balanced (default), less space")
    add("--method", choices=tuple(METHODS), help="search method, in place of the preset's")
    add("--leaf-size", type=int, metavar="N", help="keys in a leaf, in place of the preset's")
    add("--bucket-size", type=int, metavar="N", help="keys in a bucket on average, in place of the preset's")
    add("--seed", type=int, metavar="N", help="of the hash, for the same file every time; random by default")
    add("--threads", type=int, metavar="N", help="as many as processors by default")
    add("--backend", choices=BACKENDS, help="what builds: auto, the default, is native code unless there is a GPU")
    add("--metadata", metavar="JSON", help="anything to keep in the file, for info")
    add("--no-progress", action="store_true", help="no progress on a terminal")
    add("--quiet", action="store_true", help="the same")
    # fmt: on
