//! A scan as one node of a tape, with bounded memory: what is kept are carries, and spans of steps run again
//! in the reverse pass.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use t4a_diff::array::Shape;
use t4a_diff::{Array, Value};
use t4a_tensor::DType;

use super::elements::run;
use super::options::{Memory, Options};
use super::span::{Cotangents, Span};
use super::steps::{Flat, Stack, Steps, at, element, one};
use crate::error::{Result, ScanError};
use crate::schedule::{Policy, Schedule, Stored};

/// Arrays on a tape.
pub trait Tape: Array<Integers: Send, Flags: Send> + Send + 'static {
    /// The same arrays without a tape.
    type Below: Array<Integers: Send, Flags: Send> + Send + 'static;
    /// Identifies the tape if there are several.
    type Kind: Copy + Debug + Send + 'static;

    /// Most spans of a reverse pass of one scan.
    const SPANS: usize = usize::MAX;
    /// While the reverse passes of all scans have at least this number of spans, further scans have fewer and longer
    /// spans, or are recorded directly, unless [`Options::memory`] is set.
    const ALL_SPANS: usize = usize::MAX;

    /// The tape that it is on.
    fn kind(&self) -> Self::Kind;
    /// True if it has or needs a gradient.
    fn is_tracked(&self) -> bool;
    /// The array without the tape.
    fn below(self) -> Self::Below;
    /// A constant of the tape.
    fn above(x: Self::Below, kind: Self::Kind) -> Self;
    /// A leaf of the tape, which has a gradient.
    fn leaf(x: Self::Below, kind: Self::Kind) -> Self;

    /// Integers without the tape.
    fn integers_below(x: Self::Integers) -> <Self::Below as Array>::Integers;
    /// Integers beside a tape.
    fn integers_above(x: <Self::Below as Array>::Integers, kind: Self::Kind) -> Self::Integers;
    /// Truth values without the tape.
    fn flags_below(x: Self::Flags) -> <Self::Below as Array>::Flags;
    /// Truth values beside a tape.
    fn flags_above(x: <Self::Below as Array>::Flags, kind: Self::Kind) -> Self::Flags;

    /// One node: the output and what the rule needs; then, from that and the cotangent of the output,
    /// the cotangents of the inputs, `None` where they are zero.
    ///
    /// # Errors
    /// Those of `forward`; nothing is recorded then.
    fn record<R: Send + 'static, const N: usize>(
        inputs: [Self; N],
        forward: impl FnOnce([Self::Below; N]) -> Result<(Self::Below, R)>,
        vjp: impl FnOnce(R, Self::Below) -> Result<[Option<Self::Below>; N]> + Send + 'static,
    ) -> Result<Self>;

    /// The reverse pass from here.
    fn backward(root: Self);

    /// The derivative of a span, within a reverse pass. The default begins another one there. `anchors` are
    /// leaves that the tape keeps from one span to the next, until the last one is done.
    ///
    /// # Errors
    /// Those of the steps.
    fn back(span: Span<Self>, anchors: &mut Vec<Self>) -> Result<Cotangents<Self::Below>> {
        let _ = anchors;
        span.back()
    }

    /// After `done` of `steps` steps of a forward pass on constants of the tape, of which it may keep records
    /// that are to be forgotten. Returns whether to ask again.
    fn forget(steps: usize, done: usize, like: &Self) -> bool {
        let _ = (steps, done, like);
        false
    }

    /// Called before a step of a forward pass; what it returns is called after that, and says whether the step has
    /// run a reverse pass of its own, which this tape could not run again inside of another one. `None`: that is
    /// unknown, and may be known when the step runs again. By default passes nest.
    fn observe() -> impl FnOnce() -> Option<bool> {
        || Some(false)
    }
}

/// True if it has or needs a gradient.
pub(super) fn is_tracked<T: Tape>(x: &Value<T>) -> bool {
    matches!(x, Value::Float(x) if x.is_tracked())
}

/// The value without the tape.
pub(super) fn below<T: Tape>(x: Value<T>) -> Value<T::Below> {
    x.map(T::below, T::integers_below, T::flags_below)
}

/// A constant of the tape.
pub(super) fn above<T: Tape>(x: Value<T::Below>, kind: T::Kind) -> Value<T> {
    x.map(|x| T::above(x, kind), |x| T::integers_above(x, kind), |x| T::flags_above(x, kind))
}

/// A list without the tape.
pub(super) fn all_below<T: Tape>(all: Flat<T>) -> Flat<T::Below> {
    all.into_iter().map(below).collect()
}

/// A list of constants of the tape.
pub(super) fn all_above<T: Tape>(all: Flat<T::Below>, kind: T::Kind) -> Flat<T> {
    all.into_iter().map(|x| above(x, kind)).collect()
}

/// A step of which [`Tape::observe`] does not say whether it has run a reverse pass runs again, in all so many times.
const TRIES: usize = 3;

/// Scans of at most this number of steps are recorded directly unless [`Options::memory`] is set.
const FEW: usize = 4;

/// Number of spans of pending and running reverse passes of all tapes.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);

/// The spans of one scan, counted until the value is dropped.
struct Expected(usize);

impl Expected {
    fn new(spans: usize) -> Self {
        EXPECTED.fetch_add(spans, Relaxed);
        Self(spans)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        EXPECTED.fetch_sub(self.0, Relaxed);
    }
}

/// Memory of a scan for which [`Options::memory`] is not set.
///
/// The reverse pass of a tape with [`Tape::ALL_SPANS`] takes time in the square of the number S of spans of all scans.
/// While S spans are pending, spans have at least S steps, so a scan of N steps adds N/S of them, and after scans of M
/// steps in all there are about √(2 M): time is linear in M. A scan of less than S steps would still add one span. Below
/// S/4 steps, recording it directly costs less memory than that span costs time.
fn default_memory<T: Tape>(length: usize) -> Memory {
    let pending = EXPECTED.load(Relaxed);
    let many = pending >= T::ALL_SPANS;
    match length {
        _ if length <= FEW || many && length <= pending / 4 => Memory::StoreAll,
        _ if many => Memory::Bounded(Policy::Segment(pending.max(length.isqrt()))),
        _ => Memory::default(),
    }
}

/// The last carry and all ys, as one node unless [`Memory::StoreAll`] is asked for, nothing is tracked or steps
/// are few.
///
/// # Errors
/// Those of the steps; `Captured`, `DTypes`.
pub fn scan_on_tape<T: Tape>(
    steps: Steps<T>,
    consts: Flat<T>,
    init: Flat<T>,
    xs: Flat<T>,
    options: &Options,
) -> Result<[Flat<T>; 2]> {
    let tracked = |x: &Flat<T>| x.iter().any(is_tracked);
    if steps.length == 0 || ![&consts, &init, &xs].into_iter().any(tracked) {
        return run(&steps, &consts, init, &xs);
    }
    let policy = match options.memory.unwrap_or_else(|| default_memory::<T>(steps.length)) {
        Memory::StoreAll => {
            if options.memory.is_none() {
                check(&steps, [&consts, &init, &xs])?;
            }
            return run(&steps, &consts, init, &xs);
        }
        Memory::Bounded(policy) => policy,
    };
    let all = [consts.clone(), init.clone(), xs.clone()];
    let forward = |like, all| forward(steps.clone(), like, all, policy);
    match recorded(all, policy, forward, back) {
        Err(ScanError::ReversePass { .. }) => run(&steps, &consts, init, &xs),
        outcome => outcome,
    }
}

/// Finds out by the first step, on constants, what would be an error with more steps.
fn check<T: Tape>(steps: &Steps<T>, all: [&Flat<T>; 3]) -> Result<()> {
    let tracked: Vec<&T> =
        all.into_iter().flatten().filter_map(Value::as_float).filter(|x| x.is_tracked()).collect();
    one_dtype(tracked.iter().map(|x| x.dtype()), Policy::Sqrt)?;
    let Some(kind) = tracked.first().map(|x| x.kind()) else { return Ok(()) };
    let [consts, init, xs] = all.map(|x| all_below(x.clone()));
    let consts: Flat<T> = all_above(consts, kind);
    match step(steps, kind, &consts, init, at(&xs, steps.time(0)), &Policy::Sqrt) {
        Ok((carry, y)) => {
            let floats = carry.iter().chain(&y).filter_map(Value::as_float);
            one_dtype(floats.map(T::Below::dtype), Policy::Sqrt)
        }
        Err(ScanError::ReversePass { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The operands of a node: tracked ones by their number among those, others as they are.
struct NodeOperands<A: Array> {
    all: Vec<Option<Value<A>>>,
    shapes: Vec<Shape>,
    consts: usize,
    carry: usize,
}

impl<A: Array> NodeOperands<A> {
    /// Consts, carry, xs, with the tracked ones from a packed array.
    fn take(mut self, flat: A) -> [Flat<A>; 3] {
        let mut tracked = parted(flat, self.shapes).into_iter().map(Value::Float);
        let fill = |x: Option<Value<A>>| x.or_else(|| tracked.next());
        let all: Vec<Option<Value<A>>> = self.all.drain(..).map(fill).collect();
        let mut all = all.into_iter().flatten();
        let consts = all.by_ref().take(self.consts).collect();
        let carry = all.by_ref().take(self.carry).collect();
        [consts, carry, all.collect()]
    }
}

/// The data of the rule.
struct NodeResiduals<T: Tape> {
    steps: Steps<T>,
    kind: T::Kind,
    schedule: Schedule,
    /// Steps of the body in one of the schedule.
    unit: usize,
    consts: Flat<T::Below>,
    xs: Flat<T::Below>,
    stored: Stored<Flat<T::Below>>,
    carries: usize,
    _expected: Expected,
}

impl<T: Tape> NodeResiduals<T> {
    /// Steps of the body from one step of the schedule to another.
    fn range(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        from * self.unit..(to * self.unit).min(self.steps.length)
    }
}

/// A carry and ys.
type CarryAndYs<T> = (Flat<<T as Tape>::Below>, Flat<<T as Tape>::Below>);

/// A step on constants of the tape: what is below them.
///
/// # Errors
/// Those of the step; `Captured`, `ReversePass`.
pub(super) fn step<T: Tape>(
    steps: &Steps<T>,
    kind: T::Kind,
    consts: &[Value<T>],
    carry: Flat<T::Below>,
    x: Flat<T::Below>,
    policy: &dyn Debug,
) -> Result<CarryAndYs<T>> {
    for _ in 0..TRIES {
        let ended_pass = T::observe();
        let (carry, x) = (all_above(carry.clone(), kind), all_above(x.clone(), kind));
        let (next, y) = steps.step(consts, carry, x)?;
        match ended_pass() {
            None => {}
            Some(true) => break,
            Some(false) if next.iter().chain(&y).any(is_tracked) => {
                return Err(ScanError::Captured { policy: format!("{policy:?}") });
            }
            Some(false) => return Ok((all_below(next), all_below(y))),
        }
    }
    Err(ScanError::ReversePass { policy: format!("{policy:?}") })
}

/// The schedule of a policy with no more spans than there may be, and the number of steps in one of its own.
fn schedule(policy: Policy, steps: usize, spans: usize) -> Result<(Schedule, usize)> {
    let least = steps.div_ceil(spans).max(1);
    // Revolve counts in units of several steps, so that each is one span.
    Ok(match policy {
        Policy::Revolve(_) => (Schedule::new(policy, steps.div_ceil(least))?, least),
        Policy::Carries => (Schedule::new(Policy::Segment(least), steps)?, 1),
        Policy::Segment(k) if k > 0 => (Schedule::new(Policy::Segment(k.max(least)), steps)?, 1),
        other => (Schedule::new(other, steps)?, 1),
    })
}

/// Shapes and marks of the outputs and inputs of a node.
pub(super) struct Ends {
    /// Shapes of the last carry and of ys; `None` for what has no derivative.
    pub(super) outputs: Vec<Option<Shape>>,
    /// Marks the tracked ones of consts, carry and xs.
    pub(super) tracked: Vec<bool>,
}

impl Ends {
    /// The packed cotangents of outputs, one for each output that has a derivative.
    pub(super) fn parted<A: Array>(&self, cotangent: A) -> Vec<Option<A>> {
        let shapes: Vec<Shape> = self.outputs.iter().flatten().cloned().collect();
        let mut all = parted(cotangent, shapes).into_iter();
        self.outputs.iter().map(|shape| shape.as_ref().and_then(|_| all.next())).collect()
    }
}

/// One node of operands of which one at least is tracked. `forward` makes the last carry with ys, and what
/// `back` makes the cotangents of the tracked operands of, packed; it gets a tracked operand, and consts, carry and
/// xs below the tape.
///
/// # Errors
/// `DTypes`; those of `forward`.
pub(super) fn recorded<T: Tape, R: Send + 'static>(
    [consts, init, xs]: [Flat<T>; 3],
    policy: Policy,
    forward: impl FnOnce(T, [Flat<T::Below>; 3]) -> Result<(Flat<T::Below>, R)>,
    back: impl FnOnce(R, Ends, T::Below) -> Result<T::Below> + Send + 'static,
) -> Result<[Flat<T>; 2]> {
    let (consts_count, carries) = (consts.len(), init.len());
    let all: Flat<T> = consts.into_iter().chain(init).chain(xs).collect();
    let tracked: Vec<bool> = all.iter().map(is_tracked).collect();
    let of_tracked = all.iter().zip(&tracked).filter(|(_, tracked)| **tracked);
    let inputs: Vec<T> = of_tracked.filter_map(|(x, _)| x.as_float().cloned()).collect();
    one_dtype(inputs.iter().map(T::dtype), policy)?;
    let Some(like) = inputs.first().cloned() else {
        unreachable!("one of them is tracked");
    };
    let operands = NodeOperands {
        shapes: inputs.iter().map(T::shape).collect(),
        all: all.into_iter().zip(&tracked).map(|(x, t)| (!t).then(|| below(x))).collect(),
        consts: consts_count,
        carry: carries,
    };
    let kind = like.kind();
    // Values without a derivative are no outputs of the node.
    let mut beside: Vec<Option<Value<T::Below>>> = Vec::new();
    let mut shapes = Vec::new();
    let flat = T::record(
        [joined(inputs)],
        |[flat]| {
            let nothing = flat.clone();
            let (outputs, rest) = forward(like, operands.take(flat))?;
            one_dtype(outputs.iter().filter_map(Value::as_float).map(T::Below::dtype), policy)?;
            let mut floats = Vec::new();
            let mut outputs_shapes = Vec::new();
            for output in outputs {
                outputs_shapes.push(output.as_float().map(T::Below::shape));
                match output {
                    Value::Float(x) => {
                        floats.push(x);
                        beside.push(None);
                    }
                    other => beside.push(Some(other)),
                }
            }
            shapes = floats.iter().map(T::Below::shape).collect();
            let ends = Ends { outputs: outputs_shapes, tracked };
            let packed = if floats.is_empty() { nothing } else { joined(floats) };
            Ok((packed, (rest, ends)))
        },
        |(rest, ends), cotangent| Ok([Some(back(rest, ends, cotangent)?)]),
    )?;
    let mut floats = parted(flat, shapes).into_iter().map(Value::Float);
    let output = |x: Option<Value<T::Below>>| x.map(|x| above(x, kind)).or_else(|| floats.next());
    let mut all: Flat<T> = beside.into_iter().filter_map(output).collect();
    let ys = all.split_off(carries);
    Ok([all, ys])
}

/// The last carry and ys, and what the rule needs. `like` is one of the tracked operands.
fn forward<T: Tape>(
    steps: Steps<T>,
    like: T,
    [consts, init, xs]: [Flat<T::Below>; 3],
    policy: Policy,
) -> Result<(Flat<T::Below>, NodeResiduals<T>)> {
    let (schedule, unit) = schedule(policy, steps.length, T::SPANS)?;
    let (kind, carries) = (like.kind(), init.len());
    let above = all_above(consts.clone(), kind);
    let mut ys = Stack::new(steps.length);
    let (mut done, mut records) = (0, true);
    let (last, stored) = schedule.run_forward(init, |k, mut carry| {
        for k in k * unit..((k + 1) * unit).min(steps.length) {
            let t = steps.time(k);
            let (next, y) = step(&steps, kind, &above, carry, at(&xs, t), &policy)?;
            ys.put(t, y)?;
            carry = next;
            done += 1;
            records = records && T::forget(steps.length, done, &like);
        }
        Ok::<_, ScanError>(carry)
    })?;
    let outputs = last.into_iter().chain(ys.finish()?).collect();
    let _expected = Expected::new(schedule.spans());
    Ok((
        outputs,
        NodeResiduals { steps, kind, schedule, unit, consts, xs, stored, carries, _expected },
    ))
}

/// Cotangents of the tracked operands, packed, of a scan of which nothing was kept: its steps run once more.
///
/// # Errors
/// Those of the steps.
pub(super) fn back_from_start<T: Tape>(
    steps: Steps<T>,
    kind: T::Kind,
    all: [Flat<T::Below>; 3],
    ends: Ends,
    cotangent: T::Below,
) -> Result<T::Below> {
    let like = T::leaf(cotangent.full(&[1], 0.0), kind);
    let (_, residuals) = forward(steps, like, all, Policy::Sqrt)?;
    back(residuals, ends, cotangent)
}

/// Arrays that share a node have one dtype.
fn one_dtype(dtypes: impl Iterator<Item = DType>, policy: Policy) -> Result<()> {
    let mut dtypes: Vec<DType> = dtypes.collect();
    dtypes.dedup();
    match dtypes.len() {
        0 | 1 => Ok(()),
        _ => Err(ScanError::DTypes { policy: format!("{policy:?}"), dtypes }),
    }
}

/// Cotangents of the tracked operands, packed.
fn back<T: Tape>(mut kept: NodeResiduals<T>, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
    let like = cotangent.clone();
    let zeros = |shape: &[usize]| like.full(shape, 0.0);
    let stored = std::mem::take(&mut kept.stored);
    let kept = kept;
    let NodeResiduals { steps, kind, consts, xs, .. } = &kept;
    let mut given = ends.parted(cotangent);
    let Ends { outputs, tracked } = ends;
    let of_ys = given.split_off(kept.carries);
    let mut of_carry = given;
    let mut of_consts: Vec<Option<T::Below>> = vec![None; consts.len()];
    // Of one span each, by its first time: an array for every step would be most of the memory.
    let mut of_xs: BTreeMap<usize, Flat<T::Below>> = BTreeMap::new();
    let wanted_xs = tracked[consts.len() + kept.carries..].to_vec();
    let mut anchors = Vec::new();
    let above = all_above(consts.clone(), *kind);
    kept.schedule.run_backward(
        stored,
        |k, mut carry| {
            for k in kept.range(k, k + 1) {
                carry = step(steps, *kind, &above, carry, at(xs, steps.time(k)), &"")?.0;
            }
            Ok::<_, ScanError>(carry)
        },
        |from, to, carry| {
            let times: Vec<usize> = kept.range(from, to).map(|k| steps.time(k)).collect();
            let element_of = |g: &T::Below, t| one(&Value::Float(g.clone()), t).into_float();
            let given = |&t: &usize| {
                of_ys.iter().map(|g| g.as_ref().and_then(|g| element_of(g, t))).collect()
            };
            let span = Span {
                steps: steps.clone(),
                kind: *kind,
                consts: consts.clone(),
                carry,
                xs: times.iter().map(|&t| at(xs, t)).collect(),
                of_carry: std::mem::take(&mut of_carry),
                of_ys: times.iter().map(given).collect(),
                of_consts: std::mem::take(&mut of_consts),
                wanted_xs: wanted_xs.clone(),
            };
            let Cotangents { carry, xs: of_span, consts } = T::back(span, &mut anchors)?;
            (of_carry, of_consts) = (carry, consts);
            let first = times.iter().copied().min().unwrap_or(0);
            let mut stacked = Stack::new(times.len());
            for (t, of_x) in times.into_iter().zip(of_span) {
                let wanted =
                    of_x.into_iter().zip(xs).zip(&wanted_xs).filter(|(_, wanted)| **wanted);
                let fill = |g: Option<T::Below>, x: &Value<T::Below>| {
                    Value::Float(g.unwrap_or_else(|| zeros(&element(&x.shape()))))
                };
                stacked.put(t - first, wanted.map(|((g, x), _)| fill(g, x)).collect())?;
            }
            of_xs.insert(first, stacked.finish()?);
            Ok(())
        },
    )?;
    let mut parts: Vec<Vec<T::Below>> =
        wanted_xs.iter().filter(|wanted| **wanted).map(|_| Vec::new()).collect();
    for of_span in of_xs.into_values() {
        let of_span = of_span.into_iter().filter_map(Value::into_float);
        parts.iter_mut().zip(of_span).for_each(|(parts, part)| parts.push(part));
    }
    let mut parts = parts.into_iter();
    // Numbers of rank-1 xs have shape [1].
    let of_xs = xs.iter().zip(wanted_xs).map(|(x, wanted)| {
        let parts = wanted.then(|| parts.next()).flatten()?;
        Some(T::Below::cat(&parts, 0).reshape(&x.shape()))
    });
    let mut all: Vec<(Option<T::Below>, Shape)> =
        of_consts.into_iter().zip(consts.iter().map(Value::shape)).collect();
    let of_outputs = outputs[..kept.carries].iter().map(|shape| shape.clone().unwrap_or_default());
    all.extend(of_carry.into_iter().zip(of_outputs));
    all.extend(of_xs.zip(xs.iter().map(Value::shape)));
    let wanted = all.into_iter().zip(&tracked).filter(|(_, tracked)| **tracked);
    Ok(joined(wanted.map(|((g, shape), _)| g.unwrap_or_else(|| zeros(&shape))).collect()))
}

/// Elements of an array.
pub(super) fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// One array as it is, several flattened, one behind the other.
pub(super) fn joined<A: Array>(mut arrays: Vec<A>) -> A {
    if arrays.len() == 1 {
        return arrays.swap_remove(0);
    }
    let flat: Vec<A> = arrays.iter().map(|x| x.reshape(&[count(&x.shape())])).collect();
    A::cat(&flat, 0)
}

/// The arrays of these shapes out of [`joined`].
pub(super) fn parted<A: Array>(flat: A, shapes: Vec<Shape>) -> Vec<A> {
    if shapes.len() == 1 {
        return vec![flat];
    }
    let mut start = 0;
    let mut next = |shape: Vec<usize>| {
        let len = count(&shape);
        start += len;
        flat.narrow(0, start - len, len).reshape(&shape)
    };
    shapes.into_iter().map(&mut next).collect()
}
