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

use t4a_diff::Array;

use super::options::{Memory, Options, ScanReport};
use super::span::{Cotangents, Span};
use super::steps::{Body, Steps};
use super::tape::{
    Ends, Tape, back_from_start, count, joined, parted, recorded, scan_on_tape, step,
};
use crate::error::{Result, ScanError, ScanPath};
use crate::schedule::Policy;

/// Bytes of carries that are kept where nobody said how many: more of them go by the default policy.
const CARRIES: usize = 64 << 20;

/// A scan below the tape: steps, then consts, carry and xs.
pub trait ScanBelow<A>:
    Fn(Steps<A>, [Vec<A>; 3], &Options) -> Result<[Vec<A>; 2]> + Clone + Send + 'static
{
}

impl<A, F> ScanBelow<A> for F where
    F: Fn(Steps<A>, [Vec<A>; 3], &Options) -> Result<[Vec<A>; 2]> + Clone + Send + 'static
{
}

/// As [`scan_on_tape`], with both passes as scans below the tape where those accept [`ScanPath::Fused`].
///
/// # Errors
/// Those of [`scan_on_tape`]; `PathRejected`.
pub fn scan_below_tape<T: Tape<Kind: Sync>>(
    steps: Steps<T>,
    consts: Vec<T>,
    init: Vec<T>,
    xs: Vec<T>,
    options: &Options,
    scan: impl ScanBelow<T::Below>,
) -> Result<[Vec<T>; 2]> {
    let length = steps.length;
    let carries: usize = init.iter().map(|x| count(&x.shape()) * x.dtype().size()).sum();
    let tracked = [&consts, &init, &xs].into_iter().flatten().any(T::is_tracked);
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
                    // It is the caller who does not accept it.
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

/// What the reverse pass needs.
struct Kept<T: Tape, S> {
    steps: Steps<T>,
    kind: T::Kind,
    scan: S,
    options: Options,
    consts: Vec<T::Below>,
    xs: Vec<T::Below>,
    init: Vec<T::Below>,
    /// Before every step.
    carries: Vec<T::Below>,
}

fn node<T: Tape<Kind: Sync>, S: ScanBelow<T::Below>>(
    steps: Steps<T>,
    all: [Vec<T>; 3],
    options: Options,
    scan: S,
) -> Result<[Vec<T>; 2]> {
    let forward = |like: T, [consts, init, xs]: [Vec<T::Below>; 3]| {
        let kind = like.kind();
        let all = [consts.clone(), init.clone(), xs.clone()];
        let only = options.only(ScanPath::Fused);
        let [last, mut ys] = scan(with_carries(&steps, kind), all, &only)?;
        let carries = ys.split_off(ys.len() - init.len());
        let outputs = last.into_iter().chain(ys).collect();
        Ok((outputs, Kept { steps, kind, scan, options, consts, xs, init, carries }))
    };
    recorded(all, Policy::Carries, forward, Kept::back)
}

/// Steps on constants of the tape, as steps below it.
pub(super) fn below_steps<T: Tape<Kind: Sync>>(
    steps: &Steps<T>,
    kind: T::Kind,
    policy: Policy,
) -> Steps<T::Below> {
    let own = steps.clone();
    let body = move |consts: Vec<T::Below>, carry, x| {
        let above: Vec<T> = consts.into_iter().map(|x| T::above(x, kind)).collect();
        step(&own, kind, &above, carry, x, &policy)
    };
    let Steps { length, reverse, .. } = *steps;
    Steps { body: Arc::new(body), length, reverse, paths: steps.paths.clone() }
}

/// The forward pass below the tape, whose ys have the carry before each step behind them.
fn with_carries<T: Tape<Kind: Sync>>(steps: &Steps<T>, kind: T::Kind) -> Steps<T::Below> {
    let Steps { body, length, reverse, paths } = below_steps(steps, kind, Policy::Carries);
    let body = move |consts, carry: Vec<T::Below>, x| {
        let (next, mut y) = body(consts, carry.clone(), x)?;
        y.extend(carry);
        Ok((next, y))
    };
    Steps { body: Arc::new(body), length, reverse, paths }
}

impl<T: Tape<Kind: Sync>, S: ScanBelow<T::Below>> Kept<T, S> {
    /// Cotangents of the tracked operands, packed.
    fn back(self, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
        let carries = self.init.len();
        let (of_consts, rest) = ends.tracked.split_at(self.consts.len());
        let of_xs = &rest[carries..];
        let zeros = |shape: &[usize]| cotangent.full(shape, 0.0);
        let mut given = parted(cotangent.clone(), ends.outputs.clone());
        let of_ys = given.split_off(carries);
        let wanted = self.consts.iter().zip(of_consts).filter(|(_, wanted)| **wanted);
        let sums = wanted.map(|(x, _)| zeros(&x.shape()));
        let init: Vec<T::Below> = given.into_iter().chain(sums).collect();
        let xs = self.carries.iter().chain(&self.xs).cloned().chain(of_ys).collect();
        let length = self.steps.length;
        let back = Steps {
            body: step_back(&self.steps, self.kind, carries, of_consts, of_xs),
            length,
            reverse: !self.steps.reverse,
            paths: Arc::new((0..init.len()).map(|i| format!("cotangent {i}")).collect()),
        };
        let only = Options::default().only(ScanPath::Fused);
        let [last, stacked] = match (self.scan)(back, [self.consts.clone(), init, xs], &only) {
            Err(ScanError::PathRejected { reason, .. }) => {
                let path = ScanPath::Fallback;
                self.options.take_path(ScanReport { path, reason, length })?;
                let all = [self.consts, self.init, self.xs];
                return back_from_start(self.steps, self.kind, all, ends, cotangent);
            }
            outcome => outcome?,
        };
        let (of_init, sums) = last.split_at(carries);
        let of_init = of_init.iter().zip(rest).filter(|(_, wanted)| **wanted).map(|(g, _)| g);
        let xs = self.xs.iter().zip(of_xs).filter(|(_, wanted)| **wanted);
        // Numbers of rank-1 xs have shape [1].
        let of_xs = stacked.iter().zip(xs).map(|(g, (x, _))| g.reshape(&x.shape()));
        Ok(joined(sums.iter().chain(of_init).cloned().chain(of_xs).collect()))
    }
}

/// A step of the reverse pass: the derivative of a span of one step.
fn step_back<T: Tape<Kind: Sync>>(
    steps: &Steps<T>,
    kind: T::Kind,
    carries: usize,
    of_consts: &[bool],
    of_xs: &[bool],
) -> Body<T::Below> {
    let (steps, of_consts, of_xs) = (steps.clone(), of_consts.to_vec(), of_xs.to_vec());
    Arc::new(move |consts, mut of_carry, mut carry| {
        let sums = of_carry.split_off(carries);
        let mut x = carry.split_off(carries);
        let of_y = x.split_off(of_xs.len());
        let fill = |g: Option<T::Below>, like: &T::Below| {
            g.unwrap_or_else(|| like.full(&like.shape(), 0.0))
        };
        let like = (carry.clone(), x.clone());
        let mut known = sums.iter().cloned();
        let span = Span {
            steps: steps.clone(),
            kind,
            consts,
            carry,
            xs: vec![x],
            of_carry: of_carry.into_iter().map(Some).collect(),
            of_ys: vec![of_y.into_iter().map(Some).collect()],
            of_consts: of_consts.iter().map(|&of| of.then(|| known.next()).flatten()).collect(),
            wanted_xs: of_xs.clone(),
        };
        let Cotangents { carry, xs, consts } = T::back(span, &mut Vec::new())?;
        let consts = consts.into_iter().zip(&of_consts).filter(|(_, of)| **of).map(|(g, _)| g);
        let next = carry.into_iter().zip(&like.0).map(|(g, like)| fill(g, like));
        let next = next.chain(consts.zip(&sums).map(|(g, sum)| g.unwrap_or_else(|| sum.clone())));
        let xs = xs.into_iter().flatten().zip(&like.1).zip(&of_xs).filter(|(_, of)| **of);
        Ok((next.collect(), xs.map(|((g, like), _)| fill(g, like)).collect()))
    })
}
