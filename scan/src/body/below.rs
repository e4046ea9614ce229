//! A scan on a tape whose steps, and those of its reverse pass, are scans below the tape: for backends that run
//! a body as a program.
//!
//! ```text
//! forward   consts | carry           | x            ↦  carry         | y, the carry before
//! reverse   consts | c̄, sums of k̄    | carry, x, ȳ  ↦  c̄, sums of k̄  | x̄          k̄: of consts
//! ```
//!
//! All carries are kept, which is what [`Policy::Carries`] says; other policies run on the tape as ever.

use std::sync::Arc;

use t4a_diff::{Array, Value};

use super::options::{Memory, Options, ScanReport};
use super::span::{Cotangents, Span};
use super::steps::{Flat, FlatBody, Steps};
use super::tape::{
    Ends, Tape, all_above, all_below, back_from_start, count, is_tracked, joined, recorded,
    scan_on_tape, step,
};
use crate::error::{Result, ScanError, ScanPath};
use crate::schedule::Policy;

/// Most bytes of carries that are kept if the options name no policy; larger scans use the default policy.
const CARRIES: usize = 64 << 20;

/// A scan below the tape: steps, then consts, carry and xs.
pub trait ScanBelow<A: Array>:
    Fn(Steps<A>, [Flat<A>; 3], &Options) -> Result<[Flat<A>; 2]> + Clone + Send + 'static
{
}

impl<A: Array, F> ScanBelow<A> for F where
    F: Fn(Steps<A>, [Flat<A>; 3], &Options) -> Result<[Flat<A>; 2]> + Clone + Send + 'static
{
}

/// As [`scan_on_tape`], with both passes as scans below the tape where those accept [`ScanPath::Fused`].
///
/// # Errors
/// Those of [`scan_on_tape`]; `PathRejected`.
pub fn scan_below_tape<T: Tape<Kind: Sync>>(
    steps: Steps<T>,
    consts: Flat<T>,
    init: Flat<T>,
    xs: Flat<T>,
    options: &Options,
    scan: impl ScanBelow<T::Below>,
) -> Result<[Flat<T>; 2]> {
    let length = steps.length;
    let carries: usize = init.iter().map(|x| count(&x.shape()) * x.dtype().size()).sum();
    let tracked = [&consts, &init, &xs].into_iter().flatten().any(is_tracked);
    let why_not = match options.memory.unwrap_or_default() {
        _ if length == 0 => Some("no_steps"),
        _ if !tracked => Some("nothing_tracked"),
        Memory::Bounded(Policy::Carries) => None,
        Memory::Bounded(Policy::Sqrt) if carries.saturating_mul(length) <= CARRIES => None,
        Memory::Bounded(_) | Memory::StoreAll => Some("memory"),
    };
    let tried = match why_not {
        Some(reason) => Err(reason),
        None => {
            let all = [consts.clone(), init.clone(), xs.clone()];
            match node(steps.clone(), all, options.clone(), scan) {
                Err(ScanError::PathRejected { chosen: ScanPath::Fallback, reason, .. }) => {
                    Err(reason)
                }
                Err(ScanError::ReversePass { .. }) => Err("reverse_pass_in_body"),
                Err(ScanError::PathRejected { chosen: path, reason, .. }) => {
                    // The options of the caller reject the path.
                    options.take_path(ScanReport { path, reason, length })?;
                    Err(reason)
                }
                outcome => Ok(outcome),
            }
        }
    };
    match tried {
        Ok(outcome) => outcome,
        Err(reason) => {
            options.take_path(ScanReport { path: ScanPath::Fallback, reason, length })?;
            scan_on_tape(steps, consts, init, xs, options)
        }
    }
}

/// The data of the reverse pass.
struct StepResiduals<T: Tape, S> {
    steps: Steps<T>,
    kind: T::Kind,
    scan: S,
    options: Options,
    consts: Flat<T::Below>,
    xs: Flat<T::Below>,
    init: Flat<T::Below>,
    /// Before every step.
    carries: Flat<T::Below>,
}

fn node<T: Tape<Kind: Sync>, S: ScanBelow<T::Below>>(
    steps: Steps<T>,
    all: [Flat<T>; 3],
    options: Options,
    scan: S,
) -> Result<[Flat<T>; 2]> {
    let forward = |like: T, [consts, init, xs]: [Flat<T::Below>; 3]| {
        let kind = like.kind();
        let all = [consts.clone(), init.clone(), xs.clone()];
        let only = options.only(ScanPath::Fused);
        let [last, mut ys] = scan(with_carries(&steps, kind), all, &only)?;
        let carries = ys.split_off(ys.len() - init.len());
        let outputs = last.into_iter().chain(ys).collect();
        Ok((outputs, StepResiduals { steps, kind, scan, options, consts, xs, init, carries }))
    };
    recorded(all, Policy::Carries, forward, StepResiduals::back)
}

/// Steps on constants of the tape, as steps below it.
pub(super) fn below_steps<T: Tape<Kind: Sync>>(
    steps: &Steps<T>,
    kind: T::Kind,
    policy: Policy,
) -> Steps<T::Below> {
    let own = steps.clone();
    steps.with_body(move |consts, carry, x| {
        step(&own, kind, &all_above(consts, kind), carry, x, &policy)
    })
}

/// As [`below_steps`], for steps that may run reverse passes of their own, and do not run inside of one.
pub(super) fn steps_with_passes<T: Tape<Kind: Sync>>(
    steps: &Steps<T>,
    kind: T::Kind,
) -> Steps<T::Below> {
    let own = steps.clone();
    steps.with_body(move |consts, carry, x| {
        let [consts, carry, x] = [consts, carry, x].map(|all| all_above::<T>(all, kind));
        let (next, y) = own.step(&consts, carry, x)?;
        match next.iter().chain(&y).any(is_tracked) {
            true => Err(ScanError::Captured { policy: "the implicit rule".into() }),
            false => Ok((all_below(next), all_below(y))),
        }
    })
}

/// The forward pass below the tape, whose ys have the carry before each step behind them.
fn with_carries<T: Tape<Kind: Sync>>(steps: &Steps<T>, kind: T::Kind) -> Steps<T::Below> {
    let Steps { body, .. } = below_steps(steps, kind, Policy::Carries);
    steps.with_body(move |consts, carry: Flat<T::Below>, x| {
        let (next, mut y) = body(consts, carry.clone(), x)?;
        y.extend(carry);
        Ok((next, y))
    })
}

impl<T: Tape<Kind: Sync>, S: ScanBelow<T::Below>> StepResiduals<T, S> {
    /// Cotangents of the tracked operands, packed.
    fn back(self, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
        let carries = self.init.len();
        let (of_consts, rest) = ends.tracked.split_at(self.consts.len());
        let of_xs = &rest[carries..];
        let zeros = |shape: &[usize]| Value::Float(cotangent.full(shape, 0.0));
        let mut given = ends.parted(cotangent.clone());
        let of_ys = given.split_off(carries);
        let wanted = self.consts.iter().zip(of_consts).filter(|(_, wanted)| **wanted);
        let sums = wanted.map(|(x, _)| zeros(&x.shape()));
        let given = given.into_iter().flatten().map(Value::Float);
        let init: Flat<T::Below> = given.chain(sums).collect();
        let marks = Marks {
            consts: of_consts.to_vec(),
            xs: of_xs.to_vec(),
            ys: of_ys.iter().map(Option::is_some).collect(),
        };
        let of_ys = of_ys.into_iter().flatten().map(Value::Float);
        let xs = self.carries.iter().chain(&self.xs).cloned().chain(of_ys).collect();
        let length = self.steps.length;
        let back = Steps {
            body: step_back(&self.steps, self.kind, carries, marks),
            length,
            reverse: !self.steps.reverse,
            paths: Arc::new((0..init.len()).map(|i| format!("cotangent {i}")).collect()),
        };
        let only = Options::default().only(ScanPath::Fused);
        let moving = self.init.iter().filter(|x| x.as_float().is_some()).count();
        let [last, stacked] = match (self.scan)(back, [self.consts.clone(), init, xs], &only) {
            Err(ScanError::PathRejected { reason, .. }) => {
                let path = ScanPath::Fallback;
                self.options.take_path(ScanReport { path, reason, length })?;
                let all = [self.consts, self.init, self.xs];
                return back_from_start(self.steps, self.kind, all, ends, cotangent);
            }
            outcome => outcome?.map(|all| all.into_iter().filter_map(Value::into_float)),
        };
        let mut of_init: Vec<T::Below> = last.collect();
        let sums = of_init.split_off(moving);
        let wanted = self.init.iter().zip(rest).filter(|(x, _)| x.as_float().is_some());
        let of_init = of_init.into_iter().zip(wanted).filter(|(_, (_, wanted))| **wanted);
        let xs = self.xs.iter().zip(of_xs).filter(|(_, wanted)| **wanted);
        // Numbers of rank-1 xs have shape [1].
        let of_xs = stacked.zip(xs).map(|(g, (x, _))| g.reshape(&x.shape()));
        Ok(joined(sums.into_iter().chain(of_init.map(|(g, _)| g)).chain(of_xs).collect()))
    }
}

/// Of which consts and xs cotangents are asked for, and which ys have one.
pub(super) struct Marks {
    pub(super) consts: Vec<bool>,
    pub(super) xs: Vec<bool>,
    pub(super) ys: Vec<bool>,
}

/// Those that are marked, each at its place.
pub(super) fn placed<A: Array>(
    marks: impl IntoIterator<Item = bool>,
    marked: Flat<A>,
) -> Vec<Option<A>> {
    let mut marked = marked.into_iter();
    let one = |mark: bool| if mark { marked.next().and_then(Value::into_float) } else { None };
    marks.into_iter().map(one).collect()
}

/// A step of the reverse pass: the derivative of a span of one step.
pub(super) fn step_back<T: Tape<Kind: Sync>>(
    steps: &Steps<T>,
    kind: T::Kind,
    carries: usize,
    marks: Marks,
) -> FlatBody<T::Below> {
    let steps = steps.clone();
    Arc::new(move |consts, mut of_carry, mut carry: Flat<T::Below>| {
        let mut x = carry.split_off(carries);
        let of_y = x.split_off(marks.xs.len());
        let moves: Vec<bool> = carry.iter().map(|x| x.as_float().is_some()).collect();
        let sums = of_carry.split_off(moves.iter().filter(|moves| **moves).count());
        let fill = |g: Option<T::Below>, like: &Value<T::Below>| {
            g.map_or_else(|| like.zeros(&like.shape()), Value::Float)
        };
        let like = (carry.clone(), x.clone());
        let span = Span {
            steps: steps.clone(),
            kind,
            consts,
            carry,
            xs: vec![x],
            of_carry: placed(moves.iter().copied(), of_carry),
            of_ys: vec![placed(marks.ys.iter().copied(), of_y)],
            of_consts: placed(marks.consts.iter().copied(), sums.clone()),
            wanted_xs: marks.xs.clone(),
        };
        let Cotangents { carry, xs, consts } = T::back(span, &mut Vec::new())?;
        let consts = consts.into_iter().zip(&marks.consts).filter(|(_, of)| **of).map(|(g, _)| g);
        let next = carry.into_iter().zip(&like.0).zip(&moves).filter(|(_, moves)| **moves);
        let next = next.map(|((g, like), _)| fill(g, like));
        let sums = consts.zip(&sums).map(|(g, sum)| g.map_or_else(|| sum.clone(), Value::Float));
        let xs = xs.into_iter().flatten().zip(&like.1).zip(&marks.xs).filter(|(_, of)| **of);
        Ok((next.chain(sums).collect(), xs.map(|((g, like), _)| fill(g, like)).collect()))
    })
}
