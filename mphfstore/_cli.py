"""The command `mphfstore`.

    _cli_build    build import merge        _cli_convert  export dump diff
    _cli_query    get has info verify       _cli_overlay  overlay put, delete, get, compact, info
    _cli_scan     scan

Exit status: 0 found or done, 1 a key was not found or stores differ, 2 an error, of which one line on stderr says what
it was; 130 after Ctrl-C. A reader of our output that has seen enough is no error."""

from __future__ import annotations

import argparse
from importlib.metadata import version

from . import _cli_build, _cli_convert, _cli_overlay, _cli_query, _cli_scan
from ._cli_streams import ERROR, FOUND, INTERRUPTED, Parser, abandon_stdout, flush, message_of, say


def main(argv: list[str] | None = None) -> int:
    """Runs a command with these arguments, or the process's. Returns the exit status."""
    try:
        try:
            options = _parser().parse_args(argv)
            status: int = options.run(options)
        finally:
            flush()
        return status
    except BrokenPipeError:
        abandon_stdout()
        return FOUND
    except KeyboardInterrupt:
        abandon_stdout()
        return INTERRUPTED
    except Exception as error:  # bad input never shows a traceback
        abandon_stdout()
        say(message_of(error))
        return ERROR


def commands() -> dict[str, str]:
    """Every command and what it is for, as --help lists them."""
    listed = next(action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {choice.dest: choice.help or "" for choice in listed._choices_actions}


def _parser() -> Parser:
    top = Parser(
        "mphfstore", description="Static key-value stores on minimal perfect hash functions.", allow_abbrev=False,
        epilog="exit status: 0 found, done or the same, 1 not found or different, 2 error",
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"mphfstore {version('mphfstore')}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for module in (_cli_build, _cli_query, _cli_scan, _cli_convert, _cli_overlay):
        module.add_commands(commands)
    return top
