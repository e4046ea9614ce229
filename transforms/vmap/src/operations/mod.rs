//! Batching of operations outside of Burn's traits.
//!
//! ```text
//! on_batch   batching rule of the operation: one call on the inner backend
//! portable   without a rule: its definition and its derivative rules, on tensors of Vmap<B>
//! examples   if these read elements: a loop over examples
//! ```

mod examples;
mod form;

use burn_backend::{Backend, Shape, TensorMetadata};
use burn_t4a::ext::operation::{
    Cotangents, DerivativeOf, DerivativeOutcome, Dual, Operand, Operation, Operations, Outcome,
    Reverse, Value,
};
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use burn_t4a::ext::scan::{
    self, FixedPoint, Flat, Level, Options, Repeated, ScanBackend, Steps, fixed_point_at_level,
    iterate_at_level, scan_at_level, switch_at_level,
};
use t4a_diff::Kept;

use crate::backend::{Vmap, read_refused};
use crate::kind::{DataKind, Primitive};
use crate::movement::{MappedTensor, raise};
use crate::tensor::{VmapTensor, common};
pub(crate) use form::size_of;
use form::{BatchPosition, BatchedForm};

/// Float tensors of `Vmap<B>`.
type Above<B> = Floats<Vmap<B>>;

/// Evaluates an expression on the tensor of a value, with `K` bound to its kind.
macro_rules! on_value {
    ($value:expr, $x:ident: $k:ident => $body:expr) => {
        match $value {
            Value::Float(Floats($x)) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Float;
                Value::Float(Floats($body))
            }
            Value::Integers(Indices($x)) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Int;
                Value::Integers(Indices($body))
            }
            Value::Flags(Bools($x)) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Bool;
                Value::Flags(Bools($body))
            }
        }
    };
}
use on_value;

/// Batch sizes of a value and of its tangent.
fn dual_size<B: Operations>(x: &Value<Dual<Above<B>>>) -> [Option<usize>; 2] {
    let tangent = match x {
        Value::Float(Dual { tangent: Some(t), .. }) => t.0.size(),
        _ => None,
    };
    [size_of(&x.clone().below()), tangent]
}

fn all_sizes<B: Operations>(kept: &Kept<Above<B>>) -> Vec<Option<usize>> {
    let values = kept.inputs().iter().flatten().chain(&kept.extra).map(size_of);
    let floats = kept.results().iter().flatten().chain(&kept.hidden).map(|x| x.0.size());
    values.chain(floats).collect()
}

fn cotangent_sizes<B: Operations>(all: &[Option<Above<B>>]) -> impl Iterator<Item = Option<usize>> {
    all.iter().flatten().map(|g| g.0.size())
}

impl<B: Operations> Operations for Vmap<B> {
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let differ: Vec<Option<usize>> = inputs.iter().map(size_of).collect();
        let size = common(op.name(), differ.iter().copied());
        let differ: Vec<bool> = differ.iter().map(Option::is_some).collect();
        let Some(form) = BatchedForm::of(op, size, &differ, inputs) else {
            return unless_read(
                || op.portable(inputs, tracked),
                || examples::run::<O, B>(op, inputs, tracked, size.unwrap_or(1)),
            );
        };
        let inputs = form.operands(inputs);
        let untracked = vec![false; inputs.len()];
        let tracked = if form.residuals { tracked } else { &untracked };
        Ok(form.outcome(B::run(&form.op, &inputs, tracked)?))
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        let &Reverse { kept, cotangents, hidden, wanted } = reverse;
        let sizes = all_sizes::<B>(kept).into_iter().chain(cotangent_sizes::<B>(cotangents));
        let size = common(op.name(), sizes.chain(cotangent_sizes::<B>(hidden)));
        // The cotangent of a shared operand differs between examples.
        let differ = |(x, wanted): (&Option<Operand<Self>>, &bool)| {
            *wanted || x.as_ref().is_none_or(|x| size_of(x).is_some())
        };
        let differ: Vec<bool> = kept.inputs().iter().zip(wanted).map(differ).collect();
        let given: Vec<Operand<Self>> = kept.inputs().iter().flatten().cloned().collect();
        let form = BatchedForm::of(op, size, &differ, &given);
        let Some(form) = form.filter(|form| form.takes::<B>(cotangents)) else {
            return unless_read(
                || op.vjp(reverse),
                || examples::vjp::<O, B>(op, reverse, size.unwrap_or(1)),
            );
        };
        let below = form.kept::<B>(kept, wanted)?;
        let (cotangents, hidden) = (form.cotangents(cotangents), form.hidden(hidden));
        let below = Reverse { kept: &below, cotangents: &cotangents, hidden: &hidden, wanted };
        let all = B::vjp(&form.op, &below)?.into_iter().enumerate();
        let up = |(i, g): (usize, Option<Floats<B>>)| {
            Some(Floats(form.operand_place(i).up::<B, burn_tensor::Float>(g?.0, form.size)))
        };
        Ok(all.map(up).zip(wanted).map(|(g, wanted)| g.filter(|_| *wanted)).collect())
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        let sizes: Vec<[Option<usize>; 2]> = inputs.iter().map(dual_size::<B>).collect();
        let size = common(op.name(), sizes.concat());
        let differ: Vec<bool> = sizes.iter().map(|x| x.iter().any(Option::is_some)).collect();
        let values: Vec<Operand<Self>> = inputs.iter().map(|x| x.clone().below()).collect();
        let form = BatchedForm::of(op, size, &differ, &values);
        let Some(form) = form.filter(|form| form.residuals || !tracked.contains(&true)) else {
            return unless_read(
                || op.jvp(inputs, tracked),
                || examples::jvp::<O, B>(op, inputs, tracked, size.unwrap_or(1)),
            );
        };
        let dual = |(i, x): (usize, &Value<Dual<Above<B>>>)| {
            let tangent = match x {
                Value::Float(x) => x.tangent.clone(),
                _ => None,
            };
            let place = form.operand_place(i);
            let tangent = tangent.map(|t| Floats(place.down::<B, burn_tensor::Float>(t.0, &form)));
            form.operand(i, &x.clone().below()).dual(tangent)
        };
        let below: Vec<Value<Dual<Floats<B>>>> = inputs.iter().enumerate().map(dual).collect();
        let Outcome { results, hidden, extra } = B::jvp(&form.op, &below, tracked)?;
        let up = |place: BatchPosition, x: Dual<Floats<B>>| {
            let up = |x: Floats<B>| Floats(place.up::<B, burn_tensor::Float>(x.0, form.size));
            Dual { value: up(x.value), tangent: x.tangent.map(up) }
        };
        let residual = form.residual_place();
        let results = results.into_iter().enumerate();
        Ok(Outcome {
            results: results.map(|(k, x)| up(form.result_place(k), x)).collect(),
            hidden: hidden.into_iter().map(|x| up(residual, x)).collect(),
            extra: extra
                .into_iter()
                .map(|x| match x {
                    Value::Float(x) => Value::Float(up(residual, x)),
                    other => form.residual_up(other.below()).dual(None),
                })
                .collect(),
        })
    }

    fn run_derivative<O: Operation, A: Operations>(
        of: DerivativeOf<'_, O>,
        inputs: &[Operand<A>],
        tracked: &[bool],
    ) -> DerivativeOutcome<O, A> {
        B::run_derivative(of, inputs, tracked)
    }
}

/// Evaluates the portable definition; if it fails because it reads elements of a batch, loops over examples.
fn unless_read<T, E>(
    portable: impl FnOnce() -> Result<T, E>,
    examples: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    read_refused();
    let found = portable();
    if found.is_err() && read_refused() { examples() } else { found }
}

/// A scan on the inner backend; each step computes all examples.
impl<B: ScanBackend> ScanBackend for Vmap<B> {
    fn chooses_path() -> bool {
        B::chooses_path()
    }

    fn scan(
        steps: Steps<Above<B>>,
        consts: Flat<Above<B>>,
        init: Flat<Above<B>>,
        xs: Flat<Above<B>>,
        options: &Options,
    ) -> scan::Result<[Flat<Above<B>>; 2]> {
        scan_at_level::<B, Self>(&steps, &consts, init, &xs, options)
    }

    fn fixed_point(
        steps: Steps<Above<B>>,
        consts: Flat<Above<B>>,
        init: Flat<Above<B>>,
        settings: &FixedPoint,
    ) -> scan::Result<Flat<Above<B>>> {
        fixed_point_at_level::<B, Self>(&steps, &consts, &init, settings)
    }

    /// Iterates until the test is false for all examples; the steps leave finished examples unchanged.
    fn iterate(
        mut repeated: Repeated<Above<B>>,
        all: [Flat<Above<B>>; 3],
        options: &Options,
    ) -> scan::Result<Flat<Above<B>>> {
        let own = repeated.test.clone();
        repeated.test = own.clone().with_body(move |consts, carry, x| {
            let (carry, holds) = own.step(&consts, carry, x)?;
            Ok((carry, holds.into_iter().map(any_example).collect()))
        });
        iterate_at_level::<B, Self>(&repeated, all, options)
    }

    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Above<B>>>,
        operands: Flat<Above<B>>,
    ) -> scan::Result<Flat<Above<B>>> {
        switch_at_level::<B, Self>(&index, &branches, &operands)
    }

    fn batches() -> bool {
        true
    }

    fn is_batched(x: &Operand<Self>) -> bool {
        let below = |x: Operand<Self>| on_value!(x, x: K => x.into_inner().0);
        size_of(x).is_some() || B::is_batched(&below(x.clone()))
    }
}

/// Reduces a batched boolean with logical or.
fn any_example<B: Operations>(holds: Operand<Vmap<B>>) -> Operand<Vmap<B>> {
    match holds {
        Value::Flags(Bools(x)) if x.is_batched() => {
            Value::Flags(Bools(VmapTensor::shared(B::bool_any(x.into_inner().0))))
        }
        other => other,
    }
}

/// The form of a value is its batch size.
impl<B: Operations> Level for Vmap<B> {
    type Above = Above<B>;
    type Below = Floats<B>;
    type Form = Option<usize>;

    fn form(x: &Operand<Self>) -> Option<usize> {
        size_of(x)
    }
    fn parts(_size: Option<usize>) -> usize {
        1
    }
    fn lower(x: Operand<Self>, size: Option<usize>, stacked: bool) -> Vec<Operand<B>> {
        vec![on_value!(x, x: K => lowered::<B, K>(x, size, stacked))]
    }
    fn raise(parts: Vec<Operand<B>>, size: Option<usize>, stacked: bool) -> Operand<Self> {
        let mut parts = parts.into_iter();
        let x = parts.next().unwrap_or_else(|| unreachable!("every form has one part"));
        on_value!(x, x: K => match size {
            None => VmapTensor::shared(x),
            Some(_) if stacked => VmapTensor::batched(swapped::<B, K>(x)),
            Some(_) => VmapTensor::batched(x),
        })
    }
}

/// Moves the batch behind the leading axis if there are both.
fn lowered<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    size: Option<usize>,
    stacked: bool,
) -> Primitive<B, K> {
    let x = raise::<B, K>(x, size);
    if size.is_none() || !stacked {
        return x;
    }
    let x = swapped::<B, K>(x);
    // A scalar element has the shape [1].
    let shape = x.shape();
    match shape.num_dims() {
        2 => K::reshape(x, Shape::from([shape[0], shape[1], 1])),
        _ => x,
    }
}

/// Swaps the first two axes.
fn swapped<B: Backend, K: DataKind<B>>(x: Primitive<B, K>) -> Primitive<B, K> {
    let mut axes: Vec<usize> = (0..x.shape().num_dims()).collect();
    axes.swap(0, 1);
    K::permute(x, &axes)
}
