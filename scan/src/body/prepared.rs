//! A body over trees as steps over flat lists.

use std::fmt;
use std::sync::{Arc, OnceLock};

use t4a_diff::Array;

use super::options::Options;
use super::steps::Steps;
use super::tree::{Leaves, Structure, Tree, flatten};
use crate::error::{Result, ScanError};

/// A scan on flat lists, and the trees that its results become.
pub struct Prepared<A> {
    /// The body on flat lists.
    pub steps: Steps<A>,
    /// The leaves of the consts.
    pub consts: Vec<A>,
    /// Those of the first carry.
    pub init: Vec<A>,
    /// Those of the xs.
    pub xs: Vec<A>,
    of_carry: Structure,
    /// Known after a step.
    of_y: Arc<OnceLock<Structure>>,
}

impl<A> fmt::Debug for Prepared<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl<A: Array + 'static> Prepared<A> {
    /// Checks lengths; nothing is computed yet.
    ///
    /// # Errors
    /// `LengthRequired`, `LengthMismatch`, `NoLeadingAxis`.
    pub fn new<F, K, S, XS, X, Y>(
        body: F,
        consts: K,
        init: S,
        xs: XS,
        options: &Options,
    ) -> Result<Self>
    where
        F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
        K: Tree<A>,
        S: Tree<A>,
        XS: Tree<A>,
        X: Tree<A>,
        Y: Tree<A>,
    {
        let (k, s, x) = (consts.structure(), init.structure(), xs.structure());
        let (consts, init, xs) = (flatten(consts), flatten(init), flatten(xs));
        let length = length(&xs, &x, options.length)?;
        let paths = Arc::new(s.paths());
        let of_y = Arc::new(OnceLock::new());
        let (seen, of_carry) = (of_y.clone(), s.clone());
        let flat = move |consts: Vec<A>, carry: Vec<A>, element: Vec<A>| {
            let build = (
                K::build(&k, &mut Leaves::new(consts))?,
                S::build(&of_carry, &mut Leaves::new(carry))?,
                X::build(&x, &mut Leaves::new(element))?,
            );
            let (carry, y) = body(build.0, build.1, build.2);
            same("the carry after a step", &carry.structure(), &of_carry)?;
            let structure = y.structure();
            same("y of a step", &structure, seen.get_or_init(|| structure.clone()))?;
            Ok((flatten(carry), flatten(y)))
        };
        let steps = Steps { body: Arc::new(flat), length, reverse: options.reverse, paths };
        Ok(Self { steps, consts, init, xs, of_carry: s, of_y })
    }

    /// Carry and ys as trees, after a step.
    ///
    /// # Errors
    /// `Structure`, `Rank` unless the trees asked for are those that there are.
    pub fn build<S: Tree<A>, YS: Tree<A>>(&self, [carry, ys]: [Vec<A>; 2]) -> Result<(S, YS)> {
        let of_y = self.of_y.get().cloned().unwrap_or(Structure::Node(Vec::new()));
        Ok((
            S::build(&self.of_carry, &mut Leaves::new(carry))?,
            YS::build(&of_y, &mut Leaves::new(ys))?,
        ))
    }
}

/// That a tree branches as it should.
///
/// # Errors
/// [`ScanError::Structure`].
pub fn same(what: &'static str, given: &Structure, required: &Structure) -> Result<()> {
    if given == required {
        return Ok(());
    }
    Err(ScanError::Structure { what, given: given.to_string(), required: required.to_string() })
}

/// How many steps.
fn length<A: Array>(xs: &[A], structure: &Structure, given: Option<usize>) -> Result<usize> {
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
