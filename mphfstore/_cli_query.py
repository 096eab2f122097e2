"""The commands that ask: get, has, info and verify."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import Error, Filter, Store
from ._cli_streams import ERROR, FOUND, NOT_FOUND, Failure, command, flush, message_of, opened, say, write
from ._device import devices
from ._formats import standard_input
from ._records import integer
from ._render import json_of, table, text_of

ABSENT: Any = object()  # in place of a value
BLOCK = 1 << 16  # bytes of keys read at a time; a pipe gives what it has

GET = """\
Prints the values of keys, each followed by a newline: bytes as they are, numbers as text, records as JSON.
Keys that are absent are named on stderr. In JSON, bytes that are not UTF-8 are {"base64": "..."}, and numbers that are
not finite are null."""

HAS = """\
Tells by the exit status whether all keys are there: 0 if they are, 1 if one is not. One key given as an argument prints
nothing; of several, or of those from stdin, it prints the ones that are there. A key that is not in the store or filter
is taken for one that is with the probability that info shows."""

KEYS = "exit status: 0 all keys found, 1 some not found, 2 error"


def get(options: argparse.Namespace) -> int:
    return _look_up(options, values=True)


def has(options: argparse.Namespace) -> int:
    return _look_up(options, values=False)


def _look_up(options: argparse.Namespace, values: bool) -> int:
    store, name = opened(options.store), options.store
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
                    write(json_of({"key": key} | ({"value": value} if values else {"found": found})) + b"\n")
            elif found and not silent:
                write((printed(value) if values else text) + end)
            if values and not found and not options.quiet:
                flush()
                say(f"no key {text.decode(errors='backslashreplace')}")
        flush()
    return status


def _key_batches(keys: list[str], end: bytes) -> Iterator[list[bytes]]:
    """Keys as they are given; for `-` those of stdin, as many at a time as have come, split as `build` splits lines."""
    for key in keys:
        if key != "-":
            yield [os.fsencode(key)]
            continue
        file, rest = standard_input(), b""
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


def info(options: argparse.Namespace) -> int:
    if options.devices:
        return _list_devices(options)
    if options.file is None:
        raise Failure("info needs a FILE, or --devices")
    with opened(options.file) as handle:
        said = handle.info()
    if options.json:
        write(json_of(said) + b"\n")
    else:
        lines = "".join(f"{name:<20} {text}\n" for name, text in table(said))
        write(lines.encode("utf-8", "surrogateescape"))
    return FOUND


def _list_devices(options: argparse.Namespace) -> int:
    found = devices()
    if options.json:
        write(json_of(found) + b"\n")
        return FOUND
    for one in found:
        text = one.get("unavailable") or (
            f"{one['name']}, {'GPU' if one['gpu'] else 'processor'}, {one['units']} units, {one['memory'] >> 20} MiB"
        )
        write(f"{one['backend']:<8} {text}\n".encode())
    return FOUND


def verify(options: argparse.Namespace) -> int:
    status = FOUND
    for name in options.files:
        wrong = None
        try:
            with opened(name) as handle:
                handle.verify()
        except (Failure, OSError, Error) as error:
            status, wrong = ERROR, message_of(error)
            if not wrong.startswith(f"{name}: "):
                wrong = f"{name}: {wrong}"
            flush()
            say(wrong)
        if options.json:
            write(json_of({"file": name, "ok": wrong is None, "error": wrong}) + b"\n")
        elif wrong is None and not options.quiet:
            write(os.fsencode(name) + b": ok\n")
    return status


def add_commands(commands: Any) -> None:
    # fmt: off
    for run, summary, text in ((get, "print the values of keys", GET), (has, "tell whether keys are there", HAS)):
        added = command(commands, run.__name__, run, summary, text, KEYS)
        add = added.add_argument
        add("store", metavar="STORE", help="a file that build wrote" if run is get else "a store or a filter")
        add("keys", metavar="KEY", nargs="+",
            help="- reads keys from standard input, one per line; -- goes before a key that starts with a dash")
        add("--json", action="store_true", help="a line with an object for every key")
        add("-0", "--null", action="store_true", help="keys from standard input and output end in NUL, not newline")
        add("--quiet", action="store_true",
            help="do not name absent keys" if run is get else "print nothing, not even of several keys")
        vars(added).get("_has_negative_number_optionals", []).clear()  # -5 is a key, although -0 is an option

    add = command(commands, "info", info, "show what a file is and how large its parts are").add_argument
    add("file", metavar="FILE", nargs="?", help="a store, a filter or a function")
    add("--devices", action="store_true", help="list what can run kernels, in place of a file")
    add("--json", action="store_true", help="one JSON object")

    add = command(commands, "verify", verify, "read whole files and compare their checksums").add_argument
    add("files", metavar="FILE", nargs="+", help="a store, a filter or a function")
    add("--json", action="store_true", help="an object per file and line")
    add("--quiet", action="store_true", help="print nothing of files that are sound")
    # fmt: on
