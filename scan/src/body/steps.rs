//! Steps on flat lists of arrays, and the plain loop over them.

use std::fmt;
use std::sync::Arc;

use t4a_diff::tree::Structure;
use t4a_diff::{Array, Value};
use t4a_tensor::TensorError;

use super::options::Options;
use crate::error::{CarryLeaf, Result, ScanError};

/// The leaves of consts, a carry, xs or ys.
pub type Flat<A> = Vec<Value<A>>;

/// A body on flat lists: consts, carry, x ↦ carry, y.
pub(super) type FlatBody<A> =
    Arc<dyn Fn(Flat<A>, Flat<A>, Flat<A>) -> Result<(Flat<A>, Flat<A>)> + Send + Sync>;

/// A scan on flat lists.
pub struct Steps<A: Array> {
    pub(super) body: FlatBody<A>,
    pub(super) length: usize,
    pub(super) reverse: bool,
    /// Of the leaves of the carry, for errors.
    pub(super) paths: Arc<Vec<String>>,
}

impl<A: Array> fmt::Debug for Steps<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { length, reverse, .. } = self;
        f.debug_struct("Steps")
            .field("length", length)
            .field("reverse", reverse)
            .finish_non_exhaustive()
    }
}

impl<A: Array> Clone for Steps<A> {
    fn clone(&self) -> Self {
        let (body, paths) = (self.body.clone(), self.paths.clone());
        Self { body, paths, length: self.length, reverse: self.reverse }
    }
}

impl<A: Array> Steps<A> {
    /// Steps of a body over the leading axes of xs, whose structure and that of the carry name leaves in errors.
    /// Nothing is computed.
    ///
    /// # Errors
    /// [`ScanError::LengthRequired`], [`ScanError::LengthMismatch`], [`ScanError::NoLeadingAxis`].
    pub fn new(
        body: impl Fn(Flat<A>, Flat<A>, Flat<A>) -> Result<(Flat<A>, Flat<A>)> + Send + Sync + 'static,
        (xs, of_xs): (&[Value<A>], &Structure),
        of_carry: &Structure,
        options: &Options,
    ) -> Result<Self> {
        let length = length(xs, of_xs, options.length)?;
        let paths = Arc::new(of_carry.paths());
        Ok(Self { body: Arc::new(body), length, reverse: options.reverse, paths })
    }

    /// The same steps with another body, which may be one on other arrays.
    #[must_use]
    pub fn with_body<B: Array>(
        &self,
        body: impl Fn(Flat<B>, Flat<B>, Flat<B>) -> Result<(Flat<B>, Flat<B>)> + Send + Sync + 'static,
    ) -> Steps<B> {
        let Self { length, reverse, .. } = *self;
        Steps { body: Arc::new(body), length, reverse, paths: self.paths.clone() }
    }

    /// Steps x ↦ x − f(x), whose fixed points are the roots of the floats that this step returns.
    #[must_use]
    pub fn with_residual(&self) -> Self {
        let own = self.clone();
        self.with_body(move |consts, carry: Flat<A>, x| {
            let (values, y) = own.step(&consts, carry.clone(), x)?;
            let minus = |(x, f): (Value<A>, Value<A>)| match (x, f) {
                (Value::Float(x), Value::Float(f)) => Value::Float(x.sub(&f)),
                (x, _) => x,
            };
            Ok((carry.into_iter().zip(values).map(minus).collect(), y))
        })
    }

    /// The number of steps.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The place along the leading axis that step `k` is about.
    pub fn time(&self, k: usize) -> usize {
        if self.reverse { self.length - 1 - k } else { k }
    }

    /// A step: the carry after it, and y.
    ///
    /// # Errors
    /// [`ScanError::Carry`]; those of the body.
    pub fn step(
        &self,
        consts: &[Value<A>],
        carry: Flat<A>,
        x: Flat<A>,
    ) -> Result<(Flat<A>, Flat<A>)> {
        let kind = |x: &Value<A>| (x.shape(), x.dtype());
        let before: Vec<_> = carry.iter().map(kind).collect();
        let (carry, y) = (self.body)(consts.to_vec(), carry, x)?;
        let differs = |(i, (x, init)): (usize, (&Value<A>, &(Vec<usize>, _)))| {
            let step = kind(x);
            let path = self.paths[i].clone();
            (step != *init).then(|| CarryLeaf { path, init: init.clone(), step })
        };
        let leaves: Vec<CarryLeaf> =
            carry.iter().zip(&before).enumerate().filter_map(differs).collect();
        if leaves.is_empty() { Ok((carry, y)) } else { Err(ScanError::Carry { leaves }) }
    }

    /// One step after the other: the last carry and all ys, along a leading axis.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn run(&self, consts: &[Value<A>], init: Flat<A>, xs: &[Value<A>]) -> Result<[Flat<A>; 2]> {
        match self.length {
            0 => self.empty(consts, init, xs),
            _ => self.run_with(consts, init, |t| Ok(at(xs, t))),
        }
    }

    /// As [`Steps::run`] with the elements that `x` gives, for at least one step.
    ///
    /// # Errors
    /// Those of the steps and of `x`.
    pub(super) fn run_with(
        &self,
        consts: &[Value<A>],
        init: Flat<A>,
        mut x: impl FnMut(usize) -> Result<Flat<A>>,
    ) -> Result<[Flat<A>; 2]> {
        let mut carry = init;
        let mut ys = Stack::new(self.length);
        for k in 0..self.length {
            let t = self.time(k);
            let (next, y) = self.step(consts, carry, x(t)?)?;
            carry = next;
            ys.put(t, y)?;
        }
        Ok([carry, ys.finish()?])
    }

    /// The results of no steps. Which shapes ys have is found out by one step on zeros.
    fn empty(&self, consts: &[Value<A>], init: Flat<A>, xs: &[Value<A>]) -> Result<[Flat<A>; 2]> {
        let zeros = |x: &Value<A>| x.zeros(&element(&x.shape()));
        let (_, y) = self.step(consts, init.clone(), xs.iter().map(zeros).collect())?;
        let nothing = |y: &Value<A>| y.zeros(&[&[0], &y.shape()[..]].concat());
        Ok([init, y.iter().map(nothing).collect()])
    }
}

/// The shape of an element of the leading axis; that of a number is `[1]`.
pub(super) fn element(shape: &[usize]) -> Vec<usize> {
    match shape {
        [] | [_] => vec![1],
        [_, rest @ ..] => rest.to_vec(),
    }
}

/// Elements `t` of the leading axes.
pub fn at<A: Array>(xs: &[Value<A>], t: usize) -> Flat<A> {
    xs.iter().map(|x| one(x, t)).collect()
}

/// Element `t` of the leading axis.
pub(super) fn one<A: Array>(x: &Value<A>, t: usize) -> Value<A> {
    x.narrow(0, t, 1).reshape(&element(&x.shape()))
}

/// Elements that become a leading axis, with their places. Nothing is allocated before the first of them.
#[derive(Debug)]
pub struct Stack<A: Array> {
    length: usize,
    elements: Vec<(usize, Flat<A>)>,
}

impl<A: Array> Stack<A> {
    /// Of so many elements.
    pub fn new(length: usize) -> Self {
        Self { length, elements: Vec::new() }
    }

    /// Element `t`.
    ///
    /// # Errors
    /// [`ScanError::YShape`] if another one has another shape; [`TensorError::OutOfMemory`] at the first one if
    /// there is no memory for all.
    pub fn put(&mut self, t: usize, y: Flat<A>) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        match self.elements.first() {
            Some((_, first)) => {
                for (first, other) in first.iter().zip(&y) {
                    let (first, other) = (first.shape(), other.shape());
                    if first != other {
                        return Err(ScanError::YShape { first, other });
                    }
                }
            }
            None => self.reserve(&y)?,
        }
        self.elements.push((t, y));
        Ok(())
    }

    /// Memory for the list, and a check that the stacked elements have room as well.
    fn reserve(&mut self, y: &[Value<A>]) -> Result<()> {
        let size = |y: &Value<A>| {
            let count = y.shape().iter().try_fold(1usize, |all, &n| all.checked_mul(n))?;
            count.checked_mul(y.dtype().size())
        };
        let bytes = y.iter().try_fold(0usize, |all, y| all.checked_add(size(y)?));
        let bytes = bytes.and_then(|bytes| bytes.checked_mul(self.length)).unwrap_or(usize::MAX);
        let room = self.elements.try_reserve_exact(self.length).is_ok()
            && Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
        if room { Ok(()) } else { Err(TensorError::OutOfMemory { op: "scan", bytes }.into()) }
    }

    /// The stacked tensors. All elements are there.
    ///
    /// # Errors
    /// [`ScanError::YKind`] if a leaf is floats in one step and integers in another.
    pub fn finish(mut self) -> Result<Flat<A>> {
        self.elements.sort_by_key(|(t, _)| *t);
        let mut columns: Vec<Flat<A>> = Vec::new();
        for (_, y) in self.elements {
            columns.resize_with(y.len(), Vec::new);
            for (column, y) in columns.iter_mut().zip(y) {
                column.push(y.reshape(&[&[1], &y.shape()[..]].concat()));
            }
        }
        let stacked = |column: &Flat<A>| {
            let dtypes = || [&column[0], &column[column.len() - 1]].map(Value::dtype);
            Value::cat(column, 0).ok_or_else(|| ScanError::YKind { dtypes: dtypes() })
        };
        columns.iter().map(stacked).collect()
    }
}

/// Checks that a tree has the required structure.
///
/// # Errors
/// [`ScanError::Structure`].
pub fn same(what: &'static str, given: &Structure, required: &Structure) -> Result<()> {
    if given == required {
        return Ok(());
    }
    Err(ScanError::Structure { what, given: given.to_string(), required: required.to_string() })
}

/// The number of steps.
fn length<A: Array>(xs: &[Value<A>], structure: &Structure, given: Option<usize>) -> Result<usize> {
    let mut leading = Vec::new();
    for (x, path) in xs.iter().zip(structure.paths()) {
        match x.shape().first() {
            Some(&n) => leading.push(n),
            None => return Err(ScanError::NoLeadingAxis { path }),
        }
    }
    match (leading.first(), given) {
        (None, None) => Err(ScanError::LengthRequired),
        (None, Some(n)) => Ok(n),
        (Some(&n), given) if leading.iter().all(|&m| m == n) && given.is_none_or(|m| m == n) => {
            Ok(n)
        }
        _ => Err(ScanError::LengthMismatch { given, leading }),
    }
}
