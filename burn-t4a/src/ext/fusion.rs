//! Operations on fused backends, `Fusion<B>`: they run on the backend `B` within.
//!
//! An operation launches the pending operations on its operands, without waiting for the device, and its results enter
//! the stream as new tensors: Burn fuses the operations before and after it, not across it.

use std::convert::Infallible;

use burn_backend::{DType, Shape, TensorMetadata};
use burn_fusion::client::GlobalFusionClient;
use burn_fusion::stream::OperationStreams;
use burn_fusion::{Fusion, FusionBackend, FusionTensor, NoOp};
use burn_ir::{InitOperationIr, OperationIr};
use t4a_einsum::EinsumError;

use super::operation::{
    BlockCopies, BlockProducts, Cotangents, Cumulation, Dual, Keep, Kernel, MatrixFactors,
    MatrixKernel, Meta, Operand, Operation, Operations, Outcome, PairParts, Reverse, Semiring,
    Value,
};
use super::primitive::{Bools, Floats, Indices, SemiringArray};

/// Tensor of the stream with this memory.
fn entered<B: FusionBackend>(
    handle: B::Handle,
    shape: Shape,
    dtype: DType,
    device: &B::Device,
) -> FusionTensor<B::FusionRuntime> {
    let client = GlobalFusionClient::<B::FusionRuntime>::load(device);
    let init = InitOperationIr::create(shape, dtype, || client.register_tensor_handle(handle));
    let streams = OperationStreams::default();
    let mut results = client.register(streams, OperationIr::Init(init), NoOp::<B>::new());
    results.pop().unwrap_or_else(|| unreachable!("an initialisation has one result"))
}

fn inner_floats<B: FusionBackend>(x: &Floats<Fusion<B>>) -> Floats<B> {
    Floats(x.0.client.resolve_tensor_float::<B>(x.0.clone()))
}

fn inner_indices<B: FusionBackend>(x: &Indices<Fusion<B>>) -> Indices<B> {
    Indices(x.0.client.resolve_tensor_int::<B>(x.0.clone()))
}

fn inner_bools<B: FusionBackend>(x: &Bools<Fusion<B>>) -> Bools<B> {
    Bools(x.0.client.resolve_tensor_bool::<B>(x.0.clone()))
}

fn outer_floats<B: FusionBackend>(x: Floats<B>) -> Floats<Fusion<B>> {
    let (shape, dtype, device) = (x.0.shape(), x.0.dtype(), B::float_device(&x.0));
    Floats(entered::<B>(B::float_tensor_handle(x.0), shape, dtype, &device))
}

fn outer_indices<B: FusionBackend>(x: Indices<B>) -> Indices<Fusion<B>> {
    let (shape, dtype, device) = (x.0.shape(), x.0.dtype(), B::int_device(&x.0));
    Indices(entered::<B>(B::int_tensor_handle(x.0), shape, dtype, &device))
}

fn outer_bools<B: FusionBackend>(x: Bools<B>) -> Bools<Fusion<B>> {
    let (shape, dtype, device) = (x.0.shape(), x.0.dtype(), B::bool_device(&x.0));
    Bools(entered::<B>(B::bool_tensor_handle(x.0), shape, dtype, &device))
}

fn inner<B: Operations + FusionBackend>(x: &Operand<Fusion<B>>) -> Operand<B> {
    match x {
        Value::Float(x) => Value::Float(inner_floats(x)),
        Value::Integers(x) => Value::Integers(inner_indices(x)),
        Value::Flags(x) => Value::Flags(inner_bools(x)),
    }
}

fn outer<B: Operations + FusionBackend>(x: Operand<B>) -> Operand<Fusion<B>> {
    x.map(outer_floats, outer_indices, outer_bools)
}

fn inner_dual<B: Operations + FusionBackend>(x: &Dual<Floats<Fusion<B>>>) -> Dual<Floats<B>> {
    Dual { value: inner_floats(&x.value), tangent: x.tangent.as_ref().map(inner_floats) }
}

fn outer_dual<B: Operations + FusionBackend>(x: Dual<Floats<B>>) -> Dual<Floats<Fusion<B>>> {
    Dual { value: outer_floats(x.value), tangent: x.tangent.map(outer_floats) }
}

impl<B: Operations + FusionBackend> Operations for Fusion<B> {
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let inputs: Vec<Operand<B>> = inputs.iter().map(inner).collect();
        let out = B::run(op, &inputs, tracked)?;
        let Ok(out) = out.try_map(|x| Ok::<_, Infallible>(outer(x)), |x| Ok(outer_floats(x)));
        Ok(out)
    }

    fn keep<O: Operation>(op: &O, tracked: &[bool]) -> Keep {
        B::keep(op, tracked)
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        let Ok(kept) =
            reverse.kept.try_map(|x| Ok::<_, Infallible>(inner(x)), |x| Ok(inner_floats(x)));
        let given = |all: &[Option<Floats<Self>>]| -> Vec<Option<Floats<B>>> {
            all.iter().map(|x| x.as_ref().map(inner_floats)).collect()
        };
        let (cotangents, hidden) = (given(reverse.cotangents), given(reverse.hidden));
        let wanted = reverse.wanted;
        let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted };
        let cotangents = B::vjp(op, &reverse)?;
        Ok(cotangents.into_iter().map(|x| x.map(outer_floats)).collect())
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        let below = |x: &Value<Dual<Floats<Self>>>| -> Value<Dual<Floats<B>>> {
            match x {
                Value::Float(x) => Value::Float(inner_dual(x)),
                Value::Integers(x) => Value::Integers(inner_indices(x)),
                Value::Flags(x) => Value::Flags(inner_bools(x)),
            }
        };
        let inputs: Vec<Value<Dual<Floats<B>>>> = inputs.iter().map(below).collect();
        let above = |x: Value<Dual<Floats<B>>>| {
            Ok::<_, Infallible>(x.map(outer_dual, outer_indices, outer_bools))
        };
        let Ok(out) = B::jvp(op, &inputs, tracked)?.try_map(above, |x| Ok(outer_dual(x)));
        Ok(out)
    }

    fn array_matmul(a: &Floats<Self>, b: &Floats<Self>) -> Floats<Self> {
        outer_floats(B::array_matmul(&inner_floats(a), &inner_floats(b)))
    }

    fn array_extreme(x: &Floats<Self>, axis: usize, least: bool) -> Floats<Self> {
        outer_floats(B::array_extreme(&inner_floats(x), axis, least))
    }

    fn array_place(x: &Floats<Self>, axis: usize, least: bool) -> Indices<Self> {
        outer_indices(B::array_place(&inner_floats(x), axis, least))
    }

    fn array_cumsum(x: &Floats<Self>, axis: usize) -> Floats<Self> {
        outer_floats(B::array_cumsum(&inner_floats(x), axis))
    }

    fn array_recurrence(
        a: &Floats<Self>,
        b: &Floats<Self>,
        first: Option<&Floats<Self>>,
        axis: usize,
        reverse: bool,
    ) -> Option<Floats<Self>> {
        let (a, b, first) = (inner_floats(a), inner_floats(b), first.map(inner_floats));
        B::array_recurrence(&a, &b, first.as_ref(), axis, reverse).map(outer_floats)
    }

    fn array_complex_recurrence(
        a: [&Floats<Self>; 2],
        b: [&Floats<Self>; 2],
        first: Option<[&Floats<Self>; 2]>,
        axis: usize,
        reverse: bool,
    ) -> Option<[Floats<Self>; 2]> {
        let pair = |x: [&Floats<Self>; 2]| x.map(inner_floats);
        let (a, b, first) = (pair(a), pair(b), first.map(pair));
        let [a, b, first] = [Some(&a), Some(&b), first.as_ref()].map(|x| x.map(|x| x.each_ref()));
        let h = B::array_complex_recurrence(a?, b?, first, axis, reverse)?;
        Some(h.map(outer_floats))
    }

    fn array_cumulative(
        x: &Floats<Self>,
        of: Cumulation,
        axis: usize,
        reverse: bool,
    ) -> Option<Floats<Self>> {
        B::array_cumulative(&inner_floats(x), of, axis, reverse).map(outer_floats)
    }

    fn array_semiring_matmul(
        a: &Floats<Self>,
        b: &Floats<Self>,
        over: Semiring,
        places: bool,
    ) -> Option<(Floats<Self>, Option<Indices<Self>>)> {
        let (a, b) = (inner_floats(a), inner_floats(b));
        let (c, places) = B::array_semiring_matmul(&a, &b, over, places)?;
        Some((outer_floats(c), places.map(outer_indices)))
    }

    fn array_semiring_cotangents(
        a: &Floats<Self>,
        b: &Floats<Self>,
        over: Semiring,
        g: &Floats<Self>,
    ) -> Option<[Floats<Self>; 2]> {
        let [a, b, g] = [a, b, g].map(inner_floats);
        Some(B::array_semiring_cotangents(&a, &b, over, &g)?.map(outer_floats))
    }

    fn array_block_products(
        a: &Floats<Self>,
        b: &Floats<Self>,
        of: &BlockProducts,
    ) -> Option<Floats<Self>> {
        B::array_block_products(&inner_floats(a), &inner_floats(b), of).map(outer_floats)
    }

    fn has_complex_products(x: &Floats<Self>) -> bool {
        B::has_complex_products(&inner_floats(x))
    }

    fn array_complex_matmul(
        a: PairParts<'_, Floats<Self>>,
        b: PairParts<'_, Floats<Self>>,
        conj: [bool; 2],
    ) -> Option<[Floats<Self>; 2]> {
        let [a, b] = [a, b].map(|parts| parts.map(|x| x.map(inner_floats)));
        let [a, b] = [&a, &b].map(|parts| parts.each_ref().map(Option::as_ref));
        B::array_complex_matmul(a, b, conj).map(|c| c.map(outer_floats))
    }

    fn array_complex_block_products(
        a: PairParts<'_, Floats<Self>>,
        b: PairParts<'_, Floats<Self>>,
        conj: [bool; 2],
        of: &BlockProducts,
    ) -> Option<[Floats<Self>; 2]> {
        let [a, b] = [a, b].map(|parts| parts.map(|x| x.map(inner_floats)));
        let [a, b] = [&a, &b].map(|parts| parts.each_ref().map(Option::as_ref));
        B::array_complex_block_products(a, b, conj, of).map(|c| c.map(outer_floats))
    }

    fn array_block_copies(x: &Floats<Self>, of: &BlockCopies) -> Option<Floats<Self>> {
        B::array_block_copies(&inner_floats(x), of).map(outer_floats)
    }

    fn has_kernel(kernel: Kernel, inputs: &[Meta]) -> bool {
        B::has_kernel(kernel, inputs)
    }

    fn array_matrix_kernel(
        a: &Floats<Self>,
        of: MatrixKernel,
        b: Option<&Floats<Self>>,
    ) -> Option<MatrixFactors<Floats<Self>>> {
        let (a, b) = (inner_floats(a), b.map(inner_floats));
        let found = B::array_matrix_kernel(&a, of, b.as_ref())?;
        Some(MatrixFactors {
            factors: found.factors.into_iter().map(outer_floats).collect(),
            rows: found.rows.map(outer_indices),
            status: outer_indices(found.status),
        })
    }

    fn has_element_product(a: &SemiringArray<Self>) -> bool {
        B::has_element_product(&a.on(inner_floats, inner_indices))
    }

    fn element_product(
        a: &SemiringArray<Self>,
        b: &SemiringArray<Self>,
    ) -> Result<SemiringArray<Self>, EinsumError> {
        let [a, b] = [a, b].map(|x| x.on(inner_floats, inner_indices));
        let c = B::element_product(&a, &b)?;
        Ok(c.on(|x| outer_floats(x.clone()), |x| outer_indices(x.clone())))
    }
}
