"""What all commands share: their errors, stdin, stdout and stderr."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from . import Error
from . import open as open_file

FOUND, NOT_FOUND, ERROR, INTERRUPTED = 0, 1, 2, 130
SAME, DIFFERENT = FOUND, NOT_FOUND  # of diff


class Failure(Exception):
    """An error of the command itself; its text is all there is to say."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(ERROR, f"mphfstore: {message} (see {self.prog} --help)\n")


def command(
    commands: Any, name: str, run: Any, summary: str, description: str | None = None, epilog: str | None = None
) -> Parser:
    """A command's parser, to add its arguments to."""
    added: Parser = commands.add_parser(
        name, help=summary, description=description or summary.capitalize() + ".", epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    added.set_defaults(run=run)
    return added


def opened(path: str) -> Any:
    try:
        return open_file(path)
    except Error as error:
        raise Failure(str(error)) from None


@contextlib.contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Errors of the system that name no file, or its temporary one, get this name."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.strerror and (error.filename is None or str(error.filename).endswith(".mphtmp")):
            raise Failure(f"{path}: {error.strerror}") from None
        raise


def refuse_same_file(source: str, target: str) -> None:
    if source != "-" and os.path.exists(target) and os.path.samefile(source, target):
        raise Failure(f"{target} is the input, too")


def write(data: bytes) -> None:
    if sys.stdout is None:
        raise Failure("standard output is closed")
    sys.stdout.buffer.write(data)


def flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def say(text: str) -> None:
    if sys.stderr is not None:
        print("mphfstore:", text.replace("\n", " "), file=sys.stderr)


def message_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "out of memory"
    known = isinstance(error, Failure | Error | OSError | ValueError | TypeError | OverflowError)
    return str(error) if known else f"{type(error).__name__}: {error}"


def abandon_stdout() -> None:
    """Points stdout nowhere if it takes no more, so that the interpreter's last flush has nothing to complain of."""
    try:
        flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
