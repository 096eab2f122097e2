"""What every opened file has in common: the mapping, the native reader over it, and look-ups of indices."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._batch import apart, checked_out, look_up
from ._build import Index
from ._columns import Placed
from ._errors import FormatError, StaleError, naming
from ._exact import StoredKeys
from ._format import VERSION, File, Header, Kind, Section, Target, Writer, identity, parse, parse_header, to_json
from ._keys import KeyType, key_type
from ._lookup import Contains
from ._lookup import Handle as Attached
from ._native import ffi, lib
from ._opened import Opened, Remote
from ._options import METHODS
from ._paging import lock, prefetch
from ._publish import Publication
from ._source import CHUNK, Source, Window, aligned

if TYPE_CHECKING:
    from ._device_lookup import OnDevice

H = TypeVar("H", bound="Handle")


class Handle(Attached):
    """Base of `MPHF`, `Filter` and `Store`: immutable but for `reload` and `close`, and safe to use from several
    threads, in forked processes and, pickled, in spawned ones."""

    _kind: Kind
    _count = 0  # of a closed handle
    _closed = False

    def __init__(self, data: memoryview | Source, file: File | None = None) -> None:
        """file: what `parse` makes of the data, if that is known."""
        source = data if isinstance(data, Source) else Source(data)
        self._use(self._opening(source, parse(source.data) if file is None else file))

    @classmethod
    def open(cls: type[H], source: str | os.PathLike[str] | Any, mode: str = "mmap", *, verify: bool = False) -> H:
        """As `mphfstore.open`, for a file that is known to be of this class. Raises FormatError for another one."""
        with naming(source):
            opened = cls._of(Source.of(source, mode))
            if verify:
                opened.verify()
            return opened

    @classmethod
    def _of(cls: type[H], source: Source) -> H:
        file = parse(source.data)
        opened: H = cls._class_for(file)(source, file)
        return opened

    @classmethod
    def _class_for(cls, file: File) -> Any:
        """This class, or the one below it that a file is opened as."""
        return cls

    def _opening(self, source: Source, file: File) -> Opened:
        schema, header = file.schema, file.header
        if header.kind != self._kind:
            raise FormatError(
                f"expected a {self._kind.name.lower()}, got a {header.kind.name.lower()}: mphfstore.open opens either"
            )
        try:
            keys = key_type(schema["key_type"])
        except Exception:
            raise FormatError(f"keys of an unknown type: {schema.get('key_type')!r}") from None
        stays = any(isinstance(section, Window) for section in file.sections.values())
        return (Remote if stays else Opened)(file, keys, source)

    def _use(self, opened: Opened) -> None:
        self._count, self._name = opened.file.header.keys, opened.source.name
        self._attach(opened)

    def __len__(self) -> int:
        opened = self._opened
        return self._count if opened is None else int(opened.file.header.keys)

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *error: object) -> None:
        """As `close`, but views may live on: the mapping goes with the last one."""
        self._end()

    def close(self) -> None:
        """Gives the mapping back, at the latest when no look-up in another thread uses it any more. Look-ups
        afterwards raise ValueError.

        Raises BufferError, as `mmap.close` does, while there are views – from `get_view` or `values_array` –: the
        handle stays open then. A record of a structured dtype, from `[]`, keeps the mapping too, but nobody counts
        it."""
        opened = self._opened
        if opened is not None and len(opened.lent):
            raise BufferError(f"cannot close: {len(opened.lent)} views into the file exist; they keep it open")
        self._end()

    def _end(self) -> None:
        self._closed = True
        super().close()

    def __copy__(self: H) -> H:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        opened = self._opened
        if opened is not None:
            copy._attach(opened)
        return copy

    def __deepcopy__(self: H, memo: dict[int, Any]) -> H:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """As absolute path, mode and identity of the file; a handle that has no path, as the file's bytes. Unpickling
        opens the file again, and raises StaleError if it is another one by then."""
        opened = self._current()
        source = opened.source
        if source.path is None:
            return type(self).from_bytes, (bytes(source.data),)
        return _unpickled, (type(self), source.path, source.mode, identity(source.data))

    def __repr__(self) -> str:
        state = "closed " if self._opened is None else ""
        return (
            f"<{state}mphfstore.{type(self).__name__} of {len(self)} keys{f' at {self._name}' if self._name else ''}>"
        )

    def stale(self) -> bool:
        """Whether the path that was opened leads to another file by now, to a changed one or to none. False for a
        handle that was not opened by path."""
        stale: bool = self._current().source.stale()
        return stale

    def reload(self) -> bool:
        """If the handle is stale, goes over to the file that is there now, in the same mode: at once for all threads.
        What a look-up has begun it ends in the file where it began; views and arrays stay valid.

        Returns whether it was stale. Raises what `open` raises, and FormatError for a file of another kind: the handle
        is as it was then."""
        with _reloading:  # one after the other: nobody goes back to a file that was the newest some time ago
            source = self._current().source
            if not source.stale():
                return False
            new = source.again()
            self._use(self._opening(new, parse(new.data)))
            if self._closed:  # meanwhile
                super().close()
            return True

    def prefetch(self, wait: bool = False) -> None:
        """Has the system read the file ahead into its cache (madvise, posix_fadvise), without waiting for that; with
        `wait`, returns when all of it was read."""
        prefetch(self._current().file.data, wait)

    def lock(self) -> None:
        """Reads the whole file into memory and locks it there (mlock) until the mapping is given back. Not inherited by
        forked processes.

        Raises OSError where the system refuses – the message names the limit –, ValueError in mode "pread"."""
        data = self._current().file.data
        if isinstance(data, Window):
            raise ValueError("a file in mode 'pread' is not in memory: open it with mode='ram' to lock it")
        lock(data)

    def verify(self) -> None:
        """Reads the whole file and compares its checksums. Raises ChecksumError if anything has changed."""
        self._current().file.verify()

    @property
    def bits_per_key(self) -> float:
        """Size of the function – trees and directory – in bits per key; 0.0 without keys."""
        return _bits_per_key(self._current().file)

    def info(self) -> dict[str, Any]:
        """What the file says of itself: kind, format version, number of keys, parameters, sizes in bytes, bits per
        key."""
        opened = self._current()
        file = opened.file
        header, schema = file.header, file.schema
        method = next(name for name, number in METHODS.items() if number == header.method)
        return {
            "path": opened.source.name,
            "mode": opened.source.mode,
            "kind": header.kind.name.lower(),
            "format_version": VERSION,
            "keys": header.keys,
            "key_storage": schema.get("keys"),
            **{name: schema.get(name) for name in SHOWN},
            "scan": schema.get("scan", False),
            "fingerprint_bits": header.fingerprint_bits,
            "false_positive_rate": _false_positive_rate(file),
            "method": method,
            "leaf_size": header.leaf,
            "bucket_size": header.bucket_size,
            "fanouts": [header.fanout1, header.fanout2] + [header.fanout3] * (method == "chained"),
            "buckets": header.buckets,
            "largest_bucket": header.largest_bucket,
            "seed": header.seed,
            "bits_per_key": _bits_per_key(file),
            "file_size": len(file.data),
            "sections": {kind.name.lower(): len(view) for kind, view in file.sections.items()},
            "metadata": file.metadata,
        }

    def to_device(self, backend: str = "auto") -> OnDevice:
        """Copies everything that look-ups of batches need to a device's memory: `index_many`, `contains_many` and
        `get_many` of what is returned run there. backend: "cuda" or "opencl"; "auto" takes what is there.

        Raises UnavailableError, which says what to install."""
        from ._device_lookup import OnDevice, session_for

        return OnDevice(self._current(), session_for(backend))

    def to_bytes(self) -> bytes:
        """The whole file as bytes; `from_bytes` takes them."""
        return bytes(self._current().file.data)

    @classmethod
    def from_bytes(cls: type[H], data: Any) -> H:
        """From the bytes of a file: any buffer, which is copied only if it does not start on a multiple of 8."""
        return cls._of(Source(aligned(data)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Publishes the file under a name: it appears whole or not at all. `mphfstore.open` opens it."""
        data = self._current().file.data
        with Publication(path) as target:
            for begin in range(0, len(data), CHUNK):
                target.write_at(data[begin : begin + CHUNK], begin)


SHOWN = ("key_type", "key_width", "values", "value_width", "distinct_values", "compression", "block_size", "blob_size")


def _false_positive_rate(file: File) -> float | None:
    if file.header.kind is Kind.MPHF:
        return None
    return 0.0 if file.schema.get("keys") == "exact" else 2.0**-file.header.fingerprint_bits


class Membership(Handle, Contains):
    """A handle with fingerprints or keys: what `Filter` and `Store` share. `in` is never wrong for a key of the set,
    and for any other at `info()["false_positive_rate"]`, which is 0 where the keys are stored."""

    def contains_many(
        self, keys: Iterable[Any], *, out: NDArray[np.bool_] | None = None, threads: int | None = None
    ) -> NDArray[np.bool_]:
        """`in` for every key of a batch: an array of bool, one per key.

        `keys`, `out` and `threads` as `index_many` has them."""
        opened = self._current()
        parts = opened.keys.parts(keys)
        found = checked_out(out, parts.count, np.bool_)

        def use(first: int, indices: NDArray[np.int64]) -> None:
            np.greater_equal(indices, 0, out=found[first : first + len(indices)])

        look_up(opened.find_batch, apart(parts, found), threads, use=use)
        return found

    def index_many(
        self, keys: Iterable[Any], *, out: NDArray[np.int64] | None = None, threads: int | None = None
    ) -> NDArray[np.int64]:
        """Index of every key of a batch, -1 where it is absent: an array of int64, one per key.

        keys: a one-dimensional numpy array (`S`, `U`, `StringDType`, integers), any array of the Arrow C data
        interface (pyarrow, polars …; strings, or integers for a store of integers), or any iterable. What cannot be
        a key of the set – a null, an integer that the dtype does not have – is absent. out: an array for the result,
        which is returned: contiguous, writeable, of this dtype and length. threads: by default as many as pay.

        Raises TypeError for keys of another type, TypeError or ValueError for an `out` that does not fit."""
        opened = self._current()
        parts = opened.keys.parts(keys)
        indices = checked_out(out, parts.count, np.int64)
        look_up(opened.find_batch, apart(parts, indices), threads, into=indices)
        return indices


def write(
    target: Target,
    index: Index,
    kind: Kind,
    keys: KeyType,
    *,
    fingerprint_bits: int = 0,
    values: Placed | None = None,
    stored: StoredKeys | None = None,
    prefilter: NDArray[np.uint8] | None = None,
    metadata: Any = None,
) -> None:
    """Writes a whole file."""
    values = values or Placed(None, None, {})
    schema = {
        "key_type": keys.name,
        "keys": None if kind is Kind.MPHF else "fingerprint" if stored is None else "exact",
        "values": values.values,
        "value_width": values.value_width,
        **values.extra,
        **({} if stored is None else {"key_width": stored.width}),
        **({} if prefilter is None else {"scan": True}),
    }
    sections: dict[Section, tuple[int, Iterable[Any]]] = {}
    for section, words in ((Section.TREES, index.trees), (Section.DIRECTORY, index.directory)):
        sections[section] = words.nbytes, [words]
    for section, value in ((Section.SCHEMA, schema), (Section.METADATA, metadata)):
        if value is not None:
            encoded = to_json(value)
            sections[section] = len(encoded), [encoded]
    if fingerprint_bits:
        size = (index.keys * fingerprint_bits + 7) // 8 + 8
        sections[Section.FINGERPRINTS] = size, _fingerprints(index.hi, fingerprint_bits)
    sections |= values.sections
    if stored is not None:
        sections |= stored.sections
    if prefilter is not None:
        sections[Section.SCAN] = len(prefilter), [prefilter]
    p = index.parameters
    header = Header(
        index.keys, index.seed, index.buckets, index.largest_bucket, index.bucket_size,
        p.method, p.leaf, p.fanout1, p.fanout2, fingerprint_bits, kind,
        p.fanout3, p.root_bits, p.leaf_room, p.split_room,
    )  # fmt: skip
    writer = Writer(target, header, {section: length for section, (length, _) in sections.items()})
    for section, (_, chunks) in sections.items():
        writer.write(section, chunks)
    writer.finish()


def fingerprint_bits_for(bits: int | None, rate: float | None) -> int | None:
    """The bits that are asked for, or the fewest at which no more absent keys pass than at a rate; None for neither.

    Raises ValueError for both, or one out of bounds."""
    if bits is not None and rate is not None:
        raise ValueError("fingerprint_bits and false_positive_rate say the same: give one of them")
    if rate is not None:
        if not 2.0**-32 <= rate <= 1:
            raise ValueError(f"false_positive_rate is 2^-32 (2.3e-10) to 1, not {rate}")
        return next(bits for bits in range(33) if 2.0**-bits <= rate)
    if bits is not None and not 0 <= bits <= 32:
        raise ValueError(f"fingerprint_bits is 0 to 32, not {bits}")
    return bits


def _fingerprints(hi: NDArray[np.uint64], bits: int) -> Iterator[NDArray[np.uint8]]:
    """The section in chunks of 2^20 fingerprints, so whole bytes; then 8 bytes of zeros."""
    step = 1 << 20
    for begin in range(0, len(hi), step):
        words = hi[begin : begin + step]
        size = (len(words) * bits + 7) // 8
        packed = np.zeros(size + 8, np.uint8)
        lib.mphf_pack(ffi.from_buffer("uint64_t[]", words), len(words), bits, ffi.from_buffer("uint8_t[]", packed))
        yield packed[:size]
    yield np.zeros(8, np.uint8)


def _bits_per_key(file: File) -> float:
    return 8 * (len(file.sections[Section.TREES]) + len(file.sections[Section.DIRECTORY])) / max(1, file.header.keys)


def _unpickled(cls: type[H], path: str, mode: str, expected: str) -> H:
    source = Source.at(path, mode)
    parse_header(source.data)
    if identity(source.data) != expected:
        raise StaleError(
            f"{path} is another file now than when the handle was pickled: mphfstore.open opens the new one"
        )
    return cls(source)


_reloading = threading.Lock()


def _in_child() -> None:
    global _reloading  # whose holder may be a thread that this process does not have
    _reloading = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
