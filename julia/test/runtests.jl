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
            back = pullback(Tangent{typeof(found)}(cotangents...))[4:end]
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
