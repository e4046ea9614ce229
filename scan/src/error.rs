//! What scans reject.

use t4a_diff::tree::TreeError;
use t4a_einsum::EinsumError;
use t4a_tensor::{DType, TensorError};
use thiserror::Error;

/// Result of a scan.
pub type Result<T, E = ScanError> = std::result::Result<T, E>;

/// How a scan is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanPath {
    /// In one kernel, as operations do; their results carry the route `fused`.
    Fused,
    /// Step by step in the operations of the body.
    Fallback,
}

/// A leaf of the carry that a step changed.
#[derive(Clone, Debug, PartialEq)]
pub struct CarryLeaf {
    /// Where in the tree, `.0.1` say.
    pub path: String,
    /// Shape and dtype at the beginning.
    pub init: (Vec<usize>, DType),
    /// Shape and dtype after a step.
    pub step: (Vec<usize>, DType),
}

/// A rejected scan: which one, what it required and what it was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScanError {
    /// Neither xs nor a length.
    #[error("scan: without xs a length is required")]
    LengthRequired,
    /// Lengths that disagree.
    #[error("scan: the leading axes of xs have sizes {leading:?}, the length given is {given:?}")]
    LengthMismatch {
        /// The length asked for.
        given: Option<usize>,
        /// Of every leaf of xs.
        leading: Vec<usize>,
    },
    /// A leaf of xs with nothing to scan over.
    #[error("scan: leaf {path} of xs has no leading axis")]
    NoLeadingAxis {
        /// Which leaf.
        path: String,
    },
    /// Trees of different structure.
    #[error("scan: {what} has the structure {given}, required is {required}")]
    Structure {
        /// Which tree.
        what: &'static str,
        /// Of what was given.
        given: String,
        /// Of what is required.
        required: String,
    },
    /// A tree that is not one of floats, or not of the type that a body or a caller asks for.
    #[error("scan: {what}: {error}")]
    Tree {
        /// Consts, init, xs, the carry or ys.
        what: &'static str,
        /// The reason.
        error: TreeError,
    },
    /// A step that returns another kind of carry than it takes.
    #[error("scan: a step changes shape or dtype of the carry: {}", carry_leaves(.leaves))]
    Carry {
        /// Every leaf that differs.
        leaves: Vec<CarryLeaf>,
    },
    /// Steps whose ys differ.
    #[error("scan: ys of different steps have shapes {first:?} and {other:?}")]
    YShape {
        /// Of the first step made.
        first: Vec<usize>,
        /// Of another one.
        other: Vec<usize>,
    },
    /// A leaf of ys of several kinds.
    #[error("scan: a y is {} in one step and {} in another", .dtypes[0], .dtypes[1])]
    YKind {
        /// Of the first step and of the last one.
        dtypes: [DType; 2],
    },
    /// A tracked tensor that the body uses without having been given it.
    #[error(
        "scan: the body uses a tracked tensor that is not among consts, carry and xs; its gradient would \
         be lost under {policy}"
    )]
    Captured {
        /// The memory policy.
        policy: String,
    },
    /// A step that runs a reverse pass of its own, on a tape whose passes do not nest. Scans on a tape record such
    /// steps as they are.
    #[error(
        "scan: a step runs a reverse pass, so it cannot run again inside of one, as {policy} would"
    )]
    ReversePass {
        /// The memory policy.
        policy: String,
    },
    /// Tracked tensors of several dtypes under a policy that bounds memory.
    #[error("scan: tracked tensors of one dtype are required under {policy}, given {dtypes:?}")]
    DTypes {
        /// The memory policy.
        policy: String,
        /// Those given.
        dtypes: Vec<DType>,
    },
    /// A tangent of another shape or dtype than what it belongs to.
    #[error(
        "scan: the tangent of leaf {path} of {what} has shape and dtype {given:?}, required {required:?}"
    )]
    Tangent {
        /// Consts, init or xs.
        what: &'static str,
        /// Which leaf.
        path: String,
        /// Shape and dtype of the leaf.
        required: Box<(Vec<usize>, DType)>,
        /// Shape and dtype of the tangent.
        given: Box<(Vec<usize>, DType)>,
    },
    /// Tracked tensors where tangents are asked for.
    #[error(
        "scan: {what} are tracked by a tape; tangents are constants, their gradient would be lost"
    )]
    Tracked {
        /// Consts, init or xs.
        what: &'static str,
    },
    /// An iteration that does not end.
    #[error(
        "fixed_point: after {steps} steps numbers still change by {change:.1e} times one plus the largest, allowed are \
         {tolerance:.1e}"
    )]
    NotConverged {
        /// Most steps; fewer if a number is NaN.
        steps: usize,
        /// That of the settings.
        tolerance: f64,
        /// Of the last step; NaN if there is such a number.
        change: f64,
    },
    /// A loop whose test still holds after the most steps allowed.
    #[error("while_loop: the test still holds after {limit} steps, which is the limit")]
    Endless {
        /// Most steps.
        limit: usize,
    },
    /// A test or an index that is not one number.
    #[error("{what} has to be one integer or truth value, given are shapes {shapes:?}")]
    NotOne {
        /// Which of them.
        what: &'static str,
        /// Of what was given.
        shapes: Vec<Vec<usize>>,
    },
    /// A choice without branches.
    #[error("switch: there are no branches")]
    NoBranch,
    /// Branches whose results differ.
    #[error("switch: branch 0 returns {first}, branch {branch} {other}")]
    Branches {
        /// Which branch.
        branch: usize,
        /// Structure, shapes and dtypes of the results of branch 0.
        first: String,
        /// Of that branch.
        other: String,
    },
    /// A path that the caller does not accept.
    #[error("scan: the path would be {chosen:?} ({reason}), accepted are {accepted:?}")]
    PathRejected {
        /// The path that would be taken.
        chosen: ScanPath,
        /// Why.
        reason: &'static str,
        /// What was asked for.
        accepted: Vec<ScanPath>,
    },
    /// Of operations on dense tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Of products over semirings.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
}

fn carry_leaves(leaves: &[CarryLeaf]) -> String {
    let one = |CarryLeaf { path, init, step }: &CarryLeaf| {
        let mut what = Vec::new();
        if init.0 != step.0 {
            what.push(format!("shape {:?} became {:?}", &init.0[..], &step.0[..]));
        }
        if init.1 != step.1 {
            what.push(format!("dtype {:?} became {:?}", init.1, step.1));
        }
        format!("leaf {path}: {}", what.join(", "))
    };
    leaves.iter().map(one).collect::<Vec<_>>().join("; ")
}
