"""Reader and builder of mphfstore files in plain Python, written from mphfstore/FORMAT.md alone.

Section signs (§) name FORMAT.md's sections. Bit strings are `str` of '0' and '1', bit 0 first.

    bits          bit strings
    tree          the splitting tree and its probabilities
    rice          `brute` and `rotation`: bit strings of buckets built and read
    chained       `chained`: the same
    sequences     Elias–Fano
    directory     where buckets begin
    function      trees and directory together: from hashes to indices
    sections      header and all other sections
    scan          the prefilter of a dictionary
    writer        keys and values to a file
    reader        a file to indices and values
"""

from . import bits, chained, directory, function, rice, scan, sequences, tree, writer
from .bits import pack, unpack
from .chained import Params as ChainedParams
from .function import Function, FunctionReader, build_function
from .reader import Reader
from .rice import Params, build_bucket
from .sections import block_sums
from .sequences import EliasFano, elias_fano_encode
from .writer import build, hash_key

__all__ = [
    "ChainedParams", "EliasFano", "Function", "FunctionReader", "Params", "Reader", "bits", "block_sums", "build",
    "build_bucket", "build_function", "chained", "directory", "elias_fano_encode", "function", "hash_key", "pack",
    "rice", "scan", "sequences", "tree", "unpack", "writer",
]  # fmt: skip
