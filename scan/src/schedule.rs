//! Reverse mode through many steps in bounded memory: which carries are kept, and which are computed again.
//!
//! ```text
//! forward     c₀ → c₁ → … → c_N, keeping some carries
//! backward    spans of steps from the last to the first: each needs the carry that it begins with
//! ```
//!
//! A schedule is a sequence of actions that depends on the policy and the number of steps alone. Whoever
//! carries it out knows how to make a step and how to differentiate a span of steps; spans are
//! differentiated in the same order under every policy.

use std::collections::BTreeMap;

use t4a_tensor::TensorError;

/// Which carries of N steps are kept for the reverse pass.
///
/// ```text
/// policy        carries kept    in a span   steps made again
/// Carries       N               1           0
/// Sqrt          √N              √N          0
/// Segment(k)    ⌈N/k⌉           k           0
/// Revolve(s)    s               1           (r − 1) N − β(s+1, r−1) + 1
/// ```
///
/// with `β(s, r) = (s + r)!/(s! r!)` and r such that `β(s, r−1) < N ≤ β(s, r)`. Beside these every span runs
/// its own steps once more, recording them. The first carry is an operand, which is there anyway and is not
/// counted for Revolve; the last one at work is.
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
    /// At most this many carries, at places that need the fewest steps again.
    Revolve(usize),
}

/// What is done next. The carry at work is c₀ before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Makes the steps `from .. to`: the carry at work becomes that before step `to`.
    Advance {
        /// The first step.
        from: usize,
        /// The step after the last one.
        to: usize,
    },
    /// Keeps the carry at work, which is that before this step.
    Store(usize),
    /// A carry that was kept becomes the one at work.
    Restore(usize),
    /// A carry is not needed any more.
    Discard(usize),
    /// Differentiates the steps `from .. to`; the carry before the first of them is at work.
    Reverse {
        /// The first step.
        from: usize,
        /// The step after the last one.
        to: usize,
    },
}

/// `β(s, r) = (s + r)!/(s! r!)`, at most `usize::MAX`.
fn beta(s: usize, r: usize) -> usize {
    let mut value = 1u128;
    for i in 1..=s.min(r) as u128 {
        // Exact: the product of i numbers in a row is divisible by i!.
        value = value * (s.max(r) as u128 + i) / i;
        if value > usize::MAX as u128 {
            return usize::MAX;
        }
    }
    value as usize
}

/// The r of `β(s, r−1) < n ≤ β(s, r)`: how often a step is made at most.
fn repetitions(s: usize, n: usize) -> usize {
    if s == 1 {
        return n.saturating_sub(1);
    }
    (0..).find(|&r| beta(s, r) >= n).unwrap_or(n)
}

/// The plan of a reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    policy: Policy,
    steps: usize,
}

/// What is left to do, the next one last.
#[derive(Clone, Debug)]
pub struct Actions(Vec<Task>);

#[derive(Clone, Copy, Debug)]
enum Task {
    One(Action),
    /// Segments `0 .. count` of this many steps out of all of them, forwards.
    Keep {
        next: usize,
        length: usize,
        steps: usize,
    },
    /// The same backwards: `count` of them are left.
    Spans {
        count: usize,
        length: usize,
        steps: usize,
    },
    /// `length` steps from `from` with `s` carries, the one before the first step among them.
    Revolve {
        from: usize,
        length: usize,
        s: usize,
    },
    /// The same with no carry to spare, when `length` steps are left.
    Single {
        from: usize,
        length: usize,
    },
}

impl Schedule {
    /// The schedule of a policy for this many steps.
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

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Steps of a span, except the last.
    fn length(&self) -> usize {
        let root = self.steps.isqrt();
        match self.policy {
            Policy::Sqrt => (root + (root * root < self.steps) as usize).max(1),
            Policy::Segment(k) => k.min(self.steps.max(1)),
            Policy::Carries | Policy::Revolve(_) => 1,
        }
    }

    /// The greatest number of steps in a span that is differentiated.
    pub fn span(&self) -> usize {
        self.length().min(self.steps)
    }

    /// The whole of it, backwards, as if the forward pass had ended before step N − 1.
    fn revolve(&self, s: usize) -> Actions {
        let all = Task::Revolve { from: 0, length: self.steps, s };
        Actions(vec![all, Task::One(Action::Store(0))])
    }

    /// What is done before the cotangents are there: ends with the carry after the last step.
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
                Actions(all.into_iter().rev().map(Task::One).collect())
            }
            _ => Actions(vec![Task::Keep { next: 0, length, steps }]),
        }
    }

    /// What is done from the cotangents of the last carry to those of the first.
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
                // It was kept for this; where the schedule keeps it itself, it discards it.
                if !kept.contains(&last) {
                    rest.0.push(Task::One(Action::Discard(last)));
                }
                rest.0.extend([reverse, Action::Restore(last)].map(Task::One));
                rest
            }
            _ => Actions(vec![Task::Spans { count: steps.div_ceil(length), length, steps }]),
        }
    }
}

impl Iterator for Actions {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            // What follows is pushed in reverse.
            match self.0.pop()? {
                Task::One(action) => return Some(action),
                Task::Keep { next, length, steps } => {
                    let to = (next + length).min(steps);
                    if to < steps {
                        self.0.push(Task::Keep { next: to, length, steps });
                    }
                    self.0.push(Task::One(Action::Advance { from: next, to }));
                    self.0.push(Task::One(Action::Store(next)));
                }
                Task::Spans { count, length, steps } => {
                    let from = (count - 1) * length;
                    let to = (from + length).min(steps);
                    if count > 1 {
                        self.0.push(Task::Spans { count: count - 1, length, steps });
                    }
                    let reverse = Action::Reverse { from, to };
                    let all = [Action::Discard(from), reverse, Action::Restore(from)];
                    self.0.extend(all.map(Task::One));
                }
                Task::Revolve { from, length: 1, .. } => {
                    return Some(Action::Reverse { from, to: from + 1 });
                }
                Task::Revolve { from, length, s: 1 } => self.0.push(Task::Single { from, length }),
                Task::Revolve { from, length, s } => {
                    let r = repetitions(s, length);
                    let least = if r < 2 { 1 } else { beta(s, r - 2) };
                    let ahead = least.max(length.saturating_sub(beta(s - 1, r)));
                    let middle = from + ahead;
                    self.0.push(Task::Revolve { from, length: ahead, s });
                    self.0.push(Task::One(Action::Restore(from)));
                    self.0.push(Task::One(Action::Discard(middle)));
                    self.0.push(Task::Revolve { from: middle, length: length - ahead, s: s - 1 });
                    self.0.push(Task::One(Action::Store(middle)));
                    self.0.push(Task::One(Action::Advance { from, to: middle }));
                }
                Task::Single { from, length } => {
                    let last = from + length - 1;
                    let reverse = Action::Reverse { from: last, to: last + 1 };
                    if length == 1 {
                        return Some(reverse);
                    }
                    self.0.push(Task::Single { from, length: length - 1 });
                    self.0.push(Task::One(Action::Restore(from)));
                    self.0.push(Task::One(reverse));
                    self.0.push(Task::One(Action::Advance { from, to: last }));
                }
            }
        }
    }
}

/// Carries that were kept, by the step before which they are.
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
    /// Makes all steps: the last carry, and those that are kept. `step(t, c)` makes step t.
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
    /// `reverse(from, to, c)` differentiates steps `from .. to` which begin with c.
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
                    // The one before it goes first.
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
