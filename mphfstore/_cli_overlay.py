"""The command `mphfstore overlay`: put, delete, get, compact and info on a store with an LMDB environment over it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._cli_streams import FOUND, NOT_FOUND, Failure, say, write
from ._formats import standard_input
from ._options import PRESETS
from ._overlay import Overlay
from ._progress import Progress
from ._records import BadRecord, converter, integer
from ._render import json_of, text_of
from ._text import tsv

OVERLAY = """\
Changes a store that is a static file: what is put or deleted goes to an LMDB environment in the directory LMDB beside
the store BASE, look-ups see it over the store, and compact folds it into a new file of the store's name. LMDB is made
where it is missing; BASE need not exist before the first compact."""

PUT = """\
Puts the value of a key; with - in their place, those of lines KEY<TAB>VALUE from standard input, all in one
transaction. It is on the disk when the command ends. The first put, if there is no store, says what values and keys
are: --values, --key-dtype."""


def add_commands(commands: Any) -> None:
    # fmt: off
    top = commands.add_parser(
        "overlay", help="change a store: put, delete, get, compact, info", description=OVERLAY, allow_abbrev=False,
        epilog="exit status: 0 found or done, 1 not found, 2 error",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = top.add_subparsers(metavar="ACTION", required=True)

    def action(run: Any, summary: str, description: str | None = None) -> Any:
        added = actions.add_parser(
            run.__name__.strip("_"), help=summary, description=description or summary.capitalize() + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )
        added.set_defaults(run=run)
        added.add_argument("base", metavar="BASE", help="the store, a file that build or compact wrote")
        added.add_argument("lmdb", metavar="LMDB", help="directory of the LMDB environment over it")
        return added.add_argument

    add = action(put, "put values of keys", PUT)
    add("key", metavar="KEY", help="the key; - reads lines from standard input")
    add("value", metavar="VALUE", nargs="?", help="its value: text, a number, or JSON, as the store has them")
    add("--values", metavar="bytes|str|json|DTYPE", help="of a new store; bytes by default")
    add("--key-dtype", metavar="DTYPE", help="of a new store whose keys are integers of this numpy dtype")

    add = action(delete, "delete keys, all of them or none if one is absent")
    add("keys", metavar="KEY", nargs="+", help="- reads keys from standard input, one per line")

    add = action(get, "print the values of keys")
    add("keys", metavar="KEY", nargs="+", help="- reads keys from standard input, one per line")
    add("--json", action="store_true", help="a line with an object for every key that is there")
    add("--quiet", action="store_true", help="do not name absent keys")

    add = action(compact, "fold the overlay into a new file of the store's name")
    add("--preset", choices=tuple(PRESETS), help="as for build")
    add("--seed", type=int, metavar="N", help="as for build")
    add("--threads", type=int, metavar="N", help="as for build")
    add("--quiet", action="store_true", help="no progress on a terminal")

    add = action(info, "show what the overlay holds")
    add("--json", action="store_true", help="one JSON object")
    # fmt: on


def put(options: argparse.Namespace) -> int:
    values = options.values
    if values not in (None, "bytes", "str", "json"):
        values = np.dtype(values)
    with Overlay(options.base, options.lmdb, values=values, key_dtype=options.key_dtype) as opened:
        if options.key == "-":
            if options.value is not None:
                raise ValueError("- takes no value: its lines have them")
            line = None
            try:
                with opened.batch():
                    for position, key, value in tsv(standard_input(), values=True):
                        line = position
                        opened[_key(opened, key)] = _value(opened, value)
            except BadRecord as error:
                raise Failure(f"<stdin>:{error.position or line}: {error}") from None
            except (TypeError, ValueError, OverflowError) as error:
                raise Failure(f"<stdin>:{line}: {error}") from None
        elif options.value is None:
            raise ValueError("a value is missing")
        else:
            opened[_key(opened, os.fsencode(options.key))] = _value(opened, os.fsencode(options.value))
    return FOUND


def delete(options: argparse.Namespace) -> int:
    with Overlay(options.base, options.lmdb) as opened:
        raw = b""
        try:
            with opened.batch():
                for raw in _keys(options.keys):
                    del opened[_key(opened, raw)]
        except KeyError:
            say(f"no key {raw.decode(errors='backslashreplace')}")
            return NOT_FOUND
    return FOUND


def get(options: argparse.Namespace) -> int:
    status, absent = FOUND, object()
    with Overlay(options.base, options.lmdb, readonly=True) as opened:
        for raw in _keys(options.keys):
            key = _key(opened, raw)
            value = opened.get(key, absent)
            if value is not absent:
                write((json_of({"key": key, "value": value}) if options.json else text_of(value)) + b"\n")
                continue
            status = NOT_FOUND
            if not options.quiet:
                say(f"no key {raw.decode(errors='backslashreplace')}")
    return status


def compact(options: argparse.Namespace) -> int:
    chosen = {name: getattr(options, name) for name in ("preset", "seed", "threads")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    with Overlay(options.base, options.lmdb) as opened, Progress(options.quiet) as progress:
        opened.compact(progress=progress.building, **chosen)
    return FOUND


def info(options: argparse.Namespace) -> int:
    with Overlay(options.base, options.lmdb, readonly=True) as opened:
        said = opened.info()
    if options.json:
        write(json_of(said) + b"\n")
    else:
        text = "".join(f"{name.replace('_', ' '):<20} {_shown(value)}\n" for name, value in said.items())
        write(text.encode("utf-8", "surrogateescape"))
    return FOUND


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _key(opened: Overlay, raw: bytes) -> Any:
    """A key as the overlay has it: an integer, text where it is UTF-8, else bytes."""
    if not opened._schema.keys.text:
        return integer(raw)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _value(opened: Overlay, raw: bytes) -> Any:
    return converter(opened._schema.values)(raw)


def _keys(given: list[str]) -> Iterator[bytes]:
    for key in given:
        if key == "-":
            yield from (line.removesuffix(b"\n").removesuffix(b"\r") for line in standard_input())
        else:
            yield os.fsencode(key)
