"""
Differentiable operations of the t4a engine on arrays: contractions over semirings, linear algebra with derivatives that
are right at ties, scans. Derivatives are rules of ChainRulesCore, to any order.

    using T4A
    a, b = randn(3, 4), randn(4, 5)
    einsum("ij,jk->ik", a, b; semiring = "max_plus")
    u, s, vh = T4A.svd(a)

The library `libt4a` is the preference `library` of this package: [`set_library!`](@ref).
"""
module T4A

using ChainRulesCore
using LinearAlgebra: Adjoint, Transpose
using Preferences: @load_preference, @set_preferences!

# Path or name of the library, fixed when the package is compiled.
const libt4a = @load_preference("library", "libt4a")

include("interface.jl")
include("errors.jl")
include("tensors.jl")
include("operations.jl")
include("rules.jl")
include("functions.jl")

export Op, einsum

"""
    set_library!(path)

Path of `libt4a` (`cargo build --release -p t4a-capi` writes `target/release/libt4a.so`). Julia has to be started again.
"""
set_library!(path::AbstractString) = @set_preferences!("library" => abspath(path))

function __init__()
    check_abi(t4a_abi())
end

# Throws an error for a library with another major version, or an earlier minor one, than the interface.
function check_abi(abi)
    major, minor = abi >> 16, abi & 0xffff
    required = "$T4A_ABI_MAJOR.$T4A_ABI_MINOR or a later $T4A_ABI_MAJOR.x"
    known = major == T4A_ABI_MAJOR && minor >= T4A_ABI_MINOR
    known || error("libt4a has ABI $major.$minor, T4A.jl requires $required")
end

end
