//! The trait [`Operations`]: runs operations that are values ([`Operation`]) on Burn backends.
//!
//! An [`Operation`] defines its result shapes, portable definition, derivative rules and engine kernels. A backend
//! implements their evaluation without code for individual operations.
//!
//! A user-defined operation needs a name, result shapes, a portable definition and a vjp. Tangents are derived from
//! these on every backend; second derivatives are available on nested tapes.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn::backend::Autodiff;")]
#![cfg_attr(burn_line = "0.21", doc = "use burn::tensor::Tensor;")]
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::operation};")]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::operation;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//! use operation::{
//!     Array, Cotangents, Meta, Operation, Outcome, Reverse, TensorError, Value, apply, call, call_jvp,
//!     float,
//! };
//!
//! /// `ln(1 + eˣ)`, whose derivative is `1/(1 + e⁻ˣ)`.
//! #[derive(Clone, Debug)]
//! struct Softplus;
//!
//! impl Operation for Softplus {
//!     type Error = TensorError;
//!
//!     fn name(&self) -> &'static str {
//!         "softplus"
//!     }
//!     fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
//!         Ok(vec![inputs[0].clone()])
//!     }
//!     fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>, TensorError> {
//!         Ok(inputs[0].float().exp().shift(1.0).ln().into())
//!     }
//!     fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
//!         let x = reverse.kept.float(0);
//!         Ok(vec![Some(reverse.cotangent().div(&x.neg().exp().shift(1.0)))])
//!     }
//! }
//!
#![cfg_attr(burn_line = "0.21", doc = "type Vector = Tensor<Autodiff<BurnT4a>, 1>;")]
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "type Vector = Tensor<1>;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex().autodiff();")]
//! let x = Vector::from_floats([0.0, 100.0], &device).require_grad();
//! let y: Vector = call(&Softplus, &[float(x.clone())])?;
//! let slope = x.grad(&y.sum().backward()).unwrap();
//! slope.into_data().assert_eq(&[0.5f32, 1.0].into(), false);
//!
//! let (x, dx) = (Vector::zeros([1], &device), Vector::ones([1], &device));
//! let (_, dy): (_, Vector) = call_jvp(&Softplus, &[float(x)], &[Some(float(dx))])?;
//! dy.into_data().assert_eq(&[0.5f32].into(), false);
//!
//! // An operation may have several results.
//! let results = apply(&Softplus, &[float(Vector::zeros([1], &device))])?.results;
//! let y: Vector = results[0].tensor()?;
//! y.into_data().assert_approx_eq::<f32>(&[2f32.ln()].into(), Default::default());
//! # Ok::<(), TensorError>(())
//! ```

use burn_backend::Backend;
pub use t4a_diff::array::{
    BlockCopies, BlockCopy, BlockProducts, BlockSum, BlockTerm, Cumulation, DeviceTables,
    FlatMatrix, Kernel, MatrixFactors, MatrixKernel, PairParts, Semiring,
};
use t4a_diff::checked_results;
pub use t4a_diff::{
    Array, Cotangents, Dual, Eager, Flags, Integers, Keep, Kind, Meta, OnBatch, Operation, Outcome,
    Reverse, Value,
};
use t4a_einsum::EinsumError;
use t4a_tensor::DType;
pub use t4a_tensor::TensorError;
use t4a_tensor::route::{Path, Policy, Reason, Route, policy};

use super::primitive::{Floats, Indices, SemiringArray};
pub use super::user::{call, call_jvp, float, route};
#[cfg(burn_line = "0.22")]
pub use super::user::{flags, integers};

/// Operand of an operation on backend `B`.
pub type Operand<B> = Value<Floats<B>>;

/// A derivative of an operation as one operation; the operands of [`Operations::run_derivative`] depend on it.
#[derive(Debug)]
pub enum DerivativeOf<'a, O> {
    /// Operands, then tangents of those for which `moving` is true; results, then their tangents.
    Jvp {
        /// The differentiated operation.
        op: &'a O,
        /// For each operand, true if it has a tangent.
        moving: &'a [bool],
    },
    /// Operands, then cotangents of the results for which `given` is true; cotangents of the `wanted` operands.
    Vjp {
        /// The differentiated operation.
        op: &'a O,
        /// For each result, true if it has a cotangent.
        given: &'a [bool],
        /// For each operand, true if its cotangent is a result.
        wanted: &'a [bool],
    },
}

/// Result of [`Operations::run_derivative`].
pub type DerivativeOutcome<O, A> = Option<Result<Outcome<Floats<A>>, <O as Operation>::Error>>;

/// Evaluation of operations on a backend.
///
/// By default operations run by their portable definitions in Burn's own operations, so another backend needs only
/// `impl Operations for MyBackend {}`. The engine runs kernels. `Autodiff<B>` records one node whose rule is the
/// vjp on `B`; its own vjp is the portable one, recorded by Burn, and therefore differentiable again.
#[cfg_attr(
    burn_line = "0.21",
    diagnostic::on_unimplemented(
        message = "`{Self}` does not say how it runs burn-t4a's operations",
        label = "not a backend with `Operations`",
        note = "code that is generic over its backend asks for it: `B: Operations` in the place of `B: Backend`",
        note = "a backend of your own: `impl burn_t4a::ext::operation::Operations for MyBackend {{}}`",
        note = "Flex needs burn-t4a's feature `flex`, NdArray `ndarray`, backends of burn-router `router`, Wgpu and Cuda `cubecl`, and `fusion` with Burn's default features"
    )
)]
#[cfg_attr(
    burn_line = "0.22",
    diagnostic::on_unimplemented(
        message = "`{Self}` does not say how it runs burn-t4a's operations",
        label = "not a backend with `Operations`",
        note = "a backend of your own: `impl burn_t4a_022_ext::operation::Operations for MyBackend {{}}`"
    )
)]
pub trait Operations: Backend {
    /// Returns true if tensors of this backend are engine tensors. On other backends an operation runs by its
    /// definition in the operations of the backend, or in the engine through host data, which
    /// [`Policy::RejectFallback`] rejects.
    ///
    /// [`Policy::RejectFallback`]: crate::route::Policy::RejectFallback
    fn is_engine() -> bool {
        false
    }

    /// Computes the results from checked operands. `tracked` marks operands whose derivative will be computed.
    ///
    /// # Errors
    /// Errors of the operation; `RouteRejected` under [`Policy::RejectFallback`].
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        by_definition(op, inputs, tracked)
    }

    /// Route of a value: the kernel that computed it, with the reason for a fallback; `None` on backends that keep
    /// no route.
    fn route(_x: &Operand<Self>) -> Option<Route> {
        None
    }

    /// Attaches a route to a value that is on no tape. No effect on backends that keep no route.
    #[must_use]
    fn with_route(x: Operand<Self>, _route: Route) -> Operand<Self> {
        x
    }

    /// Operands and results that [`Operations::vjp`] reads on this backend if these operands are tracked.
    fn keep<O: Operation>(op: &O, tracked: &[bool]) -> Keep {
        op.keep(tracked)
    }

    /// Computes cotangents of the operands in `reverse.wanted`; `None` means zero.
    ///
    /// # Errors
    /// Errors of the derivative rule.
    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        op.vjp(reverse)
    }

    /// Computes results and tangents from operands and their tangents.
    ///
    /// # Errors
    /// Errors of the derivative rule.
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        op.jvp(inputs, tracked)
    }

    /// Runs a derivative rule as one operation on `A`, which is this backend or one above it. `None` if the rule runs by
    /// its definition on arrays.
    ///
    /// A backend that records operations implements it, because rules of factorisations read elements: pivots, gaps of
    /// spectra. `tracked` marks the operands whose derivatives are needed.
    fn run_derivative<O: Operation, A: Operations>(
        _of: DerivativeOf<'_, O>,
        _inputs: &[Operand<A>],
        _tracked: &[bool],
    ) -> DerivativeOutcome<O, A> {
        None
    }

    // Array operations that a backend may override where its own methods are wrong or slow.

    /// [`Array::matmul`], accumulated in the precision of the elements.
    #[must_use]
    fn array_matmul(a: &Floats<Self>, b: &Floats<Self>) -> Floats<Self> {
        Floats(Self::float_matmul(a.0.clone(), b.0.clone()))
    }

    /// [`Array::max`], or [`Array::min`] if `least`.
    #[must_use]
    fn array_extreme(x: &Floats<Self>, axis: usize, least: bool) -> Floats<Self> {
        let extreme = if least { Self::float_min_dim } else { Self::float_max_dim };
        Floats(extreme(x.0.clone(), axis))
    }

    /// [`Array::argmax`], or [`Array::argmin`] if `least`.
    #[must_use]
    fn array_place(x: &Floats<Self>, axis: usize, least: bool) -> Indices<Self> {
        let place = if least { Self::float_argmin } else { Self::float_argmax };
        Indices(place(x.0.clone(), axis, x.ints()))
    }

    /// [`Array::cumsum`].
    #[must_use]
    fn array_cumsum(x: &Floats<Self>, axis: usize) -> Floats<Self> {
        Floats(Self::float_cumsum(x.0.clone(), axis))
    }

    /// [`Array::recurrence`].
    #[must_use]
    fn array_recurrence(
        _a: &Floats<Self>,
        _b: &Floats<Self>,
        _first: Option<&Floats<Self>>,
        _axis: usize,
        _reverse: bool,
    ) -> Option<Floats<Self>> {
        None
    }

    /// [`Array::complex_recurrence`].
    #[must_use]
    fn array_complex_recurrence(
        _a: [&Floats<Self>; 2],
        _b: [&Floats<Self>; 2],
        _first: Option<[&Floats<Self>; 2]>,
        _axis: usize,
        _reverse: bool,
    ) -> Option<[Floats<Self>; 2]> {
        None
    }

    /// [`Array::cumulative`].
    #[must_use]
    fn array_cumulative(
        _x: &Floats<Self>,
        _of: Cumulation,
        _axis: usize,
        _reverse: bool,
    ) -> Option<Floats<Self>> {
        None
    }

    /// [`Array::semiring_matmul`].
    #[must_use]
    fn array_semiring_matmul(
        _a: &Floats<Self>,
        _b: &Floats<Self>,
        _over: Semiring,
        _places: bool,
    ) -> Option<(Floats<Self>, Option<Indices<Self>>)> {
        None
    }

    /// Returns true if this backend has the given kernel for operands like these. An operation composed of such
    /// kernels does not count as a fallback.
    fn has_kernel(_kernel: Kernel, _inputs: &[Meta]) -> bool {
        false
    }

    /// [`Array::block_products`].
    #[must_use]
    fn array_block_products(
        _a: &Floats<Self>,
        _b: &Floats<Self>,
        _of: &BlockProducts,
    ) -> Option<Floats<Self>> {
        None
    }

    /// [`Array::has_complex_products`].
    fn has_complex_products(_x: &Floats<Self>) -> bool {
        false
    }

    /// [`Array::complex_matmul`].
    #[must_use]
    fn array_complex_matmul(
        _a: PairParts<'_, Floats<Self>>,
        _b: PairParts<'_, Floats<Self>>,
        _conj: [bool; 2],
    ) -> Option<[Floats<Self>; 2]> {
        None
    }

    /// [`Array::complex_block_products`].
    #[must_use]
    fn array_complex_block_products(
        _a: PairParts<'_, Floats<Self>>,
        _b: PairParts<'_, Floats<Self>>,
        _conj: [bool; 2],
        _of: &BlockProducts,
    ) -> Option<[Floats<Self>; 2]> {
        None
    }

    /// [`Array::block_copies`].
    #[must_use]
    fn array_block_copies(_x: &Floats<Self>, _of: &BlockCopies) -> Option<Floats<Self>> {
        None
    }

    /// [`Array::matrix_kernel`].
    #[must_use]
    fn array_matrix_kernel(
        _a: &Floats<Self>,
        _of: MatrixKernel,
        _b: Option<&Floats<Self>>,
    ) -> Option<MatrixFactors<Floats<Self>>> {
        None
    }

    /// Returns true if [`Operations::element_product`] serves elements like these.
    fn has_element_product(_a: &SemiringArray<Self>) -> bool {
        false
    }

    /// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]` of elements without a derivative; not recorded by tapes.
    ///
    /// # Errors
    /// Sizes that the device's kernel does not serve.
    fn element_product(
        a: &SemiringArray<Self>,
        _b: &SemiringArray<Self>,
    ) -> Result<SemiringArray<Self>, EinsumError> {
        Err(EinsumError::Backend(format!("no kernel for elements over {:?}", a.semiring)))
    }

    /// [`Array::semiring_cotangents`].
    #[must_use]
    fn array_semiring_cotangents(
        _a: &Floats<Self>,
        _b: &Floats<Self>,
        _over: Semiring,
        _g: &Floats<Self>,
    ) -> Option<[Floats<Self>; 2]> {
        None
    }
}

/// Route of an operation that runs by its definition, on a backend other than the engine.
///
/// [`Path::Device`] if the backend has kernels for all of it, [`Path::HostData`] if it is computed in the engine,
/// otherwise [`Path::Portable`]. Matrices that a kernel cannot factorise, such as singular ones, are computed in
/// the engine in any case.
pub fn definition_route<B: Operations, O: Operation>(op: &O, inputs: &[Meta]) -> Route {
    let kernels = op.kernels(inputs);
    if !kernels.is_empty() && kernels.iter().all(|&kernel| B::has_kernel(kernel, inputs)) {
        return Route::native(Path::Device);
    }
    let path = if op.is_on_host() { Path::HostData } else { Path::Portable };
    Route::because(path, Reason::OpUnsupported)
}

/// Runs the portable definition, if the backend has kernels for all of it or the policy permits fallbacks.
pub(crate) fn by_definition<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<B>],
    tracked: &[bool],
) -> Result<Outcome<Floats<B>>, O::Error> {
    if policy() == Policy::RejectFallback {
        let metas: Vec<Meta> = inputs.iter().map(meta).collect();
        let Route { path, reason } = definition_route::<B, O>(op, &metas);
        if reason != Reason::Native {
            Route::fallback(op.name(), path, reason)?;
        }
    }
    op.portable(inputs, tracked)
}

/// [`Operation::vjp`] on tensors of a level above others: one operation if a backend below records, otherwise the
/// definition of the rule.
///
/// # Errors
/// Errors of the rule.
pub fn rule_vjp<O: Operation, B: Operations>(
    op: &O,
    reverse: &Reverse<'_, Floats<B>>,
) -> Result<Cotangents<Floats<B>>, O::Error> {
    let &Reverse { kept, cotangents, hidden, wanted } = reverse;
    let operands: Option<Vec<Operand<B>>> = kept.inputs().iter().cloned().collect();
    let Some(mut inputs) = operands.filter(|_| hidden.iter().all(Option::is_none)) else {
        return op.vjp(reverse);
    };
    let given: Vec<bool> = cotangents.iter().map(Option::is_some).collect();
    inputs.extend(cotangents.iter().flatten().cloned().map(Value::Float));
    let of = DerivativeOf::Vjp { op, given: &given, wanted };
    let Some(outcome) = B::run_derivative::<O, B>(of, &inputs, &vec![false; inputs.len()]) else {
        return op.vjp(reverse);
    };
    let mut results = outcome?.results.into_iter();
    Ok(wanted.iter().map(|&wanted| if wanted { results.next() } else { None }).collect())
}

/// [`Operation::jvp`] on tensors of a level above others: one operation if a backend below records, otherwise the
/// definition of the rule.
///
/// # Errors
/// Errors of the rule.
pub fn rule_jvp<O: Operation, B: Operations>(
    op: &O,
    duals: &[Value<Dual<Floats<B>>>],
    tracked: &[bool],
) -> Result<Outcome<Dual<Floats<B>>>, O::Error> {
    let moving: Vec<bool> = duals.iter().map(Value::moves).collect();
    let tangent = |x: &Value<Dual<Floats<B>>>| match x {
        Value::Float(x) => x.tangent.clone().map(Value::Float),
        _ => None,
    };
    let mut inputs: Vec<Operand<B>> = duals.iter().map(|x| x.clone().below()).collect();
    inputs.extend(duals.iter().filter_map(tangent));
    let mut marked = tracked.to_vec();
    marked.extend(moving.iter().zip(tracked).filter(|(moves, _)| **moves).map(|(_, t)| *t));
    let of = DerivativeOf::Jvp { op, moving: &moving };
    let Some(outcome) = B::run_derivative::<O, B>(of, &inputs, &marked) else {
        return op.jvp(duals, tracked);
    };
    let Outcome { mut results, extra, .. } = outcome?;
    let tangents = results.split_off(results.len() / 2);
    let duals = results.into_iter().zip(tangents).map(|(y, t)| Dual::new(y, t));
    Ok(Outcome {
        results: duals.collect(),
        hidden: Vec::new(),
        extra: extra.into_iter().map(|x| x.dual(None)).collect(),
    })
}

/// Checks the operands and runs the operation.
///
/// # Errors
/// Errors of the operation. Shapes and dtypes are checked before any work.
pub fn apply<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<B>],
) -> Result<Outcome<Floats<B>>, O::Error> {
    let metas: Vec<Meta> = inputs.iter().map(meta).collect();
    checked_results(op, &metas)?;
    B::run(op, inputs, &vec![false; inputs.len()])
}

/// As [`apply`], for an operation with one result.
///
/// # Errors
/// As [`apply`].
pub(crate) fn apply_one<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<B>],
) -> Result<Floats<B>, O::Error> {
    let result = apply(op, inputs)?.results.into_iter().next();
    Ok(result.unwrap_or_else(|| unreachable!("one result")))
}

/// As [`apply_one`], with the tangent of the result; `None` as the tangent of an operand means zero.
///
/// # Errors
/// As [`apply`]; errors of the derivative rule.
///
/// # Panics
/// Unless `tangents` has one entry per operand, and tangents are given for float operands only.
pub(crate) fn apply_jvp<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<B>],
    tangents: &[Option<Operand<B>>],
) -> Result<[Floats<B>; 2], O::Error> {
    assert_eq!(inputs.len(), tangents.len(), "{}: operands and tangents", op.name());
    let metas: Vec<Meta> = inputs.iter().map(meta).collect();
    op.results(&metas)?;
    let dual = |(x, t): (&Operand<B>, &Option<Operand<B>>)| {
        x.clone().dual(t.as_ref().map(|t| t.float().clone()))
    };
    let duals: Vec<_> = inputs.iter().zip(tangents).map(dual).collect();
    let tracked: Vec<bool> = duals.iter().map(Value::moves).collect();
    let result = B::jvp(op, &duals, &tracked)?.results.into_iter().next();
    let result = result.unwrap_or_else(|| unreachable!("one result"));
    Ok([result.value.clone(), result.into_tangent()])
}

pub(crate) fn meta<B: Operations>(x: &Operand<B>) -> Meta {
    match x {
        Value::Float(x) => Meta { shape: x.shape(), dtype: x.dtype() },
        Value::Integers(x) => Meta { shape: x.shape(), dtype: DType::I64 },
        Value::Flags(x) => Meta { shape: x.shape(), dtype: DType::Bool },
    }
}
