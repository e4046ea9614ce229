"""
    Op(text)

An operation as a value: `Op("{\\"t4a\\":1,\\"op\\":{\\"softmax\\":{\\"axis\\":1}}}")`. Axes in the text count from 0.
"""
mutable struct Op
    handle::Ptr{Cvoid}
    function Op(handle::Ptr{Cvoid})
        # A finalizer may run on any thread; handles may be released on any thread.
        return finalizer(op -> t4a_op_free(op.handle), new(handle))
    end
end

function made(f, arguments...)
    place = Ref{Ptr{Cvoid}}(C_NULL)
    call(f, arguments..., place)
    return Op(place[])
end

Op(text::AbstractString) = parsed(String(text))

# Cache of parsed operations by text.
const PARSED = Dict{String,Op}()
const PARSED_LOCK = ReentrantLock()

function parsed(text::String)
    lock(PARSED_LOCK) do
        get!(PARSED, text) do
            GC.@preserve text made(t4a_op_parse, pointer(text), sizeof(text))
        end
    end
end

"""
    text(op)

JSON with a version; equal operations have equal texts.
"""
function text(op::Op)
    buffer = Vector{UInt8}(undef, GC.@preserve(op, t4a_op_text(op.handle, C_NULL, 0)) + 1)
    GC.@preserve op buffer t4a_op_text(op.handle, pointer(buffer), sizeof(buffer))
    # Without the terminating zero.
    return String(buffer[1:end-1])
end

Base.show(io::IO, op::Op) = print(io, "Op(", text(op), ")")
Base.:(==)(x::Op, y::Op) = text(x) == text(y)
Base.hash(op::Op, seed::UInt) = hash(text(op), seed)

"""
    order_text(optimize)

Text of a contraction order: a name, or steps with positions from 1 in the list of the remaining arrays.
"""
order_text(name::Union{AbstractString,Symbol}) = String(name)
function order_text(steps)
    all(i -> i >= 1, Iterators.flatten(steps)) || throw(ArgumentError("contraction path $steps: positions start at 1"))
    return "[" * join(("[" * join((Int(i) - 1 for i in step), ',') * "]" for step in steps), ',') * "]"
end

"""
    contraction(labels, shapes, result; semiring, memory, optimize, element)

A contraction: an integer label for each axis of each operand and of the result.
"""
function contraction(labels, shapes, result; semiring = "standard", memory = 0, optimize = "greedy", element = Float64)
    names = [collect(Int64, x) for x in labels]
    sizes = [collect(Int64, x) for x in shapes]
    target = collect(Int64, result)
    for (name, shape) in zip(names, sizes)
        length(name) == length(shape) || throw(DimensionMismatch("labels $name of an array of size $(Tuple(shape))"))
    end
    semiring, order = String(semiring), order_text(optimize)
    operands = Operand[Operand(sizeof(Operand), pointer(n), pointer(s), length(n)) for (n, s) in zip(names, sizes)]
    options = Ref(EinsumOptions(sizeof(EinsumOptions), pointer(semiring), memory, dtype(element), pointer(order)))
    return GC.@preserve names sizes target semiring order operands options made(
        t4a_op_einsum, pointer(operands), length(operands), pointer(target), length(target), options,
    )
end

"""
    jvp(op, moving)

Operands, tangents of those that move → results, tangents of all results, indices.
"""
function jvp(op::Op, moving)
    flags = collect(UInt8, moving)
    return GC.@preserve op flags made(t4a_op_jvp, op.handle, pointer(flags), length(flags))
end

"""
    vjp(op, given, wanted)

Operands, cotangents of the results given → cotangents of the operands wanted.
"""
function vjp(op::Op, given, wanted)
    from, to = collect(UInt8, given), collect(UInt8, wanted)
    return GC.@preserve op from to made(
        t4a_op_vjp, op.handle, pointer(from), length(from), pointer(to), length(to),
    )
end

"""
    vjp_of_results(op, given, wanted)

Operands, all results of floats, cotangents of the results given → cotangents of the operands wanted: the results are not
computed again. `nothing` if the rule reads no results, or more than operands and results.
"""
function vjp_of_results(op::Op, given, wanted)
    from, to = collect(UInt8, given), collect(UInt8, wanted)
    try
        return GC.@preserve op from to made(
            t4a_op_vjp_of_results, op.handle, pointer(from), length(from), pointer(to), length(to),
        )
    catch failure
        failure isa OperationError && failure.status == T4A_UNSUPPORTED || rethrow()
        return nothing
    end
end

# Shapes and dtypes of the results.
function results(op::Op, order::Order, arrays)
    metas, count = TensorMeta[TensorMeta(x, order) for x in arrays], Ref{Csize_t}(0)
    GC.@preserve op metas call(t4a_op_results, op.handle, pointer(metas), length(metas), C_NULL, 0, count)
    found = Vector{TensorMeta}(undef, count[])
    GC.@preserve op metas found call(
        t4a_op_results, op.handle, pointer(metas), length(metas), pointer(found), length(found), count,
    )
    return found
end

"""
    apply(op, order, arrays...)

Results of an operation, a tuple of new arrays. `order` is `T4A.plain`, or `T4A.matrices` for stacks of matrices with
the batch behind.
"""
function apply(op::Op, order::Order, arrays::AbstractArray...)
    made = Tuple(allocated(meta, order) for meta in results(op, order, arrays))
    operands, places = Described[Described(x, order) for x in arrays], Described[Described(x, order) for x in made]
    # The descriptions refer to the arrays, which must be preserved until the call returns.
    GC.@preserve op operands places begin
        inputs, outputs = pointers(operands), pointers(places)
        GC.@preserve inputs outputs call(
            t4a_run_into, op.handle, pointer(inputs), length(inputs), pointer(outputs), length(outputs),
        )
    end
    return made
end
