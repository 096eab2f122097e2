"""The command `mphfstore`: build, get, has, info and verify.

Exit status: 0 found or done, 1 a key was not found, 2 an error, of which one line on stderr says what it was; 130
after Ctrl-C. A reader of our output that has seen enough is no error."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
from array import array
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from . import PRESETS, DuplicateKeyError, Error, Filter, Store
from . import open as open_file
from ._build import DUPLICATE_POLICIES, METHODS
from ._builder import Builder
from ._cli_overlay import overlay
from ._compress import METHODS as COMPRESSIONS
from ._encoded import STRINGS
from ._exact import STORAGE
from ._records import (
    SUFFIXES,
    BadLine,
    Record,
    batches,
    delimited,
    integer,
    json_lines,
    no_constant,
    shortened,
    tsv,
)
from ._render import Progress, json_of, table, text_of

FOUND, NOT_FOUND, ERROR, INTERRUPTED = 0, 1, 2, 130
ABSENT: Any = object()  # in place of a value
BLOCK = 1 << 16  # bytes of keys read at a time; a pipe gives what it has


class Failure(Exception):
    """An error of the command itself; its text is all there is to say."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ERROR, f"mphfstore: {message} (see {self.prog} --help)\n")


# build


def build(options: argparse.Namespace) -> int:
    kind = options.input_format or SUFFIXES.get(Path(options.input).suffix.lower(), "tsv")
    given = [name for name in ("header", "delimiter", "key_column", "value_column") if getattr(options, name)]
    misplaced = given if kind == "tsv" else [name for name in given if kind == "jsonl" and not name.endswith("column")]
    if misplaced:
        raise Failure(f"--{misplaced[0].replace('_', '-')} is not for {kind}")
    if options.input != "-" and os.path.exists(options.out) and os.path.samefile(options.input, options.out):
        raise Failure(f"{options.out} is the input, too")
    names = (
        "fingerprint_bits",
        "false_positive_rate",
        "keys",
        "compression",
        "preset",
        "method",
        "leaf_size",
        "bucket_size",
        "on_duplicate",
        "seed",
        "threads",
    )
    chosen = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    values: Any = options.values if options.values in STRINGS else None
    if options.values not in (*STRINGS, "none"):
        values = _dtype("--values", options.values, "iufSU")
    key_dtype = None if options.key_dtype is None else _dtype("--key-dtype", options.key_dtype, "iu")
    source, lines = "<stdin>" if options.input == "-" else options.input, array("Q")
    try:
        with Progress(options.quiet) as progress, _input(options.input) as file, Builder(
            options.out, values=values, key_dtype=key_dtype, dedupe=options.dedupe,
            metadata=_metadata(options.metadata), progress=progress.building, **chosen,
        ) as builder:  # fmt: skip
            for keys, column in batches(_reader(kind, _lines(file, source), options), lines, key_dtype, values):
                builder.add_many(keys, None if values is None else column)
                progress.reading(len(lines))
    except BadLine as error:
        raise Failure(f"{source}:{error.line}: {error}") from None
    except DuplicateKeyError as error:
        first, second = (lines[position] for position in error.positions)
        what = f"duplicate key {shortened(repr(error.key))}, first in line {first}"
        raise Failure(f"{source}:{second}: {what}; --on-duplicate first or last keeps one of them") from None
    except OSError as error:
        if error.strerror and (error.filename is None or str(error.filename).endswith(".mphtmp")):
            raise Failure(f"{options.out}: {error.strerror}") from None
        raise
    return FOUND


def _dtype(option: str, text: str, kinds: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(text)
        if dtype.kind in kinds and (dtype.kind in "SU" or dtype.itemsize <= 8):  # a text holds no long double
            return dtype
    except Exception:  # numpy raises whatever its parser meets
        pass
    raise Failure(f"{option}: {text!r} is no numpy dtype of {'numbers or strings' if 'S' in kinds else 'integers'}")


def _metadata(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Failure(f"--metadata is not JSON: {error}") from None


def _input(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    return contextlib.nullcontext(_stdin()) if path == "-" else open(path, "rb")


def _lines(file: BinaryIO, source: str) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise Failure(f"{source}: {error.strerror}") from None


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise Failure("standard input is closed")
    return sys.stdin.buffer


def _reader(kind: str, lines: Iterator[bytes], options: argparse.Namespace) -> Iterator[Record]:
    values = options.values != "none"
    if kind == "tsv":
        return tsv(lines, values=values)
    if kind == "jsonl":
        fields = options.key_column or "key", options.value_column or "value"
        return json_lines(lines, values=values, key_field=fields[0], value_field=fields[1])
    delimiter = "\t" if options.delimiter == "\\t" else options.delimiter or ","
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise Failure(f"--delimiter is one character, not {options.delimiter!r}")
    return delimited(
        lines, values=values, delimiter=delimiter, header=options.header,
        key_column=options.key_column or "1", value_column=options.value_column or "2",
    )  # fmt: skip


# get, has


def get(options: argparse.Namespace) -> int:
    return _look_up(options, values=True)


def has(options: argparse.Namespace) -> int:
    return _look_up(options, values=False)


def _look_up(options: argparse.Namespace, values: bool) -> int:
    store, name = _open(options.store), options.store
    if not isinstance(store, Store if values else Store | Filter):
        kind = "filter: it has no values" if isinstance(store, Filter) else "bare function: it does not know its keys"
        raise Failure(f"{name} is a {kind}")
    if values and store.info()["values"] is None:
        raise Failure(f"{name}: this store has no values; use has")
    end, status = b"\0" if options.null else b"\n", FOUND
    printed = json_of if store.info()["values"] == "json" else text_of
    silent = options.quiet or not (values or options.keys[1:] or options.keys == ["-"])
    for raw in _key_batches(options.keys, end):
        for text, (key, value) in zip(raw, _answers(store, raw, values), strict=True):
            found = value is not ABSENT
            if not found:
                status = NOT_FOUND
            if options.json:
                if found or not values:
                    _write(json_of({"key": key} | ({"value": value} if values else {"found": found})) + b"\n")
            elif found and not silent:
                _write((printed(value) if values else text) + end)
            if values and not found and not options.quiet:
                _flush()
                _say(f"no key {text.decode(errors='backslashreplace')}")
        _flush()
    return status


def _key_batches(keys: list[str], end: bytes) -> Iterator[list[bytes]]:
    """Keys as they are given; for `-` those of stdin, as many at a time as have come, split as `build` splits lines."""
    for key in keys:
        if key != "-":
            yield [os.fsencode(key)]
            continue
        file, rest = _stdin(), b""
        while block := file.read1(BLOCK):  # type: ignore[attr-defined]
            *lines, rest = (rest + block).split(end)
            yield lines if end == b"\0" else [line.removesuffix(b"\r") for line in lines]
        if rest:
            yield [rest]


def _answers(store: Store | Filter, raw: list[bytes], values: bool) -> list[tuple[Any, Any]]:
    """Every key as the store has it, with its value – True if none are asked for –, ABSENT if it is."""
    keys: list[Any] = raw
    batch: Any = raw
    if (kind := store.info()["key_type"]) not in ("bytes", "str"):
        bounds = np.iinfo(kind)
        try:
            keys = [integer(text) for text in raw]
        except ValueError as error:
            raise Failure(f"key {error}, as the keys of this store are") from None
        batch = np.array([key for key in keys if bounds.min <= key <= bounds.max], kind)
    present = list(itertools.compress(batch, store.contains_many(batch)))
    found = store.get_many(present) if values and isinstance(store, Store) else itertools.repeat(True)
    stored = dict(zip(present, found, strict=False))
    return [(key, stored.get(key, ABSENT)) for key in keys]


# info, verify


def info(options: argparse.Namespace) -> int:
    with _open(options.file) as handle:
        said = handle.info()
    if options.json:
        _write(json_of(said) + b"\n")
    else:
        lines = "".join(f"{name:<20} {text}\n" for name, text in table(said))
        _write(lines.encode("utf-8", "surrogateescape"))
    return FOUND


def verify(options: argparse.Namespace) -> int:
    status = FOUND
    for name in options.files:
        wrong = None
        try:
            with _open(name) as handle:
                handle.verify()
        except (Failure, OSError, Error) as error:
            status, wrong = ERROR, _message(error)
            if not wrong.startswith(f"{name}: "):
                wrong = f"{name}: {wrong}"
            _flush()
            _say(wrong)
        if options.json:
            _write(json_of({"file": name, "ok": wrong is None, "error": wrong}) + b"\n")
        elif wrong is None and not options.quiet:
            _write(os.fsencode(name) + b": ok\n")
    return status


def _open(path: str) -> Any:
    try:
        return open_file(path)
    except Error as error:
        raise Failure(f"{path}: {error}") from None


# stdout and stderr


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise Failure("standard output is closed")
    sys.stdout.buffer.write(data)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _say(text: str) -> None:
    if sys.stderr is not None:
        print("mphfstore:", text.replace("\n", " "), file=sys.stderr)


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory"
    known = isinstance(error, Failure | Error | OSError | ValueError | TypeError | OverflowError)
    return str(error) if known else f"{type(error).__name__}: {error}"


def _abandon_stdout() -> None:
    """Points stdout nowhere if it takes no more, so that the interpreter's last flush has nothing to complain of."""
    try:
        _flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def main(argv: list[str] | None = None) -> int:
    """Runs a command with these arguments, or the process's. Returns the exit status."""
    try:
        try:
            options = _parser().parse_args(argv)
            status: int = options.run(options)
        finally:
            _flush()
        return status
    except BrokenPipeError:
        _abandon_stdout()
        return FOUND
    except KeyboardInterrupt:
        _abandon_stdout()
        return INTERRUPTED
    except Exception as error:  # bad input never shows a traceback
        _abandon_stdout()
        _say(_message(error))
        return ERROR


# arguments

BUILD = """\
Builds a store from lines of text. It appears under its name whole, or not at all: after an error OUT is as it was.

  tsv    KEY<TAB>VALUE. The first tab ends the key; all that follows is the value, further tabs included. Bytes are
         kept as they are. A line ends in \\n or \\r\\n, which the last one may lack.
  csv    fields in quotes may hold delimiters and newlines. Key and value are columns 1 and 2 unless told otherwise.
  jsonl  ["key", value] or {"key": ..., "value": ...}: strings, or numbers where a numpy dtype is given.

Blank lines of csv and jsonl are skipped. With --values none only the keys count; a line of tsv then needs no tab."""

GET = """\
Prints the values of keys, each followed by a newline: bytes as they are, numbers as text, records as JSON.
Keys that are absent are named on stderr. In JSON, bytes that are not UTF-8 are {"base64": "..."}, and numbers that are
not finite are null."""

HAS = """\
Tells by the exit status whether all keys are there: 0 if they are, 1 if one is not. One key given as an argument prints
nothing; of several, or of those from stdin, it prints the ones that are there. A key that is not in the store or filter
is taken for one that is with the probability that info shows."""

KEYS = "exit status: 0 all keys found, 1 some not found, 2 error"


def _parser() -> Parser:
    # fmt: off
    top = Parser(
        "mphfstore", description="Static key-value stores on minimal perfect hash functions.", allow_abbrev=False,
        epilog="exit status: 0 found or done, 1 not found, 2 error",
    )
    top.add_argument("--version", action="version", version=f"mphfstore {version('mphfstore')}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(run: Any, summary: str, description: str | None = None, epilog: str | None = None) -> Parser:
        added: Parser = commands.add_parser(
            run.__name__, help=summary, description=description or summary.capitalize() + ".", epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )
        added.set_defaults(run=run)
        return added

    add = command(build, "build a store from TSV, CSV or JSON lines", BUILD).add_argument
    add("out", metavar="OUT", help="the store to write; a file of this name is replaced in the end")
    add("input", metavar="INPUT", help="the text to read; - is standard input")
    add("--format", dest="input_format", choices=("tsv", "csv", "jsonl"),
        help="told by INPUT's suffix (.csv, .jsonl, .ndjson); else tsv")
    add("--values", default="bytes", metavar="bytes|str|json|none|DTYPE",
        help="bytes as they are (default), UTF-8 text, JSON, no values at all, or a numpy dtype: uint32, f8, S16")
    add("--keys", choices=STORAGE, help="keep fingerprints of the keys (default), or the keys themselves")
    add("--compression", choices=COMPRESSIONS, help="compress bytes, str and json; needs mphfstore[zstd]")
    add("--dedupe", action="store_true", help="store equal values once: bytes, str and json")
    add("--key-dtype", metavar="DTYPE", help="keys are integers of this numpy dtype; else they are bytes")
    add("--key-column", metavar="COLUMN", help="csv: name (with --header) or number from 1; jsonl: name of the field")
    add("--value-column", metavar="COLUMN", help="the same for the value")
    add("--header", action="store_true", help="csv: the first line names the columns")
    add("--delimiter", metavar="CHAR", help="csv: what parts the columns, a comma by default; \\t is a tab")
    add("--on-duplicate", choices=DUPLICATE_POLICIES, help="which record of a key to keep; error by default")
    add("--fingerprint-bits", type=int, metavar="N",
        help="0 to 32, default 16 (0 with --keys exact): an absent key passes for a stored one with probability 2^-N")
    add("--false-positive-rate", type=float, metavar="P", help="the same as a probability, at most: 0.001")
    add("--preset", choices=tuple(PRESETS), help="quickest build, quickest look-ups, balanced (default), less space")
    add("--method", choices=tuple(METHODS), help="search method, in place of the preset's")
    add("--leaf-size", type=int, metavar="N", help="keys in a leaf, in place of the preset's")
    add("--bucket-size", type=int, metavar="N", help="keys in a bucket on average, in place of the preset's")
    add("--seed", type=int, metavar="N", help="of the hash, for the same file every time; random by default")
    add("--threads", type=int, metavar="N", help="as many as processors by default")
    add("--metadata", metavar="JSON", help="anything to keep in the file, for info")
    add("--quiet", action="store_true", help="no progress on a terminal")

    for run, summary, text in ((get, "print the values of keys", GET), (has, "tell whether keys are there", HAS)):
        added = command(run, summary, text, KEYS)
        add = added.add_argument
        add("store", metavar="STORE", help="a file that build wrote" if run is get else "a store or a filter")
        add("keys", metavar="KEY", nargs="+",
            help="- reads keys from standard input, one per line; -- goes before a key that starts with a dash")
        add("--json", action="store_true", help="a line with an object for every key")
        add("-0", "--null", action="store_true", help="keys from standard input and output end in NUL, not newline")
        add("--quiet", action="store_true",
            help="do not name absent keys" if run is get else "print nothing, not even of several keys")
        vars(added).get("_has_negative_number_optionals", []).clear()  # -5 is a key, although -0 is an option

    add = command(info, "show what a file is and how large its parts are").add_argument
    add("file", metavar="FILE", help="a store, a filter or a function")
    add("--json", action="store_true", help="one JSON object")

    add = command(verify, "read whole files and compare their checksums").add_argument
    add("files", metavar="FILE", nargs="+", help="a store, a filter or a function")
    add("--json", action="store_true", help="an object per file and line")
    add("--quiet", action="store_true", help="print nothing of files that are sound")
    overlay(commands)
    # fmt: on
    return top
