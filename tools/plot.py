#!/usr/bin/env python3
"""Draws the JSON lines of `tools/bench.py`, as SVG and PNG: `python tools/plot.py results.jsonl --out plots`.

    mphf      the three Pareto fronts of Bez's thesis (2022): build time and space, build and query time, query time
              and space; programs that were not run are quoted (benchmarks/quoted.py)
    store     bars: look-ups, batches, build, file size, memory
    filter    bars: look-ups, batches, build, size
    sweep     every point of `tools/sweep.py`: bits and build time, in the colour of its look-up time; its fronts

What the records have is drawn. Needs matplotlib: `pip install '.[plot]'`."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quoted import QUOTED, Quoted

try:
    import matplotlib
except ImportError as error:
    sys.exit(f"plot.py needs matplotlib ({error}): pip install '.[plot]'")
matplotlib.use("Agg")
from matplotlib import pyplot

Record = dict[str, Any]
OURS, THEIRS, FRONT = "#c1272d", "#7d8597", "#33415c"
METHOD_COLOURS = ("#c1272d", "#0b6e99", "#2a7f3b", "#8a5a00")
QUOTED_MARKERS = "svD^<>P"


@dataclass(frozen=True)
class Axis:
    """A quantity of a function: how it is labelled, and where records and quoted programs have it."""

    label: str
    field: str
    log: bool
    quoted: Callable[[Quoted], tuple[float, float] | None]


SPACE = Axis("bits per key", "bits_per_key", False, lambda one: (one.bits_per_key, one.bits_per_key))
BUILD = Axis("build, ns per key", "build_ns", True, lambda one: (one.build_ns, one.build_ns))
QUERY = Axis("one look-up, ns", "single_ns", True, lambda one: one.query_ns)
FRONTS = ((SPACE, BUILD), (QUERY, BUILD), (SPACE, QUERY))

# Label, and the fields of which the first that a record has is drawn.
STORE_BARS = (
    ("hit, ns", ("index_hit_ns", "get_hit_ns")),
    ("miss, ns", ("index_miss_ns", "get_miss_ns")),
    ("batch of a list, values gathered, ns per key", ("batch_list_ns", "batch_bytes_ns")),
    ("batch of an array, ns per key", ("batch_array_ns",)),
    ("build, CPU ns per key", ("build_ns",)),
    ("file, bits per key", ("file_bits_per_key",)),
)
FILTER_BARS = (
    ("in, hit, ns", ("contains_hit_ns",)),
    ("in, miss, ns", ("contains_miss_ns",)),
    ("contains_many, hits, ns per key", ("contains_many_hit_ns",)),
    ("build, CPU ns per key", ("build_ns",)),
    ("bits per key", ("bits_per_key",)),
    ("false positives, %", ("false_positive_percent",)),
)
LONGEST_BAR = 4  # times the median: one slow subject would press all others to the edge


def read(files: Sequence[str]) -> list[Record]:
    """All records; SystemExit names the line that is none."""
    records = []
    for name in files:
        lines = sys.stdin if name == "-" else Path(name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                one = json.loads(line)
                records.append({"benchmark": one["benchmark"], **one})
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{name}:{number}: not a record of tools/bench.py: {error}")
    return records


def of(benchmark: str, records: Sequence[Record]) -> tuple[list[Record], str]:
    """The records of one benchmark, the last of each subject, and a line about the run. They must be of one machine
    and number of keys, or a picture would compare what cannot be compared."""
    latest = {one["subject"]: one for one in records if one["benchmark"] == benchmark}
    for field in ("keys", "processor"):
        seen = {str(one[field]) for one in latest.values()}
        if len(seen) > 1:
            sys.exit(f"{benchmark}: records of several {field}: {', '.join(sorted(seen))}; draw them one by one")
    if not latest:
        return [], ""
    one = next(iter(latest.values()))
    return list(latest.values()), f"{one['keys']:,} keys, {one['threads']} thread(s), {one['processor']}, {one['isa']}"


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that no other beats in both coordinates, from left to right."""
    best, kept = math.inf, []
    for x, y in sorted(points):
        if y < best:
            best = y
            kept.append((x, y))
    return kept


def draw_fronts(records: Sequence[Record], title: str) -> Any:
    figure, panels = pyplot.subplots(1, len(FRONTS), figsize=(17, 6.2), layout="constrained")
    for panel, (x, y) in zip(panels, FRONTS, strict=True):
        methods = sorted({one["method"] for one in records})
        for method, colour in zip(methods, METHOD_COLOURS * len(methods), strict=False):
            own = [one for one in records if one["method"] == method]
            label = f"mphfstore, {method}"
            panel.scatter([one[x.field] for one in own], [one[y.field] for one in own], color=colour, label=label)
        for one in records:
            name = one["preset"] or f"{one['leaf']}, {one['bucket']}"
            weight = "bold" if one["preset"] else "normal"
            at = one[x.field], one[y.field]
            panel.annotate(name, at, (4, 4), textcoords="offset points", fontsize=7, fontweight=weight)
        line = front([(one[x.field], one[y.field]) for one in records])
        panel.plot(*zip(*line, strict=True), color=FRONT, linewidth=1, label="front of mphfstore")
        draw_quoted(panel, x, y)
        panel.set(xlabel=x.label, ylabel=y.label, xscale=scale(x.log), yscale=scale(y.log))
        panel.grid(alpha=0.3, which="both", linewidth=0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.suptitle(f"Minimal perfect hash functions: {title}\nquoted points were measured elsewhere", fontsize=10)
    return figure


def draw_sweep(records: Sequence[Record], title: str) -> Any:
    figure, panel = pyplot.subplots(figsize=(10, 6.5), layout="constrained")
    xs, ys = ([one[axis.field] for one in records] for axis in (SPACE, BUILD))
    times = [one[QUERY.field] for one in records]
    points = panel.scatter(xs, ys, c=times, s=12, cmap="viridis_r", rasterized=True)  # thousands of points
    figure.colorbar(points, label=QUERY.label)
    panel.plot(*zip(*front(list(zip(xs, ys, strict=True))), strict=True), color=FRONT, linewidth=1)
    panel.set(xlabel=SPACE.label, ylabel=BUILD.label, yscale=scale(BUILD.log))
    panel.grid(alpha=0.3, which="both", linewidth=0.5)
    figure.suptitle(f"Chained seeds, a sweep over their parameters: {title}", fontsize=10)
    return figure


def draw_quoted(panel: Any, x: Axis, y: Axis) -> None:
    """Hollow points, with bars where a range was given; a program without the figure has a legend only."""
    programs = list(dict.fromkeys(one.program for one in QUOTED))
    for program, marker in zip(programs, QUOTED_MARKERS, strict=False):
        ranges = [(x.quoted(one), y.quoted(one)) for one in QUOTED if one.program == program]
        known = [(xs, ys) for xs, ys in ranges if xs and ys]
        middles = [[math.sqrt(pair[axis][0] * pair[axis][1]) for pair in known] for axis in (0, 1)]
        errors = [
            [[m - pair[axis][0] for m, pair in zip(middles[axis], known, strict=True)],
             [pair[axis][1] - m for m, pair in zip(middles[axis], known, strict=True)]]
            for axis in (0, 1)
        ]  # fmt: skip
        panel.errorbar(
            *middles, xerr=errors[0], yerr=errors[1], fmt=marker, color=THEIRS, markerfacecolor="none",
            elinewidth=0.8, label=f"{program} (quoted)",
        )  # fmt: skip


def scale(log: bool) -> str:
    return "log" if log else "linear"


def text(value: float, cut: bool) -> str:
    return (f"{value:.0f}" if value >= 100 else f"{value:.3g}") + (" …" if cut else "")


def draw_bars(records: Sequence[Record], bars: Sequence[tuple[str, tuple[str, ...]]], title: str) -> Any:
    """A panel per quantity, a bar per subject that has it, cut off where it is far longer than the others."""
    measured = [one for one in records if "skipped" not in one]
    height = 1.2 + 0.2 * len(measured)
    figure, panels = pyplot.subplots(2, 3, figsize=(15, 2 * height), layout="constrained", sharey=True)
    names = [one["subject"] for one in measured]
    colours = [OURS if name.startswith("mphfstore") else THEIRS for name in names]
    for panel, (label, fields) in zip(panels.flat, bars, strict=True):
        values = [next((one[field] for field in fields if one.get(field) is not None), None) for one in measured]
        shown = [(at, value) for at, value in enumerate(values) if value is not None]
        positions = [at for at, _ in shown]
        longest = LONGEST_BAR * statistics.median([value for _, value in shown] or [0])
        lengths = [min(value, longest) for _, value in shown]
        drawn = panel.barh(positions, lengths, color=[colours[at] for at in positions])
        panel.bar_label(drawn, [text(value, value > longest) for _, value in shown], fontsize=7, padding=2)
        panel.set_xlabel(label)
        panel.margins(x=0.2)
    panels.flat[0].set_yticks(range(len(names)), names, fontsize=8)
    panels.flat[3].set_yticks(range(len(names)), names, fontsize=8)
    panels.flat[0].invert_yaxis()
    absent = ", ".join(one["subject"] for one in records if "skipped" in one)
    note = "\n… a bar that is cut off" + (f"; not measured: {absent}" if absent else "")
    figure.suptitle(title + note, fontsize=10)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="of JSON lines; - for standard input")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of the pictures (default: this one)")
    arguments = parser.parse_args()
    records = read(arguments.files)
    figures: dict[str, Any] = {}
    functions, title = of("mphf", records)
    if functions:
        figures["mphf"] = draw_fronts(functions, title)
    swept, title = of("sweep", records)
    if swept:
        figures["sweep"] = draw_sweep(swept, title)
    stores, title = of("store", records)
    if stores:
        figures["store"] = draw_bars(stores, STORE_BARS, f"Stores of 16-byte keys and 8-byte values: {title}")
    filters, title = of("filter", records)
    if filters:
        for one in filters:
            if "skipped" not in one:
                one["false_positive_percent"] = 100 * one["false_positive_rate"]
        figures["filter"] = draw_bars(filters, FILTER_BARS, f"Filters of 64-bit integers: {title}")
    if not figures:
        sys.exit("no records to draw")
    arguments.out.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams["svg.hashsalt"] = "mphfstore"  # the same records, the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    for name, figure in figures.items():
        for kind in ("svg", "png"):
            path = arguments.out / f"{name}.{kind}"
            figure.savefig(path, dpi=120, metadata={"Date": None} if kind == "svg" else {"Software": None})
            print(path)


if __name__ == "__main__":
    main()
