//! Gradients on the engine: arrays that record what is computed with them, and a reverse pass.
//!
//! ```text
//! Recorded   an engine array and the node that computed it
//! Node       its operands, and the function from cotangents of results to those of operands
//! gradients  nodes in the reverse of the order of their numbers, each once
//! ```
//!
//! Nodes are dropped with the arrays that refer to them. Derivatives are of first order: cotangents are not recorded.
//!
//! ```
//! use t4a_diff::{Array, check};
//! use t4a_networks::tape::{Recorded, gradients};
//! let x = Recorded::variable(check::array(&[3], |i| i as f64));
//! let loss = x.mul(&x).mul(&x).sum(0);
//! let g = gradients(&loss, &[&x])?;
//! assert_eq!(check::elements(&g[0]), [0.0, 3.0, 12.0]);
//! # Ok::<(), t4a_networks::NetworksError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use t4a_diff::array::{Indices, Shape, Truths};
use t4a_diff::{Array, Eager, Flags, Kept, Operation, Outcome, Reverse, Value};
use t4a_tensor::{AnyTensor, DType};

use crate::error::{NetworksError, Result};

static NEXT: AtomicU64 = AtomicU64::new(0);

type Pullback = Box<dyn Fn(&[Option<Eager>]) -> Result<Vec<Option<Eager>>>>;

/// A computed array's node, and which of its results it is.
type Place = (Rc<Node>, usize);

struct Node {
    /// Greater than those of its operands.
    number: u64,
    results: usize,
    operands: Vec<Option<Place>>,
    /// From cotangents of results to those of operands; none for a variable.
    pullback: Option<Pullback>,
}

impl Drop for Node {
    /// Long chains are freed without recursion.
    fn drop(&mut self) {
        let mut rest: Vec<Place> = self.operands.drain(..).flatten().collect();
        while let Some((node, _)) = rest.pop() {
            if let Ok(mut node) = Rc::try_unwrap(node) {
                rest.extend(node.operands.drain(..).flatten());
            }
        }
    }
}

/// An engine array that records what is computed with it. Constants are recorded nowhere.
#[derive(Clone)]
pub struct Recorded {
    value: Eager,
    place: Option<Place>,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The cotangents of variables, given 1 as that of each element of a loss. A variable without influence has zeros.
///
/// # Errors
/// Those of derivative rules; the first error of the computation.
pub fn gradients(loss: &Recorded, variables: &[&Recorded]) -> Result<Vec<Eager>> {
    pullback(&[(loss, loss.value.full(&loss.shape(), 1.0))], variables)
}

/// The cotangents of variables, given those of results.
///
/// # Errors
/// As [`gradients`].
pub fn pullback(results: &[(&Recorded, Eager)], variables: &[&Recorded]) -> Result<Vec<Eager>> {
    let mut open: BTreeMap<u64, (Rc<Node>, Vec<Option<Eager>>)> = BTreeMap::new();
    let mut found: BTreeMap<(u64, usize), Eager> = BTreeMap::new();
    let wanted: Vec<Option<(u64, usize)>> =
        variables.iter().map(|x| x.place.as_ref().map(|(node, k)| (node.number, *k))).collect();
    let give = |open: &mut BTreeMap<u64, (Rc<Node>, Vec<Option<Eager>>)>,
                (node, k): &Place,
                cotangent: Eager| {
        let fresh = || (Rc::clone(node), vec![None; node.results]);
        let slot = &mut open.entry(node.number).or_insert_with(fresh).1[*k];
        *slot = Some(match slot.take() {
            Some(sum) => sum.plus(&cotangent),
            None => cotangent,
        });
    };
    for (result, cotangent) in results {
        if let Some(place) = &result.place {
            give(&mut open, place, cotangent.clone());
        }
    }
    while let Some((number, (node, cotangents))) = open.pop_last() {
        for (k, cotangent) in cotangents.iter().enumerate() {
            if let (Some(cotangent), true) = (cotangent, wanted.contains(&Some((number, k)))) {
                found.insert((number, k), cotangent.clone());
            }
        }
        let Some(pullback) = &node.pullback else { continue };
        // Rules need shapes, and an array that carries an error has none.
        for cotangent in cotangents.iter().flatten() {
            cotangent.tensor()?;
        }
        let below = pullback(&cotangents)?;
        for (operand, cotangent) in node.operands.iter().zip(below) {
            if let (Some(place), Some(cotangent)) = (operand, cotangent) {
                give(&mut open, place, cotangent);
            }
        }
    }
    let of = |(x, place): (&&Recorded, &Option<(u64, usize)>)| {
        let found = place.as_ref().and_then(|place| found.get(place).cloned());
        let cotangent = found.unwrap_or_else(|| x.value.full(&x.shape(), 0.0));
        cotangent.tensor()?;
        Ok(cotangent)
    };
    variables.iter().zip(&wanted).map(of).collect()
}

impl Recorded {
    /// An array whose cotangent a reverse pass returns.
    pub fn variable(value: Eager) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let node = Node { number, results: 1, operands: Vec::new(), pullback: None };
        Self { value, place: Some((Rc::new(node), 0)) }
    }

    /// An array without a derivative.
    pub fn fixed(value: Eager) -> Self {
        Self { value, place: None }
    }

    /// The engine array.
    pub fn value(&self) -> &Eager {
        &self.value
    }

    /// A result of one operand with its rule.
    fn unary(&self, value: Eager, rule: impl Fn(&Eager) -> Eager + 'static) -> Self {
        let place = self.place.clone().map(|place| {
            let pullback: Pullback = Box::new(move |g| Ok(vec![g[0].as_ref().map(&rule)]));
            node(vec![Some(place)], 1, pullback)
        });
        Self { value, place: place.map(|node| (node, 0)) }
    }

    /// An elementary function with its derivative.
    fn elementary(&self, value: Eager, slope: impl FnOnce() -> Eager) -> Self {
        if self.place.is_none() {
            return Self::fixed(value);
        }
        let slope = slope();
        self.unary(value, move |g| g.mul(&slope))
    }

    /// A result of two operands with the rule of each.
    fn binary(
        &self,
        y: &Self,
        value: Eager,
        left: impl Fn(&Eager) -> Eager + 'static,
        right: impl Fn(&Eager) -> Eager + 'static,
    ) -> Self {
        let (a, b) = (self.place.clone(), y.place.clone());
        if a.is_none() && b.is_none() {
            return Self::fixed(value);
        }
        let tracked = [a.is_some(), b.is_some()];
        let pullback: Pullback = Box::new(move |g| {
            let of = |tracked: bool, f: &dyn Fn(&Eager) -> Eager| {
                g[0].as_ref().filter(|_| tracked).map(f)
            };
            Ok(vec![of(tracked[0], &left), of(tracked[1], &right)])
        });
        Self { value, place: Some((node(vec![a, b], 1, pullback), 0)) }
    }

    /// An elementwise result of two operands of broadcast shapes.
    fn broadcast(
        &self,
        y: &Self,
        value: Eager,
        left: impl Fn(&Eager) -> Eager + 'static,
        right: impl Fn(&Eager) -> Eager + 'static,
    ) -> Self {
        let (a, b) = (self.shape(), y.shape());
        self.binary(y, value, move |g| left(g).sum_to(&a), move |g| right(g).sum_to(&b))
    }
}

fn node(operands: Vec<Option<Place>>, results: usize, pullback: Pullback) -> Rc<Node> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Rc::new(Node { number, results, operands, pullback: Some(pullback) })
}

fn below(x: &Value<Recorded>) -> Value<Eager> {
    x.clone().map(|x| x.value, |i| i, |b| b)
}

impl Array for Recorded {
    type Integers = Eager<Indices>;
    type Flags = Eager<Truths>;

    fn shape(&self) -> Shape {
        self.value.shape()
    }
    fn dtype(&self) -> DType {
        self.value.dtype()
    }
    fn full(&self, shape: &[usize], c: f64) -> Self {
        Self::fixed(self.value.full(shape, c))
    }
    fn constant(&self, elements: AnyTensor) -> Self {
        Self::fixed(elements.into())
    }
    fn indices(&self, elements: AnyTensor) -> Eager<Indices> {
        elements.into()
    }
    fn counting(&self, n: usize) -> Eager<Indices> {
        self.value.counting(n)
    }
    fn indicator(&self, flags: &Eager<Truths>) -> Self {
        Self::fixed(self.value.indicator(flags))
    }
    fn detach(&self) -> Self {
        Self::fixed(self.value.clone())
    }
    fn elements(&self) -> t4a_tensor::Result<AnyTensor> {
        self.value.elements()
    }
    fn apply<O: Operation>(
        op: &O,
        inputs: &[Value<Self>],
        _: &[bool],
    ) -> Result<Outcome<Self>, O::Error> {
        let values: Vec<Value<Eager>> = inputs.iter().map(below).collect();
        let operands: Vec<Option<Place>> =
            inputs.iter().map(|x| x.as_float().and_then(|x| x.place.clone())).collect();
        let tracked: Vec<bool> = operands.iter().map(Option::is_some).collect();
        let outcome = Eager::apply(op, &values, &tracked)?;
        if !tracked.contains(&true) {
            return outcome
                .try_map(|x| Ok(x.map(Self::fixed, |i| i, |b| b)), |x| Ok(Self::fixed(x)));
        }
        let (kept, own) = (Kept::new(op.keep(&tracked), &values, &outcome), op.clone());
        let pullback: Pullback = Box::new(move |cotangents| {
            let reverse = Reverse { kept: &kept, cotangents, hidden: &[], wanted: &tracked };
            let message =
                |e: O::Error| NetworksError::Gradient { op: own.name(), message: e.to_string() };
            own.fused_vjp(&reverse).map_err(message)
        });
        let node = node(operands, outcome.results.len(), pullback);
        let results = outcome.results.into_iter().enumerate();
        let result = |(k, value)| Self { value, place: Some((Rc::clone(&node), k)) };
        Ok(Outcome::new(results.map(result).collect()))
    }
    fn add(&self, y: &Self) -> Self {
        self.broadcast(y, self.value.add(&y.value), Clone::clone, Clone::clone)
    }
    fn sub(&self, y: &Self) -> Self {
        self.broadcast(y, self.value.sub(&y.value), Clone::clone, Eager::neg)
    }
    fn mul(&self, y: &Self) -> Self {
        let (a, b) = (self.value.clone(), y.value.clone());
        self.broadcast(y, a.mul(&b), move |g| g.mul(&b), move |g| g.mul(&a))
    }
    fn div(&self, y: &Self) -> Self {
        let (value, b) = (self.value.div(&y.value), y.value.clone());
        let (quotient, c) = (value.clone(), b.clone());
        self.broadcast(y, value, move |g| g.div(&b), move |g| g.mul(&quotient).div(&c).neg())
    }
    fn shift(&self, c: f64) -> Self {
        self.unary(self.value.shift(c), Clone::clone)
    }
    fn scale(&self, c: f64) -> Self {
        self.unary(self.value.scale(c), move |g| g.scale(c))
    }
    fn recip(&self) -> Self {
        let y = self.value.recip();
        self.elementary(y.clone(), || y.mul(&y).neg())
    }
    fn exp(&self) -> Self {
        let y = self.value.exp();
        self.elementary(y.clone(), || y)
    }
    fn ln(&self) -> Self {
        self.elementary(self.value.ln(), || self.value.recip())
    }
    fn sqrt(&self) -> Self {
        let y = self.value.sqrt();
        self.elementary(y.clone(), || y.recip().scale(0.5))
    }
    fn pow(&self, p: f64) -> Self {
        self.elementary(self.value.pow(p), || self.value.pow(p - 1.0).scale(p))
    }
    fn tanh(&self) -> Self {
        let y = self.value.tanh();
        self.elementary(y.clone(), || y.mul(&y).neg().shift(1.0))
    }
    fn ln_1p(&self) -> Self {
        self.elementary(self.value.ln_1p(), || self.value.shift(1.0).recip())
    }
    fn sin(&self) -> Self {
        self.elementary(self.value.sin(), || self.value.cos())
    }
    fn cos(&self) -> Self {
        self.elementary(self.value.cos(), || self.value.sin().neg())
    }
    fn erf(&self) -> Self {
        let slope = || {
            let square = self.value.mul(&self.value).neg();
            square.exp().scale(std::f64::consts::FRAC_2_SQRT_PI)
        };
        self.elementary(self.value.erf(), slope)
    }
    fn abs(&self) -> Self {
        self.elementary(self.value.abs(), || self.value.sign())
    }
    fn equal(&self, y: &Self) -> Eager<Truths> {
        self.value.equal(&y.value)
    }
    fn greater(&self, y: &Self) -> Eager<Truths> {
        self.value.greater(&y.value)
    }
    fn equals(&self, c: f64) -> Eager<Truths> {
        self.value.equals(c)
    }
    fn is_nan(&self) -> Eager<Truths> {
        self.value.is_nan()
    }
    fn replace(&self, flags: &Eager<Truths>, y: &Self) -> Self {
        let (own, other) = (flags.clone(), flags.not());
        let value = self.value.replace(flags, &y.value);
        self.binary(y, value, move |g| g.fill(&own, 0.0), move |g| g.fill(&other, 0.0))
    }
    fn fill(&self, flags: &Eager<Truths>, c: f64) -> Self {
        let own = flags.clone();
        self.unary(self.value.fill(flags, c), move |g| g.fill(&own, 0.0))
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        let own = self.shape();
        self.unary(self.value.reshape(shape), move |g| g.reshape(&own))
    }
    fn permute(&self, axes: &[usize]) -> Self {
        let mut inverse = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(k, &axis)| inverse[axis] = k);
        self.unary(self.value.permute(axes), move |g| g.permute(&inverse))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        let own = self.shape();
        self.unary(self.value.expand(shape), move |g| g.sum_to(&own))
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        let size = self.shape().get(axis).copied().unwrap_or(0);
        let value = self.value.slice(axis, start, len, step);
        self.unary(value, move |g| g.embed(axis, start, step, size))
    }
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self {
        let len = self.shape().get(axis).copied().unwrap_or(0);
        let value = self.value.embed(axis, start, step, size);
        self.unary(value, move |g| g.slice(axis, start, len, step))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        let values: Vec<Eager> = arrays.iter().map(|x| x.value.clone()).collect();
        let value = <Eager as Array>::cat(&values, axis);
        if arrays.iter().all(|x| x.place.is_none()) {
            return Self::fixed(value);
        }
        let lens: Vec<usize> = values.iter().map(|x| x.shape()[axis]).collect();
        let pullback: Pullback = Box::new(move |g| {
            let mut start = 0;
            let part = |&len: &usize| {
                start += len;
                g[0].as_ref().map(|g| g.narrow(axis, start - len, len))
            };
            Ok(lens.iter().map(part).collect())
        });
        let operands = arrays.iter().map(|x| x.place.clone()).collect();
        Self { value, place: Some((node(operands, 1, pullback), 0)) }
    }
    fn flip(&self, axes: &[usize]) -> Self {
        let own = axes.to_vec();
        self.unary(self.value.flip(axes), move |g| g.flip(&own))
    }
    fn sum(&self, axis: usize) -> Self {
        let shape = self.shape();
        self.unary(self.value.sum(axis), move |g| g.expand(&shape))
    }
    fn argmax(&self, axis: usize) -> Eager<Indices> {
        self.value.argmax(axis)
    }
    fn cumsum(&self, axis: usize) -> Self {
        self.unary(self.value.cumsum(axis), move |g| g.flip(&[axis]).cumsum(axis).flip(&[axis]))
    }
    fn gather(&self, axis: usize, index: &Eager<Indices>) -> Self {
        let (zeros, own) = (self.value.full(&self.shape(), 0.0), index.clone());
        let value = self.value.gather(axis, index);
        self.unary(value, move |g| zeros.scatter_add(axis, &own, g))
    }
    fn scatter_add(&self, axis: usize, index: &Eager<Indices>, y: &Self) -> Self {
        let own = index.clone();
        let value = self.value.scatter_add(axis, index, &y.value);
        self.binary(y, value, Clone::clone, move |g| g.gather(axis, &own))
    }
    fn matmul(&self, y: &Self) -> Self {
        let (a, b) = (self.value.clone(), y.value.clone());
        let (left, right) = (a.shape(), b.shape());
        self.binary(
            y,
            a.matmul(&b),
            move |g| g.matmul(&b.transpose()).sum_to(&left),
            move |g| a.transpose().matmul(g).sum_to(&right),
        )
    }
}
