//! Loops with a test and branches over trees, as steps over flat lists.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

#[cfg(burn_line = "0.21")]
use burn_backend::Shape;
use burn_backend::tensor::IntTensor;
use t4a_diff::Value;
use t4a_scan::body::{Flat, Options, Repeated, Steps, same};
use t4a_scan::{Result, ScanError};

use super::prepared::{build, flatten};
use crate::ext::line::{bool_device, device_settings, float_device, int_device};
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::Floats;
#[cfg(burn_line = "0.21")]
use crate::ext::primitive::{Bools, Indices};
use crate::ext::tree::{Structure, Tree};

/// A loop over flat lists, its operands, and the tree that its carry is.
pub(crate) struct Looped<B: Operations> {
    pub(crate) repeated: Repeated<Floats<B>>,
    pub(crate) consts: Flat<Floats<B>>,
    pub(crate) init: Flat<Floats<B>>,
    of_carry: Structure,
}

impl<B: Operations> Looped<B> {
    /// A loop while `test` holds.
    ///
    /// # Errors
    /// None today: steps without xs have a length.
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

    /// The carry as a tree.
    ///
    /// # Errors
    /// `Tree` unless that is the tree asked for.
    pub(crate) fn build<S: Tree<B>>(&self, carry: Flat<Floats<B>>) -> Result<S> {
        build("the carry", &self.of_carry, carry)
    }
}

/// A branch of a choice.
pub type Branch<K, Y> = Box<dyn Fn(K) -> Y + Send + Sync>;

/// A choice over flat lists, its operands, and the tree that its results are.
pub(crate) struct Choice<B: Operations> {
    pub(crate) branches: Vec<Steps<Floats<B>>>,
    pub(crate) operands: Flat<Floats<B>>,
    of_results: Arc<OnceLock<Structure>>,
}

impl<B: Operations> Choice<B> {
    /// # Errors
    /// `NoBranch`.
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

    /// The results as a tree, after a branch has run.
    ///
    /// # Errors
    /// `Tree` unless that is the tree asked for.
    pub(crate) fn build<Y: Tree<B>>(&self, results: Flat<Floats<B>>) -> Result<Y> {
        let structure = self.of_results.get().cloned().unwrap_or(Structure::Node(Vec::new()));
        build("the results", &structure, results)
    }
}

/// The numbers of a range as integers beside these tensors.
///
/// # Errors
/// `LengthRequired` if there is no tensor that says where.
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

/// `new` where the truth value holds, else `old`.
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
