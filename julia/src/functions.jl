# Functions for users. Axes count from 1; matrices are the first two axes of an array, batch axes follow.

"""
    einsum(subscripts, operands...; semiring = "standard", memory = 0, optimize = "greedy")

The contraction that `subscripts` describe, `"ij,jk->ik"`, or integer labels, those of the result last:
`einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

`semiring`: "standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp". `memory`: bound in bytes on
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

# Results of an operation on the optimal assignments of a contraction: `of` is its text.
function optima(of, subscripts, operands; semiring, memory, optimize)
    labels = labels_of(subscripts)
    length(labels) == length(operands) + 1 ||
        throw(ArgumentError("labels of $(length(labels) - 1) operands, given $(length(operands))"))
    arrays = promoted(operands)
    op = contraction(labels[1:end-1], map(size, arrays), labels[end]; semiring, memory, optimize, element = eltype(first(arrays)))
    found = replace(text(op), "\"einsum\":{" => "\"optimal_assignments\":{\"of\":$of,"; count = 1)
    return labels, apply(Op(found), plain, arrays...)
end

"""
    argmax_einsum(subscripts, operands...; semiring = "max_plus", memory = 0, optimize = "greedy")

Contraction over a selective semiring ("max_plus", "min_plus", "max_mul", "min_mul", "max_min") and its argmax: a dictionary
from each summed label, a letter or an integer, to its index, an array of the size of the result. Of several optima it is the first
one, with the last label varying fastest; 0 where the result is the zero of the semiring. No derivative.
"""
function argmax_einsum(subscripts, operands::AbstractArray...; semiring = "max_plus", memory = 0, optimize = "greedy")
    labels, (value, number) = optima("\"argmax\"", subscripts, operands; semiring, memory, optimize)
    letters = subscripts isa AbstractString
    indices = Dict{letters ? Char : Int,typeof(number)}()
    for label in reverse(setdiff(vcat(labels[1:end-1]...), labels[end]))
        size_of = maximum(size(x, axis) for (x, own) in zip(operands, labels) for axis in findall(==(label), own))
        # `map` returns an array also of one without axes.
        indices[letters ? Char(label) : label] = map(n -> n < 0 ? 0 : mod(n, size_of) + 1, number)
        number = map(n -> fld(n, size_of), number)
    end
    return value, indices
end
ChainRulesCore.@non_differentiable argmax_einsum(::Any...)

"""
    counting_einsum(subscripts, operands...; semiring = "max_plus", memory = 0, optimize = "greedy")

Contraction over "max_plus", "min_plus", "max_mul" or "min_mul", and the number of assignments of summed labels that attain it. No derivative.
"""
counting_einsum(subscripts, operands::AbstractArray...; semiring = "max_plus", memory = 0, optimize = "greedy") =
    optima("\"count\"", subscripts, operands; semiring, memory, optimize)[2]
ChainRulesCore.@non_differentiable counting_einsum(::Any...)

"""
    k_best_einsum(subscripts, operands...; k, semiring = "max_plus", memory = 0, optimize = "greedy")

The `k` best values of every sum over a selective semiring, 1 to 16, on a new last axis in descending order of preference. No derivative.
"""
k_best_einsum(subscripts, operands::AbstractArray...; k::Integer, semiring = "max_plus", memory = 0, optimize = "greedy") =
    only(optima("{\"best\":{\"k\":$k}}", subscripts, operands; semiring, memory, optimize)[2])
ChainRulesCore.@non_differentiable k_best_einsum(::Any...)

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
json(x::Integer) = string(x)
json(x::Real) = string(Float64(x))

named(body) = Op("{\"t4a\":1,\"op\":{$body}}")
ChainRulesCore.@non_differentiable named(::Any)

is_complex(x) = eltype(x) <: Complex

# Results: as they are; without axes of size 1, `[1, k, ...]` as `[k, ...]`, `[1, 1, ...]` as `[...]`; indices from 1.
whole(x) = x
row(x) = dropdims(x; dims = 1)
number(x) = dropdims(x; dims = (1, 2))
permutation(x) = x .+ 1

"""
A function of matrices that is one operation: its name, the number of arrays, the text of the operation, where `<name>` is the
value of a keyword argument, or of a further argument listed in `arguments`; the form of each result; and documentation.
"""
struct MatrixFunction
    name::Symbol
    arrays::Int
    text::String
    results::Tuple
    doc::String
    arguments::Vector{Symbol}
end
MatrixFunction(name, arrays, text, results, doc) = MatrixFunction(name, arrays, text, results, doc, Symbol[])

# Values of keyword arguments and their text; the first one is the default.
const CHOICES = Dict(
    :full_matrices => [false => "\"thin\"", true => "\"full\""],
    :mode => ["reduced" => "\"thin\"", "complete" => "\"complete\""],
    :pivoting => ["partial" => "\"partial\"", "full" => "\"full\""],
    :side => ["right" => "\"right\"", "left" => "\"left\""],
    :trans => ["N" => "\"none\"", "T" => "\"transpose\"", "C" => "\"adjoint\""],
    :f => ["exp" => "\"exp\"", "log" => "\"ln\""],
    :upper => [false => "false", true => "true"],
    :unitriangular => [false => "false", true => "true"],
    :check_gauge => [true => "true", false => "false"],
    :separable => [false => "false", true => "true"],
)
# Keyword arguments that are a number or `nothing`, the default; `rank` and `f` are required.
const NUMBERS = (:tolerance, :broadening, :rtol, :rank, :f)

const TIES = """{"tolerance":<tolerance>,"broadening":<broadening>,"check_gauge":<check_gauge>,"separable":<separable>}"""
const TIES_OF_EIG = """{"tolerance":<tolerance>,"broadening":null,"check_gauge":<check_gauge>,"separable":<separable>}"""

const MATRIX_FUNCTIONS = [
    MatrixFunction(:svd, 1, """{"svd":{"vectors":<full_matrices>,"degeneracy":$TIES}}""", (whole, row, whole), """
        `u [m, k, ...], s [k, ...], vh [k, n, ...]` with `k = min(m, n)`; with `full_matrices` `u [m, m, ...]`, `vh [n, n, ...]`.

        Options of derivatives: one that depends on the arbitrary phases or basis of vectors is an error, unless `check_gauge = false`.
        `tolerance`: gaps up to this fraction of the largest value are ties. `separable`: quotients at ties are zero, right for losses
        of subspaces and of values, not for products of both. `broadening`: quotients 1/x are x/(x^2 + w^2), for comparisons only."""),
    MatrixFunction(:svdvals, 1, """{"svdvals":null}""", (row,), "Singular values `[k, ...]`."),
    MatrixFunction(:svd_function, 1, """{"svd_function":{"function":<f>}}""", (whole,), """
        `u f.(s) vh`, differentiable at ties; `f` is "exp", "log", or a number, the power.""", [:f]),
    MatrixFunction(:qr, 1, """{"qr":{"columns":<mode>}}""", (whole, whole), """
        `q [m, k, ...], r [k, n, ...]`, with `mode = "complete"` `q [m, m, ...], r [m, n, ...]`; the diagonal of r is nonnegative."""),
    MatrixFunction(:qr_pivoted, 1, """{"qr_pivoted":{"columns":<mode>}}""", (whole, whole, permutation), """
        `q, r, p` with `x[:, p] = q r` for each matrix."""),
    MatrixFunction(:lq, 1, """{"lq":null}""", (whole, whole), "`l, q` with `x = l q`; the diagonal of l is nonnegative."),
    MatrixFunction(:lu_factor, 1, """{"lu_factor":{"pivoting":<pivoting>}}""", (whole, permutation, permutation), """
        `packed, p` with `x[p, :] = l u`: u on and above the diagonal, l with a unit diagonal below; with `pivoting = "full"` also a
        permutation q of columns, `x[p, q] = l u`."""),
    MatrixFunction(:polar, 1, """{"polar":{"side":<side>}}""", (whole, whole), """
        `u, p` with `x = u p`, or `x = p u` for side "left"."""),
    MatrixFunction(:low_rank, 1, """{"low_rank":{"rank":<rank>}}""", (whole,), "The closest matrix of this rank.", [:rank]),
    MatrixFunction(:eigh, 1, """{"eigh":{"degeneracy":$TIES}}""", (row, whole), """
        Eigenvalues `[n, ...]` and vectors `[n, n, ...]` of `(x + xᴴ) / 2`. Options: as for [`svd`](@ref)."""),
    MatrixFunction(:eigvalsh, 1, """{"eigvalsh":null}""", (row,), "Eigenvalues `[n, ...]` of `(x + xᴴ) / 2`."),
    MatrixFunction(:eig, 1, """{"eig":{"degeneracy":$TIES_OF_EIG}}""", (row, whole), """
        Eigenvalues `[n, ...]` and vectors `[n, n, ...]`, complex. Options: as for [`svd`](@ref), without `broadening`."""),
    MatrixFunction(:eigvals, 1, """{"eigvals":null}""", (row,), "Eigenvalues `[n, ...]`, complex."),
    MatrixFunction(:hermitian_function, 1, """{"hermitian_function":{"function":<f>}}""", (whole,), """
        f of the matrix `(x + xᴴ) / 2`, differentiable at ties; `f` is "exp", "log", or a number, the power.""", [:f]),
    MatrixFunction(:inv, 1, """{"inv":null}""", (whole,), "The inverse."),
    MatrixFunction(:det, 1, """{"det":null}""", (number,), "The determinant `[...]`."),
    MatrixFunction(:slogdet, 1, """{"slogdet":null}""", (number, number), """
        Sign and logarithm of the absolute value of the determinant, `[...]` each."""),
    MatrixFunction(:pinv, 1, """{"pinv":{"rtol":<rtol>}}""", (whole,), """
        The pseudoinverse; singular values up to `rtol` times the greatest are zero."""),
    MatrixFunction(:expm, 1, """{"expm":null}""", (whole,), "The exponential of a matrix."),
    MatrixFunction(:sqrtm, 1, """{"sqrtm":null}""", (whole,), "The principal square root of a matrix."),
    MatrixFunction(:logm, 1, """{"logm":null}""", (whole,), "The principal logarithm of a matrix."),
    MatrixFunction(:solve, 2, """{"solve":null}""", (whole,), "The solution of `a x = b`; `b` has columns, or is a vector."),
    MatrixFunction(:solve_triangular, 2,
        """{"solve_triangular":{"triangle":{"upper":<upper>,"unit":<unitriangular>,"op":<trans>}}}""", (whole,), """
        The solution of `op(a) x = b` with the lower or the `upper` triangle of a; `trans`: "N" for a, "T" for its transpose, "C" for
        its adjoint."""),
    MatrixFunction(:lstsq, 2, """{"lstsq":null}""", (whole,), "`x` with minimal `|a x - b|` for `a` of full rank."),
    MatrixFunction(:lstsq_min_norm, 2, """{"lstsq_min_norm":{"rtol":<rtol>}}""", (whole,), """
        The solution of minimal norm for `a` of any rank, `pinv(a; rtol) b`."""),
    MatrixFunction(:lyapunov_positive, 2, """{"lyapunov_positive":null}""", (whole,), """
        The solution of `h x + x h = c` with the positive definite `h = (a + aᴴ) / 2`."""),
    MatrixFunction(:sylvester, 3, """{"sylvester":null}""", (whole,), "The solution of `a x + x b = c`."),
]

keywords_of(text) = [Symbol(found[1]) for found in eachmatch(r"<(\w+)>", text)]

# Text of the value of a keyword argument.
function encoded(name, value)
    choices = get(CHOICES, name, ())
    for (choice, text) in choices
        isequal(choice, value) && return text
    end
    number = value isa Real && !(value isa Bool)
    name == :f && number && return "{\"pow\":$(json(float(value)))}"
    name in NUMBERS && (number || (value === nothing && name in (:tolerance, :broadening, :rtol))) && return json(value)
    listed = join((repr(choice) for (choice, _) in choices), ", ")
    required = isempty(choices) ? "a number" : name in NUMBERS ? "$listed or a number" : "one of $listed"
    throw(ArgumentError("$name = $(repr(value)): $required is required"))
end

default(name) = haskey(CHOICES, name) ? first(CHOICES[name][1]) : nothing

# The operation of a function with these values of keyword arguments.
function operation(entry::MatrixFunction, options, is_complex)
    known = keywords_of(entry.text)
    for name in keys(options)
        name in known || throw(ArgumentError("$(entry.name) has no option $name; it has $(join(known, ", "))"))
    end
    if get(options, :separable, false) && get(options, :broadening, nothing) !== nothing
        throw(ArgumentError("$(entry.name): at most one of separable and broadening is allowed"))
    end
    text = entry.text
    for name in known
        text = replace(text, "<$name>" => encoded(name, get(options, name, default(name))))
    end
    return named("\"linalg\":{\"op\":$text,\"complex\":$(json(is_complex))}")
end
ChainRulesCore.@non_differentiable operation(::Any, ::Any, ::Any)

function of_matrices(entry::MatrixFunction, operands, options)
    arrays = promoted(operands)
    # A vector on the right is one column.
    vector = entry.arrays == 2 && ndims(arrays[2]) == 1
    arrays = vector ? (arrays[1], reshape(arrays[2], :, 1)) : arrays
    found = apply(operation(entry, options, is_complex(arrays[1])), matrices, arrays...)
    vector && return reshape(found[1], :)
    results = map((form, x) -> form(x), forms(entry, length(found)), found)
    return length(entry.results) == 1 ? results[1] : results
end

# Forms of the results; a permutation of columns is one for full pivoting only.
forms(entry::MatrixFunction, count) = entry.results[1:count]
ChainRulesCore.@non_differentiable forms(::Any, ::Any)

# Keyword arguments with the further arguments of a call.
function options_of(entry::MatrixFunction, further, options)
    length(further) == length(entry.arguments) ||
        throw(ArgumentError("$(entry.name): after the arrays $(length(entry.arguments)) arguments are required, given $(length(further))"))
    return merge(NamedTuple{Tuple(entry.arguments)}(further), values(options))
end
ChainRulesCore.@non_differentiable options_of(::Any, ::Any, ::Any)

for entry in MATRIX_FUNCTIONS
    arrays = [Symbol(:a, i) for i in 1:entry.arrays]
    typed = [:($x::AbstractArray) for x in arrays]
    keywords = setdiff(keywords_of(entry.text), entry.arguments)
    call = join([entry.arrays == 1 ? ["x"] : ["a", "b", "c"][1:entry.arrays]; string.(entry.arguments)], ", ")
    written = isempty(keywords) ? call : "$call; $(join(("$name = $(repr(default(name)))" for name in keywords), ", "))"
    doc = "    $(entry.name)($written)\n\n$(entry.doc)\n"
    @eval begin
        @doc $doc function $(entry.name)($(typed...), further...; options...)
            return of_matrices($entry, ($(arrays...),), options_of($entry, further, options))
        end
    end
end

unit(x, m, n) = Matrix{eltype(x)}([i == j for i in 1:m, j in 1:n])
below(x, m, n) = Matrix{eltype(x)}([i > j for i in 1:m, j in 1:n])
ChainRulesCore.@non_differentiable unit(::Any, ::Any, ::Any)
ChainRulesCore.@non_differentiable below(::Any, ::Any, ::Any)

adjoint_of(x) = permutedims(conj(x), (2, 1, 3:ndims(x)...))

"""
    cholesky(x; upper = false)

The lower factor l of `(x + xᴴ) / 2 = l lᴴ`, or the upper one, its adjoint.
"""
function cholesky(x::AbstractArray; upper::Bool = false)
    l = only(apply(named("\"linalg\":{\"op\":{\"cholesky\":null},\"complex\":$(json(is_complex(x)))}"), matrices, x))
    return upper ? adjoint_of(l) : l
end

"""
    lu(x)

`l [m, k, ...], u [k, n, ...], p [m, ...]` with `x[p, :] = l u` for each matrix: l has a unit diagonal.
"""
function lu(x::AbstractArray)
    packed, p = lu_factor(x)
    m, n = size(x, 1), size(x, 2)
    k = min(m, n)
    batch = map(_ -> Colon(), size(x)[3:end])
    lower, upper = packed[:, 1:k, batch...], packed[1:k, :, batch...]
    return lower .* below(x, m, k) .+ unit(x, m, k), upper .* (1 .- below(x, k, n)), p
end

# Positions in `b` of its rows in the order of `p`, a permutation of each matrix.
function positions(p, b)
    batch = CartesianIndices(size(b)[3:end])
    place = LinearIndices(b)
    return [place[p[i, t], j, t] for i in axes(b, 1), j in axes(b, 2), t in batch]
end
are_permutations(p) = all(isperm, eachcol(reshape(p, size(p, 1), :)))
inverse_of(p) = mapslices(invperm, p; dims = 1)
ChainRulesCore.@non_differentiable positions(::Any, ::Any)
ChainRulesCore.@non_differentiable are_permutations(::Any)
ChainRulesCore.@non_differentiable inverse_of(::Any)

"""
    lu_solve(packed, p, b; adjoint = false)

The solution of `a x = b`, or of `aᴴ x = b`, from the results of `lu_factor(a)`.
"""
function lu_solve(packed::AbstractArray, p::AbstractArray{<:Integer}, b::AbstractArray; adjoint::Bool = false)
    columns = ndims(b) == 1 ? reshape(b, :, 1) : b
    size(packed)[2:end] == size(p) && size(p) == size(columns)[[1, 3:ndims(columns)...]] ||
        throw(DimensionMismatch("lu_solve: the sizes $(size(packed)), $(size(p)) and $(size(b))"))
    are_permutations(p) || throw(ArgumentError("lu_solve: `p` is no permutation"))
    if adjoint
        y = solve_triangular(packed, columns; upper = true, trans = "C")
        z = solve_triangular(packed, y; unitriangular = true, trans = "C")
        x = z[positions(inverse_of(p), z)]
    else
        y = solve_triangular(packed, columns[positions(p, columns)]; unitriangular = true)
        x = solve_triangular(packed, y; upper = true)
    end
    return ndims(b) == 1 ? reshape(x, :) : x
end

"""
    lyapunov(a, c)

The solution of `a x + x aᴴ = c`.
"""
lyapunov(a::AbstractArray, c::AbstractArray) = sylvester(a, adjoint_of(a), c)

function axis(x, dims)
    1 <= dims <= ndims(x) || throw(DimensionMismatch("axis $dims of an array of size $(size(x))"))
    return dims - 1
end

along(x, dims, reverse) = "\"axis\":$(axis(x, dims)),\"reverse\":$(json(reverse)),\"complex\":$(json(is_complex(x)))"

running(kind, x, dims, reverse) =
    only(apply(named("\"cumulative\":{\"kind\":\"$kind\",$(along(x, dims, reverse))}"), plain, x))

for (name, kind, doc) in (
    (:cumsum, "sum", "Cumulative sums along an axis."),
    (:cumprod, "product", "Cumulative products along an axis."),
    (:cummax, "max", "Cumulative maxima along an axis."),
    (:cummin, "min", "Cumulative minima along an axis."),
    (:logcumsumexp, "log_sum_exp", "Logarithms of cumulative sums of exponentials along an axis."),
)
    doc = "    $name(x; dims = 1, reverse = false)\n\n$doc\n"
    @eval @doc $doc $name(x::AbstractArray; dims = 1, reverse::Bool = false) = running($kind, x, dims, reverse)
end

"""
    linear_recurrence(a, b; dims = 1, reverse = false)

`h[t] = a[t] h[t - 1] + b[t]` along an axis, from zero.
"""
function linear_recurrence(a::AbstractArray, b::AbstractArray; dims = 1, reverse::Bool = false)
    a, b = promoted((a, b))
    return only(apply(named("\"linear_recurrence\":{$(along(a, dims, reverse)),\"initial\":false}"), plain, a, b))
end

"""
    matrix_recurrence(a, b; reverse = false)

`h[t] = a[t] h[t - 1] + b[t]` along the last axis, from zero: `a [d, d, ..., n]`, `b [d, k, ..., n]`.
"""
function matrix_recurrence(a::AbstractArray, b::AbstractArray; reverse::Bool = false)
    a, b = promoted((a, b))
    return only(apply(named("\"matrix_recurrence\":{\"reverse\":$(json(reverse)),\"initial\":false}"), matrices, a, b))
end

"""
    matrix_scan(x; semiring = "standard", dims = 3, reverse = false, exclusive = false)

Cumulative products `x[1] x[2] ... x[t]` of square matrices `[d, d, ...]` along another axis, over a semiring. `exclusive`: without
`x[t]`. `reverse`: `x[n] x[n - 1] ... x[t]`.
"""
function matrix_scan(x::AbstractArray; semiring = "standard", dims = 3, reverse::Bool = false, exclusive::Bool = false)
    3 <= dims <= ndims(x) || throw(DimensionMismatch("axis $dims of matrices of size $(size(x))"))
    options = "\"axis\":$(dims - 3),\"reverse\":$(json(reverse)),\"exclusive\":$(json(exclusive))"
    return only(apply(named("\"associative_scan\":{\"monoid\":{\"matrix\":\"$semiring\"},$options}"), matrices, x))
end

# A recurrent layer, with zero initial states.
function recurrent(cell, operands, reverse)
    options = "\"reverse\":$(json(reverse)),\"bias\":$(json(length(operands) == 3)),\"initial\":false"
    return apply(named("\"recurrent\":{\"cell\":\"$cell\",$options}"), plain, promoted(operands)...)
end

"""
    lstm(z, weight[, bias]; reverse = false)

States h and memories c `[n, batch, width]` of an LSTM with zero initial states. `z [n, batch, 4 width]`: products of the inputs with
their weights; `weight [width, 4 width]` and `bias [4 width]`: recurrent weights; gates in the order i, f, g, o.
"""
lstm(z::AbstractArray, operands::AbstractArray...; reverse::Bool = false) = recurrent("lstm", (z, operands...), reverse)

"""
    gru(z, weight[, bias]; reverse = false)

States h `[n, batch, width]` of a GRU, as [`lstm`](@ref) with three gates in the order r, z, n.
"""
gru(z::AbstractArray, operands::AbstractArray...; reverse::Bool = false) = only(recurrent("gru", (z, operands...), reverse))

"""
    kalman_filter(transition, process, observation, noise, y, mean, covariance)

Means `[batch, n, d]`, covariances `[n, d, d]` and log-likelihoods `[batch, n]` of the Kalman filter.

`x[t] = transition x[t - 1] +` noise of covariance `process`, `y[t] = observation x[t] +` noise of covariance `noise`; `y [batch, n, m]`,
`mean [d]` and `covariance [d, d]` of the state before the first step.
"""
kalman_filter(operands::Vararg{AbstractArray,7}) = apply(named("\"kalman_filter\":null"), plain, promoted(operands)...)

"""
    log_partition(emissions, transitions; lengths)

ln Z of chains of tags: `emissions [batch, length, tags]`, `transitions [tags, tags]` from the first index to the
second; a length of each sequence.
"""
function log_partition(emissions::AbstractArray{<:Real,3}, transitions::AbstractMatrix{<:Real}; lengths = lengths_of(emissions))
    emissions, transitions = promoted((emissions, transitions))
    return only(apply(chain(lengths), plain, emissions, transitions))
end

lengths_of(emissions) = fill(size(emissions, 2), size(emissions, 1))
chain(lengths) = named("\"log_partition\":{\"lengths\":[$(join(lengths, ','))]}")
ChainRulesCore.@non_differentiable lengths_of(::Any)
ChainRulesCore.@non_differentiable chain(::Any)

"""
    marginals(emissions, transitions; lengths)

Probabilities of the tags `[batch, length, tags]`, with the operands of [`log_partition`](@ref).
"""
function marginals(emissions::AbstractArray{<:Real,3}, transitions::AbstractMatrix{<:Real}; lengths = lengths_of(emissions))
    emissions, transitions = promoted((emissions, transitions))
    cotangents = ones(eltype(emissions), size(emissions, 1))
    return only(apply(vjp(chain(lengths), (true,), (true, false)), plain, emissions, transitions, cotangents))
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

"""
    cross_entropy(logits, targets)

`-log_softmax(logits)[target]` of each row; `logits [n, classes]`, `targets [n]` from 1 to classes.
"""
cross_entropy(logits::AbstractMatrix, targets::AbstractVector{<:Integer}) =
    only(apply(named("\"cross_entropy\":null"), plain, logits, targets .- 1))
