"""Header, section table and what lies in the sections beside the function (§1, §6, §7)."""

from __future__ import annotations

import json
import re
import struct
from itertools import accumulate
from typing import Any

from xxhash import xxh3_64_intdigest

from .bits import ceil_div, pack, require, to_bits, words
from .sequences import elias_fano_encode

MAGIC = b"\x89MPH\r\n\x1a\n"
HEADER = struct.Struct("<8sHHI QQ QQQ II 6B H BBHH 50s")
ENTRY = struct.Struct("<IIQQQ")
METHODS = {"brute": 1, "rotation": 2, "chained": 3}
MPHF, FILTER, STORE = KINDS = 1, 2, 3
SCHEMA, TREES, DIRECTORY, BLOCK_SUMS, METADATA = 1, 2, 3, 4, 5
FINGERPRINTS, VALUES, OFFSETS, BLOB = 16, 17, 18, 19
KEYS, KEY_OFFSETS, ORDINALS, BLOCKS, DICTIONARY, SCAN = 20, 21, 22, 23, 24, 25
TEXTS = "bytes", "str", "json"
BLOCK = 65536


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_json(data: bytes) -> Any:
    try:
        return json.loads(data.decode(), parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def to_json(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def check_schema(schema: Any) -> None:
    """Raise ValueError unless `schema` is one of §6; dtypes of values are not looked into."""
    names = ["key_type", "keys", "value_width", "values"]
    require(isinstance(schema, dict) and set(names) <= set(schema), f"the schema is no object of {names}")
    key_type, keys, width, values = (schema[name] for name in names)
    known = isinstance(key_type, str) and re.fullmatch(r"bytes|str|<[iu][248]|[|<][iu]1", key_type)
    require(bool(known), f"unknown key_type {key_type!r}")
    require(keys in (None, "fingerprint", "exact"), f"unknown keys {keys!r}")
    require(values is None or isinstance(values, str | list), f"unknown values {values!r}")
    require(width is None or is_size(width), f"value_width {width!r} is no width")
    require(values is not None or width is None, "value_width without values")
    variable = values in TEXTS and width is None
    if keys == "exact":
        names.append("key_width")
        require(is_size(schema.get("key_width")) or schema.get("key_width", 0) is None, "key_width is no width")
    require(keys == "exact" or key_type != "str", "keys are text, but not stored")
    if "distinct_values" in schema:
        names.append("distinct_values")
        require(variable and is_size(schema["distinct_values"]), "wrong distinct_values")
    if "compression" in schema:
        names += ["compression", "block_size", "blob_size"]
        require(variable and schema["compression"] == "zstd", "wrong compression")
        require(is_size(schema.get("block_size")) and 1 <= schema["block_size"] <= 1 << 20, "wrong block_size")
        require(is_size(schema.get("blob_size")) and schema["blob_size"] < 1 << 62, "wrong blob_size")
    if "scan" in schema:
        names.append("scan")
        require(schema["scan"] is True and keys is not None, "wrong scan")
    require(sorted(schema) == sorted(names), f"the schema is no object of {names}")


def is_size(number: Any) -> bool:
    return type(number) is int and number >= 0


def section_kinds(schema: dict[str, Any], fingerprint_bits: int, metadata: bool) -> list[int]:
    """The kinds of sections that a file has, ascending (§1)."""
    data = [FINGERPRINTS] * (fingerprint_bits > 0)
    if schema["values"] is not None:
        data += [OFFSETS, BLOB] if schema["value_width"] is None else [VALUES]
    if schema["keys"] == "exact":
        data += [KEYS] if schema["key_width"] is not None else [KEYS, KEY_OFFSETS]
    data += [ORDINALS] * ("distinct_values" in schema)
    data += [BLOCKS, DICTIONARY] * ("compression" in schema)
    data += [SCAN] * ("scan" in schema)
    return [SCHEMA, TREES, DIRECTORY] + [BLOCK_SUMS] * bool(data) + [METADATA] * metadata + data


def block_sums(section: bytes) -> bytes:
    return words([xxh3_64_intdigest(section[i : i + BLOCK]) for i in range(0, len(section), BLOCK)])


def encode_keys(keys: list[bytes], schema: dict[str, Any]) -> dict[int, bytes]:
    """The sections of stored keys, given in the order of their indices (§7)."""
    if schema["keys"] != "exact":
        return {}
    sections = {KEYS: b"".join(keys)}
    width = schema["key_width"]
    if width is None:
        sections[KEY_OFFSETS] = elias_fano_encode([*accumulate(map(len, keys), initial=0)])
    require(width is None or all(len(key) == width for key in keys), f"a key is not {width} bytes wide")
    return sections


def encode_values(values: list[bytes | None], schema: dict[str, Any]) -> dict[int, bytes]:
    """The sections of the values, given in the order of their indices (§7); not compressed."""
    if schema["values"] is None:
        require(all(v is None for v in values), "a value, but the schema has none")
        return {}
    given = [v for v in values if v is not None]
    require(len(given) == len(values), "a key without value")
    sections = {}
    if "distinct_values" in schema:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(given))}
        u = schema["distinct_values"]
        require(len(numbers) == u, f"{len(numbers)} distinct values, not {u}")
        ordinals = "".join(to_bits(numbers[value], (u - 1).bit_length()) for value in given)
        sections[ORDINALS] = pack(ordinals, ceil_div(len(ordinals), 8) + 8)
        given = list(numbers)
    require("compression" not in schema, "values are compressed by others")
    blob, width = b"".join(given), schema["value_width"]
    if width is None:
        return sections | {OFFSETS: elias_fano_encode([*accumulate(map(len, given), initial=0)]), BLOB: blob}
    require(all(len(v) == width for v in given), f"a value is not {width} bytes wide")
    return {VALUES: blob}
