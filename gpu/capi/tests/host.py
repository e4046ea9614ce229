"""Host side of libt4a_cuda with the substitute for the CUDA driver of `driver.c`: copies, memory, errors, threads.

Kernels do nothing there, so that values are compared for operations without kernels only: copies of operands, and operations that
the engine computes on the host. `gpu/check host FOLDER` builds the libraries and sets the variables.
"""

import ctypes
import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

LIBRARY, SUBSTITUTE = os.environ.get("T4A_CUDA_LIBRARY"), os.environ.get("T4A_CUDA_SUBSTITUTE")
if not (LIBRARY and SUBSTITUTE):
    pytest.skip("T4A_CUDA_LIBRARY and T4A_CUDA_SUBSTITUTE name no libraries", allow_module_level=True)

import t4a
import t4a.numpy as tn
from t4a import _cuda
from t4a._dlpack import CUDA, capsule_of
from t4a._library import DLDataType, DLDevice, DLTensor, Managed
from t4a._op import CODES, Op


class Driver(ctypes.Structure):
    """`struct driver` of driver.c."""

    NAMES = "started live limit copied unfinished launches waits contexts refused capturing fail_copy fail_launch"
    _fields_ = [(name, ctypes.c_long) for name in NAMES.split()]


driver = Driver.in_dll(ctypes.CDLL(SUBSTITUTE), "driver")
NO_LIMIT = driver.limit
MIB = 1 << 20

# Exported operands of the running test by address, kept so that no address occurs twice; addresses given to the deleter.
exported, deleted = {}, []


@ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
def delete(managed):
    deleted.append(ctypes.addressof(managed.contents))


class OnCuda:
    """An array as a producer on CUDA: the substitute reads memory of the host."""

    def __init__(self, x, number=0):
        self.x, self.number = x, number
        self.shape, self.dtype, self.ndim, self.size = x.shape, x.dtype, x.ndim, x.size

    def __getitem__(self, key):
        return OnCuda(self.x[key], self.number)

    def __dlpack_device__(self):
        return (CUDA, self.number)

    def __dlpack__(self, *, stream=None, max_version=None):
        x, managed = self.x, Managed()
        strides = [stride // x.itemsize for stride in x.strides]
        sizes = (ctypes.c_int64 * (2 * x.ndim))(*x.shape, *strides)
        at = ctypes.addressof(sizes)
        shape, strides = (ctypes.cast(at + 8 * first, ctypes.POINTER(ctypes.c_int64)) for first in (0, x.ndim))
        dtype = DLDataType(*CODES[str(x.dtype)], 1)
        managed.major, managed.minor = 1, 1
        managed.deleter = ctypes.cast(delete, ctypes.c_void_p).value
        managed.tensor = DLTensor(self.address(), DLDevice(CUDA, self.number), x.ndim, dtype, shape, strides, 0)
        exported[ctypes.addressof(managed)] = (managed, sizes, x)
        return capsule_of(ctypes.addressof(managed))

    def address(self):
        return self.x.ctypes.data


class WithoutMemory(OnCuda):
    def address(self):
        return None


def tensor(result):
    return Managed.from_address(result._address).tensor


def elements(result):
    """Elements of a `CudaArray`, whose memory is memory of the host here."""
    dtype = np.dtype(result.dtype)
    if result.size == 0:
        return np.empty(result.shape, dtype)
    memory = (ctypes.c_char * (result.size * dtype.itemsize)).from_address(tensor(result).data)
    return np.frombuffer(memory, dtype).reshape(result.shape).copy()


def check_operands():
    """Checks that each operand was released once."""
    assert sorted(deleted) == sorted(exported)
    exported.clear()
    deleted.clear()


@pytest.fixture(autouse=True)
def checked():
    """Checks after each test: no refused call, no open context, no copy without a synchronisation, operands released."""
    driver.refused = driver.capturing = driver.fail_copy = driver.fail_launch = 0
    yield
    driver.limit = NO_LIMIT
    gc.collect()
    assert driver.started > 0, "a library libcuda.so is present, so that the substitute was not used"
    assert driver.refused == 0
    assert driver.contexts == 0
    assert driver.unfinished == 0
    check_operands()


def noise(*shape, dtype="float32"):
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


A = noise(5, 7)


def copy(x):
    """An operation that returns its operand."""
    return tn.einsum("...->...", OnCuda(x))


def check_next_call():
    np.testing.assert_array_equal(elements(copy(A)), A)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_row_major_operands(dtype):
    x = noise(4, 6, 3, dtype=dtype)
    copied, launches = driver.copied, driver.launches
    result = copy(x)
    assert isinstance(result, t4a.CudaArray)
    assert (result.shape, result.dtype) == (x.shape, dtype)
    np.testing.assert_array_equal(elements(result), x)
    assert driver.copied - copied == x.nbytes
    assert driver.launches == launches


LARGE = noise(2048, 1024)
ROWS = {
    "a column": LARGE[:, 5],
    "parts of rows": LARGE[::7, 3:9],
    "single elements": LARGE[5::100, ::300],
    "a slice of three axes": LARGE.reshape(64, 32, 1024)[:, 3:20, 7],
    "a slice of four axes": LARGE.reshape(4, 16, 32, 1024)[:, ::3, 3:20, 7:9],
    "wide rows": LARGE[:, :1000][::9],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_large_span(name):
    x = ROWS[name]
    copied, launches = driver.copied, driver.launches
    result = copy(x)
    np.testing.assert_array_equal(elements(result), x)
    assert driver.copied - copied == x.nbytes
    assert driver.launches == launches


# Operand, and the number of elements of the copy.
STRIDED = {
    "transposed": (A.T, 35),
    "reversed": (A[::-1, ::-1], 35),
    "steps": (A[::2, ::3], 35),
    "repeated": (np.broadcast_to(A[:1], (9, 7)), 7),
    "repeated elements of a large span": (np.broadcast_to(LARGE[:, None, 5], (2048, 3)), 2048),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_operands(name):
    x, count = STRIDED[name]
    copied, launches = driver.copied, driver.launches
    assert copy(x).shape == x.shape
    assert driver.copied - copied == 4 * count
    assert driver.launches > launches


def test_numbers():
    result = copy(np.array(2.5, "float32"))
    assert result.shape == ()
    assert elements(result) == 2.5


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_operands(dtype):
    x = noise(4, 3).astype(dtype)
    result = tn.einsum("ij,jk->ik", OnCuda(x), OnCuda(x.T))
    assert (result.shape, result.dtype) == ((4, 4), dtype)


@pytest.mark.parametrize("semiring, zero", [("standard", 0), ("max_plus", -np.inf)])
def test_sums_without_terms(semiring, zero):
    a, b = np.zeros((3, 0), "float32"), np.zeros((0, 128), "float32")
    result = tn.einsum("ij,jk->ik", OnCuda(a), OnCuda(b), semiring=semiring)
    np.testing.assert_array_equal(elements(result), np.full((3, 128), zero))


def test_results_without_elements():
    result = tn.einsum("ij,jk->ik", OnCuda(np.zeros((0, 4), "float32")), OnCuda(np.ones((4, 2), "float32")))
    assert result.shape == (0, 2)
    assert tensor(result).data is None
    assert result.reshape(2, 0, 5).shape == (2, 0, 5)
    assert result.reshape(0, 1 << 40, 1 << 40).shape == (0, 1 << 40, 1 << 40)
    assert tn.cumsum(OnCuda(np.zeros((0, 3), "float32"))).shape == (0, 3)
    z = np.zeros((3, 0), "complex64")
    result = tn.einsum("ij,jk->ik", OnCuda(z), OnCuda(z.T.copy()))
    assert (result.shape, result.dtype) == ((3, 3), "complex64")


def test_a_factorisation_on_the_engine():
    x = noise(128, 128, dtype="float64")
    launches = driver.launches
    found = elements(tn.svdvals(OnCuda(x)))
    np.testing.assert_allclose(found, np.linalg.svd(x, compute_uv=False), rtol=1e-10)
    assert driver.launches == launches


def test_derivatives():
    op = Op.of({"softmax": {"axis": 1}})
    (cotangent,) = op.vjp([True], [True]).run(OnCuda(A), OnCuda(A))
    assert cotangent.shape == A.shape
    primal, tangent = op.jvp([True]).run(OnCuda(A), OnCuda(A))
    assert primal.shape == tangent.shape == A.shape
    assert abs(tensor(primal).data - tensor(tangent).data) >= A.nbytes


def test_shared_memory():
    result = copy(A)
    flat = result.reshape(7, 5)
    longer = flat[None].squeeze(0)
    at = tensor(result).data
    assert tensor(flat).data == tensor(longer).data == at
    del result
    others = [copy(noise(5, 7) + k) for k in range(5)]
    assert at not in [tensor(x).data for x in others]
    for shared in (flat, longer):
        np.testing.assert_array_equal(elements(shared), A.reshape(7, 5))


def test_released_memory_is_used_again_after_the_context_is_idle():
    gc.collect()
    check_next_call()
    check_next_call()
    waits = driver.waits
    result = copy(A)
    assert driver.waits == waits + 1
    check_next_call()
    assert driver.waits == waits + 1, "no memory was released since"
    del result
    check_next_call()
    assert driver.waits == waits + 2


@pytest.mark.parametrize("shape", [(6, 6), (-5, -7), (1 << 40, 1 << 40)])
def test_shapes_of_shared_memory(shape):
    result = copy(A)
    with pytest.raises(t4a.ShapeError, match="for a tensor of shape"):
        result.reshape(shape)


def test_memory_of_others_is_not_shared():
    others, out, error = Managed(), ctypes.c_void_p(), ctypes.c_void_p()
    library = _cuda.library()
    arguments = ctypes.byref(others), None, 0, ctypes.byref(out), ctypes.byref(error)
    assert library.t4a_cuda_share(*arguments) != 0
    assert b"not a result of this library" in library.t4a_error_text(error)
    library.t4a_error_free(error)


def test_devices():
    with pytest.raises(t4a.UnsupportedError, match="cuda:0 and on cuda:1"):
        tn.einsum("ij,ij->ij", OnCuda(A), OnCuda(A, 1))
    with pytest.raises(t4a.UnsupportedError, match="device 3"):
        tn.einsum("ij->ij", OnCuda(A, 3))


def test_arguments():
    with pytest.raises(t4a.ShapeError, match="'j'"):
        tn.einsum("ij,jk->ik", OnCuda(A), OnCuda(A))
    with pytest.raises(t4a.ArgumentError, match="null pointer"):
        tn.einsum("ij->ij", WithoutMemory(A))
    check_next_call()


def test_a_stream_that_is_captured():
    driver.capturing = 1
    copied = driver.copied
    with pytest.raises(t4a.UnsupportedError, match="graph"):
        copy(A)
    assert driver.copied == copied
    driver.capturing = 0
    check_next_call()


@pytest.mark.parametrize("number", [1, 2])
def test_a_copy_that_fails(number):
    driver.fail_copy = number
    with pytest.raises(t4a.T4aError, match="the copy of an operand"):
        tn.einsum("ij,ij->ij", OnCuda(A), OnCuda(A))
    assert driver.fail_copy == 0
    # The other copy is complete.
    assert driver.unfinished == 0
    check_next_call()


@pytest.mark.parametrize("number", [1, 2])
def test_a_launch_that_fails(number):
    driver.fail_launch = number
    with pytest.raises(t4a.T4aError, match="a kernel on CUDA"):
        tn.einsum("ij,jk->ik", OnCuda(A), OnCuda(A.T), semiring="log_sum_exp")
    assert driver.fail_launch == 0
    check_next_call()


@pytest.mark.parametrize(
    "mebibytes, subscripts, shapes, path",
    [
        (6, "i,i->i", [(1 << 22,), (1 << 22,)], "greedy"),
        (7, "i,j->ij", [(1000,), (9000,)], "greedy"),
        (7, "i,j,ij->i", [(1000,), (9000,), (1000, 9000)], "greedy"),
        (7, "ab,bc,cd->ad", [(20000, 2), (2, 20000), (20000, 1)], [(0, 1), (0, 1)]),
    ],
    ids=["operands", "result", "large operand", "intermediate result"],
)
def test_memory_that_is_not_there(mebibytes, subscripts, shapes, path):
    operands = [OnCuda(np.ones(shape, "float32")) for shape in shapes]
    check_next_call()
    gc.collect()
    t4a.free_cuda_memory()
    driver.limit = driver.live + mebibytes * MIB
    with pytest.raises(t4a.OutOfMemoryError, match="CUDA"):
        tn.einsum(subscripts, *operands, optimize=path)
    driver.limit = NO_LIMIT
    check_next_call()


def test_memory_returns_to_the_driver():
    check_next_call()
    gc.collect()
    t4a.free_cuda_memory()
    before = driver.live
    x = np.ones(16 * MIB // 4, "float32")
    result = copy(x)
    assert driver.live >= before + x.nbytes
    t4a.free_cuda_memory()
    np.testing.assert_array_equal(elements(result), x)
    del result
    gc.collect()
    t4a.free_cuda_memory()
    assert driver.live == before


def resident():
    """Memory of the process, in KiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 1024


def test_many_calls_use_the_memory_of_few():
    a, b = OnCuda(noise(300, 300)), OnCuda(noise(300, 300) + 1)
    used = []
    for _ in range(3):
        for _ in range(300):
            product = tn.einsum("ij,jk->ik", a, b, semiring="max_plus")
            flat = product.reshape(90000)
            del product
            tn.einsum("ij->ij", OnCuda(A.T))
            tn.cumsum(flat)
        check_operands()
        used.append((driver.live, resident()))
    assert used[-1][0] <= used[0][0]
    assert used[-1][1] < used[0][1] + 4000


def test_threads():
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for k in range(100):
                x = random.standard_normal((int(random.integers(1, 40)), 17)).astype("float32")
                result = tn.einsum("ij->ij", OnCuda(x))
                flat = result.reshape(x.size)
                del result
                tn.einsum("ij,kj->ik", OnCuda(x), OnCuda(x), semiring="log_sum_exp")
                if k % 10 == 0:
                    t4a.free_cuda_memory()
                if k % 7 == 0:
                    with pytest.raises(t4a.ShapeError):
                        tn.einsum("ij,jk->ik", OnCuda(x), OnCuda(x.T[:3].copy()))
                np.testing.assert_array_equal(elements(flat), x.reshape(-1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
