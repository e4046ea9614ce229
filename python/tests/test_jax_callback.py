"""JAX without custom calls of XLA: operations are callbacks, with the same results and derivatives."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
import t4a, t4a.jax as tj
from t4a.jax import _primitive
from jax.sharding import PartitionSpec

assert _primitive._DIRECT == (sys.argv[1] == "direct")
rng = np.random.default_rng(0)
x, b = jnp.asarray(rng.normal(size=(3, 3)) + 3 * np.eye(3)), jnp.asarray(rng.normal(size=(4, 3, 3)))
f = lambda x: tj.einsum("ij,jk->", x, x, semiring="log_sum_exp") + tj.slogdet(x)[1]
found = [f(x), jax.jit(f)(x), jax.grad(f)(x), jax.jit(jax.hessian(f))(x), jax.jvp(f, (x,), (x,))[1]]
found += [jax.jit(jax.vmap(jax.grad(f)))(b), *tj.lu_factor(b), *jax.jit(tj.eig)(b)]
found += [jax.lax.scan(lambda c, _: (tj.expm(c) / 30, None), x, None, length=3)[0]]
# Arrays that are not small, in one thread and several.
large = jnp.asarray(rng.normal(size=(600, 700)))
found += [jax.jit(lambda x: tj.einsum("ij,kj->ik", x, x, semiring="max_plus"))(large)]
mesh = jax.make_mesh((2,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
rows = PartitionSpec("b")
found += [jax.jit(jax.shard_map(tj.inv, mesh=mesh, in_specs=rows, out_specs=rows))(b)]
try:
    jax.block_until_ready(jax.jit(tj.inv)(jnp.ones((2, 2))))
except Exception as error:
    assert "singular" in str(error), error
else:
    raise AssertionError("a singular matrix has no inverse")
try:
    tj.inv(jnp.ones((2, 3)))
except t4a.ShapeError:
    pass
else:
    raise AssertionError("this matrix is not square")
half = jnp.ones((2, 2), jnp.bfloat16)
try:
    assert tj.einsum("ij,jk->ik", half, half).dtype == jnp.bfloat16 and _primitive._DIRECT
except t4a.DtypeError as error:
    assert "bfloat16" in str(error) and not _primitive._DIRECT
np.savez(sys.argv[2], *map(np.asarray, found))
"""


def test_callbacks_have_the_results_of_custom_calls(tmp_path):
    import numpy as np

    files = {}
    for name, value in (("direct", "0"), ("callback", "1")):
        flags = "--xla_force_host_platform_device_count=2"
        environment = {**os.environ, "T4A_JAX_CALLBACK": value, "XLA_FLAGS": flags}
        files[name] = tmp_path / f"{name}.npz"
        command = [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM, name, str(files[name])]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
    direct, callback = (np.load(files[name]) for name in ("direct", "callback"))
    assert len(direct.files) == len(callback.files) == 13
    for name in direct.files:
        assert direct[name].dtype == callback[name].dtype
        np.testing.assert_array_equal(direct[name], callback[name])


def test_a_failed_registration_is_reported(monkeypatch):
    import jax

    from t4a.jax import _primitive

    def refused(*_, **__):
        raise RuntimeError("no custom calls here")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refused)
    with pytest.warns(UserWarning, match="no custom calls here.*callbacks"):
        assert _primitive._registers() is False
    monkeypatch.setenv("T4A_JAX_CALLBACK", "1")
    assert _primitive._registers() is False
