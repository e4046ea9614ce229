//! Trait of operations on matrices; each operation is implemented in the module of its decomposition.
//!
//! ```text
//! MatrixOperation   shapes, forward on engine tensors, status, vjp and jvp
//! Outcome           results, and saved data for the derivative rules
//! MatrixFunction    operations on one square matrix with one result of its size
//! Over              conversion of arrays to matrices and back
//! ```
//!
//! To add an operation: an `op.rs` in the module of its decomposition, and a row of the [table](crate::table).

mod function;
mod over;

use std::fmt::Debug;

use smallvec::SmallVec;
use t4a_tensor::{Tensor, TensorError};

pub use function::MatrixFunction;
pub use over::Over;
pub(crate) use over::{given, next};

use crate::error::{LinalgError, Result};
use crate::permutation::Permutation;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// Batch of matrices that is an operand or a result of an operation. Vectors are rows `[…, 1, n]`, numbers `[…, 1,
/// 1]`.
#[derive(Clone, Debug)]
pub enum Part<M: Matrices> {
    /// Same type as the operands.
    Full(M),
    /// Real: singular values, eigenvalues of Hermitian matrices.
    Real(M::Real),
    /// Complex: general eigenvalues and eigenvectors.
    Complex(M::Complex),
}

/// Kind of a result: variant of [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// [`Part::Full`].
    Full,
    /// [`Part::Real`].
    Real,
    /// [`Part::Complex`].
    Complex,
}

impl PartKind {
    /// Number of real arrays of a part of this kind, for an operation on complex or on real matrices.
    pub fn arrays(self, complex: bool) -> usize {
        match self {
            PartKind::Full => 1 + usize::from(complex),
            PartKind::Real => 1,
            PartKind::Complex => 2,
        }
    }
}

/// Operand shapes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// `A`, of any shape.
    Any,
    /// `A`, square.
    Square,
    /// Square `A` `[…, n, n]`, and `B` `[…, n, r]`.
    System,
    /// `A` `[…, m, n]`, and `B` `[…, m, r]`.
    Columns,
    /// Square `A` and `B` `[…, n, n]`.
    Squares,
    /// Square `A` `[…, m, m]` and `B` `[…, n, n]`, and `C` `[…, m, n]`.
    Sylvester,
}

/// Sizes `[m, n]` of the matrices of an operation.
pub(crate) type MatrixSizes = SmallVec<[[usize; 2]; 2]>;

impl Signature {
    /// Number of operands.
    pub fn count(self) -> usize {
        match self {
            Signature::Any | Signature::Square => 1,
            Signature::System | Signature::Columns | Signature::Squares => 2,
            Signature::Sylvester => 3,
        }
    }

    /// Batch axes, and the sizes `[m, n]` of the matrices.
    ///
    /// # Errors
    /// `NotMatrix`, `NotSquare`, `BatchMismatch`; `Tensor` for mismatching matrices, or a wrong number of them.
    pub(crate) fn check<'a>(
        self,
        op: &'static str,
        shapes: &[&'a [usize]],
    ) -> Result<(&'a [usize], MatrixSizes)> {
        if shapes.len() != self.count() {
            let message = format!("{} matrices are required, given {}", self.count(), shapes.len());
            return Err(TensorError::value(op, message).into());
        }
        let split = |shape: &&'a [usize]| match shape {
            [batch @ .., m, n] => Ok((batch, [*m, *n])),
            shape => Err(LinalgError::NotMatrix { op, shape: shape.to_vec() }),
        };
        let split: SmallVec<[(&[usize], [usize; 2]); 2]> =
            shapes.iter().map(split).collect::<Result<_>>()?;
        let (batch, [m, n]) = split[0];
        // Number of leading operands that must be square.
        let squares = match self {
            Signature::Any | Signature::Columns => 0,
            Signature::Square | Signature::System => 1,
            Signature::Squares | Signature::Sylvester => 2,
        };
        let not_square = |(_, [m, n]): &(&[usize], [usize; 2])| m != n;
        if let Some(i) = split.iter().take(squares).position(not_square) {
            return Err(LinalgError::NotSquare { op, shape: shapes[i].to_vec() });
        }
        if let Some(i) = split.iter().position(|(other, _)| *other != batch) {
            return Err(LinalgError::unequal_batches(op, shapes[0], shapes[i]));
        }
        let (fits, required) = match (self, &split[1..]) {
            (Signature::System, [(_, [rows, _])]) => (*rows == m, "[…, n, n] and […, n, r]"),
            (Signature::Squares, [(_, size)]) => (*size == [n, n], "[…, n, n] and […, n, n]"),
            (Signature::Sylvester, [(_, [_, k]), (_, size)]) => {
                (*size == [n, *k], "[…, m, m], […, n, n] and […, m, n]")
            }
            (_, [(_, [rows, _])]) => (*rows == m, "[…, m, n] and […, m, r]"),
            _ => (true, ""),
        };
        if !fits {
            let last = shapes.len() - 1;
            return Err(TensorError::shapes(op, shapes[0], shapes[last], required).into());
        }
        Ok((batch, split.into_iter().map(|(_, sizes)| sizes).collect()))
    }
}

/// Factorisation that other operations save for their derivative rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Factorisation {
    /// `U`, `S`, `Vᴴ`, thin.
    Svd,
    /// `Q`, `R`, thin.
    Qr,
    /// `L`, `Q`.
    Lq,
    /// Packed `L` and `U` with partial pivoting.
    Lu,
    /// Eigenvalues and eigenvectors of a Hermitian matrix.
    Eigh,
    /// Eigenvalues and eigenvectors of a general matrix.
    Eig,
    /// The pseudoinverse.
    Pinv {
        /// The relative cutoff of singular values.
        rtol: Option<f64>,
    },
}

/// Results of an operation, and saved data for its derivative rules.
#[derive(Clone, Debug)]
pub struct Outcome<M: Matrices> {
    /// The results.
    pub results: Vec<Part<M>>,
    /// Auxiliary results needed for higher derivatives: [`MatrixOperation::HIDDEN`].
    pub hidden: Vec<Part<M>>,
    /// Factorisation of the first operand that the rules use: kind and factors.
    pub saved: Option<(Factorisation, Vec<Part<M>>)>,
    /// Permutations of the rows and of the columns, as far as the operation pivots them.
    pub permutations: Vec<Permutation>,
}

impl<M: Matrices> Outcome<M> {
    /// Outcome without saved data.
    pub fn new(results: Vec<Part<M>>) -> Self {
        Self { results, hidden: Vec::new(), saved: None, permutations: Vec::new() }
    }

    /// Adds the factorisation that the rules use.
    pub fn saving(mut self, by: Factorisation, factors: Vec<Part<M>>) -> Self {
        self.saved = Some((by, factors));
        self
    }

    /// Adds permutations.
    pub fn permuted(mut self, permutations: impl IntoIterator<Item = Permutation>) -> Self {
        self.permutations.extend(permutations);
        self
    }

    /// Saved factors.
    pub(crate) fn factors(&self) -> &[Part<M>] {
        match &self.saved {
            Some((_, parts)) => parts,
            None => unreachable!("the forward pass of this operation keeps its factors"),
        }
    }

    /// True if the saved factors are of this kind.
    pub(crate) fn factored_by(&self, by: Factorisation) -> bool {
        self.saved.as_ref().is_some_and(|(saved, _)| *saved == by)
    }

    /// Packed LU factors and their row permutation.
    pub(crate) fn packed(&self) -> (&M, &Permutation) {
        (self.factors()[0].full(), self.permutation())
    }

    /// The first permutation.
    pub(crate) fn permutation(&self) -> &Permutation {
        match self.permutations.first() {
            Some(permutation) => permutation,
            None => unreachable!("a pivoted factorisation has a permutation"),
        }
    }
}

/// An operation on up to three batches of matrices, with its derivatives.
pub trait MatrixOperation: Copy + Debug + PartialEq {
    /// Name in errors and tables.
    const NAME: &'static str;
    /// Operand shapes.
    const OPERANDS: Signature;
    /// Kinds of the results, in order.
    const RESULTS: &'static [PartKind];
    /// Kinds of [`Outcome::hidden`], which are computed if an operand is tracked.
    const HIDDEN: &'static [PartKind] = &[];

    /// Sizes of the results, for valid operands.
    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]>;

    /// Lengths of the returned permutations for a matrix of this size; permutations beyond these are for derivative
    /// rules only.
    fn permutations(&self, _size: [usize; 2]) -> SmallVec<[usize; 2]> {
        SmallVec::new()
    }

    /// Kind of [`Outcome::saved`] for a matrix of this size; `permuted` is true if the outcome has permutations.
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        None
    }

    /// Forward computation. If any operand is `tracked`, the outcome contains the data that the rules need.
    ///
    /// # Errors
    /// Errors of the operation, with the batch index.
    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>>;

    /// Status of each matrix, in the shape of the batch: 0 if the operation succeeds, else a pivot index plus 1,
    /// [`NON_FINITE`](crate::error::NON_FINITE) or another code of [`error`](crate::error).
    ///
    /// # Errors
    /// Errors of the operation that do not concern a single matrix.
    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>>;

    /// Cotangents of the operands from those of the results, at least one of which is given, followed by those of the
    /// hidden results; `None` is zero.
    ///
    /// # Errors
    /// Errors of the rule: `GaugeIllDefined`, `RankDeficient`, `Singular`.
    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>>;

    /// Tangents of the results, followed by those of the hidden results, along tangents of the operands, at least one
    /// of which is given; `None` is zero.
    ///
    /// # Errors
    /// Errors of the rule.
    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>>;
}

/// Cotangent of result `i`, which has the type of the operands.
pub(crate) fn full<M: Matrices>(cotangents: &[Option<Part<M>>], i: usize) -> Option<&M> {
    cotangents.get(i)?.as_ref().map(Part::full)
}

/// Cotangent of result `i`, which is real.
pub(crate) fn real<M: Matrices>(cotangents: &[Option<Part<M>>], i: usize) -> Option<&M::Real> {
    cotangents.get(i)?.as_ref().map(Part::real)
}

/// Cotangent of result `i`, which is complex.
pub(crate) fn complex<M: Matrices>(
    cotangents: &[Option<Part<M>>],
    i: usize,
) -> Option<&M::Complex> {
    cotangents.get(i)?.as_ref().map(Part::complex)
}

/// Tangent of the only operand.
pub(crate) fn only<M>(tangents: &[Option<M>]) -> &M {
    match tangents {
        [Some(da)] => da,
        _ => unreachable!("one operand, which moves"),
    }
}

impl<M: Matrices> Part<M> {
    /// The part as a matrix of the operands' type.
    ///
    /// # Panics
    /// For a part of another kind; the kinds of the results of an operation are fixed.
    pub fn full(&self) -> &M {
        match self {
            Part::Full(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// The part as a real matrix.
    ///
    /// # Panics
    /// As [`Part::full`].
    pub fn real(&self) -> &M::Real {
        match self {
            Part::Real(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// The part as a complex matrix.
    ///
    /// # Panics
    /// As [`Part::full`].
    pub fn complex(&self) -> &M::Complex {
        match self {
            Part::Complex(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// As [`Part::full`], by value.
    pub fn into_full(self) -> M {
        self.full().clone()
    }

    /// As [`Part::real`], by value.
    pub fn into_real(self) -> M::Real {
        self.real().clone()
    }

    /// Zeros of the same shape and kind.
    pub(crate) fn zeros(&self) -> Self {
        match self {
            Part::Full(x) => Part::Full(zeros(x)),
            Part::Real(x) => Part::Real(zeros(x)),
            Part::Complex(x) => Part::Complex(zeros(x)),
        }
    }
}

/// Zeros of the shape of x.
pub(crate) fn zeros<M: Matrices>(x: &M) -> M {
    x.constant(x.rows(), x.cols(), 0.0)
}
