# The derivative of an operation is an operation, so the two rules of `apply` serve all operations, to any order.
# Cotangents of complex numbers are dL/dRe + i dL/dIm in the library and in ChainRules.

ChainRulesCore.@non_differentiable Op(::Any)
ChainRulesCore.@non_differentiable contraction(::Any...)
ChainRulesCore.@non_differentiable jvp(::Any, ::Any)
ChainRulesCore.@non_differentiable vjp(::Any, ::Any, ::Any)
ChainRulesCore.@non_differentiable vjp_of_results(::Any, ::Any, ::Any)
ChainRulesCore.@non_differentiable results(::Any, ::Any, ::Any)

is_float(x::AbstractArray) = eltype(x) <: Union{AbstractFloat,Complex}

# Converts a derivative to the element type of its array.
like(x::AbstractArray, derivative) = convert(AbstractArray{eltype(x)}, derivative)

function ChainRulesCore.frule((_, _, _, changes...), ::typeof(apply), op::Op, order::Order, arrays::AbstractArray...)
    changes = map(unthunk, changes)
    moving = map(change -> !(change isa AbstractZero), changes)
    any(moving) || return apply(op, order, arrays...), ZeroTangent()
    tangents = (like(x, change) for (x, change, moves) in zip(arrays, changes, moving) if moves)
    all = apply(jvp(op, moving), order, arrays..., tangents...)
    # Results, their tangents, and indices, which have no tangents.
    floats = length(all) - length(results(op, order, arrays))
    indices = all[2floats+1:end]
    primal = (all[1:floats]..., indices...)
    return primal, Tangent{typeof(primal)}(all[floats+1:2floats]..., map(_ -> NoTangent(), indices)...)
end

function ChainRulesCore.rrule(::typeof(apply), op::Op, order::Order, arrays::AbstractArray...)
    primal = apply(op, order, arrays...)
    function pullback(cotangent)
        cotangent isa AbstractZero && return (NoTangent(), NoTangent(), NoTangent(), map(_ -> ZeroTangent(), arrays)...)
        own = Tuple(unthunk(cotangent[i]) for i in eachindex(primal) if is_float(primal[i]))
        given = map(x -> !(x isa AbstractZero), own)
        wanted = map(is_float, arrays)
        if !any(given)
            return (NoTangent(), NoTangent(), NoTangent(), map(_ -> ZeroTangent(), arrays)...)
        end
        sent = Tuple(like(primal[i], x) for (i, x) in enumerate(own) if given[i])
        short = vjp_of_results(op, given, wanted)
        held = short === nothing ? () : Tuple(y for y in primal if is_float(y))
        found = apply(short === nothing ? vjp(op, given, wanted) : short, order, arrays..., held..., sent...)
        places = Base.cumsum(collect(wanted))
        back = ntuple(length(arrays)) do i
            wanted[i] ? ProjectTo(arrays[i])(found[places[i]]) : NoTangent()
        end
        return (NoTangent(), NoTangent(), NoTangent(), back...)
    end
    return primal, pullback
end
