"""What the command prints: values and `info()` as text for people and pipes or as JSON for
programs, and how far a build has come."""

from __future__ import annotations

import base64
import json
import math
import sys
import time
from typing import Any

import numpy as np


class Progress:
    """One line on stderr that overwrites itself; nothing where stderr is no terminal."""

    def __init__(self, quiet: bool) -> None:
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._width, self._shown_at = 0, -math.inf

    def reading(self, records: int) -> None:
        self._show(f"{records} records read", last=False)

    def building(self, done: int, total: int) -> None:
        self._show(f"{100 * done // total if total else 100:3d} % of {total} keys", last=done == total)

    def _show(self, text: str, last: bool) -> None:
        now = time.monotonic()
        if self._live and (last or now - self._shown_at > 0.1):
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width, self._shown_at = len(text), now

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._width:  # a finished line stays, one that failed makes room for the message
            sys.stderr.write("\n" if kind is None else "\r" + " " * self._width + "\r")


def text_of(value: Any) -> bytes:
    """A value for people and pipes: bytes as they are, numbers as numpy writes them, records as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.void | np.ndarray):
        return value.tobytes() if value.dtype.kind == "V" and not value.dtype.names else json_of(value)
    return str(value).encode()


def json_of(value: Any) -> bytes:
    return json.dumps(_plain(value), default=str).encode()


def _plain(value: Any) -> Any:
    """A value in JSON's types: bytes that are not UTF-8 as {"base64": …}, numbers that are not finite as null."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.void) and value.dtype.names:
        return {name: _plain(value[name]) for name in value.dtype.names}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.tobytes() if isinstance(value, np.void) else value.item()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(said: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows of `info` for people."""
    keys, kind, width = said["keys"], said["values"], said["value_width"]
    values = "none" if kind is None else kind if isinstance(kind, str) else json.dumps(kind)
    if kind is not None:
        values += " of different lengths" if width is None else f", {width} bytes each"
    if said["distinct_values"] is not None:
        values += f", {said['distinct_values']} of them distinct"
    if said["compression"] is not None:
        values += f", {_size(said['blob_size'])} compressed by {said['compression']} in blocks of {said['block_size']}"
    bits, exact = said["fingerprint_bits"], said["key_storage"] == "exact"
    passing = "no absent key passes" if exact else f"1 absent key in {1 << bits} passes"
    per_key = {
        name: f"{_size(size)}, {8 * size / max(1, keys):.2f} bits per key" for name, size in said["sections"].items()
    }
    return [
        ("file", said["path"]),
        ("kind", f"{said['kind']}, format version {said['format_version']}"),
        ("keys", str(keys)),
        ("key type", said["key_type"]),
        *([("values", values)] if said["kind"] == "store" else []),
        *([("key storage", "exact: no absent key passes")] if exact else []),
        *([] if said["kind"] == "mphf" or (exact and not bits) else [("fingerprints", f"{bits} bits, {passing}")]),
        ("function", f"{said['method']}, leaf size {said['leaf_size']}, bucket size {said['bucket_size']}, "
                     f"{said['bits_per_key']:.3f} bits per key"),
        ("buckets", f"{said['buckets']}, the largest of {said['largest_bucket']} keys"),
        ("seed", str(said["seed"])),
        ("file size", f"{_size(said['file_size'])}, {8 * said['file_size'] / max(1, keys):.2f} bits per key"),
        *((f"  {name}", text) for name, text in per_key.items()),
        *([] if said["metadata"] is None else [("metadata", json.dumps(said["metadata"], ensure_ascii=False))]),
    ]  # fmt: skip


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    power = min(4, (size.bit_length() - 1) // 10)
    return f"{size / 1024**power:,.1f} {' KMGT'[power]}iB"
