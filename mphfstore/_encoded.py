"""Values that are Python objects, and their bytes: `str` as UTF-8, JSON as compact text in UTF-8."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from ._errors import FormatError

STRINGS = ("bytes", "str", "json")  # kinds of values that are stored as byte strings

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_strings(kind: object) -> bool:
    """Whether `values=` asks for byte strings or what is stored as some."""
    return isinstance(kind, str) and kind in STRINGS


def encoder(kind: str) -> Callable[[Any], bytes]:
    """Makes the bytes of a value of kind "str" or "json". It raises TypeError for what is none, ValueError for a number
    that JSON does not have or text that is not valid Unicode."""
    return {"str": _encode_text, "json": _encode_json}[kind]


def decoder(kind: object) -> Any:
    """Makes a value of its bytes: None where they are the value, `str` where they are its UTF-8, else a function, which
    raises FormatError."""
    return _decode_json if kind == "json" else str if kind == "str" else None


def decode_text(raw: bytes) -> str:
    """FormatError for what is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise FormatError("text in the file is not UTF-8") from None


def _encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"values='str' takes str, not {type(value).__name__}")
    return str.encode(value)


def _encode_json(value: Any) -> bytes:
    try:
        _check_names(value)
        return _ENCODER.encode(value).encode()
    except RecursionError:
        raise ValueError("a value contains itself or is nested too deeply for JSON") from None


def _check_names(value: Any) -> None:
    """JSON's names are strings: Python's encoder would make them of other keys: `{1: 2}` came back as `{"1": 2}`."""
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"a name in JSON is a str, not {type(name).__name__}")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        if isinstance(item, dict | list | tuple):
            _check_names(item)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _decode_json(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode())
    except (ValueError, RecursionError):
        raise FormatError("a value of the file is not JSON") from None
