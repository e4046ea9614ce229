# Functions for users. Axes count from 1; matrices are the first two axes of an array, batch axes follow.

"""
    einsum(subscripts, operands...; semiring = "standard", memory = 0, optimize = "greedy")

The contraction that `subscripts` describe, `"ij,jk->ik"`, or integer labels, those of the result last:
`einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

`semiring`: "standard", "max_plus", "min_plus", "max_mul", "max_min", "log_sum_exp". `memory`: bound in bytes on
intermediate tensors, 0 for none. `optimize`: "greedy", "annealing" (seconds of search), or a contraction path, a list of
steps with positions in the list of the remaining arrays, which a step removes and whose product it appends. A result without axes is an array without axes.
"""
function einsum(subscripts, operands::AbstractArray...; semiring = "standard", memory = 0, optimize = "greedy")
    labels = labels_of(subscripts)
    length(labels) == length(operands) + 1 ||
        throw(ArgumentError("labels of $(length(labels) - 1) operands, given $(length(operands))"))
    arrays = promoted(operands)
    element = eltype(first(arrays))
    op = contraction(labels[1:end-1], map(size, arrays), labels[end]; semiring, memory, optimize, element)
    return only(apply(op, plain, arrays...))
end

function labels_of(subscripts::AbstractString)
    sides = split(replace(subscripts, " " => ""), "->")
    length(sides) == 2 || throw(ArgumentError("$(repr(subscripts)) has no single ->"))
    terms = [split(sides[1], ','); sides[2]]
    all(isletter, join(terms)) || throw(ArgumentError("$(repr(subscripts)) has labels that are no letters"))
    return [Int64[letter for letter in term] for term in terms]
end
labels_of(labels) = [collect(Int64, x) for x in labels]
ChainRulesCore.@non_differentiable labels_of(::Any)

# Converts operands to a common element type.
function promoted(operands)
    element = promote_type(map(eltype, operands)...)
    return map(x -> eltype(x) == element ? x : convert(AbstractArray{element}, x), operands)
end

json(x::Bool) = x ? "true" : "false"
json(::Nothing) = "null"
json(x::Real) = string(x)

named(body) = Op("{\"t4a\":1,\"op\":{$body}}")
ChainRulesCore.@non_differentiable named(::Any)

is_complex(x) = eltype(x) <: Complex

function linalg(op, operands...)
    arrays = promoted(operands)
    return apply(named("\"linalg\":{\"op\":{$op},\"complex\":$(json(is_complex(arrays[1])))}"), matrices, arrays...)
end

degeneracy(check_gauge) =
    "\"degeneracy\":{\"tolerance\":null,\"broadening\":null,\"check_gauge\":$(json(check_gauge)),\"separable\":false}"

# Drop axes of size 1: `[1, k, ...]` becomes `[k, ...]`, `[1, 1, ...]` becomes `[...]`.
row(x) = dropdims(x; dims = 1)
number(x) = dropdims(x; dims = (1, 2))

"""
    svd(x; check_gauge = true)

`u [m, k, ...], s [k, ...], vh [k, n, ...]` with `k = min(m, n)`. A derivative through vectors that depends on their
arbitrary phases or basis is an error.
"""
function svd(x::AbstractArray; check_gauge::Bool = true)
    u, s, vh = linalg("\"svd\":{\"vectors\":\"thin\",$(degeneracy(check_gauge))}", x)
    return u, row(s), vh
end

"""
    svdvals(x)

Singular values `[k, ...]`.
"""
svdvals(x::AbstractArray) = row(only(linalg("\"svdvals\":null", x)))

"""
    qr(x)

`q [m, k, ...], r [k, n, ...]`; the diagonal of r is not negative.
"""
qr(x::AbstractArray) = linalg("\"qr\":{\"columns\":\"thin\"}", x)

"""
    cholesky(x)

The lower factor of `(x + xᴴ) / 2`.
"""
cholesky(x::AbstractArray) = only(linalg("\"cholesky\":null", x))

"""
    eigh(x; check_gauge = true)

Eigenvalues `[n, ...]` and vectors `[n, n, ...]` of `(x + xᴴ) / 2`. `check_gauge` as for [`svd`](@ref).
"""
function eigh(x::AbstractArray; check_gauge::Bool = true)
    e, v = linalg("\"eigh\":{$(degeneracy(check_gauge))}", x)
    return row(e), v
end

"""
    eigvalsh(x)

Eigenvalues `[n, ...]` of `(x + xᴴ) / 2`.
"""
eigvalsh(x::AbstractArray) = row(only(linalg("\"eigvalsh\":null", x)))

"""
    inv(x)

The inverse.
"""
inv(x::AbstractArray) = only(linalg("\"inv\":null", x))

"""
    det(x)

The determinant `[...]`.
"""
det(x::AbstractArray) = number(only(linalg("\"det\":null", x)))

"""
    slogdet(x)

Sign and logarithm of the absolute value of the determinant, `[...]` each.
"""
slogdet(x::AbstractArray) = map(number, linalg("\"slogdet\":null", x))

"""
    solve(a, b)

The solution of `a x = b`; `b` has columns.
"""
solve(a::AbstractArray, b::AbstractArray) = only(linalg("\"solve\":null", a, b))

"""
    pinv(x; rtol = nothing)

The pseudoinverse; singular values up to `rtol` times the greatest are zero.
"""
pinv(x::AbstractArray; rtol = nothing) = only(linalg("\"pinv\":{\"rtol\":$(json(rtol))}", x))

"""
    expm(x)

The exponential of a matrix.
"""
expm(x::AbstractArray) = only(linalg("\"expm\":null", x))

"""
    sqrtm(x)

The principal square root of a matrix.
"""
sqrtm(x::AbstractArray) = only(linalg("\"sqrtm\":null", x))

"""
    logm(x)

The principal logarithm of a matrix.
"""
logm(x::AbstractArray) = only(linalg("\"logm\":null", x))

"""
    polar(x; side = "right")

`u, p` with `x = u p`, or `x = p u` for side "left".
"""
polar(x::AbstractArray; side = "right") = linalg("\"polar\":{\"side\":\"$side\"}", x)

function axis(x, dims)
    1 <= dims <= ndims(x) || throw(DimensionMismatch("axis $dims of an array of size $(size(x))"))
    return dims - 1
end

along(x, dims, reverse) = "\"axis\":$(axis(x, dims)),\"reverse\":$(json(reverse)),\"complex\":$(json(is_complex(x)))"

running(kind, x, dims, reverse) =
    only(apply(named("\"cumulative\":{\"kind\":\"$kind\",$(along(x, dims, reverse))}"), plain, x))

"""
    cumsum(x; dims = 1, reverse = false)

Running sums.
"""
cumsum(x::AbstractArray; dims = 1, reverse::Bool = false) = running("sum", x, dims, reverse)

"""
    cumprod(x; dims = 1, reverse = false)

Running products.
"""
cumprod(x::AbstractArray; dims = 1, reverse::Bool = false) = running("product", x, dims, reverse)

"""
    cummax(x; dims = 1, reverse = false)

Running maxima.
"""
cummax(x::AbstractArray; dims = 1, reverse::Bool = false) = running("max", x, dims, reverse)

"""
    logcumsumexp(x; dims = 1, reverse = false)

Logarithms of running sums of exponentials.
"""
logcumsumexp(x::AbstractArray; dims = 1, reverse::Bool = false) = running("log_sum_exp", x, dims, reverse)

"""
    linear_recurrence(a, b; dims = 1, reverse = false)

`h[t] = a[t] h[t - 1] + b[t]` along an axis, from zero.
"""
function linear_recurrence(a::AbstractArray, b::AbstractArray; dims = 1, reverse::Bool = false)
    a, b = promoted((a, b))
    return only(apply(named("\"linear_recurrence\":{$(along(a, dims, reverse)),\"initial\":false}"), plain, a, b))
end

"""
    log_partition(emissions, transitions; lengths)

ln Z of chains of tags: `emissions [batch, length, tags]`, `transitions [tags, tags]` from the first index to the
second; a length of each sequence.
"""
function log_partition(emissions::AbstractArray{<:Real,3}, transitions::AbstractMatrix{<:Real};
                       lengths = fill(size(emissions, 2), size(emissions, 1)))
    emissions, transitions = promoted((emissions, transitions))
    return only(apply(named("\"log_partition\":{\"lengths\":[$(join(lengths, ','))]}"), plain, emissions, transitions))
end

"""
    softmax(x; dims = 1)

`exp.(x) ./ sum(exp.(x))` along an axis.
"""
softmax(x::AbstractArray; dims = 1) = only(apply(named("\"softmax\":{\"axis\":$(axis(x, dims))}"), plain, x))

"""
    log_softmax(x; dims = 1)

`x .- log(sum(exp.(x)))` along an axis.
"""
log_softmax(x::AbstractArray; dims = 1) = only(apply(named("\"log_softmax\":{\"axis\":$(axis(x, dims))}"), plain, x))
