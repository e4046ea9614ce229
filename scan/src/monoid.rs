//! Monoids over tuples of arrays, the operations of associative scans.

use std::fmt::Debug;

use t4a_diff::{Array, Dual, Flags, Integers, Kept, Meta, Operation, Reverse, Value};
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Tag};
use t4a_tensor::TensorError;

use crate::cumulative::log_add_exp;
use crate::error::Result;
use crate::running::Running;

/// An associative operation on elements that are tuples of one or several arrays.
///
/// The first axis of each array enumerates elements, which are combined one by one; the remaining axes belong to the
/// element. Operand order is preserved, so the operation need not commute. **It must be associative:** the scan chooses
/// the bracketing, and associativity cannot be checked.
///
/// [`Monoid::combine`] is composed from [`Array`] operations; derivatives of all orders follow from it if it is
/// elementwise on arrays of one shape, otherwise from [`Monoid::vjp`].
///
/// ```
/// use t4a_diff::{Array, Operation, Value, check};
/// use t4a_scan::{AssociativeScan, Monoid, ScanError};
/// /// `x + y − x y`: the probability that one of several independent events happens.
/// #[derive(Clone, Debug)]
/// struct Either;
/// impl Monoid for Either {
///     fn name(&self) -> &'static str {
///         "either"
///     }
///     fn identity<A: Array>(&self, like: &[A]) -> Vec<A> {
///         vec![like[0].full(&like[0].shape(), 0.0)]
///     }
///     fn combine<A: Array>(&self, x: &[A], y: &[A]) -> Result<Vec<A>, ScanError> {
///         Ok(vec![x[0].add(&y[0]).sub(&x[0].mul(&y[0]))])
///     }
/// }
/// let op = AssociativeScan::new(Either, 0);
/// let x = Value::Float(check::array(&[3], |_| 0.5));
/// let y = op.forward(&[x.clone()], &[true])?.results;
/// assert_eq!(check::elements(&y[0]), [0.5, 0.75, 0.875]);
/// check::operation(&op, &[x], 1e-8);
/// # Ok::<(), ScanError>(())
/// ```
pub trait Monoid: Clone + Debug + Send + Sync + 'static {
    /// Name in error messages.
    fn name(&self) -> &'static str;

    /// Number of arrays of an element.
    fn arrays(&self) -> usize {
        1
    }

    /// Checks the shapes of the arrays of one element before any work. The default requires equal shapes.
    ///
    /// # Errors
    /// If the shapes do not form an element.
    fn check(&self, element: &[Meta]) -> Result<()> {
        Ok(crate::operand::same_shape(self.name(), element, "arrays of one shape")?)
    }

    /// Identity elements, with the number and shape of the elements in `like`.
    fn identity<A: Array>(&self, like: &[A]) -> Vec<A>;

    /// `x ∘ y`, where x precedes y in the scan.
    ///
    /// # Errors
    /// Errors that depend on values.
    fn combine<A: Array>(&self, x: &[A], y: &[A]) -> Result<Vec<A>>;

    /// Cotangents of x and y of [`Monoid::combine`]. The default is valid for elementwise operations on arrays of one
    /// shape: it multiplies by partial derivatives computed with dual numbers.
    ///
    /// # Errors
    /// As [`Monoid::combine`].
    fn vjp<A: Array>(&self, x: &[A], y: &[A], cotangents: &[A]) -> Result<[Vec<A>; 2]> {
        entrywise_vjp(self, x, y, cotangents)
    }

    /// The equivalent cumulative operation, if there is one.
    fn running(&self) -> Option<Running> {
        None
    }

    /// True if elements are the pairs of [`FloatMonoid::Affine`].
    fn affine(&self) -> bool {
        false
    }
}

/// Vjp of an elementwise operation, with partial derivatives computed by dual numbers.
fn entrywise_vjp<M: Monoid, A: Array>(
    monoid: &M,
    x: &[A],
    y: &[A],
    cotangents: &[A],
) -> Result<[Vec<A>; 2]> {
    let still = |x: &[A]| x.iter().cloned().map(Dual::constant).collect::<Vec<_>>();
    let along = |side: usize, k: usize| -> Result<A> {
        let mut operands = [still(x), still(y)];
        let moves = &mut operands[side][k];
        moves.tangent = Some(moves.value.full(&moves.value.shape(), 1.0));
        let mut sum: Option<A> = None;
        for (z, g) in monoid.combine(&operands[0], &operands[1])?.into_iter().zip(cotangents) {
            if let Some(slope) = z.tangent {
                let term = slope.mul(g);
                sum = Some(sum.map_or_else(|| term.clone(), |sum| sum.plus(&term)));
            }
        }
        Ok(sum.unwrap_or_else(|| x[k].full(&x[k].shape(), 0.0)))
    };
    let all = |side| (0..x.len()).map(|k| along(side, k)).collect::<Result<Vec<A>>>();
    Ok([all(0)?, all(1)?])
}

/// The built-in monoids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum FloatMonoid {
    /// `x + y`.
    Sum,
    /// `x y`.
    Product,
    /// `max(x, y)`.
    Max,
    /// `min(x, y)`.
    Min,
    /// `ln(eˣ + e^y)`.
    LogAddExp,
    /// 1 if x or y is not 0, else 0; its derivative is 0.
    Any,
    /// 1 if neither is 0, else 0; its derivative is 0.
    All,
    /// Composition of maps `h ↦ a h + b`, with the later map applied last: `(a₂ a₁, a₂ b₁ + b₂)`.
    Affine,
    /// Products of square matrices over a semiring, earlier factors on the left.
    Matrix(FloatSemiring),
}

impl FloatMonoid {
    /// `x y` for `[n, …, d, d]`, as a contraction of `[n ·…, d, d]`.
    fn product<A: Array>(semiring: FloatSemiring, x: &A, y: &A) -> Result<ChainProduct<A>> {
        let shape = x.shape();
        let d = shape[shape.len() - 1];
        let flat = [shape[..shape.len() - 2].iter().product(), d, d];
        let plan = Einsum::new("nij,njk->nik")?.plan(&[&flat, &flat], x.dtype().size())?;
        let inputs = [x, y].map(|x| Value::Float(x.reshape(&flat)));
        Ok(ChainProduct { op: Contraction { plan, semiring }, inputs, shape, flat })
    }
}

/// A product of matrices.
struct ChainProduct<A: Array> {
    op: Contraction,
    inputs: [Value<A>; 2],
    shape: Vec<usize>,
    flat: [usize; 3],
}

impl Monoid for FloatMonoid {
    fn name(&self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Max => "max",
            Self::Min => "min",
            Self::LogAddExp => "log_add_exp",
            Self::Any => "any",
            Self::All => "all",
            Self::Affine => "affine",
            Self::Matrix(_) => "matrix",
        }
    }

    fn arrays(&self) -> usize {
        if *self == Self::Affine { 2 } else { 1 }
    }

    fn check(&self, element: &[Meta]) -> Result<()> {
        if let Self::Matrix(_) = self {
            let shape = &element[0].shape;
            return match &shape[..] {
                [.., rows, cols] if rows == cols => Ok(()),
                _ => Err(TensorError::shape("associative_scan", shape, "square matrices").into()),
            };
        }
        Ok(crate::operand::same_shape(self.name(), element, "arrays of one shape")?)
    }

    fn identity<A: Array>(&self, like: &[A]) -> Vec<A> {
        let full = |c: f64| like[0].full(&like[0].shape(), c);
        vec![match self {
            Self::Sum | Self::Any => full(0.0),
            Self::Product | Self::All => full(1.0),
            Self::Max | Self::LogAddExp => full(f64::NEG_INFINITY),
            Self::Min => full(f64::INFINITY),
            Self::Affine => return vec![full(1.0), full(0.0)],
            Self::Matrix(semiring) => return vec![unit(*semiring, &like[0])],
        }]
    }

    fn combine<A: Array>(&self, x: &[A], y: &[A]) -> Result<Vec<A>> {
        let (p, q) = (&x[0], &y[0]);
        Ok(vec![match self {
            Self::Sum => p.add(q),
            Self::Product => p.mul(q),
            Self::Max => p.replace(&q.greater(p).or(&q.is_nan()), q),
            Self::Min => p.replace(&p.greater(q).or(&q.is_nan()), q),
            Self::LogAddExp => log_add_exp(p, q),
            Self::Any => p.indicator(&nonzero(p).or(&nonzero(q))),
            Self::All => p.indicator(&nonzero(p).and(&nonzero(q))),
            Self::Affine => return Ok(vec![q.mul(p), q.mul(&x[1]).add(&y[1])]),
            Self::Matrix(semiring) => {
                let product = Self::product(*semiring, p, q)?;
                let out = A::apply(&product.op, &product.inputs, &[false; 2])?.results;
                out[0].reshape(&product.shape)
            }
        }])
    }

    fn vjp<A: Array>(&self, x: &[A], y: &[A], cotangents: &[A]) -> Result<[Vec<A>; 2]> {
        let Self::Matrix(semiring) = *self else {
            return entrywise_vjp(self, x, y, cotangents);
        };
        let ChainProduct { op, inputs, shape, flat } = Self::product(semiring, &x[0], &y[0])?;
        let wanted = &[true; 2];
        let out = A::apply(&op, &inputs, wanted)?;
        let kept = &Kept::new(op.keep(wanted), &inputs, &out);
        let cotangents = &[Some(cotangents[0].reshape(&flat))];
        let all = op.vjp(&Reverse { kept, cotangents, hidden: &[], wanted })?;
        let mut all = all.into_iter().flatten().map(|g| vec![g.reshape(&shape)]);
        let mut next = || all.next().unwrap_or_else(|| unreachable!("both were wanted"));
        Ok([next(), next()])
    }

    fn running(&self) -> Option<Running> {
        Some(match self {
            Self::Sum => Running::Sum,
            Self::Product => Running::Product,
            Self::Max => Running::Max,
            Self::Min => Running::Min,
            Self::LogAddExp => Running::LogSumExp,
            _ => return None,
        })
    }

    fn affine(&self) -> bool {
        *self == Self::Affine
    }
}

fn nonzero<A: Array>(x: &A) -> A::Flags {
    x.equals(0.0).not()
}

/// The identity matrix over a semiring, with the shape of x.
fn unit<A: Array>(semiring: FloatSemiring, x: &A) -> A {
    let shape = x.shape();
    let d = shape[shape.len() - 1];
    let zero = Tag::zero(&semiring);
    let row = x.counting(d);
    let diagonal =
        row.reshape(&[d, 1]).expand(&[d, d]).equal(&row.reshape(&[1, d]).expand(&[d, d]));
    let unit = x.full(&[d, d], zero).fill(&diagonal, Tag::one(&semiring));
    let mut leading = vec![1; shape.len()];
    leading[shape.len() - 2..].copy_from_slice(&[d, d]);
    unit.reshape(&leading).expand(&shape)
}
