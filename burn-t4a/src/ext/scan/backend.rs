//! Scans on backends: the plain loop, and one node of a tape.

use std::collections::BTreeMap;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, DType, Shape, TensorMetadata};
use t4a_scan::schedule::{Policy, Schedule, Stored};

use super::error::{Result, ScanError};
use super::records::{Records, inside, leaf};
use super::span::{Cotangents, Span};
use super::steps::{Flat, Stack, Steps, at, element};
use super::{Memory, Options};
use crate::boundary::accept;
use crate::ext::tape::{Tracked, is_tracked, joined, parted, record};
use crate::v0_21::BurnT4a;

/// Most spans of a reverse pass: each takes a thread until the pass ends.
const SPANS: usize = 512;

/// A backend that scans run on. The default is the plain loop, which is right for every backend without a
/// tape.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it runs scans",
    label = "not a `ScanBackend`",
    note = "code that is generic over its backend asks for it: `B: ScanBackend` in the place of `B: Backend`",
    note = "a backend of your own: `impl burn_t4a::ext::scan::ScanBackend for MyBackend {{}}`"
)]
pub trait ScanBackend: Backend {
    /// Whether [`ScanBackend::scan`] chooses a path and says so by [`Options::take_path`]. By default bodies
    /// run step by step.
    fn chooses_path() -> bool {
        false
    }

    /// The last carry and all ys.
    ///
    /// # Errors
    /// Those of the steps.
    fn scan(
        steps: Steps<Self>,
        consts: Vec<FloatTensor<Self>>,
        init: Vec<FloatTensor<Self>>,
        xs: Vec<FloatTensor<Self>>,
        options: &Options,
    ) -> Result<[Vec<FloatTensor<Self>>; 2]> {
        let _ = options;
        steps.run(&consts, init, &xs)
    }
}

impl ScanBackend for BurnT4a {}
#[cfg(feature = "flex")]
impl ScanBackend for burn_flex::Flex {}

#[cfg(feature = "ndarray")]
impl ScanBackend for burn_ndarray::NdArray {}

#[cfg(feature = "router")]
impl<R: burn_router::RunnerChannel> ScanBackend for burn_router::BackendRouter<R> {}

impl<B: Backend, C: CheckpointStrategy> ScanBackend for Autodiff<B, C> {
    fn scan(
        steps: Steps<Self>,
        consts: Flat<Self>,
        init: Flat<Self>,
        xs: Flat<Self>,
        options: &Options,
    ) -> Result<[Flat<Self>; 2]> {
        let tracked = |x: &Flat<Self>| x.iter().any(is_tracked::<B, C>);
        let policy = match options.memory {
            Memory::StoreAll => None,
            Memory::Bounded(policy) => Some(policy),
        };
        match policy {
            Some(policy) if steps.length > 0 && [&consts, &init, &xs].into_iter().any(tracked) => {
                node(steps, consts, init, xs, policy)
            }
            _ => steps.run(&consts, init, &xs),
        }
    }
}

/// The operands of a node: tracked ones by their number among those, others as they are.
struct Operands<B: Backend> {
    all: Vec<Option<FloatTensor<B>>>,
    shapes: Vec<Shape>,
    consts: usize,
    carry: usize,
}

impl<B: Backend> Operands<B> {
    /// Consts, carry, xs, with the tracked ones from a packed tensor.
    fn take(mut self, flat: FloatTensor<B>) -> [Flat<B>; 3] {
        let mut tracked = parted::<B>(flat, self.shapes).into_iter();
        let fill = |x: Option<FloatTensor<B>>| x.or_else(|| tracked.next());
        let all: Vec<Option<FloatTensor<B>>> = self.all.drain(..).map(fill).collect();
        let mut all = all.into_iter().flatten();
        let consts = all.by_ref().take(self.consts).collect();
        let carry = all.by_ref().take(self.carry).collect();
        [consts, carry, all.collect()]
    }
}

/// What the rule needs.
struct Residuals<B: Backend, C: CheckpointStrategy> {
    steps: Steps<Autodiff<B, C>>,
    schedule: Schedule,
    consts: Flat<B>,
    xs: Flat<B>,
    stored: Stored<Flat<B>>,
    /// Of carry and ys.
    outputs: Vec<Shape>,
    /// Which operands are tracked.
    tracked: Vec<bool>,
}

/// Of a step on constants of the tape: what is below them.
fn step<B: Backend, C: CheckpointStrategy>(
    steps: &Steps<Autodiff<B, C>>,
    consts: &[Tracked<B, C>],
    carry: Flat<B>,
    x: Flat<B>,
    policy: &dyn std::fmt::Debug,
) -> Result<(Flat<B>, Flat<B>)> {
    let above = |x: Flat<B>| x.into_iter().map(Autodiff::<B, C>::from_inner).collect();
    let (carry, y) = steps.step(consts, above(carry), above(x))?;
    if carry.iter().chain(&y).any(is_tracked::<B, C>) {
        return Err(ScanError::Captured { policy: format!("{policy:?}") });
    }
    let below = |x: Flat<Autodiff<B, C>>| x.into_iter().map(Autodiff::<B, C>::inner).collect();
    Ok((below(carry), below(y)))
}

/// The schedule of a policy with no more spans than there may be threads.
fn schedule(policy: Policy, steps: usize) -> Result<(Schedule, usize)> {
    let least = steps.div_ceil(SPANS);
    // Revolve counts in units of several steps, so that each is one span.
    Ok(match policy {
        Policy::Revolve(_) => (Schedule::new(policy, steps.div_ceil(least.max(1)))?, least.max(1)),
        Policy::Carries => (Schedule::new(Policy::Segment(least.max(1)), steps)?, 1),
        Policy::Segment(k) if k > 0 => (Schedule::new(Policy::Segment(k.max(least)), steps)?, 1),
        other => (Schedule::new(other, steps)?, 1),
    })
}

fn node<B: Backend, C: CheckpointStrategy>(
    steps: Steps<Autodiff<B, C>>,
    consts: Flat<Autodiff<B, C>>,
    init: Flat<Autodiff<B, C>>,
    xs: Flat<Autodiff<B, C>>,
    policy: Policy,
) -> Result<[Flat<Autodiff<B, C>>; 2]> {
    let (plan, unit) = schedule(policy, steps.length)?;
    let counts = (consts.len(), init.len());
    let all: Flat<Autodiff<B, C>> = consts.into_iter().chain(init).chain(xs).collect();
    let tracked: Vec<bool> = all.iter().map(is_tracked::<B, C>).collect();
    let inputs: Flat<Autodiff<B, C>> =
        all.iter().zip(&tracked).filter(|(_, t)| **t).map(|(x, _)| x.clone()).collect();
    one_dtype(inputs.iter().map(TensorMetadata::dtype), policy)?;
    let constant =
        |(x, &tracked): (Tracked<B, C>, &bool)| (!tracked).then(|| Autodiff::<B, C>::inner(x));
    let operands = Operands::<B> {
        shapes: inputs.iter().map(TensorMetadata::shape).collect(),
        all: all.into_iter().zip(&tracked).map(constant).collect(),
        consts: counts.0,
        carry: counts.1,
    };
    let mut shapes = Vec::new();
    let (device, dtype) = (Autodiff::<B, C>::float_device(&inputs[0]), inputs[0].dtype());
    let mut records = Records::<B>::new(steps.length, device, dtype);
    let flat = record::<B, C, _, ScanError, 1>(
        [joined::<Autodiff<B, C>>(inputs)],
        |[flat], _| {
            let [consts, init, xs] = operands.take(flat);
            let above: Vec<_> = consts.iter().cloned().map(Autodiff::<B, C>::from_inner).collect();
            let mut ys = Stack::<B>::new(steps.length);
            let (last, stored) = plan.run_forward(init, |k, mut carry| {
                for k in k * unit..((k + 1) * unit).min(steps.length) {
                    let t = steps.time(k);
                    let (next, y) = step(&steps, &above, carry, at::<B>(&xs, t), &policy)?;
                    ys.put(t, y)?;
                    carry = next;
                    records.step::<C>();
                }
                Ok::<_, ScanError>(carry)
            })?;
            let outputs: Flat<B> = last.into_iter().chain(ys.finish()).collect();
            one_dtype(outputs.iter().map(TensorMetadata::dtype), policy)?;
            shapes = outputs.iter().map(TensorMetadata::shape).collect();
            let outputs_shapes = shapes.clone();
            let residuals = Residuals {
                steps,
                schedule: plan,
                consts,
                xs,
                stored,
                outputs: outputs_shapes,
                tracked,
            };
            Ok((joined::<B>(outputs), (residuals, counts, unit)))
        },
        |(residuals, counts, unit), cotangent, _| {
            [Some(inside(|| back(residuals, counts, unit, cotangent)))]
        },
    )?;
    let mut all = parted::<Autodiff<B, C>>(flat, shapes);
    let ys = all.split_off(counts.1);
    Ok([all, ys])
}

/// Tensors that share a node have one dtype.
fn one_dtype(dtypes: impl Iterator<Item = DType>, policy: Policy) -> Result<()> {
    let mut dtypes: Vec<DType> = dtypes.collect();
    dtypes.dedup();
    match dtypes.len() {
        0 | 1 => Ok(()),
        _ => Err(ScanError::DTypes { policy: format!("{policy:?}"), dtypes }),
    }
}

/// Cotangents of the tracked operands, packed.
fn back<B: Backend, C: CheckpointStrategy>(
    residuals: Residuals<B, C>,
    (consts_count, carry_count): (usize, usize),
    unit: usize,
    cotangent: FloatTensor<B>,
) -> FloatTensor<B> {
    let Residuals { steps, schedule, consts, xs, stored, outputs, tracked } = residuals;
    let device = B::float_device(&cotangent);
    let dtype = cotangent.dtype();
    let zeros = |shape: Shape| B::float_zeros(shape, &device, dtype.into());
    let carries = outputs[..carry_count].to_vec();
    let mut given = parted::<B>(cotangent, outputs);
    let of_ys = given.split_off(carry_count);
    let mut of_carry: Vec<Option<FloatTensor<B>>> = given.into_iter().map(Some).collect();
    let mut of_consts: Vec<Option<FloatTensor<B>>> = vec![None; consts_count];
    // Of one span each, by its first time: a tensor for every step would be most of the memory.
    let mut of_xs: BTreeMap<usize, Flat<B>> = BTreeMap::new();
    let wanted_xs = tracked[consts_count + carry_count..].to_vec();
    let above: Vec<_> = consts.iter().cloned().map(Autodiff::<B, C>::from_inner).collect();
    let mut anchor = leaf::<B, C>(&device, dtype);
    let range = |from: usize, to: usize| from * unit..(to * unit).min(steps.length);
    let result = schedule.run_backward(
        stored,
        |k, mut carry| {
            for k in range(k, k + 1) {
                carry = step(&steps, &above, carry, at::<B>(&xs, steps.time(k)), &"")?.0;
            }
            Ok::<_, ScanError>(carry)
        },
        |from, to, carry| {
            let times: Vec<usize> = range(from, to).map(|k| steps.time(k)).collect();
            let span = Span {
                steps: steps.clone(),
                consts: consts.clone(),
                carry,
                xs: times.iter().map(|&t| at::<B>(&xs, t)).collect(),
                of_carry: std::mem::take(&mut of_carry),
                of_ys: times.iter().map(|&t| at_given::<B>(&of_ys, t)).collect(),
                of_consts: std::mem::take(&mut of_consts),
                wanted_xs: wanted_xs.clone(),
            };
            let before = std::mem::replace(&mut anchor, leaf::<B, C>(&device, dtype));
            let Cotangents { carry, xs: of_span, consts } = span.back([before, anchor.clone()]);
            (of_carry, of_consts) = (carry, consts);
            let first = times.iter().copied().min().unwrap_or(0);
            let mut stacked = Stack::<B>::new(times.len());
            for (t, of_x) in times.into_iter().zip(of_span) {
                let wanted =
                    of_x.into_iter().zip(&xs).zip(&wanted_xs).filter(|(_, wanted)| **wanted);
                let fill = |((g, x), _): ((Option<FloatTensor<B>>, &FloatTensor<B>), _)| {
                    g.unwrap_or_else(|| zeros(element(&x.shape())))
                };
                stacked.put(t - first, wanted.map(fill).collect())?;
            }
            of_xs.insert(first, stacked.finish());
            Ok(())
        },
    );
    accept(result);
    let mut parts: Vec<Flat<B>> = wanted_xs.iter().filter(|w| **w).map(|_| Vec::new()).collect();
    for of_span in of_xs.into_values() {
        parts.iter_mut().zip(of_span).for_each(|(parts, part)| parts.push(part));
    }
    let mut parts = parts.into_iter();
    // Numbers of rank-1 xs have shape [1].
    let of_xs = xs.iter().zip(wanted_xs).map(|(x, wanted)| {
        let parts = wanted.then(|| parts.next()).flatten()?;
        Some(B::float_reshape(B::float_cat(parts, 0), x.shape()))
    });
    let kinds = consts.iter().map(TensorMetadata::shape);
    let mut all: Vec<(Option<FloatTensor<B>>, Shape)> = of_consts.into_iter().zip(kinds).collect();
    all.extend(of_carry.into_iter().zip(carries));
    all.extend(of_xs.zip(xs.iter().map(TensorMetadata::shape)));
    let wanted = all.into_iter().zip(tracked).filter(|(_, tracked)| *tracked);
    let filled = wanted.map(|((g, shape), _)| g.unwrap_or_else(|| zeros(shape)));
    joined::<B>(filled.collect())
}

/// The cotangents of the ys of a time.
fn at_given<B: Backend>(of_ys: &[FloatTensor<B>], t: usize) -> Vec<Option<FloatTensor<B>>> {
    at::<B>(of_ys, t).into_iter().map(Some).collect()
}
