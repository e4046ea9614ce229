# Written by tests/stubs.py. Not edited by hand.
from . import (
    cumsum as cumsum,
    cumprod as cumprod,
    cummax as cummax,
    cummin as cummin,
    logcumsumexp as logcumsumexp,
    linear_recurrence as linear_recurrence,
    matrix_recurrence as matrix_recurrence,
    matrix_scan as matrix_scan,
    lstm as lstm,
    gru as gru,
    kalman_filter as kalman_filter,
)
