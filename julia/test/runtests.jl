# Test vectors shared with the tests in Python, finite differences, and rules against each other.

using ChainRulesCore
using JSON
using LinearAlgebra
using Random
using T4A
using T4A: apply, matrices, plain
using Test

const VECTORS = JSON.parsefile(joinpath(@__DIR__, "..", "..", "capi", "tests", "vectors.json"))
const TYPES = Dict("float64" => Float64, "complex128" => ComplexF64, "int64" => Int64)

# Array of a test vector: elements in row-major order, complex numbers as pairs.
function array(x)
    type, shape = TYPES[x["dtype"]], Int.(x["shape"])
    data = type <: Complex ? [complex(p[1], p[2]) for p in x["data"]] : x["data"]
    dims = length(shape)
    whole = reshape(collect(type, data), reverse(shape)...)
    return dims < 2 ? whole : permutedims(whole, dims:-1:1)
end

inner(x, y) = real(sum(conj.(x) .* y))

@testset "vectors" begin
    for row in VECTORS
        @testset "$(row["name"])" begin
            op = Op(JSON.json(row["op"]))
            operands = map(array, row["operands"])
            want, cotangents = map(array, row["results"]), map(array, row["cotangents"])
            found, pullback = rrule(apply, op, plain, operands...)
            @test length(found) == length(want)
            @test all(isapprox(x, y; rtol = 1e-10, atol = 1e-10) for (x, y) in zip(found, want))
            # Arrays with negative strides are passed without a copy.
            views = [PermutedDimsArray(permutedims(x, ndims(x):-1:1), ndims(x):-1:1) for x in operands]
            @test all(isapprox(x, y; rtol = 1e-10, atol = 1e-10) for (x, y) in zip(apply(op, plain, views...), want))
            # Index results follow the others and have no cotangents.
            missing_ones = fill(NoTangent(), length(found) - length(cotangents))
            back = pullback(Tangent{typeof(found)}(cotangents..., missing_ones...))[4:end]
            for (x, y) in zip(back, row["vjp"])
                @test y === nothing ? x isa NoTangent : isapprox(x, array(y); rtol = 1e-9, atol = 1e-9)
            end
            # ⟨ȳ, J u⟩ = ⟨Jᵀ ȳ, u⟩.
            changes = [eltype(x) <: Integer ? NoTangent() : randn(eltype(x), size(x)...) for x in operands]
            primal, tangent = frule((NoTangent(), NoTangent(), NoTangent(), changes...), apply, op, plain, operands...)
            @test length(primal) == length(want)
            forward = sum(inner(c, tangent[i]) for (i, c) in enumerate(cotangents))
            backward = sum(inner(b, c) for (b, c) in zip(back, changes) if !(c isa NoTangent))
            @test forward ≈ backward rtol = 1e-8 atol = 1e-9
        end
    end
end

@testset "functions" begin
    Random.seed!(3)
    a, b = randn(3, 4), randn(4, 5)
    @test einsum("ij,jk->ik", a, b) ≈ a * b
    @test einsum([[1, 2], [2, 3], [3, 1]], a, b) ≈ (a * b)'
    @test einsum("ij,jk->ik", a, transpose(permutedims(b))) ≈ a * b
    @test einsum("ij,kj->ik", @view(a[end:-1:1, 1:2:4]), a[:, 1:2]) ≈ a[end:-1:1, 1:2:4] * a[:, 1:2]'
    best = [maximum(a[i, :] .+ b[:, k]) for i in 1:3, k in 1:5]
    @test einsum("ij,jk->ik", a, b; semiring = "max_plus") ≈ best
    stack = randn(4, 3, 2)
    u, s, vh = T4A.svd(stack)
    @test size(u) == (4, 3, 2) && size(s) == (3, 2) && size(vh) == (3, 3, 2)
    for i in 1:2
        @test u[:, :, i] * Diagonal(s[:, i]) * vh[:, :, i] ≈ stack[:, :, i]
    end
    q, r = T4A.qr(stack)
    @test all(q[:, :, i] * r[:, :, i] ≈ stack[:, :, i] for i in 1:2)
    square = a * a' + I
    @test T4A.inv(square) * square ≈ I
    @test only(T4A.det(square)) ≈ LinearAlgebra.det(square)
    @test T4A.cumsum(a; dims = 2) ≈ Base.cumsum(a; dims = 2)
    @test T4A.softmax(a; dims = 1) ≈ exp.(a) ./ sum(exp.(a); dims = 1)
    @test only(T4A.log_partition(zeros(1, 3, 2), zeros(2, 2))) ≈ log(8)
end

slices(x) = (x[:, :, i] for i in axes(x, 3))

@testset "functions of matrices" begin
    Random.seed!(4)
    for type in (Float64, ComplexF64)
        x, wide = randn(type, 3, 3, 2) .+ 4 .* Matrix(I, 3, 3), randn(type, 3, 4, 2)
        b, y = randn(type, 3, 2, 2), randn(type, 3)
        one, two = x[:, :, 1], x[:, :, 2]
        positive = cat(one * one', two * two'; dims = 3)
        product(x, y) = cat((p * q for (p, q) in zip(slices(x), slices(y)))...; dims = 3)
        adjoint_of(x) = cat((p' for p in slices(x))...; dims = 3)
        @test product(T4A.lq(wide)...) ≈ wide
        q, r, p = T4A.qr_pivoted(wide)
        @test all(q[:, :, i] * r[:, :, i] ≈ wide[:, p[:, i], i] for i in 1:2)
        l, u, p = T4A.lu(wide)
        @test all(l[:, :, i] * u[:, :, i] ≈ wide[p[:, i], :, i] for i in 1:2)
        packed, p = T4A.lu_factor(x)
        @test product(x, T4A.lu_solve(packed, p, b)) ≈ b
        @test product(adjoint_of(x), T4A.lu_solve(packed, p, b; adjoint = true)) ≈ b
        @test one * T4A.lu_solve(packed[:, :, 1], p[:, 1], y) ≈ y
        @test length(T4A.lu_factor(x; pivoting = "full")) == 3
        @test product(x, T4A.solve(x, b)) ≈ b && one * T4A.solve(one, y) ≈ y
        @test T4A.lstsq(x, b) ≈ T4A.solve(x, b) ≈ T4A.lstsq_min_norm(x, b)
        @test UpperTriangular(one)' * T4A.solve_triangular(one, y; upper = true, trans = "C") ≈ y
        e, v = T4A.eig(x)
        @test all(x[:, :, i] * v[:, :, i] ≈ v[:, :, i] * Diagonal(e[:, i]) for i in 1:2)
        @test T4A.eigvals(x) ≈ e
        root = T4A.hermitian_function(positive, 0.5)
        @test product(root, root) ≈ positive
        @test T4A.svd_function(x, 1) ≈ x && T4A.low_rank(x, 3) ≈ x && rank(T4A.low_rank(one, 1)) == 1
        @test T4A.hermitian_function(positive ./ 20, "exp") ≈ T4A.expm(positive ./ 20)
        z = T4A.sylvester(x, x, positive)
        @test product(x, z) .+ product(z, x) ≈ positive
        z = T4A.lyapunov(x, positive)
        @test product(x, z) .+ product(z, adjoint_of(x)) ≈ positive
        z = T4A.lyapunov_positive(positive, x)
        @test product(positive, z) .+ product(z, positive) ≈ x
        @test T4A.cholesky(positive; upper = true) ≈ adjoint_of(T4A.cholesky(positive))
        u, s, vh = T4A.svd(wide; full_matrices = true)
        @test size(u) == (3, 3, 2) && size(vh) == (4, 4, 2)
        @test size(T4A.qr(adjoint_of(wide); mode = "complete")[1]) == (4, 4, 2)
    end
    @test_throws ArgumentError T4A.qr(ones(2, 2); mode = "raw")
    @test_throws ArgumentError T4A.qr(ones(2, 2); side = "left")
    @test_throws ArgumentError T4A.svd(ones(2, 2); separable = true, broadening = 0.1)
    @test_throws ArgumentError T4A.hermitian_function(ones(2, 2), "sin")
    @test_throws ArgumentError T4A.low_rank(ones(2, 2))
    @test_throws ArgumentError T4A.lu_solve(Matrix(1.0I, 2, 2), [1, 1], ones(2))
    # At ties a loss of tied vectors is an error, with `separable` it is that of subspaces.
    tie = Matrix(Diagonal([2.0, 2.0, 1.0]))
    loss(cotangent; options...) = rrule(apply, T4A.operation(only(f for f in T4A.MATRIX_FUNCTIONS if f.name == :eigh), NamedTuple(options), false), matrices, tie)[2]((NoTangent(), cotangent))
    single = zeros(3, 3)
    single[1, 3] = 1
    @test_throws T4A.OperationError loss(single)
    @test all(isfinite, loss(single; separable = true)[4])
end

@testset "contractions without derivatives, scans, chains" begin
    a = [1.0 5.0; 3.0 0.0]
    value, indices = T4A.argmax_einsum("ij,jk->ik", a, a)
    @test value == [8 6; 4 8] && indices == Dict('j' => [2 1; 1 1])
    @test T4A.argmax_einsum([[1, 2], [2, 3], [1, 3]], a, a)[2] == Dict(2 => [2 1; 1 1])
    # Two labels, the last one varies fastest; none is attained.
    value, indices = T4A.argmax_einsum("ij->", a)
    @test value[] == 5 && indices['i'][] == 1 && indices['j'][] == 2
    @test T4A.argmax_einsum("ij->", fill(-Inf, 2, 2))[2]['i'][] == 0
    @test T4A.counting_einsum("ij->", ones(2, 3))[2][] == 6
    @test T4A.k_best_einsum("ij->", a; k = 3) == [5, 3, 1]
    @test T4A.cummin(a; dims = 2) == [1 1; 3 0]
    x, z = randn(2, 2, 3), randn(2, 1, 3)
    h = T4A.matrix_recurrence(x, z)
    @test h[:, :, 1] ≈ z[:, :, 1] && h[:, :, 3] ≈ x[:, :, 3] * h[:, :, 2] + z[:, :, 3]
    @test T4A.matrix_scan(x)[:, :, 3] ≈ x[:, :, 1] * x[:, :, 2] * x[:, :, 3]
    @test sum(T4A.marginals(randn(2, 3, 4), randn(4, 4)); dims = 3) ≈ ones(2, 3, 1)
    @test size(T4A.lstm(randn(3, 1, 8), randn(2, 8), randn(8))[2]) == (3, 1, 2)
    @test size(T4A.gru(randn(3, 1, 6), randn(2, 6))) == (3, 1, 2)
    means, covariances, logs = T4A.kalman_filter(ones(1, 1), zeros(1, 1), ones(1, 1), ones(1, 1), ones(1, 1, 1), zeros(1), ones(1, 1))
    @test means[] ≈ 0.5 && covariances[] ≈ 0.5 && logs[] ≈ -log(4pi) / 2 - 0.25
    @test T4A.cross_entropy(zeros(2, 4), [1, 4]) ≈ fill(log(4), 2)
end

@testset "errors" begin
    @test_throws T4A.OperationError T4A.inv(ones(2, 3))
    singular = cat([1.0 0; 0 1], ones(2, 2); dims = 3)
    error = try T4A.inv(singular) catch e e end
    @test error isa T4A.OperationError && error.status == T4A.T4A_SINGULAR && error.batch == 2
    @test_throws T4A.OperationError einsum("ij,jk->ik", ones(2, 3), ones(4, 5))
    @test_throws DimensionMismatch einsum("ijk->i", ones(2, 3))
    @test_throws ArgumentError einsum("ij,jk->ik", ones(2, 3))
    @test_throws T4A.OperationError Op("{}")
    @test_throws ArgumentError einsum("ij->ji", ones(BigFloat, 2, 2))
    @test_throws ArgumentError einsum("ij,jk->ik", ones(2, 3), ones(3, 2); optimize = [(0, 1)])
    major, minor = T4A.T4A_ABI_MAJOR, T4A.T4A_ABI_MINOR
    @test T4A.check_abi(major << 16 | minor + 1)
    for abi in (major << 16 | minor - 1, (major + 1) << 16 | minor)
        @test_throws ErrorException T4A.check_abi(abi)
    end
end

@testset "handles are released on any thread" begin
    tasks = [Threads.@spawn (for _ in 1:100; Op("{\"t4a\":1,\"op\":{\"softmax\":{\"axis\":0}}}"); T4A.contraction([[1]], [[3]], [1]); end) for _ in 1:4]
    foreach(wait, tasks)
    GC.gc()
    @test T4A.softmax([0.0, 0.0]) ≈ [0.5, 0.5]
end
