//! Loops that end when a test fails, and branches of which one is taken.
//!
//! ```text
//! iterate   while test(θ, c): c ← body(θ, c)
//! switch    y = branch_k(θ)
//! ```
//!
//! On a tape each is one node, whose reverse pass runs the loop, or the selected branch, once more. If the backend below runs
//! bodies as programs, this second run stores all carries, and a reverse sweep visits them from the last one to the first;
//! otherwise the loop is recorded as a scan. Steps that run a reverse pass of their own cannot run again inside of one: such a
//! loop or branch is executed on the tape itself.

use std::sync::Arc;

use t4a_diff::{Array, Integers, Value};
use t4a_tensor::{AnyTensor, DType};

use super::below::{Marks, below_steps, placed, step_back};
use super::options::Options;
use super::span::Span;
use super::steps::{Flat, Steps};
use super::tape::{
    Ends, Tape, all_above, all_below, below, is_tracked, joined, recorded, scan_on_tape,
};
use crate::error::{Result, ScanError};
use crate::schedule::Policy;

/// A loop with a test, and optionally a reverse sweep over its carries.
pub struct Repeated<A: Array> {
    /// The test: its y is one truth value, and it returns the carry unchanged.
    pub test: Steps<A>,
    /// The body: the next carry, without xs and ys.
    pub body: Steps<A>,
    /// A step of the reverse sweep, whose x is a carry of the loop: it runs for the last carry first.
    pub back: Option<Steps<A>>,
    /// Maximum number of steps.
    pub limit: usize,
}

impl<A: Array> Clone for Repeated<A> {
    fn clone(&self) -> Self {
        let (test, body, back) = (self.test.clone(), self.body.clone(), self.back.clone());
        Self { test, body, back, limit: self.limit }
    }
}

/// The only element.
fn number<A: Array>(what: &'static str, all: &[Value<A>]) -> Result<AnyTensor> {
    let one = match all {
        [one @ (Value::Integers(_) | Value::Flags(_))] => one.elements()?,
        _ => {
            return Err(ScanError::NotOne { what, shapes: all.iter().map(Value::shape).collect() });
        }
    };
    match one.shape().iter().product::<usize>() {
        1 => Ok(one),
        _ => Err(ScanError::NotOne { what, shapes: vec![one.shape().to_vec()] }),
    }
}

/// True if the test of a loop holds; y is its result.
///
/// # Errors
/// [`ScanError::NotOne`] unless it is one truth value; those of reading it.
pub fn holds<A: Array>(y: &[Value<A>]) -> Result<bool> {
    let one = number("the test of a loop", y)?.cast(DType::Bool)?;
    Ok(one.typed::<bool>()?.to_vec()?[0])
}

/// The branch of so many that an index takes: the first for negative ones, the last for those beyond it.
///
/// # Errors
/// [`ScanError::NotOne`] unless it is one integer; those of reading it.
pub fn taken<A: Array>(index: &Value<A>, branches: usize) -> Result<usize> {
    let one = number("the index of a branch", std::slice::from_ref(index))?.cast(DType::I64)?;
    let index = one.typed::<i64>()?.to_vec()?[0];
    Ok(usize::try_from(index).unwrap_or(0).min(branches.saturating_sub(1)))
}

/// The last carry of the loop; with [`Repeated::back`] the result of the reverse sweep, which begins with `given`.
///
/// Cost: tests and steps, one truth value read for each; with `back` all carries are kept.
///
/// # Errors
/// [`ScanError::Endless`]; those of the steps, and of reading a test.
pub fn iterate<A: Array>(
    repeated: &Repeated<A>,
    consts: &[Value<A>],
    init: Flat<A>,
    given: Flat<A>,
) -> Result<Flat<A>> {
    let Repeated { test, body, back, limit } = repeated;
    let (mut carry, mut carries) = (init, Vec::new());
    let mut steps = 0;
    while holds(&test.step(consts, carry.clone(), Vec::new())?.1)? {
        if steps == *limit {
            return Err(ScanError::Endless { limit: *limit });
        }
        let next = body.step(consts, carry.clone(), Vec::new())?.0;
        let before = std::mem::replace(&mut carry, next);
        carries.extend(back.is_some().then_some(before));
        steps += 1;
    }
    let Some(back) = back else { return Ok(carry) };
    let step = |state, carry| Ok(back.step(consts, state, carry)?.0);
    carries.into_iter().rev().try_fold(given, step)
}

/// As [`iterate`] without [`Repeated::back`], as a scan on a tape of as many steps as `run` below the tape takes.
///
/// Cost: the loop twice, and what its scan keeps and computes by the policy of the options.
///
/// # Errors
/// Those of `run` and of [`scan_on_tape`].
pub fn iterate_on_tape<T: Tape<Kind: Sync>>(
    repeated: Repeated<T>,
    consts: Flat<T>,
    init: Flat<T>,
    options: &Options,
    run: impl Fn(Repeated<T::Below>, [Flat<T::Below>; 3]) -> Result<Flat<T::Below>>,
) -> Result<Flat<T>> {
    match iterate_as_scan(&repeated, consts.clone(), init.clone(), options, run) {
        Err(ScanError::ReversePass { .. }) => iterate(&repeated, &consts, init, Vec::new()),
        outcome => outcome,
    }
}

fn iterate_as_scan<T: Tape<Kind: Sync>>(
    repeated: &Repeated<T>,
    consts: Flat<T>,
    init: Flat<T>,
    options: &Options,
    run: impl Fn(Repeated<T::Below>, [Flat<T::Below>; 3]) -> Result<Flat<T::Below>>,
) -> Result<Flat<T>> {
    let mut all = consts.iter().chain(&init);
    let Some(like) = all.find_map(Value::as_float) else {
        return iterate(repeated, &consts, init, Vec::new());
    };
    let (kind, tracked) = (like.kind(), consts.iter().chain(&init).any(is_tracked));
    let below = repeated.below_tape(kind);
    let (of_consts, mut of_init) = (all_below(consts.clone()), all_below(init.clone()));
    if !tracked {
        return Ok(all_above(run(below, [of_consts, of_init, Vec::new()])?, kind));
    }
    of_init.push(Value::Integers(like.clone().below().counting(1)));
    let last = run(below.counted(), [of_consts, of_init, Vec::new()])?;
    let length = number("the number of steps", &last[init.len()..])?.cast(DType::I64)?;
    let length = length.typed::<i64>()?.to_vec()?[0];
    let steps = Steps { length: usize::try_from(length).unwrap_or(0), ..repeated.body.clone() };
    let [last, _] = scan_on_tape(steps, consts, init, Vec::new(), options)?;
    Ok(last)
}

impl<T: Tape<Kind: Sync>> Repeated<T> {
    /// The loop on constants of a tape, as one below it.
    fn below_tape(&self, kind: T::Kind) -> Repeated<T::Below> {
        Repeated {
            test: below_steps(&self.test, kind, Policy::Carries),
            body: below_steps(&self.body, kind, Policy::Carries),
            back: None,
            limit: self.limit,
        }
    }
}

impl<A: Array> Repeated<A> {
    /// With the number of steps so far as the last leaf of the carry.
    fn counted(self) -> Self {
        let with_count = |steps: Steps<A>, more: i64| {
            let own = steps.clone();
            let body = move |consts: Flat<A>, mut carry: Flat<A>, x| {
                let count = carry.pop();
                let (mut carry, y) = own.step(&consts, carry, x)?;
                carry.extend(count.map(|count| Value::Integers(count.integers().shift(more))));
                Ok((carry, y))
            };
            let mut paths = steps.paths.to_vec();
            paths.push("the number of steps".into());
            Steps { body: Arc::new(body), paths: Arc::new(paths), ..steps }
        };
        Self { test: with_count(self.test, 0), body: with_count(self.body, 1), ..self }
    }
}

/// A loop below a tape: consts, the first carry and what goes back.
pub trait IterateBelow<A: Array>:
    Fn(Repeated<A>, [Flat<A>; 3]) -> Result<Flat<A>> + Clone + Send + 'static
{
}

impl<A: Array, F> IterateBelow<A> for F where
    F: Fn(Repeated<A>, [Flat<A>; 3]) -> Result<Flat<A>> + Clone + Send + 'static
{
}

/// As [`iterate`] without [`Repeated::back`], as one node of a tape, with `run` below it.
///
/// # Errors
/// Those of `run`; `Captured`, `DTypes`.
pub fn iterate_below_tape<T: Tape<Kind: Sync>>(
    repeated: Repeated<T>,
    consts: Flat<T>,
    init: Flat<T>,
    run: impl IterateBelow<T::Below>,
) -> Result<Flat<T>> {
    match iterate_as_node(repeated.clone(), consts.clone(), init.clone(), run) {
        Err(ScanError::ReversePass { .. }) => iterate(&repeated, &consts, init, Vec::new()),
        outcome => outcome,
    }
}

fn iterate_as_node<T: Tape<Kind: Sync>>(
    repeated: Repeated<T>,
    consts: Flat<T>,
    init: Flat<T>,
    run: impl IterateBelow<T::Below>,
) -> Result<Flat<T>> {
    let mut all = consts.iter().chain(&init);
    let Some(kind) = all.find_map(Value::as_float).map(T::kind) else {
        return iterate(&repeated, &consts, init, Vec::new());
    };
    if !consts.iter().chain(&init).any(is_tracked) {
        let all = [all_below(consts), all_below(init), Vec::new()];
        return Ok(all_above(run(repeated.below_tape(kind), all)?, kind));
    }
    let forward = |_: T, [consts, init, _]: [Flat<T::Below>; 3]| {
        let below = repeated.below_tape(kind);
        let last = run(below.clone(), [consts.clone(), init.clone(), Vec::new()])?;
        Ok((last, Ended { steps: repeated.body, kind, below, consts, init, run }))
    };
    let [last, _] = recorded([consts, init, Vec::new()], Policy::Carries, forward, Ended::back)?;
    Ok(last)
}

/// Everything that the rule of a loop needs.
struct Ended<T: Tape, S> {
    steps: Steps<T>,
    kind: T::Kind,
    below: Repeated<T::Below>,
    consts: Flat<T::Below>,
    init: Flat<T::Below>,
    run: S,
}

impl<T: Tape<Kind: Sync>, S: IterateBelow<T::Below>> Ended<T, S> {
    /// Cotangents of the tracked consts and carries, packed.
    fn back(self, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
        let (of_consts, of_init) = ends.tracked.split_at(self.consts.len());
        let given = ends.parted(cotangent.clone()).into_iter().flatten().map(Value::Float);
        let tracked = self.consts.iter().zip(of_consts).filter(|(_, tracked)| **tracked);
        let sums: Flat<T::Below> = tracked.map(|(x, _)| x.zeros(&x.shape())).collect();
        let given: Flat<T::Below> = given.chain(sums).collect();
        let marks = Marks { consts: of_consts.to_vec(), xs: Vec::new(), ys: Vec::new() };
        let back = Steps {
            body: step_back(&self.steps, self.kind, self.init.len(), marks),
            length: 1,
            reverse: false,
            paths: Arc::new((0..given.len()).map(|i| format!("cotangent {i}")).collect()),
        };
        let floats: Vec<bool> = self.init.iter().map(|x| x.as_float().is_some()).collect();
        let repeated = Repeated { back: Some(back), ..self.below };
        let last = (self.run)(repeated, [self.consts, self.init, given])?;
        let mut last = last.into_iter().filter_map(Value::into_float);
        let moving = floats.into_iter().zip(of_init).filter(|(float, _)| *float);
        let of_carry: Vec<T::Below> = moving
            .map(|(_, tracked)| (last.next(), tracked))
            .filter_map(|(g, tracked)| g.filter(|_| *tracked))
            .collect();
        Ok(joined(last.chain(of_carry).collect()))
    }
}

/// The results of the branch that an index takes, as ys of its only step.
///
/// # Errors
/// Those of the branch, and of reading the index; [`ScanError::NoBranch`].
pub fn switch<A: Array>(
    index: &Value<A>,
    branches: &[Steps<A>],
    operands: &[Value<A>],
) -> Result<Flat<A>> {
    let branch = branches.get(taken(index, branches.len())?).ok_or(ScanError::NoBranch)?;
    Ok(branch.step(operands, Vec::new(), Vec::new())?.1)
}

/// Checks that a branch returns what branch 0 does.
///
/// # Errors
/// [`ScanError::Branches`].
pub fn same_results<A: Array>(branch: usize, first: &[Value<A>], other: &[Value<A>]) -> Result<()> {
    let is = |all: &[Value<A>]| all.iter().map(|x| (x.dtype(), x.shape())).collect::<Vec<_>>();
    let [first, other] = [is(first), is(other)];
    if first == other {
        return Ok(());
    }
    let [first, other] = [first, other].map(|all| format!("{all:?}"));
    Err(ScanError::Branches { branch, first, other })
}

/// A choice below a tape: index, branches, operands.
pub trait SwitchBelow<A: Array>:
    Fn(Value<A>, Vec<Steps<A>>, Flat<A>) -> Result<Flat<A>> + Clone + Send + 'static
{
}

impl<A: Array, F> SwitchBelow<A> for F where
    F: Fn(Value<A>, Vec<Steps<A>>, Flat<A>) -> Result<Flat<A>> + Clone + Send + 'static
{
}

/// As [`switch`], as one node of a tape, with `run` below it.
///
/// # Errors
/// Those of `run`; `Captured`, `DTypes`.
pub fn switch_below_tape<T: Tape<Kind: Sync>>(
    index: Value<T>,
    branches: Vec<Steps<T>>,
    operands: Flat<T>,
    run: impl SwitchBelow<T::Below>,
) -> Result<Flat<T>> {
    match switch_as_node(index.clone(), branches.clone(), operands.clone(), run) {
        Err(ScanError::ReversePass { .. }) => switch(&index, &branches, &operands),
        outcome => outcome,
    }
}

fn switch_as_node<T: Tape<Kind: Sync>>(
    index: Value<T>,
    branches: Vec<Steps<T>>,
    operands: Flat<T>,
    run: impl SwitchBelow<T::Below>,
) -> Result<Flat<T>> {
    let Some(kind) = operands.iter().find_map(Value::as_float).map(T::kind) else {
        return switch(&index, &branches, &operands);
    };
    let index = below(index);
    let below_tape: Vec<Steps<T::Below>> =
        branches.iter().map(|branch| below_steps(branch, kind, Policy::Carries)).collect();
    if !operands.iter().any(is_tracked) {
        return Ok(all_above(run(index, below_tape, all_below(operands))?, kind));
    }
    let forward = |like: T, [operands, ..]: [Flat<T::Below>; 3]| {
        let results = run(index.clone(), below_tape, operands.clone())?;
        Ok((results, ChoiceResiduals { branches, kind: like.kind(), index, operands, run }))
    };
    let all = [operands, Vec::new(), Vec::new()];
    let [_, results] = recorded(all, Policy::Carries, forward, ChoiceResiduals::back)?;
    Ok(results)
}

/// Everything that the rule of a choice needs.
struct ChoiceResiduals<T: Tape, S> {
    branches: Vec<Steps<T>>,
    kind: T::Kind,
    index: Value<T::Below>,
    operands: Flat<T::Below>,
    run: S,
}

impl<T: Tape<Kind: Sync>, S: SwitchBelow<T::Below>> ChoiceResiduals<T, S> {
    /// Cotangents of the tracked operands, packed.
    fn back(self, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
        let of_results: Vec<bool> = ends.outputs.iter().map(Option::is_some).collect();
        let given = ends.parted(cotangent).into_iter().flatten().map(Value::Float);
        let (count, kind) = (self.operands.len(), self.kind);
        let back = |branch: Steps<T>| {
            let (of_results, tracked) = (of_results.clone(), ends.tracked.clone());
            let body = move |mut operands: Flat<T::Below>, _, _| {
                let given = operands.split_off(count);
                let like = operands.clone();
                let of_consts = vec![None; count];
                let span = Span {
                    steps: branch.clone(),
                    kind,
                    consts: operands,
                    carry: Vec::new(),
                    xs: vec![Vec::new()],
                    of_carry: Vec::new(),
                    of_ys: vec![placed(of_results.iter().copied(), given)],
                    of_consts,
                    wanted_xs: Vec::new(),
                };
                let found = T::back(span, &mut Vec::new())?.consts.into_iter().zip(like);
                let wanted = found.zip(&tracked).filter(|(_, tracked)| **tracked);
                let fill = |(g, x): (Option<T::Below>, Value<T::Below>)| {
                    g.map_or_else(|| x.zeros(&x.shape()), Value::Float)
                };
                Ok((Vec::new(), wanted.map(|(found, _)| fill(found)).collect()))
            };
            Steps { body: Arc::new(body), length: 1, reverse: false, paths: Arc::default() }
        };
        let branches = self.branches.into_iter().map(back).collect();
        let operands = self.operands.into_iter().chain(given).collect();
        let all = (self.run)(self.index, branches, operands)?;
        Ok(joined(all.into_iter().filter_map(Value::into_float).collect()))
    }
}
