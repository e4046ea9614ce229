//! The derivative of a span of steps, inside of the reverse pass of a tape.
//!
//! ```text
//! anchor ── base ───┬── input 0 ──┐                    ┌── root 0
//!             │     ├── input 1 ──┤ steps of the span ─┤
//!             │     └── …         ┘                    └── … ── root
//!           link ── next anchor
//! ```
//!
//! A root passes the cotangent of one output on, an input sends its own to the receiver. With anchors, leaves that
//! the caller holds, a span is recorded in the graph of the span before: `base` is a child of the anchor between
//! them. `link` is not passed by the reverse pass: it joins the anchor of the next span to the graph, and reports
//! when the tape drops it, which happens once its parent is consumed.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use t4a_diff::{Array, Value};

use super::steps::{Flat, Steps};
use super::tape::{Tape, above};
use crate::error::Result;

/// A span of steps: its inputs, and the cotangents of its outputs.
#[derive(Debug)]
pub struct Span<T: Tape> {
    pub(super) steps: Steps<T>,
    pub(super) kind: T::Kind,
    pub(super) consts: Flat<T::Below>,
    pub(super) carry: Flat<T::Below>,
    /// Of every step, in the order of steps.
    pub(super) xs: Vec<Flat<T::Below>>,
    /// Cotangents of the last carry, of the ys of every step, and of the consts from later steps; `None` where they are zero
    /// or there is no derivative.
    pub(super) of_carry: Vec<Option<T::Below>>,
    pub(super) of_ys: Vec<Vec<Option<T::Below>>>,
    pub(super) of_consts: Vec<Option<T::Below>>,
    /// Of which xs cotangents are of use.
    pub(super) wanted_xs: Vec<bool>,
}

/// Cotangents of the first carry, of the xs of every step, and of the consts with those from later steps.
#[derive(Debug)]
pub struct Cotangents<A> {
    pub(super) carry: Vec<Option<A>>,
    pub(super) xs: Vec<Vec<Option<A>>>,
    pub(super) consts: Vec<Option<A>>,
}

impl<A> Cotangents<A> {
    /// Takes in what an input has told.
    pub fn put(&mut self, slot: Slot, g: A) {
        match slot {
            Slot::Carry(i) => self.carry[i] = Some(g),
            Slot::X(t, i) => self.xs[t][i] = Some(g),
            Slot::Const(i) => self.consts[i] = Some(g),
        }
    }
}

/// The place of an input.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// A leaf of the first carry.
    Carry(usize),
    /// A leaf of the element of a step.
    X(usize, usize),
    /// A leaf of the consts.
    Const(usize),
}

/// Messages of the reverse pass of a span, in this order.
#[derive(Debug)]
pub enum Told<A> {
    /// The cotangent of an input; those that nothing depends on are not told.
    Cotangent(Slot, A),
    /// There are no more, and the tape is about to have forgotten the span.
    Done,
}

/// Tells that a span is done when it is dropped.
struct Last<A, F: Fn(Told<A>)>(F, PhantomData<fn(A)>);

impl<A, F: Fn(Told<A>)> Drop for Last<A, F> {
    fn drop(&mut self) {
        self.0(Told::Done);
    }
}

impl<T: Tape> Span<T> {
    /// The cotangents that are known before the reverse pass: those of consts from later steps.
    pub fn known(&self) -> Cotangents<T::Below> {
        let nothing = |x: &Flat<T::Below>| vec![None; x.len()];
        Cotangents {
            carry: nothing(&self.carry),
            xs: self.xs.iter().map(nothing).collect(),
            consts: self.of_consts.clone(),
        }
    }

    /// The cotangents of what it begins with, by a reverse pass within that around it.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn back(self) -> Result<Cotangents<T::Below>> {
        let told = Arc::new(Mutex::new(self.known()));
        let to = told.clone();
        let root = self.record(None, move |what| {
            if let Told::Cotangent(slot, g) = what {
                to.lock().unwrap_or_else(PoisonError::into_inner).put(slot, g);
            }
        })?;
        if let Some(root) = root {
            T::backward(root);
        }
        // Nodes that the pass did not reach may hold the other end.
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = Cotangents { carry: Vec::new(), xs: Vec::new(), consts: Vec::new() };
        Ok(std::mem::replace(&mut *told, nothing))
    }

    /// A leaf of the tape, if there are floats among the inputs.
    pub fn leaf(&self) -> Option<T> {
        let mut all = self.consts.iter().chain(&self.carry).chain(self.xs.iter().flatten());
        let any = all.find_map(Value::as_float)?;
        Some(T::leaf(any.full(&[1], 0.0), self.kind))
    }

    /// The steps on a tape of their own: its root, if there are inputs. The reverse pass from there tells
    /// cotangents as they are found, and, with the anchors before and after it, when it is dropped.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn record(
        self,
        anchors: Option<[T; 2]>,
        tell: impl Fn(Told<T::Below>) + Clone + Send + 'static,
    ) -> Result<Option<T>> {
        let Some(leaf) = self.leaf() else { return Ok(None) };
        let nothing = leaf.clone().below();
        let Self { steps, kind, consts, carry, xs, of_carry, of_ys, of_consts, wanted_xs } = self;
        let base = match anchors {
            None => leaf,
            Some([before, after]) => {
                let base = T::record([before], |[x]| Ok((x, ())), |(), _| Ok([None]))?;
                let last = Last(tell.clone(), PhantomData);
                let link = [base.clone(), after];
                T::record(link, |[x, _]| Ok((x, last)), |_, _| Ok([None, None]))?;
                base
            }
        };
        let input = |slot: Slot, value: Value<T::Below>| {
            let value = match value {
                Value::Float(value) => value,
                other => return Ok(above(other, kind)),
            };
            let tell = tell.clone();
            let wanted = !matches!(slot, Slot::X(_, i) if !wanted_xs[i]);
            let told = move |(), g| {
                if wanted {
                    tell(Told::Cotangent(slot, g));
                }
                Ok([None])
            };
            Ok(Value::Float(T::record([base.clone()], |_| Ok((value, ())), told)?))
        };
        let all = |xs: Flat<T::Below>, slot: &dyn Fn(usize) -> Slot| -> Result<Flat<T>> {
            xs.into_iter().enumerate().map(|(i, x)| input(slot(i), x)).collect()
        };
        let consts = all(consts, &Slot::Const)?;
        let mut carry = all(carry, &Slot::Carry)?;
        let with = |(x, g): (Value<T>, Option<T::Below>)| Some((x.into_float()?, g?));
        let mut outputs: Vec<(T, T::Below)> = Vec::new();
        // Cotangents of consts from later steps come first, so that sums are in the order of one tape.
        outputs.extend(consts.iter().cloned().zip(of_consts).filter_map(with));
        for (t, (x, of_y)) in xs.into_iter().zip(of_ys).enumerate() {
            let x = all(x, &|i| Slot::X(t, i))?;
            let (next, y) = steps.step(&consts, carry, x)?;
            carry = next;
            outputs.extend(y.into_iter().zip(of_y).filter_map(with));
        }
        outputs.extend(carry.into_iter().zip(of_carry).filter_map(with));
        let mut root = base.clone();
        for (output, g) in outputs.into_iter().rev() {
            if !output.is_tracked() {
                continue;
            }
            let nothing = nothing.clone();
            let pass_on = |g, _| Ok([Some(g), None]);
            root = T::record([output, root], |_| Ok((nothing, g)), pass_on)?;
        }
        Ok(Some(root))
    }
}
