# native/fastpath.c has the names, answers and exceptions of _plain.py.
from ._plain import Contains as Contains
from ._plain import Handle as Handle
from ._plain import Index as Index
from ._plain import Items as Items
from ._plain import Reader as Reader
from ._plain import join as join
