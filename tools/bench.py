#!/usr/bin/env python3
"""Benchmarks, as JSON lines: `python tools/bench.py mphf|store|filter|scan|gpu --help`. They print; they check
nothing but that results are right, and exit with status 1 if one is not. Times (NAME_ns) are CPU times per key, medians
of several runs; NAME_wall_ns is wall time. `tools/plot.py` draws them.

`pip install '.[bench]'` brings the peers; one that is not there is reported as skipped."""

from __future__ import annotations

import argparse
import sys

from benchmarks import filter, scan, store
from benchmarks.subject import WrongResult


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    try:
        from benchmarks import gpu, mphf
    except ImportError as error:  # an interpreter for peers only
        print(f"bench.py: without mphfstore: {error}", file=sys.stderr)
    else:
        mphf.add_command(commands)
        gpu.add_command(commands)
    store.add_command(commands)
    filter.add_command(commands)
    scan.add_command(commands)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except WrongResult as wrong:
        sys.exit(f"bench.py: wrong result: {wrong}")


if __name__ == "__main__":
    main()
