"""Writers and readers of text on the level of functions: any pairs, any bytes."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imports import HOSTILE

from mphfstore import _cdbmake, _text
from mphfstore._contents import chunks
from mphfstore._formats import Layout
from mphfstore._records import Unwritable, chunked, typed


def through_text(kind: str, records: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """What a format makes of records."""
    out, pairs = io.BytesIO(), chunks(records.items(), None, "bytes")
    if kind == "tsv":
        _text.write_tsv(out, pairs, "bytes", escape=True)
    elif kind == "csv":
        _text.write_csv(out, pairs, "bytes", delimiter="|", header=None)
    elif kind == "jsonl":
        _text.write_json_lines(out, pairs, "bytes", key_field="k", value_field="v")
    else:
        _cdbmake.write_cdbmake(out, pairs, "bytes")
    out.seek(0)
    read = {
        "tsv": lambda: _text.tsv(out, values=True, escape=True),
        "csv": lambda: _text.delimited(out, values=True, delimiter="|", header=False, key_column="1", value_column="2"),
        "jsonl": lambda: _text.json_lines(out, values=True, key_field="k", value_field="v"),
        "cdbmake": lambda: _cdbmake.cdbmake(out),
    }[kind]
    got: dict[bytes, bytes] = {}
    for keys, values in typed(chunked(read()), None, None, "bytes"):
        got |= zip((key.encode() if isinstance(key, str) else key for key in keys), values, strict=True)
    return got


awkward = st.lists(
    st.sampled_from(
        [b"\t", b"\n", b"\r", b"\\", b'"', b"|", b"\xff", b"\xef\xbb\xbf", b"a", b"+1,1:", b"->", b"{", b"n"]
    )
).map(b"".join)
NO_NUL = st.binary().filter(lambda text: sys.version_info >= (3, 11) or b"\0" not in text)


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "cdbmake"])
@given(records=st.dictionaries(awkward | NO_NUL, awkward | NO_NUL, max_size=8))
def test_text_gives_any_bytes_back(kind: str, records: dict[bytes, bytes]) -> None:
    assert through_text(kind, records) == records


def test_tsv_is_refused_where_it_would_lie() -> None:
    with pytest.raises(Unwritable):
        _text.write_tsv(io.BytesIO(), chunks(HOSTILE.items(), None, "bytes"), "bytes", escape=False)


def test_chunks_have_bounds() -> None:
    parts = list(chunks(((b"%d" % i, b"x" * (1 << 20)) for i in range(100)), None, "bytes"))
    assert max(len(part.keys) for part in parts) <= 17
    assert [position for part in parts for position in part.positions] == list(range(1, 101))


def test_layouts_are_for_their_formats() -> None:
    Layout(escape=True).check("tsv")
    with pytest.raises(ValueError, match="--table is not for csv"):
        Layout(table="t").check("csv")
