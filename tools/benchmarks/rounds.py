"""What `store` and `filter` share: their options, and taking every subject through the steps of a benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from . import record
from .catalogue import subjects
from .measure import Timings, no_call, percentiles
from .subject import Subject, WrongResult, by_interpreter, chosen, elsewhere, skipped

Record = dict[str, Any]


class Run(Protocol):
    """One subject on its way through the steps."""

    @property
    def subject(self) -> Subject: ...


R = TypeVar("R", bound=Run)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1, help="of our builds (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--subjects", nargs="+", default=[], metavar="NAME", help="measure these only")
    parser.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="SUBJECT=PATH",
        help="run a subject under another interpreter, which has it and numpy",
    )


class Benchmark:
    """The subjects of one run. A step is taken by all of them in turn, so that a slow minute of a shared machine falls
    on all. A peer that fails is reported as skipped, with the reason; one that gives wrong results ends the run."""

    def __init__(self, name: str, arguments: argparse.Namespace) -> None:
        self.name, self._arguments = name, arguments
        self.records: dict[str, Record] = {}  # by subject
        self._picked: list[Any] = chosen(subjects(name, arguments.threads), arguments.subjects)
        self._interpreters = by_interpreter(arguments.python)
        chosen(subjects(name, arguments.threads), list(self._interpreters))  # refuses names that do not exist

    def start(self, make: Callable[[Any], R], refuses: Callable[[Any], str | None] = lambda _: None) -> list[R]:
        """A run of every subject that can run here; the others have their records afterwards."""
        runs = []
        for subject in self._picked:
            name = subject.name
            interpreter = self._interpreters.get(name)
            reason = refuses(subject) or (None if interpreter else subject.lacks())
            if reason:
                self._skip(name, reason)
            elif interpreter:
                record.say(f"{self.name}, {name}: under {interpreter}")
                self.records[name] = elsewhere(name, interpreter, self.name, self._options())
            else:
                runs.append(make(subject))
        return runs

    def _options(self) -> list[str]:
        """Of the command line, those that a run under another interpreter has in common with this one."""
        given = vars(self._arguments)
        passed = {name: value for name, value in given.items() if isinstance(value, int | float | str)}
        del passed["command"]
        return [text for name, value in passed.items() for text in ("--" + name.replace("_", "-"), str(value))]

    def step(self, runs: list[R], what: str, work: Callable[[R], None]) -> None:
        """Takes every run through a step; removes those of peers that fail."""
        record.say(f"{self.name}: {what}")
        for run in list(runs):
            name = run.subject.name
            try:
                work(run)
            except WrongResult:
                raise
            except Exception as error:
                if run.subject.ours:
                    raise
                runs.remove(run)
                self._skip(name, f"{what}: {type(error).__name__}: {error}")

    def _skip(self, name: str, reason: str) -> None:
        record.say(f"{self.name}, {name}: skipped: {reason}")
        self.records[name] = skipped(name, reason)

    def overhead(self, keys: Sequence[Any], sample: int) -> Record:
        """`loop_ns` of a loop that does nothing with its keys, and percentiles of a clock read twice."""
        timings = Timings()
        for _ in range(self._arguments.repeats):
            timings.run("loop", len(keys), lambda: no_call(keys))
        return timings.fields() | percentiles("timer", None, keys[:sample])

    def emit(self, common: Record) -> None:
        """All records, in the order of the subjects."""
        environment = record.environment()
        kept = ("keys", "threads", "repeats", "seed")
        options = {name: getattr(self._arguments, name) for name in kept}
        for subject in self._picked:
            one = self.records[subject.name]
            if "benchmark" in one:  # from another interpreter, with an environment of its own
                record.emit(one)
            else:
                record.emit({"benchmark": self.name, **one, **options, **common, **environment})
