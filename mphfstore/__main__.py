"""`python -m mphfstore` is the command `mphfstore`."""

import sys

from ._cli import main

sys.exit(main())
