"""Exchange of tensors with PyTorch: by its DLPack C exchange API if available, which needs no Python object per tensor, else
by `__dlpack__`."""

import ctypes
from ctypes import POINTER, Structure, addressof, c_int, c_int64, c_uint32, c_void_p, py_object

import torch

from .._builtin import builtin
from .. import _cuda
from .._dlpack import CUDA, capsule_pointer
from .._library import DLDataType, DLDevice, DLTensor, DtypeError, UnsupportedError
from .._op import CODES


class _Table(Structure):
    """DLPackExchangeAPI of DLPack 1.3."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("previous", c_void_p),
        ("allocate", c_void_p),
        ("managed_from_object", c_void_p),
        ("object_from_managed", c_void_p),
        ("tensor_from_object", c_void_p),
        ("stream", c_void_p),
    ]


def _table():
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        return None
    table = ctypes.cast(capsule_pointer(capsule, b"dlpack_exchange_api"), POINTER(_Table)).contents
    return table if table.major == 1 and table.tensor_from_object else None


_TABLE = _table()
if _TABLE is not None:
    # PYFUNCTYPE keeps the global interpreter lock: the function accesses Python objects and sets exceptions.
    _describe = ctypes.PYFUNCTYPE(c_int, py_object, c_void_p)(_TABLE.tensor_from_object)
    if builtin is not None:
        # State and attributes that decide if a call is recorded or transformed, in the order of the struct of the library.
        _GUARDS = (
            torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack, torch._C._get_tracing_state,
            torch.is_grad_enabled, torch.autograd.forward_ad, "_current_level", "requires_grad", torch.Tensor.is_neg,
            torch.Tensor.is_conj,
        )  # fmt: skip
        _ADDRESSES = (_TABLE.tensor_from_object, _TABLE.object_from_managed)
        builtin.exchange(torch.Tensor, torch.nn.Parameter, *_ADDRESSES, _GUARDS)


def described(x):
    """Shape and name of the dtype."""
    return tuple(map(int, x.shape)), str(x.dtype).removeprefix("torch.")


def shapes_alone(op, tensors):
    """Results without values, on the device of the first operand."""
    results = op.results(list(map(described, tensors)))
    return [tensors[0].new_empty(shape, dtype=getattr(torch, name)) for shape, name in results]


def plain(x):
    """Tensor whose memory contains its values, on the CPU."""
    if x.is_meta:
        raise UnsupportedError("a tensor on meta, which has no values, beside one that has values; all or none on meta")
    if not x.is_cpu:
        raise UnsupportedError(f"a tensor on {x.device}; `cpu()` first")
    return strided(x)


def strided(x):
    """Tensor whose memory contains its values: strided, without pending conjugation or negation, off the tape."""
    if x.layout is not torch.strided:
        raise UnsupportedError(f"a tensor of layout {x.layout}; `to_dense()` first")
    if x.is_conj() or x.is_neg():
        x = x.resolve_conj().resolve_neg()
    return x.detach() if x.requires_grad else x


def run(op, tensors):
    """Runs an operation; returns new tensors."""
    tensors = tuple(tensors)
    for x in tensors:
        if x.is_cuda:
            return _run_on_cuda(op, tensors)
    # The built-in function returns None for tensors that `plain` converts or rejects.
    found = None if _TABLE is None else op.compute(1, tensors)
    if found is not None:
        return found
    if all(x.is_meta for x in tensors):
        return shapes_alone(op, tensors)
    tensors = tuple(map(plain, tensors))
    if _TABLE is None:
        return _imported(op.run(*tensors))
    found = op.compute(1, tensors)
    if found is not None:
        return found
    described = [DLTensor() for _ in tensors]
    addresses = list(map(addressof, described))
    for x, address in zip(tensors, addresses):
        _describe(x, address)
    return _imported(op.run_at(*addresses))


def _imported(results):
    """Tensors from producers or capsules, which own their memory until PyTorch has taken it over."""
    return list(map(torch.from_dlpack, results))


def _run_on_cuda(op, tensors):
    """Runs an operation on CUDA tensors, on their device, after the current stream."""
    _cuda.check_devices([x.device for x in tensors])
    tensors = tuple(map(strided, tensors))
    device = tensors[0].device
    described = list(map(_described_on_cuda, tensors))
    stream = torch.cuda.current_stream(device).cuda_stream
    return _imported(_cuda.run_at(op, [addressof(x) for x, _ in described], stream))


def _described_on_cuda(x):
    """DLTensor of a CUDA tensor, and the memory of its shape and strides."""
    rank, sizes = x.dim(), (c_int64 * (2 * x.dim()))(*x.shape, *x.stride())
    at = addressof(sizes)
    shape, strides = (ctypes.cast(c_void_p(at + 8 * offset), POINTER(c_int64)) for offset in (0, rank))
    name = str(x.dtype).removeprefix("torch.")
    if name not in CODES:
        raise DtypeError(f"there are no tensors of {name}")
    device, dtype = DLDevice(CUDA, x.device.index), DLDataType(*CODES[name], 1)
    return DLTensor(x.data_ptr(), device, rank, dtype, shape, strides, 0), sizes
