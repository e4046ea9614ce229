//! Converts the body of a scan from a function of trees to one of flat lists of tensors.

use std::fmt;
use std::sync::{Arc, OnceLock};

use t4a_scan::body::{Flat, Memory, Options, Steps, same};
use t4a_scan::{Result, ScanError};

use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;
use crate::ext::tree::{self, Leaf, Structure, Tree, TreeError};

/// A scan over flat lists, and the structures of its results.
pub(crate) struct Prepared<B: Operations> {
    /// The body on flat lists.
    pub(crate) steps: Steps<Floats<B>>,
    /// Leaves of the consts.
    pub(crate) consts: Flat<Floats<B>>,
    /// Leaves of the initial carry.
    pub(crate) init: Flat<Floats<B>>,
    /// Leaves of xs.
    pub(crate) xs: Flat<Floats<B>>,
    of_carry: Structure,
    /// Structure of one y, set by the first step that runs.
    of_y: Arc<OnceLock<Structure>>,
}

impl<B: Operations> fmt::Debug for Prepared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// Splits a tree into its structure and its leaves as operands.
pub(crate) fn flatten<B: Operations, T: Tree<B>>(tree: T) -> (Structure, Flat<Floats<B>>) {
    let (structure, all) = tree::flatten(tree);
    (structure, all.into_iter().map(Leaf::into_operand).collect())
}

/// Builds a tree from leaves; `role` names it in errors.
///
/// # Errors
/// `Tree` if the leaves do not match the structure or type.
pub(crate) fn build<B: Operations, T: Tree<B>>(
    what: &'static str,
    structure: &Structure,
    all: Flat<Floats<B>>,
) -> Result<T> {
    tree::build(structure, all.into_iter().map(Leaf::of_operand).collect()).map_err(refused(what))
}

fn refused(what: &'static str) -> impl Fn(TreeError) -> ScanError {
    move |error| ScanError::Tree { what, error }
}

impl<B: Operations> Prepared<B> {
    /// Checks the lengths of xs and converts the body; runs no step.
    ///
    /// # Errors
    /// `LengthRequired`, `LengthMismatch`, `NoLeadingAxis`.
    pub(crate) fn new<F, K, S, XS, X, Y>(
        body: F,
        consts: K,
        init: S,
        xs: XS,
        options: &Options,
    ) -> Result<Self>
    where
        F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
        K: Tree<B>,
        S: Tree<B>,
        XS: Tree<B>,
        X: Tree<B>,
        Y: Tree<B>,
    {
        let (k, consts) = flatten(consts);
        let (of_carry, init) = flatten(init);
        let (x, xs) = flatten(xs);
        let of_y = Arc::new(OnceLock::new());
        let (seen, carried, of_xs) = (of_y.clone(), of_carry.clone(), x.clone());
        let flat = move |consts, carry, element| {
            let carry = build("the carry", &carried, carry)?;
            let (carry, y) = body(build("consts", &k, consts)?, carry, build("x", &x, element)?);
            let (structure, carry) = flatten(carry);
            same("the carry after a step", &structure, &carried)?;
            let (structure, y) = flatten(y);
            same("y of a step", &structure, seen.get_or_init(|| structure.clone()))?;
            Ok((carry, y))
        };
        let steps = Steps::new(flat, (&xs, &of_xs), &of_carry, options)?;
        Ok(Self { steps, consts, init, xs, of_carry, of_y })
    }

    /// Builds the trees of the carry and of ys, after a step has run.
    ///
    /// # Errors
    /// `Tree` if `S` or `YS` is not the type of the results.
    pub(crate) fn build<S: Tree<B>, YS: Tree<B>>(
        &self,
        [carry, ys]: [Flat<Floats<B>>; 2],
    ) -> Result<(S, YS)> {
        let of_y = self.of_y.get().cloned().unwrap_or(Structure::Node(Vec::new()));
        Ok((build("the carry", &self.of_carry, carry)?, build("ys", &of_y, ys)?))
    }

    /// A function of a tree as a scan of one step, so that a tape keeps only the arguments.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub(crate) fn once<F, K, Y>(f: F, x: K) -> Result<(Self, Options)>
    where
        F: Fn(K) -> Y + Send + Sync + 'static,
        K: Tree<B>,
        Y: Tree<B>,
    {
        let options = Options::default().length(1).memory(Memory::default());
        let step = move |x: K, (): (), (): ()| ((), f(x));
        Ok((Self::new(step, x, (), (), &options)?, options))
    }

    /// Builds the only y, without its leading axis.
    ///
    /// # Errors
    /// As [`Prepared::build`].
    pub(crate) fn build_only<Y: Tree<B>>(&self, [carry, ys]: [Flat<Floats<B>>; 2]) -> Result<Y> {
        let ys = ys.iter().map(|y| y.reshape(&y.shape()[1..])).collect();
        Ok(self.build::<(), Y>([carry, ys])?.1)
    }

    /// A function of consts and a carry of floats as a step without xs and ys.
    ///
    /// # Errors
    /// `Tree` if the carry has integers or booleans.
    pub(crate) fn step<F, K, S>(f: F, consts: K, init: S) -> Result<Self>
    where
        F: Fn(K, S) -> S + Send + Sync + 'static,
        K: Tree<B>,
        S: Tree<B>,
    {
        let step = move |consts: K, carry: S, (): ()| (f(consts, carry), ());
        let (structure, floats) = tree::flatten_floats(init).map_err(refused("init"))?;
        let init: S = tree::build_floats(&structure, floats).map_err(refused("init"))?;
        Self::new(step, consts, init, (), &Options::default().length(1))
    }
}
