"""What is measured: the base of stores and filters, and which of them can run here."""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from . import record


class WrongResult(Exception):
    """A subject did not find what it holds, or found what it does not: no time of it counts."""


def check(right: bool, what: str) -> None:
    if not right:
        raise WrongResult(what)


class Subject:
    """`module` must be importable, `distribution` is whose version is reported (the interpreter's where it is None)."""

    name = ""
    module = "builtins"
    distribution: str | None = None
    ours = False

    def version(self) -> str | None:
        return record.version(self.distribution) if self.distribution else f"Python {platform.python_version()}"

    def lacks(self) -> str | None:
        """Why it cannot run here."""
        try:
            importlib.import_module(self.module)
        except ImportError as error:
            return str(error)
        return None


@dataclass
class Handle:
    """A store opened for look-ups."""

    get: Callable[[Any], Any]  # the value of a key, as the subject gives it, or None
    mapping: Any = None  # answers mapping[key] and raises KeyError, if anything does
    batches: Mapping[str, Callable[[Any], Any]] = field(
        default_factory=dict
    )  # all values: an array, or a list of bytes
    close: Callable[[], object] = lambda: None


class Store(Subject):
    """`absent` says what becomes of a key that is not stored: "exact", "probable" (reported absent but for a false
    positive now and then) or "undefined"; `lookup` names the call that `get` is."""

    absent = "exact"
    lookup = "get(key)"
    persistent = True

    def build(self, work: Any, path: Path) -> None:
        """From `work.keys` and `work.values` to what lies at `path`, a file or a folder."""
        raise NotImplementedError

    def open(self, path: Path) -> Handle:
        raise NotImplementedError

    def details(self, path: Path) -> dict[str, Any]:
        """What else its record shall say."""
        return {}

    def prepare(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Keys as single look-ups take them."""
        return keys

    def number(self, found: Any) -> int:
        """What `get` gave, as the integer that its bytes are (little-endian)."""
        return int.from_bytes(found, "little")


class Filter(Subject):
    """A set that answers `in`."""

    def refuses(self, bits: int) -> str | None:
        """Why it cannot have this many bits of fingerprint."""
        return None

    def build(self, work: Any, bits: int) -> Any:
        raise NotImplementedError

    def size(self, built: Any) -> int:
        """In bytes, as it would be stored."""
        raise NotImplementedError

    def contains_many(self, built: Any) -> Callable[[Any], Any] | None:
        """The call that takes an array of keys, if there is one."""
        return None

    def details(self, built: Any) -> dict[str, Any]:
        return {}


S = TypeVar("S", bound=Subject)


def by_interpreter(options: Sequence[str]) -> dict[str, str]:
    """From NAME=PATH, the interpreter that runs a subject."""
    wrong = [option for option in options if "=" not in option]
    if wrong:
        sys.exit(f"--python takes SUBJECT=PATH, not {wrong[0]!r}")
    return dict(option.split("=", 1) for option in options)


def chosen(subjects: Sequence[S], names: Sequence[str]) -> list[S]:
    """Those with these names, or all; ours also by the name of the preset alone."""
    known = {subject.name for subject in subjects}
    for name in names:
        if name not in known:
            sys.exit(f"no such subject: {name!r}; there are {', '.join(sorted(known))}")
    return [subject for subject in subjects if not names or subject.name in names]


def skipped(subject: str, reason: str) -> dict[str, Any]:
    return {"subject": subject, "skipped": reason}


def elsewhere(subject: str, interpreter: str, benchmark: str, options: Sequence[str]) -> dict[str, Any]:
    """The record of one subject that this same program measures under another interpreter."""
    program = Path(sys.argv[0]).resolve()
    command = [interpreter, str(program), benchmark, "--subjects", subject, *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return skipped(subject, str(error))
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        check("wrong result" not in done.stderr, f"{subject}: {lines[-1] if lines else 'no message'}")
        return skipped(subject, lines[-1] if lines else f"exit status {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result
