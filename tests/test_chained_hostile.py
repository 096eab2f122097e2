"""Directories of chained seeds that lie, under right checksums: an error or some index below the number of keys, the
same one from every reader."""

from __future__ import annotations

import random
import struct

import pytest
import reference
from chains import SETS, Shape
from conftest import patched, sections_of, with_section
from test_hostile import NASTY, ask_everything, skewed

import mphfstore as ms
from mphfstore import _options

DIRECTORY, HEAD, LINE = 3, 64, 64
TREES = 2
WORDS = {"slope": 0, "offset": 1, "smallest": 2, "entry bytes": 3, "salts": 4, "zero": 5, "last zero": 7}
KEYS = [f"key {i}" for i in range(4000)]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """One for every width of entries; the first with root salts beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_options.PRESETS, "tested", Shape(6, (3, 3, 3), 26, 100, 1).preset(30))
        salted = ms.MPHF.build(KEYS, seed=1, preset="tested")
    files = {
        "1 byte": salted.to_bytes(),
        "2 bytes": skewed(1000, 2000).to_bytes(),
        "4 bytes": skewed(65_536, 70_000).to_bytes(),
    }
    for name, data in files.items():
        function = reference.Reader(data).function
        assert f"{function.directory.width} byte" in name
        assert name != "1 byte" or len(function.salts) > 5
    return files


def word_set(content: bytes, at: int, value: int) -> bytes:
    return content[: 8 * at] + struct.pack("<Q", value) + content[8 * at + 8 :]


@pytest.fixture(params=SETS)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MPHFSTORE_ISA", request.param)
    return str(request.param)


FILES = ["1 byte", "2 bytes", "4 bytes"]


@pytest.mark.parametrize("name", FILES)
def test_words_of_the_head(name: str, files: dict[str, bytes], isa: str) -> None:
    content = sections_of(files[name])[DIRECTORY]
    for word, at in WORDS.items():
        (sound,) = struct.unpack_from("<Q", content, 8 * at)
        for number in {
            *NASTY[:: 1 if name != "4 bytes" else 3],
            *range(9),
            *((sound + change) % (1 << 64) for change in (-65_536, -1, 1, 65_536)),
        }:
            outcome = ask_everything(with_section(files[name], DIRECTORY, word_set(content, at, number)))
            if word in ("entry bytes", "salts", "zero", "last zero") and number != sound:
                assert outcome == "refused", f"{word} {number}"


@pytest.mark.parametrize("name", FILES)
def test_the_line_may_run_anywhere(name: str, files: dict[str, bytes], isa: str) -> None:
    """Slope and offset so that the last start still fits the trees, which are as long as they were."""
    data, draw, answered = files[name], random.Random(1), 0
    content, reader = sections_of(data)[DIRECTORY], reference.Reader(data)
    end = reader.function.directory[reader.buckets][1]
    for _ in range(60):
        rise = draw.choice(NASTY) if draw.random() < 0.5 else draw.getrandbits(draw.randrange(64))
        step = ((end << 16) - rise * reader.n) // reader.buckets % (1 << 64)
        outcome = ask_everything(
            with_section(data, DIRECTORY, word_set(word_set(content, 0, rise), 1, step)),
        )
        answered += outcome != "refused"
    assert answered > 5


@pytest.mark.parametrize("name", FILES)
def test_bytes_of_the_lines_and_the_side_table(name: str, files: dict[str, bytes], isa: str) -> None:
    draw = random.Random(2)
    content = sections_of(files[name])[DIRECTORY]
    for _ in range(100 if len(content) < 10_000 else 40):
        hostile = bytearray(content)
        for _ in range(draw.choice((1, 3, 200))):
            at = draw.randrange(HEAD, len(content))
            how = draw.randrange(4)
            if how == 0:
                hostile[at] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
            elif how == 1:  # keys before a line
                line = HEAD + (at - HEAD) // LINE * LINE
                hostile[line + 58 : line + 64] = draw.choice(NASTY).to_bytes(8, "little")[:6]
            elif how == 2:
                hostile[at : at + 8] = struct.pack("<Q", draw.choice(NASTY))[: len(content) - at]
            else:  # a line in another's place
                other = draw.randrange(HEAD, len(content))
                hostile[at : at + 64] = content[other : other + 64].ljust(64, b"\1")[: len(content[at : at + 64])]
        ask_everything(with_section(files[name], DIRECTORY, bytes(hostile)))


@pytest.mark.parametrize("filler", ["zeros", "ones", "random"])
@pytest.mark.parametrize("name", FILES)
def test_any_bits_are_a_function(name: str, filler: str, files: dict[str, bytes], isa: str) -> None:
    """Trees without sense give every key an index; one function for all readers."""
    size = len(sections_of(files[name])[TREES])
    trees = {"zeros": bytes(size), "ones": b"\xff" * size, "random": random.Random(3).randbytes(size)}[filler]
    data = with_section(files[name], TREES, trees)
    assert ask_everything(data) in ("answered", "contradiction")
    assert len(set(ms.MPHF.from_bytes(data).index_many(KEYS).tolist())) > 500


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("largest", [0, 1, 2, 20, 65_536])
def test_another_largest_bucket(name: str, largest: int, files: dict[str, bytes], isa: str) -> None:
    ask_everything(patched(files[name], 56, "I", largest))


def test_side_tables_cut_grown_and_out_of_order(files: dict[str, bytes], isa: str) -> None:
    content = sections_of(files["1 byte"])[DIRECTORY]
    (salts,) = struct.unpack_from("<Q", content, 32)
    table = [content[i : i + 16] for i in range(len(content) - 16 * salts, len(content), 16)]
    body = content[: len(content) - 16 * salts]
    for rows in (table[::-1], table[:-1], table[:0], table * 3, [b"\xff" * 16] * 9, [bytes(16)] * 9):
        hostile = word_set(body, 4, len(rows)) + b"".join(rows)
        assert ask_everything(with_section(files["1 byte"], DIRECTORY, hostile)) == "answered"
    for cut in (content[:-8], content[:-16], content + bytes(8), content + bytes(16), content[:-1], body[:63], b""):
        assert ask_everything(with_section(files["1 byte"], DIRECTORY, cut)) == "refused"


PARAMETERS = {
    "leaf": (65, "B"), "fanout1": (66, "B"), "fanout2": (67, "B"), "fanout3": (72, "B"), "root bits": (73, "B"),
    "leaf room": (74, "H"), "splitting room": (76, "H"),
}  # fmt: skip


@pytest.mark.parametrize("field", PARAMETERS)
def test_parameters_that_the_reference_refuses_are_refused(field: str) -> None:
    """Numbers out of bounds, and nodes up to the largest bucket whose number would be wider than 24 bits."""
    data, refused = ms.MPHF.build(KEYS[:300], seed=1, preset="fast", bucket_size=300).to_bytes(), 0
    for value in (*range(20), 255, 256, 511, 512, 513, 65_535):
        if PARAMETERS[field][1] == "B" and value > 255:
            continue
        changed = patched(data, *PARAMETERS[field], value)
        try:
            reader = reference.Reader(changed)
            for m in range(2, reader.largest_bucket + 1):
                assert isinstance(reader.params, reference.ChainedParams)
                reader.params.node(m)
            expected = False
        except ValueError:
            expected = True
        assert (ask_everything(changed) == "refused") == expected, value
        refused += expected
    assert refused
