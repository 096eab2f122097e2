"""How far a command has come, on a terminal: bars with rate and time left where `rich` is installed, else one line on
stderr that overwrites itself. In a pipe nothing."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from typing import Any, Protocol


class _Display(Protocol):
    def show(self, stage: str, text: str, part: float | None, last: bool) -> None: ...

    def close(self, failed: bool) -> None: ...


class Progress:
    """Stages of a command, one after the other; a block ends the display.

    `bars` asks for rich, None takes it if it is there."""

    def __init__(self, quiet: bool, bars: bool | None = None) -> None:
        self._display: _Display | None = None
        self._bars, self._stage, self._begun = bars, "", 0.0
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Progress:
        if self._live:
            self._display = _display(self._bars)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._display:
            self._display.close(kind is not None)
        self._display = None

    def reading(self, records: int, part: float | None = None) -> None:
        """So many records are read, that part of all if it is known."""
        self._show("read", f"{records} records read", records, part)

    def building(self, done: int, total: int) -> None:
        """So many of all keys have their place."""
        part = done / total if total else 1.0
        self._show("build", f"{math.floor(100 * part):3d} % of {total} keys", done, part)

    def writing(self, done: int, total: int) -> None:
        """So many of all records are written, or compared."""
        part = done / total if total else 1.0
        self._show("write", f"{math.floor(100 * part):3d} % of {total} records", done, part)

    def _show(self, stage: str, text: str, done: int, part: float | None) -> None:
        if self._display is None:
            return
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._begun = stage, now
        took = now - self._begun
        rate = f", {done / took:,.0f}/s" if took > 0.5 else ""
        self._display.show(stage, text + rate, part, last=part == 1.0)


def _display(bars: bool | None) -> _Display:
    if bars is not False:
        with contextlib.suppress(ImportError):
            return _Bars()
    return _Line()


class _Line:
    def __init__(self) -> None:
        self._width, self._shown_at = 0, -math.inf
        self._stage, self._begun = "", 0.0

    def show(self, stage: str, text: str, part: float | None, last: bool) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._begun = stage, now
        took = now - self._begun
        if part and not last and took > 1:
            text += f", {_time(took / part - took)} left"
        if last or now - self._shown_at > 0.1:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width, self._shown_at = len(text), now

    def close(self, failed: bool) -> None:
        if self._width:  # a finished line stays, one that failed makes room for the message
            sys.stderr.write("\r" + " " * self._width + "\r" if failed else "\n")


class _Bars:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Live

        self._live = Live(
            BarColumn(30), TextColumn("{task.description}", markup=False), TimeRemainingColumn(),
            console=Console(file=sys.stderr), transient=False,
        )  # fmt: skip
        self._tasks: dict[str, Any] = {}
        self._live.start()

    def show(self, stage: str, text: str, part: float | None, last: bool) -> None:
        if stage not in self._tasks:
            for task in self._tasks.values():  # the stage before is over, however far it said it was
                self._live.update(task, total=1.0, completed=1.0)
            self._tasks[stage] = self._live.add_task(text, total=None)
        self._live.update(
            self._tasks[stage], description=text, total=None if part is None else 1.0, completed=part or 0.0
        )

    def close(self, failed: bool) -> None:
        self._live.live.transient = failed  # makes room for the message
        self._live.stop()


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}" if minutes >= 60 else f"{minutes}:{seconds:02d}"
