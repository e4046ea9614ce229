# Written by tests/stubs.py. Not edited by hand.
from . import (
    log_partition as log_partition,
    marginals as marginals,
)
