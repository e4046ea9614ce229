# Written by interface.py from t4a.h. Not edited by hand.

const T4A_ABI_MAJOR = UInt32(1)
const T4A_ABI_MINOR = UInt32(3)
const T4A_WRITABLE = UInt32(1)
const T4A_COLUMN_MAJOR = UInt32(2)
const T4A_STRIDED = UInt32(4)
const T4A_MAX_RANK = UInt32(64)
const T4A_OK = Int32(0)
const T4A_ARGUMENT = Int32(1)
const T4A_SHAPE = Int32(2)
const T4A_DTYPE = Int32(3)
const T4A_SINGULAR = Int32(4)
const T4A_GAUGE = Int32(5)
const T4A_MEMORY = Int32(6)
const T4A_UNSUPPORTED = Int32(7)
const T4A_INTERNAL = Int32(255)

struct DLPackVersion
    major::UInt32
    minor::UInt32
end

struct DLDevice
    device_type::Int32
    device_id::Int32
end

struct DLDataType
    code::UInt8
    bits::UInt8
    lanes::UInt16
end

struct DLTensor
    data::Ptr{Cvoid}
    device::DLDevice
    ndim::Int32
    dtype::DLDataType
    shape::Ptr{Int64}
    strides::Ptr{Int64}
    byte_offset::UInt64
end

struct ManagedTensor
    version::DLPackVersion
    manager_ctx::Ptr{Cvoid}
    deleter::Ptr{Cvoid}
    flags::UInt64
    dl_tensor::DLTensor
end

struct Operand
    size::Csize_t
    labels::Ptr{Int64}
    shape::Ptr{Int64}
    rank::Int32
end

struct EinsumOptions
    size::Csize_t
    semiring::Ptr{UInt8}
    memory::Csize_t
    dtype::DLDataType
    optimize::Ptr{UInt8}
end

struct TensorMeta
    size::Csize_t
    rank::Int32
    dtype::DLDataType
    shape::NTuple{Int(T4A_MAX_RANK), Int64}
end

t4a_abi() =
    @ccall libt4a.t4a_abi()::UInt32

t4a_version() =
    @ccall libt4a.t4a_version()::Cstring

t4a_set_threads(count, error) =
    @ccall libt4a.t4a_set_threads(count::Int32, error::Ptr{Ptr{Cvoid}})::Int32

t4a_threads() =
    @ccall libt4a.t4a_threads()::Int32

t4a_error_status(error) =
    @ccall libt4a.t4a_error_status(error::Ptr{Cvoid})::Int32

t4a_error_text(error) =
    @ccall libt4a.t4a_error_text(error::Ptr{Cvoid})::Cstring

t4a_error_batch(error) =
    @ccall libt4a.t4a_error_batch(error::Ptr{Cvoid})::Int64

t4a_error_free(error) =
    @ccall libt4a.t4a_error_free(error::Ptr{Cvoid})::Cvoid

t4a_tensor_take(tensor, out, error) =
    @ccall libt4a.t4a_tensor_take(tensor::Ptr{ManagedTensor}, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_tensor_copy(tensor, out, error) =
    @ccall libt4a.t4a_tensor_copy(tensor::Ptr{DLTensor}, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_tensor_give(tensor, flags, out, error) =
    @ccall libt4a.t4a_tensor_give(tensor::Ptr{Cvoid}, flags::UInt32, out::Ptr{Ptr{ManagedTensor}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_tensor_retain(tensor) =
    @ccall libt4a.t4a_tensor_retain(tensor::Ptr{Cvoid})::Ptr{Cvoid}

t4a_tensor_release(tensor) =
    @ccall libt4a.t4a_tensor_release(tensor::Ptr{Cvoid})::Cvoid

t4a_tensor_view(tensor) =
    @ccall libt4a.t4a_tensor_view(tensor::Ptr{Cvoid})::Ptr{DLTensor}

t4a_op_einsum(operands, count, result, result_rank, options, out, error) =
    @ccall libt4a.t4a_op_einsum(operands::Ptr{Operand}, count::Csize_t, result::Ptr{Int64}, result_rank::Int32, options::Ptr{EinsumOptions}, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_parse(text, length, out, error) =
    @ccall libt4a.t4a_op_parse(text::Ptr{UInt8}, length::Csize_t, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_text(op, buffer, room) =
    @ccall libt4a.t4a_op_text(op::Ptr{Cvoid}, buffer::Ptr{UInt8}, room::Csize_t)::Csize_t

t4a_op_jvp(op, moving, operands, out, error) =
    @ccall libt4a.t4a_op_jvp(op::Ptr{Cvoid}, moving::Ptr{UInt8}, operands::Csize_t, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_vjp(op, given, results, wanted, operands, out, error) =
    @ccall libt4a.t4a_op_vjp(op::Ptr{Cvoid}, given::Ptr{UInt8}, results::Csize_t, wanted::Ptr{UInt8}, operands::Csize_t, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_vjp_of_results(op, given, results, wanted, operands, out, error) =
    @ccall libt4a.t4a_op_vjp_of_results(op::Ptr{Cvoid}, given::Ptr{UInt8}, results::Csize_t, wanted::Ptr{UInt8}, operands::Csize_t, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_batch(op, size, differ, operands, out, error) =
    @ccall libt4a.t4a_op_batch(op::Ptr{Cvoid}, size::Csize_t, differ::Ptr{UInt8}, operands::Csize_t, out::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_results(op, operands, count, out, room, results, error) =
    @ccall libt4a.t4a_op_results(op::Ptr{Cvoid}, operands::Ptr{TensorMeta}, count::Csize_t, out::Ptr{TensorMeta}, room::Csize_t, results::Ptr{Csize_t}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_op_free(op) =
    @ccall libt4a.t4a_op_free(op::Ptr{Cvoid})::Cvoid

t4a_run(op, operands, count, out, room, results, error) =
    @ccall libt4a.t4a_run(op::Ptr{Cvoid}, operands::Ptr{Ptr{DLTensor}}, count::Csize_t, out::Ptr{Ptr{Cvoid}}, room::Csize_t, results::Ptr{Csize_t}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_run_into(op, operands, count, out, results, error) =
    @ccall libt4a.t4a_run_into(op::Ptr{Cvoid}, operands::Ptr{Ptr{DLTensor}}, count::Csize_t, out::Ptr{Ptr{DLTensor}}, results::Csize_t, error::Ptr{Ptr{Cvoid}})::Int32

t4a_run_saved(op, operands, count, wanted, out, room, results, saved, error) =
    @ccall libt4a.t4a_run_saved(op::Ptr{Cvoid}, operands::Ptr{Ptr{Cvoid}}, count::Csize_t, wanted::Ptr{UInt8}, out::Ptr{Ptr{Cvoid}}, room::Csize_t, results::Ptr{Csize_t}, saved::Ptr{Ptr{Cvoid}}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_saved_vjp(saved, cotangents, count, out, room, results, error) =
    @ccall libt4a.t4a_saved_vjp(saved::Ptr{Cvoid}, cotangents::Ptr{Ptr{DLTensor}}, count::Csize_t, out::Ptr{Ptr{Cvoid}}, room::Csize_t, results::Ptr{Csize_t}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_saved_free(saved) =
    @ccall libt4a.t4a_saved_free(saved::Ptr{Cvoid})::Cvoid

t4a_ground_states(problem, length, progress, context, out, room, results, error) =
    @ccall libt4a.t4a_ground_states(problem::Ptr{UInt8}, length::Csize_t, progress::Ptr{Cvoid}, context::Ptr{Cvoid}, out::Ptr{Ptr{Cvoid}}, room::Csize_t, results::Ptr{Csize_t}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_cross_interpolation(sizes, sites, is_complex, values, context, options, length, out, room, results, error) =
    @ccall libt4a.t4a_cross_interpolation(sizes::Ptr{Int64}, sites::Csize_t, is_complex::Int32, values::Ptr{Cvoid}, context::Ptr{Cvoid}, options::Ptr{UInt8}, length::Csize_t, out::Ptr{Ptr{Cvoid}}, room::Csize_t, results::Ptr{Csize_t}, error::Ptr{Ptr{Cvoid}})::Int32

t4a_xla_execute(call_frame) =
    @ccall libt4a.t4a_xla_execute(call_frame::Ptr{Cvoid})::Ptr{Cvoid}

t4a_python(symbols) =
    @ccall libt4a.t4a_python(symbols::Ptr{Cvoid})::Ptr{Cvoid}

t4a_capsule_destructor(is_valid, pointer) =
    @ccall libt4a.t4a_capsule_destructor(is_valid::Ptr{Cvoid}, pointer::Ptr{Cvoid})::Ptr{Cvoid}
