"""What the command prints: values and `info()` as text for people and pipes or as JSON for programs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ._text import json_form


def text_of(value: Any) -> bytes:
    """A value for people and pipes: bytes as they are, numbers as numpy writes them, records as JSON."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.void | np.ndarray):
        return value.tobytes() if value.dtype.kind == "V" and not value.dtype.names else json_of(value)
    return str(value).encode()


def json_of(value: Any) -> bytes:
    return json.dumps(json_form(value, exact=False), default=str).encode()


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
