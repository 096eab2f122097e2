"""The command `mphfstore`. Exit status: 0 found or done, 1 not found, 2 error."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._build import DUPLICATE_POLICIES, METHODS, PRESETS
from ._builder import Builder
from ._errors import DuplicateKeyError, Error
from ._filter import Filter
from ._keys import IntegerKeys
from ._mphf import MPHF
from ._open import open as open_file
from ._records import FORMATS, chunks, read_csv, read_jsonl, read_tsv
from ._store import Store

FOUND, NOT_FOUND, ERROR, INTERRUPTED = 0, 1, 2, 130


class _CommandError(Exception):
    """Ends the command with a message and status 2."""


def main(argv: list[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except KeyboardInterrupt:
        return INTERRUPTED
    except (_CommandError, Error, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"mphfstore: {text or type(error).__name__}", file=sys.stderr)
        return ERROR


def _build(arguments: argparse.Namespace) -> int:
    kind = {"none": None}.get(arguments.values, arguments.values)
    keys = None if arguments.key_dtype is None else IntegerKeys(arguments.key_dtype)
    metadata = None
    if arguments.metadata is not None:
        try:
            metadata = json.loads(arguments.metadata)
        except ValueError as error:
            raise _CommandError(f"--metadata is not JSON: {error}") from None
    name = "standard input" if arguments.input == "-" else arguments.input
    lines = array("Q")  # of every record, to name in errors
    with _input(arguments.input) as stream:
        builder = Builder(
            arguments.output,
            values=kind,
            key_dtype=arguments.key_dtype,
            fingerprint_bits=arguments.fingerprint_bits,
            preset=arguments.preset,
            method=arguments.method,
            leaf_size=arguments.leaf_size,
            bucket_size=arguments.bucket_size,
            on_duplicate=arguments.on_duplicate,
            seed=arguments.seed,
            threads=arguments.threads,
            metadata=metadata,
            progress=_progress(arguments.quiet),
        )
        try:
            with builder:
                for numbers, some_keys, values in chunks(_records(arguments, stream, name, kind is not None)):
                    lines.extend(numbers)
                    builder.add_many(*_typed(name, numbers, some_keys, None if kind is None else values, keys, kind))
        except DuplicateKeyError as error:
            first, second = (lines[position] for position in error.positions)
            raise _CommandError(f"{name}:{second}: duplicate key {error.key!r}, first in line {first}") from None
    if not arguments.quiet and sys.stderr.isatty():
        size = Path(arguments.output).stat().st_size
        print(f"{arguments.output}: {len(lines)} records read, {_bytes(size)}", file=sys.stderr)
    return FOUND


def _records(arguments: argparse.Namespace, stream: BinaryIO, name: str, with_values: bool) -> Iterator[Any]:
    form = arguments.format or FORMATS.get(Path(arguments.input).suffix.lower(), "tsv")
    if form == "tsv":
        return read_tsv(stream, name, with_values)
    key, value = arguments.key_column, arguments.value_column
    if form == "jsonl":
        return read_jsonl(stream, name, with_values, key_column=key or "key", value_column=value or "value")
    options = {"header": arguments.header, "delimiter": arguments.delimiter}
    return read_csv(stream, name, with_values, key_column=key or "1", value_column=value or "2", **options)


def _typed(
    name: str, lines: list[int], keys: list[Any], values: list[Any] | None, key_type: IntegerKeys | None, kind: Any
) -> tuple[Any, Any]:
    """Keys and values of a chunk as the builder takes them. An error names the line of the first that does not fit."""
    number: Callable[[Any], Any] = _bytes_value if kind == "bytes" else _numbers(kind) if kind is not None else str
    typed_keys, typed_values = [], []
    try:
        for key in keys:
            typed_keys.append(_bytes_key(key) if key_type is None else _integer_key(key, key_type))
        for value in values or []:
            typed_values.append(number(value))
    except (ValueError, TypeError, OverflowError) as error:
        at = len(typed_values) if len(typed_keys) == len(keys) else len(typed_keys)
        raise _CommandError(f"{name}:{lines[at]}: {error}") from None
    return typed_keys, None if values is None else typed_values


def _bytes_key(key: Any) -> str | bytes:
    if not isinstance(key, str | bytes):
        raise TypeError(f"a key is a string, not {type(key).__name__}; --key-dtype is for integers")
    return key


def _integer_key(key: Any, key_type: IntegerKeys) -> int:
    integer = int(key)
    key_type.one(integer)  # OverflowError outside the dtype
    return integer


def _bytes_value(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"a value is a string, not {type(value).__name__}; --values names a dtype for numbers")
    return value.encode()


def _numbers(kind: str) -> Callable[[Any], Any]:
    """Converts one value to the dtype; raises ValueError or OverflowError if it does not fit."""
    dtype = np.dtype(kind)

    def convert(value: Any) -> Any:
        if dtype.kind in "SUV":
            return value.decode() if dtype.kind == "U" and isinstance(value, bytes) else value
        if dtype.kind in "iu":
            integer = int(value)
            if not np.iinfo(dtype).min <= integer <= np.iinfo(dtype).max:
                raise OverflowError(f"{integer} is outside {dtype}")
            return integer
        return dtype.type(value)

    return convert


def _get(arguments: argparse.Namespace) -> int:
    store = open_file(arguments.store)
    if not isinstance(store, Store):
        raise _CommandError(f"{arguments.store} is a {store.info()['kind']}, it has no values")
    status, output = FOUND, sys.stdout.buffer
    for text, key in _keys(arguments, store):
        value = store.get(key)
        if value is None:
            status = NOT_FOUND
            if not arguments.quiet:
                print(f"mphfstore: no key {_shown(text)}", file=sys.stderr)
        elif arguments.json:
            output.write(json.dumps({"key": _shown(text), "value": _plain(value)}).encode() + b"\n")
        else:
            output.write(value if isinstance(value, bytes) else str(value).encode())
            output.write(b"\0" if arguments.null else b"\n")
    return status


def _has(arguments: argparse.Namespace) -> int:
    store = open_file(arguments.store)
    if isinstance(store, MPHF):
        raise _CommandError(f"{arguments.store} is a bare function, it does not know its keys")
    status = FOUND
    for text, key in _keys(arguments, store):
        if key not in store:
            status = NOT_FOUND
        elif len(arguments.keys) > 1 or arguments.keys == ["-"]:
            sys.stdout.buffer.write(text + b"\n")
    return status


def _keys(arguments: argparse.Namespace, store: Store | Filter) -> Iterator[tuple[bytes, Any]]:
    """Every key as given, and as the store takes it."""
    if arguments.keys == ["-"]:
        texts: Any = (line.removesuffix(b"\n").removesuffix(b"\r") for line in sys.stdin.buffer)
    else:
        texts = map(os.fsencode, arguments.keys)
    integers = store.info()["key_type"] != "bytes"
    for text in texts:
        try:
            yield text, int(text) if integers else text
        except ValueError:
            raise _CommandError(f"the keys of {arguments.store} are integers, not {_shown(text)!r}") from None


def _info(arguments: argparse.Namespace) -> int:
    info = open_file(arguments.file).info()
    if arguments.json:
        print(json.dumps(info))
        return FOUND
    sections = info.pop("sections")
    for name, value in info.items():
        if value is None:
            continue
        if name == "file_size":
            value = f"{value} ({_bytes(value)})"
        elif name == "bits_per_key":
            value = f"{value:.3f} (trees and directory)"
        elif name == "metadata":
            value = json.dumps(value, ensure_ascii=False)
        elif name == "false_positive_rate":
            value = f"{value:.3g} (1 in {round(1 / value)})"
        print(f"{name.replace('_', ' '):<20} {value}")
    for name, size in sections.items():
        print(f"  {name.replace('_', ' '):<18} {_bytes(size)}")
    return FOUND


def _verify(arguments: argparse.Namespace) -> int:
    status = FOUND
    for name in arguments.files:
        try:
            open_file(name).verify()
        except (Error, OSError) as error:
            status = ERROR
            print(f"mphfstore: {name}: {error.strerror if isinstance(error, OSError) else error}", file=sys.stderr)
        else:
            print(f"{name}: ok")
    return status


def _input(name: str) -> BinaryIO:
    return open(0, "rb", closefd=False) if name == "-" else open(name, "rb")


def _progress(quiet: bool) -> Callable[[int, int], None] | None:
    """A line on the terminal that overwrites itself; None in a pipe."""
    if quiet or not sys.stderr.isatty():
        return None
    begin = time.monotonic()

    def show(done: int, total: int) -> None:
        rate = done / max(1e-9, time.monotonic() - begin) / 1e6
        share = 100 * done // total if total else 100
        print(f"\r{share:3d} % of {total} keys, {rate:.1f} M/s ", end="\n" if done == total else "", file=sys.stderr)

    return show


def _bytes(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def _shown(key: bytes) -> str:
    return key.decode(errors="backslashreplace")


def _plain(value: Any) -> Any:
    return _shown(value) if isinstance(value, bytes) else value.tolist()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mphfstore", description="Static key-value stores in one file.")
    parser.add_argument("--version", action="version", version=f"mphfstore {version('mphfstore')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("build", help="build a store from TSV, CSV or JSON lines")
    build.add_argument(
        "output", metavar="STORE", help="file to publish; an old one stays until the new one is complete"
    )
    build.add_argument("input", metavar="INPUT", help="file of records, or - for standard input")
    build.add_argument("--format", choices=sorted({*FORMATS.values()}), help="default: by the suffix, else tsv")
    build.add_argument(
        "--values", default="bytes", metavar="KIND", help="bytes (default), none, or a numpy dtype: f8, i4, S16"
    )
    build.add_argument("--key-dtype", metavar="DTYPE", help="keys are integers of this numpy dtype, such as u8")
    build.add_argument(
        "--key-column", metavar="C", help="CSV: number from 1 (default 1) or name; JSON: field (default key)"
    )
    build.add_argument("--value-column", metavar="C", help="CSV: default 2; JSON: default value")
    build.add_argument("--header", action="store_true", help="CSV: the first line names the columns")
    build.add_argument("--delimiter", default=",", help="CSV: between columns (default: comma)")
    build.add_argument(
        "--fingerprint-bits", type=int, default=16, metavar="W", help="0 to 32, default 16: absent keys pass at 2^-W"
    )
    build.add_argument("--on-duplicate", choices=DUPLICATE_POLICIES, default="error", help="default: error")
    build.add_argument("--preset", choices=list(PRESETS), default="balanced", help="default: balanced")
    build.add_argument("--method", choices=list(METHODS), help="overrides the preset")
    build.add_argument("--leaf-size", type=int, metavar="N", help="overrides the preset")
    build.add_argument("--bucket-size", type=int, metavar="N", help="overrides the preset")
    build.add_argument("--seed", type=int, help="for the same file every time; random by default")
    build.add_argument("--threads", type=int, metavar="N", help="default: one per processor")
    build.add_argument("--metadata", metavar="JSON", help="kept in the file for `info`")
    build.add_argument("--quiet", action="store_true", help="no progress on a terminal")
    build.set_defaults(run=_build)

    for name, run, text in (
        ("get", _get, "print values of keys"),
        ("has", _has, "tell whether keys are there; print those that are, of several"),
    ):
        command = commands.add_parser(name, help=text, description=f"{text}. Exit status 1 if any is absent.")
        command.add_argument("store", metavar="STORE")
        command.add_argument("keys", metavar="KEY", nargs="+", help="or - for one per line on standard input")
        if name == "get":
            command.add_argument("--json", action="store_true", help="a line with key and value for each")
            command.add_argument("-0", "--null", action="store_true", help="a NUL after each value, not a newline")
            command.add_argument("--quiet", action="store_true", help="do not name absent keys")
        command.set_defaults(run=run)

    info = commands.add_parser("info", help="what a file says of itself")
    info.add_argument("file", metavar="FILE")
    info.add_argument("--json", action="store_true", help="for programs")
    info.set_defaults(run=_info)

    verify = commands.add_parser("verify", help="compare all checksums of files")
    verify.add_argument("files", metavar="FILE", nargs="+")
    verify.set_defaults(run=_verify)
    return parser
