//! Scans: a body that is run step by step, with a carry, and recurrences as fused operations.
//!
//! ```text
//! scan      any body; on a tape one node, with bounded memory
//! jvp       tangents of such a scan
//! fused     cumulative operations, recurrences, associative scans, layers, the Kalman filter: one kernel each
//! tree      what carries, xs and ys consist of
//! ```
//!
//! ```
//! use burn_autodiff::Autodiff;
//! use burn_t4a::ext::scan::{Options, scan};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_tensor::Tensor;
//!
//! type B = Autodiff<BurnT4a>;
//! // c ← a c + x, and y = c.
//! let step = |(a,): (Tensor<B, 1>,), c: Tensor<B, 1>, x: Tensor<B, 1>| {
//!     let c = a * c + x;
//!     (c.clone(), c)
//! };
//! let a = Tensor::<B, 1>::from_floats([0.5], &T4aDevice).require_grad();
//! let c = Tensor::<B, 1>::from_floats([0.0], &T4aDevice);
//! let xs = Tensor::<B, 2>::from_floats([[1.0], [1.0], [1.0]], &T4aDevice);
//! let (last, ys): (Tensor<B, 1>, Tensor<B, 2>) =
//!     scan(step, (a.clone(),), c, xs, &Options::default())?;
//! ys.into_data().assert_eq(&[[1.0f32], [1.5], [1.75]].into(), false);
//! // d(1 + a + a²)/da = 1 + 2a
//! a.grad(&last.sum().backward()).unwrap().into_data().assert_eq(&[2.0f32].into(), false);
//! # Ok::<(), burn_t4a::ext::scan::ScanError>(())
//! ```

mod backend;
mod error;
pub mod fused;
mod jvp;
mod records;
mod span;
mod steps;
mod tree;

use std::sync::{Arc, OnceLock};

use burn_backend::{Backend, TensorMetadata};

pub use backend::ScanBackend;
pub use error::{CarryLeaf, Result, ScanError};
pub use jvp::{Pushed, scan_jvp};
pub use steps::Steps;
pub use t4a_scan::schedule::Policy;
pub use tree::{Leaf, Leaves, Structure, Tree};

use tree::flatten;

/// What a tape keeps of a scan for its reverse pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Everything: the operations of all steps are recorded as they are. Differentiable again.
    StoreAll,
    /// Carries by a policy; spans of steps run again in the reverse pass, each on a thread of its own
    /// (Burn 0.21), so that there are at most 512 of them.
    ///
    /// Tensors are bounded so, and with [`Policy::Sqrt`] Burn's records of the operations, too: what is left
    /// is about 0.3 KiB per step in lists of Burn's nodes, until the pass around the scan ends. `Revolve` runs
    /// steps again inside of that pass, where Burn keeps about 2 KiB per operation: it is for large carries.
    Bounded(Policy),
}

impl Default for Memory {
    /// About √N carries.
    fn default() -> Self {
        Self::Bounded(Policy::Sqrt)
    }
}

/// How a scan is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanPath {
    /// In one kernel, as the operations in [`fused`], whose results carry the route `fused`; bodies on a
    /// backend that records them, as one program over an arena.
    Fused,
    /// Step by step in the operations of the body.
    Fallback,
}

/// The path of a scan, and why it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// How it is computed.
    pub path: ScanPath,
    /// Why not in a better way.
    pub reason: &'static str,
    /// How many steps it has.
    pub length: usize,
}

/// Who is told about paths.
#[derive(Clone)]
struct Listener(Arc<dyn Fn(&Report) + Send + Sync>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// How to scan. The default is forwards, over the leading axis of xs, with √N carries on a tape.
#[derive(Clone, Debug, Default)]
pub struct Options {
    length: Option<usize>,
    reverse: bool,
    memory: Memory,
    accept: Option<Vec<ScanPath>>,
    listener: Option<Listener>,
}

impl Options {
    /// As many steps; required without xs.
    #[must_use]
    pub fn length(mut self, length: usize) -> Self {
        self.length = Some(length);
        self
    }

    /// From the last element to the first. Every y lies where its x does.
    #[must_use]
    pub fn reverse(mut self, reverse: bool) -> Self {
        self.reverse = reverse;
        self
    }

    /// What a tape keeps.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Which paths are accepted; others are an error before the first step. An empty list rejects all, and
    /// the error says which path it would have been.
    #[must_use]
    pub fn accept(mut self, paths: &[ScanPath]) -> Self {
        self.accept = Some(paths.to_vec());
        self
    }

    /// Is told the path of each scan, before its first step.
    #[must_use]
    pub fn report(mut self, listener: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        self.listener = Some(Listener(Arc::new(listener)));
        self
    }

    /// Reports a path before its first step, if it is accepted: for backends that
    /// [choose](ScanBackend::chooses_path) theirs.
    ///
    /// # Errors
    /// [`ScanError::PathRejected`].
    pub fn take_path(&self, report: Report) -> Result<()> {
        if let Some(accepted) = self.accept.as_ref().filter(|paths| !paths.contains(&report.path)) {
            let (chosen, reason, accepted) = (report.path, report.reason, accepted.clone());
            return Err(ScanError::PathRejected { chosen, reason, accepted });
        }
        if let Some(Listener(listener)) = &self.listener {
            listener(&report);
        }
        Ok(())
    }
}

impl Report {
    /// Of a body that nobody records.
    pub(crate) fn step_by_step(length: usize) -> Self {
        Self { path: ScanPath::Fallback, reason: "body_not_traced", length }
    }
}

/// `(carry, y_t) = body(consts, carry, x_t)` for every element of the leading axis of xs; the last carry
/// and all ys along a leading axis.
///
/// Without xs, `xs = ()` and a length; without ys, `y = ()`. An element of a tensor of rank 1 has
/// shape `[1]`. With no steps the carry is `init`, and the body runs once on zeros for the shapes of ys.
/// A passed-through tensor, any view as xs, and scans in scans are fine.
///
/// On a tape the whole scan is one node unless [`Memory::StoreAll`] is asked for: gradients of consts, init
/// and xs, in the same order of sums under every policy. The body must not use tracked tensors that it
/// was not given, and gives the same result each time. Body and nodes run on several threads, though never at
/// the same time.
///
/// # Errors
/// Lengths that disagree, a carry that changes structure, shape or dtype (every leaf that does), and what
/// [`ScanError`] lists.
pub fn scan<B, F, K, S, XS, X, Y, YS>(
    body: F,
    consts: K,
    init: S,
    xs: XS,
    options: &Options,
) -> Result<(S, YS)>
where
    B: ScanBackend,
    F: Fn(K, S, X) -> (S, Y) + Send + Sync + 'static,
    K: Tree<B>,
    S: Tree<B>,
    XS: Tree<B>,
    X: Tree<B>,
    Y: Tree<B>,
    YS: Tree<B>,
{
    let mut prepared = Prepared::new(body, consts, init, xs, options)?;
    if !B::chooses_path() {
        options.take_path(Report::step_by_step(prepared.steps.length))?;
    }
    let [consts, init, xs] =
        [&mut prepared.consts, &mut prepared.init, &mut prepared.xs].map(std::mem::take);
    let results = B::scan(prepared.steps.clone(), consts, init, xs, options)?;
    prepared.build(results)
}

/// A scan on flat lists, and the trees that its results become.
struct Prepared<B: Backend> {
    steps: Steps<B>,
    consts: Vec<Leaf<B>>,
    init: Vec<Leaf<B>>,
    xs: Vec<Leaf<B>>,
    of_carry: Structure,
    /// Known after a step.
    of_y: Arc<OnceLock<Structure>>,
}

impl<B: Backend> Prepared<B> {
    fn new<F, K, S, XS, X, Y>(
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
        let (k, s, x) = (consts.structure(), init.structure(), xs.structure());
        let (consts, init, xs) = (flatten(consts), flatten(init), flatten(xs));
        let length = length::<B>(&xs, &x, options.length)?;
        let paths = Arc::new(s.paths());
        let of_y = Arc::new(OnceLock::new());
        let (seen, of_carry) = (of_y.clone(), s.clone());
        let flat = move |consts, carry, element| {
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

    /// Carry and ys as trees.
    fn build<S: Tree<B>, YS: Tree<B>>(&self, [carry, ys]: [Vec<Leaf<B>>; 2]) -> Result<(S, YS)> {
        let of_y = self.of_y.get().cloned().unwrap_or(Structure::Node(Vec::new()));
        Ok((
            S::build(&self.of_carry, &mut Leaves::new(carry))?,
            YS::build(&of_y, &mut Leaves::new(ys))?,
        ))
    }
}

fn same(what: &'static str, given: &Structure, required: &Structure) -> Result<()> {
    if given == required {
        return Ok(());
    }
    Err(ScanError::Structure { what, given: given.to_string(), required: required.to_string() })
}

/// How many steps.
fn length<B: Backend>(
    xs: &[Leaf<B>],
    structure: &Structure,
    given: Option<usize>,
) -> Result<usize> {
    let mut leading = Vec::new();
    for (x, path) in xs.iter().zip(structure.paths()) {
        match x.shape().iter().next() {
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
