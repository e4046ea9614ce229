//! `while_loop`, `fori_loop`, `cond` and `switch` over trees, converted to loops and branches over flat lists of
//! tensors.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

#[cfg(burn_line = "0.21")]
use burn_backend::Shape;
use burn_backend::tensor::IntTensor;
use t4a_diff::Value;
use t4a_scan::body::{Flat, Options, Repeated, Steps, associative, same};
use t4a_scan::{Result, ScanError};

use super::prepared::{build, flatten};
use crate::ext::line::{bool_device, device_settings, float_device, int_device};
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::Floats;
#[cfg(burn_line = "0.21")]
use crate::ext::primitive::{Bools, Indices};
use crate::ext::tree::{Structure, Tree};

/// A loop over flat lists, its operands, and the structure of its carry.
pub(crate) struct Looped<B: Operations> {
    pub(crate) repeated: Repeated<Floats<B>>,
    pub(crate) consts: Flat<Floats<B>>,
    pub(crate) init: Flat<Floats<B>>,
    of_carry: Structure,
}

impl<B: Operations> Looped<B> {
    /// Prepares a loop that runs while `test` returns true.
    ///
    /// # Errors
    /// None at present: the error of steps without xs cannot occur.
    pub(crate) fn new<T, F, K, S, P>(
        test: T,
        body: F,
        consts: K,
        init: S,
        options: &Options,
    ) -> Result<Self>
    where
        T: Fn(K, S) -> P + Send + Sync + 'static,
        F: Fn(K, S) -> S + Send + Sync + 'static,
        K: Tree<B>,
        S: Tree<B>,
        P: Tree<B>,
    {
        let (k, consts) = flatten(consts);
        let (of_carry, init) = flatten(init);
        let (of_consts, carried) = (k.clone(), of_carry.clone());
        let test = move |consts, carry: Flat<Floats<B>>, _| {
            let state = build("the carry", &carried, carry.clone())?;
            let (_, holds) = flatten(test(build("consts", &of_consts, consts)?, state));
            Ok((carry, holds))
        };
        let carried = of_carry.clone();
        let body = move |consts, carry, _| {
            let carry = build("the carry", &carried, carry)?;
            let (structure, carry) = flatten(body(build("consts", &k, consts)?, carry));
            same("the carry after a step", &structure, &carried)?;
            Ok((carry, Vec::new()))
        };
        let (none, once) = (Structure::Node(Vec::new()), Options::default().length(1));
        let repeated = Repeated {
            test: Steps::new(test, (&[], &none), &of_carry, &once)?,
            body: Steps::new(body, (&[], &none), &of_carry, &once)?,
            back: None,
            limit: options.most_steps(),
        };
        Ok(Self { repeated, consts, init, of_carry })
    }

    /// Rebuilds the tree of the carry.
    ///
    /// # Errors
    /// `Tree` if `S` is not the type of the carry.
    pub(crate) fn build<S: Tree<B>>(&self, carry: Flat<Floats<B>>) -> Result<S> {
        build("the carry", &self.of_carry, carry)
    }
}

/// Branch of a `switch`: a function of the operands.
pub type Branch<K, Y> = Box<dyn Fn(K) -> Y + Send + Sync>;

/// A choice between branches over flat lists, its operands, and the structure of its results.
pub(crate) struct Choice<B: Operations> {
    pub(crate) branches: Vec<Steps<Floats<B>>>,
    pub(crate) operands: Flat<Floats<B>>,
    of_results: Arc<OnceLock<Structure>>,
}

impl<B: Operations> Choice<B> {
    /// # Errors
    /// `NoBranch` if the list of branches is empty.
    pub(crate) fn new<K: Tree<B> + 'static, Y: Tree<B> + 'static>(
        branches: Vec<Branch<K, Y>>,
        operands: K,
    ) -> Result<Self> {
        if branches.is_empty() {
            return Err(ScanError::NoBranch);
        }
        let (k, operands) = flatten(operands);
        let of_results = Arc::new(OnceLock::new());
        let one = |branch: Branch<K, Y>| {
            let (k, seen) = (k.clone(), of_results.clone());
            let body = move |operands, _, _| {
                let (structure, y) = flatten(branch(build("the operands", &k, operands)?));
                same("a branch", &structure, seen.get_or_init(|| structure.clone()))?;
                Ok((Vec::new(), y))
            };
            let none = Structure::Node(Vec::new());
            Steps::new(body, (&[], &none), &none, &Options::default().length(1))
        };
        let branches = branches.into_iter().map(one).collect::<Result<_>>()?;
        Ok(Self { branches, operands, of_results })
    }

    /// Rebuilds the tree of the results, after a branch has run.
    ///
    /// # Errors
    /// `Tree` if `Y` is not the type of the results.
    pub(crate) fn build<Y: Tree<B>>(&self, results: Flat<Floats<B>>) -> Result<Y> {
        let structure = self.of_results.get().cloned().unwrap_or(Structure::Node(Vec::new()));
        build("the results", &structure, results)
    }
}

/// Integers of a range as a tensor on the device of `beside`.
///
/// # Errors
/// `LengthRequired` if `beside` is `None`, so that the device is unknown.
pub(crate) fn counter<B: Operations>(
    range: Range<i64>,
    beside: Option<&Operand<B>>,
) -> Result<IntTensor<B>> {
    let device = match beside.ok_or(ScanError::LengthRequired)? {
        Value::Float(x) => float_device::<B>(&x.0),
        Value::Integers(x) => int_device::<B>(&x.0),
        Value::Flags(x) => bool_device::<B>(&x.0),
    };
    let dtype = device_settings::<B>(&device).int_dtype;
    Ok(B::int_arange(range.start..range.end.max(range.start), &device, dtype))
}

/// Selects `new` if the boolean is true, otherwise `old`.
#[cfg(burn_line = "0.21")]
pub(crate) fn selected<B: Operations>(
    holds: &Bools<B>,
    new: Operand<B>,
    old: Operand<B>,
) -> Operand<B> {
    let at = |shape: Shape| {
        let ones: Shape = std::iter::repeat_n(1, shape.num_dims()).collect();
        B::bool_expand(B::bool_reshape(holds.0.clone(), ones), shape)
    };
    let mask = at(new.shape().into_iter().collect());
    match (old, new) {
        (Value::Float(old), Value::Float(new)) => {
            Value::Float(Floats(B::float_mask_where(old.0, mask, new.0)))
        }
        (Value::Integers(old), Value::Integers(new)) => {
            Value::Integers(Indices(B::int_mask_where(old.0, mask, new.0)))
        }
        (Value::Flags(old), Value::Flags(new)) => {
            Value::Flags(Bools(B::bool_mask_where(old.0, mask, new.0)))
        }
        (_, new) => new,
    }
}

/// [`associative`] on trees.
///
/// # Errors
/// Those of [`associative`]; `Structure` for a composition of another structure.
pub(crate) fn composed<B: Operations, F, X>(
    mut combine: F,
    xs: X,
    axis: usize,
    reverse: bool,
) -> Result<X>
where
    F: FnMut(X, X) -> X,
    X: Tree<B>,
{
    let (structure, xs) = flatten(xs);
    let mut flat = |a, b| {
        let [a, b] = [a, b].map(|x| build("an operand of combine", &structure, x));
        let (given, y) = flatten(combine(a?, b?));
        same("a composition", &given, &structure)?;
        Ok(y)
    };
    let ys = associative(&mut flat, xs, axis, reverse)?;
    build("ys", &structure, ys)
}
