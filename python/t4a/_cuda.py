"""Operations on CUDA tensors by the library libt4a_cuda, which T4A_CUDA_LIBRARY names or which is beside libt4a.

It copies operands once, on the device, and returns when all work is complete. Results are DLPack tensors on the device.
"""

import ctypes
import os
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from math import prod
from pathlib import Path

from ._dlpack import CUDA, capsule_of, managed_of_capsule, pointer_of_capsule
from ._library import ArgumentError, Managed, UnsupportedError, lib as _main, raise_error

_SIGNATURES = {
    "t4a_cuda_abi": (c_uint32, []),
    "t4a_cuda_devices": (c_int32, [c_void_p, c_void_p]),
    "t4a_cuda_run": (c_int32, [c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_size_t, c_void_p, c_void_p]),
    "t4a_cuda_share": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p, c_void_p]),
    "t4a_cuda_free_memory": (c_int32, [c_int32, c_void_p]),
    "t4a_op_parse": (c_int32, [c_char_p, c_size_t, c_void_p, c_void_p]),
    "t4a_op_free": (None, [c_void_p]),
    "t4a_error_status": (c_int32, [c_void_p]),
    "t4a_error_text": (c_char_p, [c_void_p]),
    "t4a_error_batch": (c_int64, [c_void_p]),
    "t4a_error_free": (None, [c_void_p]),
}
_loaded = []


def library():
    """The library, loaded by the first call."""
    if _loaded:
        return _loaded[0]
    named = os.environ.get("T4A_CUDA_LIBRARY")
    path = Path(named) if named else Path(_main._name).with_name("libt4a_cuda.so")
    if not path.is_file():
        raise UnsupportedError(
            f"CUDA tensors require the library libt4a_cuda, which is not at {path}: move the tensors to the processor, or build the"
            " library (`cargo build --release --manifest-path gpu/Cargo.toml -p t4a-cuda --features cuda`) and set T4A_CUDA_LIBRARY"
        )
    lib = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    abi = lib.t4a_cuda_abi()
    if abi >> 16 != 1:
        raise UnsupportedError(f"libt4a_cuda has ABI {abi >> 16}.{abi & 0xFFFF}, this package requires 1.x")
    _call(lib, "t4a_cuda_devices", byref(c_int32()))
    _loaded.append(lib)
    return lib


def _call(lib, name, *arguments):
    error = c_void_p()
    if getattr(lib, name)(*arguments, byref(error)):
        raise_error(error, lib)


class _Handle:
    """An operation of the library."""

    def __init__(self, lib, text):
        self.lib, self.value, data = lib, c_void_p(), text.encode()
        if not data:
            raise UnsupportedError("an operation with numbers that its text cannot represent does not run on CUDA")
        _call(lib, "t4a_op_parse", data, len(data), byref(self.value))

    def __del__(self):
        self.lib.t4a_op_free(self.value)


# Maximum number of results, as in `_op`.
_ROOM = 64


def run_at(op, addresses, stream):
    """Runs an operation on operands given by addresses of `DLTensor`s. Returns capsules of the results. `stream`: the stream in whose order the operands are complete, numbered as in DLPack."""
    lib = library()
    handle = op.on_cuda
    if handle is None:
        handle = op.on_cuda = _Handle(lib, op.text)
    found, out = c_size_t(), (c_void_p * _ROOM)()
    given = (c_void_p * len(addresses))(*addresses)
    _call(lib, "t4a_cuda_run", handle.value, given, len(addresses), stream, out, _ROOM, byref(found))
    return list(map(capsule_of, out[: found.value]))


def free_memory(device=0):
    """Gives memory of the library on a CUDA device that no tensor uses back to the driver."""
    _call(library(), "t4a_cuda_free_memory", device)


def check_devices(devices):
    """Raises an error for several devices."""
    first = devices[0]
    for device in devices:
        if device != first:
            raise UnsupportedError(f"tensors on {_named(first)} and on {_named(device)}; one device is required")


def _named(device):
    if not isinstance(device, tuple):
        return str(device)
    kind, number = device
    return {1: "the processor", CUDA: f"cuda:{number}"}.get(kind, f"a device of kind {kind}")


def run(op, producers):
    """Runs an operation on DLPack producers; returns `CudaArray`s."""
    devices = []
    for x in producers:
        if not hasattr(x, "__dlpack_device__"):
            raise ArgumentError(f"{type(x).__name__} has no __dlpack__")
        devices.append(tuple(map(int, x.__dlpack_device__())))
    check_devices(devices)
    library()
    capsules = list(map(_exported, producers))
    return list(map(CudaArray, run_at(op, [pointer_of_capsule(x) for x in capsules], _LEGACY)))


# The legacy default stream: producers let it wait for their work.
_LEGACY = 1


def _exported(x):
    try:
        return x.__dlpack__(stream=_LEGACY, max_version=(1, 1))
    except TypeError:
        # Producers before DLPack 1.0.
        return x.__dlpack__(stream=_LEGACY)


class CudaArray:
    """Result of an operation on CUDA tensors, for consumers of DLPack: `cupy.from_dlpack(result)`, `torch.from_dlpack(result)`.
    Other functions of `t4a.numpy` accept it as an operand."""

    __slots__ = ("_capsule", "_address", "_device", "dtype", "shape")

    def __init__(self, capsule):
        from ._op import NAMES

        # The capsule owns the tensor.
        self._capsule, self._address = capsule, managed_of_capsule(capsule)
        tensor = Managed.from_address(self._address).tensor
        self._device = tensor.device.id
        self.dtype = NAMES[tensor.dtype.code, tensor.dtype.bits]
        self.shape = tuple(tensor.shape[: tensor.ndim])

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: prod(self.shape))

    def __repr__(self):
        return f"CudaArray(shape={self.shape}, dtype={self.dtype}, device=cuda:{self._device})"

    def __dlpack_device__(self):
        return (CUDA, self._device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        # The elements are complete, so that no stream has to wait.
        if max_version is None or max_version[0] < 1:
            raise BufferError("the consumer has to know DLPack 1.0")
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the tensor is exported without a copy")
        return self._shared(self.shape)

    def _shared(self, shape):
        out = c_void_p()
        _call(library(), "t4a_cuda_share", self._address, (c_int64 * len(shape))(*shape), len(shape), byref(out))
        return capsule_of(out)

    def reshape(self, *shape):
        """The same elements in row-major order with another shape."""
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return CudaArray(self._shared(tuple(map(int, shape))))

    def squeeze(self, axis):
        """Without an axis of size 1."""
        shape = list(self.shape)
        if shape.pop(axis) != 1:
            raise ArgumentError(f"axis {axis} of the shape {self.shape} has not the size 1")
        return self.reshape(shape)

    def __getitem__(self, key):
        """The whole array; `None` inserts an axis."""
        key = key if isinstance(key, tuple) else (key,)
        rest, shape = iter(self.shape), []
        for x in key:
            if x is None:
                shape.append(1)
            elif x == slice(None):
                shape.append(next(rest))
            else:
                raise UnsupportedError("elements of a CudaArray; convert it by `cupy.from_dlpack` or `torch.from_dlpack`")
        return self.reshape([*shape, *rest])
