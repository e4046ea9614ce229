# Arrays as DLPack tensors without copies; column-major order is expressed by strides.

const DTYPES = Dict{DataType,DLDataType}(
    Float64 => DLDataType(2, 64, 1), Float32 => DLDataType(2, 32, 1), Float16 => DLDataType(2, 16, 1),
    ComplexF64 => DLDataType(5, 128, 1), ComplexF32 => DLDataType(5, 64, 1),
    Int64 => DLDataType(0, 64, 1), Int32 => DLDataType(0, 32, 1), Int16 => DLDataType(0, 16, 1),
    Int8 => DLDataType(0, 8, 1), UInt64 => DLDataType(1, 64, 1), UInt32 => DLDataType(1, 32, 1),
    UInt16 => DLDataType(1, 16, 1), UInt8 => DLDataType(1, 8, 1), Bool => DLDataType(6, 8, 1),
)
const ELEMENTS = Dict{DLDataType,DataType}(dtype => type for (type, dtype) in DTYPES)

function dtype(type::DataType)
    found = get(DTYPES, type, nothing)
    found === nothing && throw(ArgumentError("there are no tensors of $type"))
    return found
end

# The array itself if it has strides, otherwise a copy.
strided(x::StridedArray) = x
strided(x::PermutedDimsArray{T,N,P,Q,<:StridedArray}) where {T,N,P,Q} = x
strided(x::Transpose{T,<:StridedMatrix{T}}) where {T} = PermutedDimsArray(parent(x), (2, 1))
strided(x::Adjoint{T,<:StridedMatrix{T}}) where {T<:Real} = PermutedDimsArray(parent(x), (2, 1))
strided(x::AbstractArray) = collect(x)

# Order of the axes: unchanged, or for a stack of matrices `[rows, columns, batch...]` that of the library,
# `[batch..., rows, columns]`, and for one of permutations `[n, batch...]` `[batch..., n]`.
@enum Order plain matrices

# Number of axes of an example: two of a matrix, one of a permutation.
axes_of(element) = element <: Integer ? 1 : 2

function in_order(x::AbstractArray, order::Order)
    own = axes_of(eltype(x))
    order == plain || ndims(x) <= own ? x : PermutedDimsArray(x, (own+1:ndims(x)..., 1:own...))
end

# An array with its DLPack description, which refers to the memory of `sizes` and `steps`.
struct Described
    array::AbstractArray
    sizes::Vector{Int64}
    steps::Vector{Int64}
    tensor::Base.RefValue{DLTensor}
end

function Described(x::AbstractArray, order::Order)
    x = in_order(strided(x), order)
    sizes, steps = collect(Int64, size(x)), collect(Int64, strides(x))
    data = Ptr{Cvoid}(Base.unsafe_convert(Ptr{eltype(x)}, x))
    tensor = DLTensor(data, DLDevice(1, 0), ndims(x), dtype(eltype(x)), pointer(sizes), pointer(steps), 0)
    return Described(x, sizes, steps, Ref(tensor))
end

pointers(all::Vector{Described}) = Ptr{DLTensor}[Base.unsafe_convert(Ptr{DLTensor}, x.tensor) for x in all]

# Conversion of shape and dtype to the order of the library and back.
function TensorMeta(x::AbstractArray, order::Order)
    sizes = size(in_order(x, order))
    shape = ntuple(i -> i <= length(sizes) ? Int64(sizes[i]) : Int64(0), Int(T4A_MAX_RANK))
    return TensorMeta(sizeof(TensorMeta), ndims(x), dtype(eltype(x)), shape)
end

function allocated(meta::TensorMeta, order::Order)
    shape, element = meta.shape[1:meta.rank], ELEMENTS[meta.dtype]
    own = axes_of(element)
    if order == matrices && meta.rank > own
        shape = (shape[end-own+1:end]..., shape[1:end-own]...)
    end
    return Array{element}(undef, shape...)
end
