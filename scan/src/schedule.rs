//! Reverse mode over many steps in bounded memory: placement of stored carries and recomputation.
//!
//! ```text
//! forward     c₀ → c₁ → … → c_N, keeping some carries
//! backward    spans of steps from the last to the first: each requires its initial carry
//! ```
//!
//! A schedule is a sequence of actions that depends only on the policy and the number of steps. The caller supplies the
//! step function and the vjp of a span of steps; spans are differentiated in the same order under every policy.

use std::collections::BTreeMap;

use t4a_tensor::TensorError;

/// Policy that selects the carries, out of N, to store for the reverse pass.
///
/// ```text
/// policy        carries kept    in a span   steps made again
/// Carries       N               1           0
/// Sqrt          √N              √N          0
/// Segment(k)    ⌈N/k⌉           k           0
/// Revolve(s)    s               1           (r − 1) N − β(s+1, r−1) + 1
/// ```
///
/// with `β(s, r) = (s + r)!/(s! r!)` and r such that `β(s, r−1) < N ≤ β(s, r)`. In addition every span recomputes and
/// records its own steps once. The initial carry is an operand and is not counted for Revolve; the current carry is
/// counted.
///
/// Reference: Griewank and Walther 2000, *Algorithm 799: revolve*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Policy {
    /// Every carry.
    Carries,
    /// [`Policy::Segment`] of ⌈√N⌉ steps.
    #[default]
    Sqrt,
    /// One carry for this many steps.
    Segment(usize),
    /// At most this many carries, placed for minimal recomputation.
    Revolve(usize),
}

/// Next action. The current carry is c₀ before the first action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Executes the steps `from .. to`: the current carry becomes that before step `to`.
    Advance {
        /// The first step.
        from: usize,
        /// The step after the last one.
        to: usize,
    },
    /// Stores the current carry, which is that before this step.
    Store(usize),
    /// Loads a stored carry as the current carry.
    Restore(usize),
    /// Drops a stored carry.
    Discard(usize),
    /// Differentiates the steps `from .. to`; the current carry is that before step `from`.
    Reverse {
        /// The first step.
        from: usize,
        /// The step after the last one.
        to: usize,
    },
}

/// `β(s, r) = (s + r)!/(s! r!)`, saturated at `usize::MAX`.
fn beta(s: usize, r: usize) -> usize {
    let mut value = 1u128;
    for i in 1..=s.min(r) as u128 {
        // Exact: a product of i consecutive integers is divisible by i!.
        value = value * (s.max(r) as u128 + i) / i;
        if value > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    value as usize
}

/// The r with `β(s, r−1) < n ≤ β(s, r)`: maximum number of executions of a step.
fn repetitions(s: usize, n: usize) -> usize {
    if s == 1 {
        return n.saturating_sub(1);
    }
    (0..).find(|&r| beta(s, r) >= n).unwrap_or(n)
}

/// The schedule of a reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    policy: Policy,
    steps: usize,
}

/// Stack of remaining tasks; the last element is executed first.
#[derive(Clone, Debug)]
pub struct Actions(Vec<ScheduleTask>);

#[derive(Clone, Copy, Debug)]
enum ScheduleTask {
    One(Action),
    /// Forward segments of `length` steps, from step `next` to step `steps`.
    Keep {
        next: usize,
        length: usize,
        steps: usize,
    },
    /// Backward segments: the first `count` are left.
    Spans {
        count: usize,
        length: usize,
        steps: usize,
    },
    /// `length` steps from `from` with `s` stored carries, including the one before step `from`.
    Revolve {
        from: usize,
        length: usize,
        s: usize,
    },
    /// The same without a free carry, with `length` steps left.
    Single {
        from: usize,
        length: usize,
    },
}

impl Schedule {
    /// The schedule of a policy for a number of steps.
    ///
    /// # Errors
    /// [`TensorError::Value`] for segments of no steps, or no carries.
    pub fn new(policy: Policy, steps: usize) -> Result<Self, TensorError> {
        match policy {
            Policy::Segment(0) | Policy::Revolve(0) => {
                let message = format!("{policy:?} keeps nothing: at least 1 is required");
                Err(TensorError::value("scan", message))
            }
            _ => Ok(Self { policy, steps }),
        }
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Length of a span, except the last one.
    fn length(&self) -> usize {
        let root = self.steps.isqrt();
        match self.policy {
            Policy::Sqrt => (root + (root * root < self.steps) as usize).max(1),
            Policy::Segment(k) => k.min(self.steps.max(1)),
            Policy::Carries | Policy::Revolve(_) => 1,
        }
    }

    /// Maximum number of steps in a differentiated span.
    pub fn span(&self) -> usize {
        self.length().min(self.steps)
    }

    /// Backward actions of all steps, as if the forward pass had ended before step N − 1.
    fn revolve(&self, s: usize) -> Actions {
        let all = ScheduleTask::Revolve { from: 0, length: self.steps, s };
        Actions(vec![all, ScheduleTask::One(Action::Store(0))])
    }

    /// Actions of the forward pass; they end with the carry after the last step.
    pub fn forward(&self) -> Actions {
        let (steps, length) = (self.steps, self.length());
        if steps == 0 {
            return Actions(Vec::new());
        }
        match self.policy {
            Policy::Revolve(s) => {
                let last = steps - 1;
                let up_to_there =
                    self.revolve(s).take_while(|a| !matches!(a, Action::Reverse { .. }));
                let mut all: Vec<Action> = up_to_there.collect();
                if !all.contains(&Action::Store(last)) {
                    all.push(Action::Store(last));
                }
                all.push(Action::Advance { from: last, to: steps });
                Actions(all.into_iter().rev().map(ScheduleTask::One).collect())
            }
            _ => Actions(vec![ScheduleTask::Keep { next: 0, length, steps }]),
        }
    }

    /// Number of differentiated spans.
    pub fn spans(&self) -> usize {
        self.steps.div_ceil(self.length())
    }

    /// Actions of the backward pass, from the cotangents of the last carry to those of the first.
    pub fn backward(&self) -> Actions {
        let (steps, length) = (self.steps, self.length());
        if steps == 0 {
            return Actions(Vec::new());
        }
        match self.policy {
            Policy::Revolve(s) => {
                let mut rest = self.revolve(s);
                let mut kept = Vec::new();
                for action in rest.by_ref() {
                    match action {
                        Action::Store(step) => kept.push(step),
                        Action::Reverse { .. } => break,
                        _ => {}
                    }
                }
                let last = steps - 1;
                let reverse = Action::Reverse { from: last, to: steps };
                // This carry was stored for the last step only; if the schedule also stores it, the schedule drops it.
                if !kept.contains(&last) {
                    rest.0.push(ScheduleTask::One(Action::Discard(last)));
                }
                rest.0.extend([reverse, Action::Restore(last)].map(ScheduleTask::One));
                rest
            }
            _ => {
                Actions(vec![ScheduleTask::Spans { count: steps.div_ceil(length), length, steps }])
            }
        }
    }
}

impl Iterator for Actions {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            // Tasks are pushed in reverse order.
            match self.0.pop()? {
                ScheduleTask::One(action) => return Some(action),
                ScheduleTask::Keep { next, length, steps } => {
                    let to = (next + length).min(steps);
                    if to < steps {
                        self.0.push(ScheduleTask::Keep { next: to, length, steps });
                    }
                    self.0.push(ScheduleTask::One(Action::Advance { from: next, to }));
                    self.0.push(ScheduleTask::One(Action::Store(next)));
                }
                ScheduleTask::Spans { count, length, steps } => {
                    let from = (count - 1) * length;
                    let to = (from + length).min(steps);
                    if count > 1 {
                        self.0.push(ScheduleTask::Spans { count: count - 1, length, steps });
                    }
                    let reverse = Action::Reverse { from, to };
                    let all = [Action::Discard(from), reverse, Action::Restore(from)];
                    self.0.extend(all.map(ScheduleTask::One));
                }
                ScheduleTask::Revolve { from, length: 1, .. } => {
                    return Some(Action::Reverse { from, to: from + 1 });
                }
                ScheduleTask::Revolve { from, length, s: 1 } => {
                    self.0.push(ScheduleTask::Single { from, length })
                }
                ScheduleTask::Revolve { from, length, s } => {
                    let r = repetitions(s, length);
                    let least = if r < 2 { 1 } else { beta(s, r - 2) };
                    let ahead = least.max(length.saturating_sub(beta(s - 1, r)));
                    let middle = from + ahead;
                    self.0.push(ScheduleTask::Revolve { from, length: ahead, s });
                    self.0.push(ScheduleTask::One(Action::Restore(from)));
                    self.0.push(ScheduleTask::One(Action::Discard(middle)));
                    self.0.push(ScheduleTask::Revolve {
                        from: middle,
                        length: length - ahead,
                        s: s - 1,
                    });
                    self.0.push(ScheduleTask::One(Action::Store(middle)));
                    self.0.push(ScheduleTask::One(Action::Advance { from, to: middle }));
                }
                ScheduleTask::Single { from, length } => {
                    let last = from + length - 1;
                    let reverse = Action::Reverse { from: last, to: last + 1 };
                    if length == 1 {
                        return Some(reverse);
                    }
                    self.0.push(ScheduleTask::Single { from, length: length - 1 });
                    self.0.push(ScheduleTask::One(Action::Restore(from)));
                    self.0.push(ScheduleTask::One(reverse));
                    self.0.push(ScheduleTask::One(Action::Advance { from, to: last }));
                }
            }
        }
    }
}

/// Stored carries, keyed by the step that they precede.
#[derive(Clone, Debug)]
pub struct Stored<C>(BTreeMap<usize, C>);

impl<C> Default for Stored<C> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<C: Clone> Stored<C> {
    fn get(&self, step: usize) -> C {
        let kept = self.0.get(&step);
        kept.unwrap_or_else(|| unreachable!("carry {step} is not kept")).clone()
    }
}

impl Schedule {
    /// Executes all steps; returns the last carry and the stored ones. `step(t, c)` executes step t.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn run_forward<C: Clone, E>(
        &self,
        first: C,
        mut step: impl FnMut(usize, C) -> Result<C, E>,
    ) -> Result<(C, Stored<C>), E> {
        let (mut carry, mut stored) = (first, Stored::default());
        for action in self.forward() {
            match action {
                Action::Advance { from, to } => {
                    for t in from..to {
                        carry = step(t, carry)?;
                    }
                }
                Action::Store(t) => drop(stored.0.insert(t, carry.clone())),
                other => unreachable!("{other:?} in a forward pass"),
            }
        }
        Ok((carry, stored))
    }

    /// Differentiates all spans, the last one first. `step` is that of [`Schedule::run_forward`];
    /// `reverse(from, to, c)` differentiates steps `from .. to` with initial carry c.
    ///
    /// # Errors
    /// Those of steps and spans.
    pub fn run_backward<C: Clone, E>(
        &self,
        mut stored: Stored<C>,
        mut step: impl FnMut(usize, C) -> Result<C, E>,
        mut reverse: impl FnMut(usize, usize, C) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut carry: Option<C> = None;
        for action in self.backward() {
            match action {
                Action::Advance { from, to } => {
                    for t in from..to {
                        let now = carry.take().unwrap_or_else(|| unreachable!("one is at work"));
                        carry = Some(step(t, now)?);
                    }
                }
                Action::Store(t) => {
                    let now = carry.clone().unwrap_or_else(|| unreachable!("one is at work"));
                    stored.0.insert(t, now);
                }
                Action::Restore(t) => {
                    // Drop the previous carry before the clone, to bound memory.
                    drop(carry.take());
                    carry = Some(stored.get(t));
                }
                Action::Discard(t) => drop(stored.0.remove(&t)),
                Action::Reverse { from, to } => {
                    let now = carry.take().unwrap_or_else(|| unreachable!("one is at work"));
                    reverse(from, to, now)?;
                }
            }
        }
        Ok(())
    }
}
