"""Operands on CUDA devices without a card or without the library."""

import numpy as np
import pytest

import t4a
import t4a.numpy as tn


class OnCuda:
    """A producer on CUDA, whose memory is never read."""

    shape, dtype = (2, 2), np.dtype("float32")

    def __init__(self, number=0):
        self.number = number

    def __dlpack_device__(self):
        return (2, self.number)

    def __dlpack__(self, **_):
        raise AssertionError("exported")


def test_without_the_library(monkeypatch, tmp_path):
    monkeypatch.setenv("T4A_CUDA_LIBRARY", str(tmp_path / "libt4a_cuda.so"))
    monkeypatch.setattr("t4a._cuda._loaded", [])
    with pytest.raises(t4a.UnsupportedError, match="libt4a_cuda.*T4A_CUDA_LIBRARY"):
        tn.einsum("ij,jk->ik", OnCuda(), OnCuda())


def test_several_devices():
    with pytest.raises(t4a.UnsupportedError, match="cuda:0 and on cuda:1"):
        tn.einsum("ij,jk->ik", OnCuda(), OnCuda(1))
    with pytest.raises(t4a.UnsupportedError, match="the processor and on cuda:0"):
        tn.einsum("ij,jk->ik", np.eye(2, dtype=np.float32), OnCuda())
