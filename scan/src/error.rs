//! Errors of scans.

use t4a_algebra::message::{conflicting, cut, differing, first, long, short};
use t4a_diff::tree::TreeError;
use t4a_einsum::EinsumError;
use t4a_tensor::{DType, TensorError};
use thiserror::Error;

/// Result of a scan.
pub type Result<T, E = ScanError> = std::result::Result<T, E>;

/// Execution path of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ScanPath {
    /// One fused kernel, as in operations; results have the route `fused`.
    Fused,
    /// Step by step with the operations of the body.
    Fallback,
}

/// A leaf of the carry whose shape or dtype a step changed.
#[derive(Clone, Debug, PartialEq)]
pub struct CarryLeaf {
    /// Path in the tree, such as `.0.1`.
    pub path: String,
    /// Shape and dtype of the initial carry.
    pub init: (Vec<usize>, DType),
    /// Shape and dtype after a step.
    pub step: (Vec<usize>, DType),
}

/// A rejected scan: the operation, the requirement and the given value.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScanError {
    /// Neither xs nor a length is given.
    #[error("scan: without xs a length is required")]
    LengthRequired,
    /// The leading sizes of xs and the given length disagree.
    #[error(
        "scan: the leading axes of xs have sizes {}, the length given is {given:?}",
        sizes(.leading)
    )]
    LengthMismatch {
        /// The given length.
        given: Option<usize>,
        /// Leading size of every leaf of xs.
        leading: Vec<usize>,
    },
    /// A leaf of xs has rank 0.
    #[error("scan: leaf {path} of xs has no leading axis", path = short(.path))]
    NoLeadingAxis {
        /// Path of the leaf.
        path: String,
    },
    /// The trees have different structure.
    #[error(
        "scan: {what} has the structure {given}, required is {required}",
        given = differing(.given, .required), required = differing(.required, .given)
    )]
    Structure {
        /// Name of the tree.
        what: &'static str,
        /// Structure of the given tree.
        given: String,
        /// The required structure.
        required: String,
    },
    /// A tree has leaves that are not floats, or it does not have the type that the body or the caller requires.
    #[error("scan: {what}: {error}", error = long(.error))]
    Tree {
        /// One of: consts, init, xs, carry, ys.
        what: &'static str,
        /// The reason.
        error: TreeError,
    },
    /// A step changes structure, shape or dtype of the carry.
    #[error("scan: a step changes shape or dtype of the carry: {}", carry_leaves(.leaves))]
    Carry {
        /// Every leaf that differs.
        leaves: Vec<CarryLeaf>,
    },
    /// The shapes of ys differ between steps.
    #[error(
        "scan: ys of different steps have shapes {first:?} and {other:?}",
        first = differing(.first, .other), other = differing(.other, .first)
    )]
    YShape {
        /// Shape in the first executed step.
        first: Vec<usize>,
        /// Shape in another step.
        other: Vec<usize>,
    },
    /// The dtype of a leaf of ys differs between steps.
    #[error("scan: a y is {} in one step and {} in another", .dtypes[0], .dtypes[1])]
    YKind {
        /// Dtypes in the first and in the last step.
        dtypes: [DType; 2],
    },
    /// The body captures a tracked tensor that is not one of its arguments.
    #[error(
        "scan: the body uses a tracked tensor that is not among consts, carry and xs; its gradient would \
         be lost under {policy}",
        policy = short(.policy)
    )]
    Captured {
        /// The memory policy.
        policy: String,
    },
    /// A step runs a reverse pass itself, on a tape whose passes do not nest. Scans on a tape record such steps
    /// directly.
    #[error(
        "scan: a step runs a reverse pass, so it cannot run again inside of one, as {policy} would: take the derivative \
         in the step by forward mode (`jvp`, `jacfwd`), or write it out",
        policy = short(.policy)
    )]
    ReversePass {
        /// The memory policy.
        policy: String,
    },
    /// The tracked tensors have several dtypes, and the policy bounds memory.
    #[error(
        "scan: tracked tensors of one dtype are required under {policy}, given {dtypes:?}",
        policy = short(.policy), dtypes = short(.dtypes)
    )]
    DTypes {
        /// The memory policy.
        policy: String,
        /// The given dtypes.
        dtypes: Vec<DType>,
    },
    /// A tangent has another shape or dtype than its primal.
    #[error(
        "scan: the tangent of leaf {path} of {what} has shape and dtype {given:?}, required {required:?}",
        path = cut(.path, 64), given = differing(.given, .required), required = differing(.required, .given)
    )]
    Tangent {
        /// One of: consts, init, xs.
        what: &'static str,
        /// Path of the leaf.
        path: String,
        /// Shape and dtype of the leaf.
        required: Box<(Vec<usize>, DType)>,
        /// Shape and dtype of the tangent.
        given: Box<(Vec<usize>, DType)>,
    },
    /// Tracked tensors are given where tangents are required.
    #[error(
        "scan: {what} are tracked by a tape; tangents are constants, their gradient would be lost"
    )]
    Tracked {
        /// One of: consts, init, xs.
        what: &'static str,
    },
    /// The fixed-point iteration does not converge.
    #[error(
        "fixed_point: after {steps} steps numbers still change by {change:.1e} times one plus the largest, allowed are \
         {tolerance:.1e}"
    )]
    NotConverged {
        /// Number of steps; below the maximum if a number is NaN.
        steps: usize,
        /// Tolerance of the settings.
        tolerance: f64,
        /// Relative change in the last step; NaN if a number is NaN.
        change: f64,
    },
    /// The condition of a loop still holds after the maximum number of steps.
    #[error("while_loop: the test still holds after {limit} steps, which is the limit")]
    Endless {
        /// Maximum number of steps.
        limit: usize,
    },
    /// A condition or an index is not a single number.
    #[error(
        "{what} has to be one integer or truth value, given are shapes {shapes:?}",
        shapes = short(.shapes)
    )]
    NotOne {
        /// Name of the operand.
        what: &'static str,
        /// The given shapes.
        shapes: Vec<Vec<usize>>,
    },
    /// A switch has no branches.
    #[error("switch: there are no branches")]
    NoBranch,
    /// The results of the branches have different structure, shapes or dtypes.
    #[error(
        "switch: branch 0 returns {first}, branch {branch} {other}",
        first = differing(.first, .other), other = differing(.other, .first)
    )]
    Branches {
        /// Index of the branch.
        branch: usize,
        /// Structure, shapes and dtypes of the results of branch 0.
        first: String,
        /// Structure, shapes and dtypes of the results of this branch.
        other: String,
    },
    /// The path is not among the accepted ones.
    #[error(
        "scan: the path would be {chosen:?} ({reason}), accepted are {accepted:?}",
        accepted = short(.accepted)
    )]
    PathRejected {
        /// The path that the scan would take.
        chosen: ScanPath,
        /// The reason for this path.
        reason: &'static str,
        /// The accepted paths.
        accepted: Vec<ScanPath>,
    },
    /// An error of an operation on dense tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An error of a contraction over a semiring.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
}

fn carry_leaves(leaves: &[CarryLeaf]) -> String {
    first(leaves, "; ", |CarryLeaf { path, init, step }| {
        let mut what = Vec::new();
        if init.0 != step.0 {
            what.push(format!("shape {:?} became {:?}", &init.0[..], &step.0[..]));
        }
        if init.1 != step.1 {
            what.push(format!("dtype {:?} became {:?}", init.1, step.1));
        }
        format!("leaf {path}: {}", what.join(", "))
    })
}

/// Leading sizes with their leaves, beginning with a pair that differs.
fn sizes(leading: &[usize]) -> String {
    let leaves: Vec<_> = leading.iter().enumerate().collect();
    first(&conflicting(&leaves, |&(_, size)| size), ", ", |(leaf, size)| {
        format!("{size} (leaf {leaf})")
    })
}
