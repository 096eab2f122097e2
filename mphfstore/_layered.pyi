# native/layered.c has the names, answers and exceptions of _layered_plain.py.
from ._layered_plain import Keyset as Keyset
from ._layered_plain import Layered as Layered
