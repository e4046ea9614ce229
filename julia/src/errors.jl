"""
An operation that failed. `status` is one of the constants `T4A.T4A_ARGUMENT` …, `batch` the index of the matrix of
a batch that caused it, or `nothing`.
"""
struct OperationError <: Exception
    status::Int32
    text::String
    batch::Union{Nothing,Int}
end

Base.showerror(io::IO, error::OperationError) = print(io, "T4A.OperationError: ", error.text)

# Calls a function whose last parameter receives an error object, and throws the error.
function call(f, arguments...)
    place = Ref{Ptr{Cvoid}}(C_NULL)
    status = f(arguments..., place)
    status == T4A_OK && return nothing
    object = place[]
    text, batch = unsafe_string(t4a_error_text(object)), t4a_error_batch(object)
    t4a_error_free(object)
    throw(OperationError(status, text, batch < 0 ? nothing : Int(batch) + 1))
end
