//! Second derivatives of functions of singular values and eigenvalues, including ties.
//!
//! A loss `φ(S)` has the gradient `G = U diag(c) Vᴴ`, `c = φ′(S)`. Along `X`, with `P = Uᴴ X V`,
//!
//! ```text
//! dG = U [herm(P) ∘ (cᵢ − cⱼ)/(Sᵢ − Sⱼ) + skew(P) ∘ (cᵢ + cⱼ)/(Sᵢ + Sⱼ) + diag dc] Vᴴ
//!    + (X V − U P) diag(c/S) Vᴴ + U diag(c/S) (Uᴴ X − P Vᴴ),      dc = φ″ dS
//! ```
//!
//! and eigenvalues are the case `U = V`, `skew(P) = 0`. At ties the quotients are 0/0. Along `A + t X`, t > 0, the
//! derivatives of tied values are the eigenvalues `w` of their block `W` of `herm(P)`, those of zero singular values
//! the singular values of their block `R` (Kato 1966, II.6). `φ` is symmetric in tied values, so within a block `φ″ =
//! α + β` (a multiple of the unit matrix, and a multiple of the matrix of ones): `α` follows from `h = φ″ w`, and the
//! block of `dG` is `α W` up to a multiple of the unit matrix; at zero `φ` is even, and the block is `α R`. A loss
//! whose `h` is not of this form has no second derivative and is an error, as is one with different slopes at tied
//! values, `cᵢ ≠ cⱼ`.
//!
//! In forward mode all of these are available. In reverse mode, `X` is the cotangent of another node of the tape and
//! is processed before `h` is known. The gradient is therefore an operation of its own ([`Spectral`]). It returns `w`
//! as the cotangent of `c`, and passes `W` and `R` to the operation of the values through a hidden result of that
//! operation, a copy of `A` ([`Carrier`]), in the part of its cotangent that the regular part of `dG` does not use:
//! the blocks of ties. A second hidden result, a row of zeros, carries `w`. The sum of several such messages is
//! equivalent to one message if `‖Σw‖ = ‖ΣW‖`, that is, if they share an eigenbasis; otherwise they cannot be
//! separated, which is an error.

mod function;
mod operation;
#[cfg(test)]
mod tests;

use crate::degeneracy::{Degeneracy, relative, rounding};
use crate::error::{LinalgError, Result};
use crate::operation::{Part, full, real, zeros};
use crate::vocabulary::{Matrices, RealMatrices, Region};

pub use crate::vocabulary::{Carrier, Factors, Spectrum};
pub use function::MatrixFunction;
pub use operation::{Spectral, SpectralOperation};

impl<'a, M: Matrices> Carrier<'a, M> {
    /// Carrier of the hidden results.
    pub(crate) fn of(hidden: &'a [Part<M>]) -> Self {
        Self { a: hidden[0].full(), w: hidden[1].real() }
    }

    /// Hidden results for the values `s` of `A`.
    pub(crate) fn parts(a: &M, s: &M::Real) -> Vec<Part<M>> {
        vec![Part::Full(a.clone()), Part::Real(s.constant(1, s.cols(), 0.0))]
    }
}

/// Factors and tie structure of `A = U diag(S) Vᴴ` with at least as many rows as columns, or of `A = V diag(S) Vᴴ`.
struct TiedFactors<M: Matrices> {
    u: M,
    s: M::Real,
    v: M,
    of: Spectrum,
    limit: M::Real,
    /// 1 for pairs within a tied block of nonzero values.
    pairs: M::Real,
    /// 1 for the values in such blocks.
    tied: M::Real,
    /// 1 for zero singular values.
    zero: M::Real,
    /// 1 for all other values.
    kept: M::Real,
    any: bool,
}

/// Blocks of the direction that determine the derivatives of tied values.
struct DirectionBlocks<M: Matrices> {
    /// `herm(P)` within tied blocks, `k × k`.
    w: M,
    /// Columns of the block of zero singular values, `m × k`.
    rest: M,
}

impl<M: Matrices> DirectionBlocks<M> {
    /// Norm of both blocks, regularised for division.
    fn size(&self) -> M::Real {
        self.w.stack(&self.rest).detached().magnitude()
    }
}

/// `Σ |xᵢⱼ|²`, `1 × 1`.
fn sum_of_squares<M: Matrices>(x: &M) -> M::Real {
    let (re, im) = (x.re(), x.im());
    re.mul(&re).add(&im.mul(&im)).sum_rows().transpose().sum_rows()
}

impl<M: Matrices> TiedFactors<M> {
    /// From thin factors; wide matrices are transposed by the caller.
    fn new(u: &M, s: &M::Real, v: &M, of: Spectrum, ties: &Degeneracy) -> Result<Self> {
        let (k, size) = (s.cols(), u.rows().max(v.rows()));
        let limit = ties.limit(s, size);
        let one = s.constant(1, 1, 1.0);
        let zero = match of {
            Spectrum::Singular => s.within(&limit),
            Spectrum::Hermitian => s.constant(1, k, 0.0),
        };
        let kept = one.sub(&zero);
        let pairs = s.sub(&s.transpose()).within(&limit);
        let pairs = pairs.mul(&kept).mul(&kept.transpose());
        let alone = pairs.sum_rows().sub(&one).within(&s.constant(1, 1, 0.5));
        let tied = kept.sub(&alone);
        let pairs = pairs.mul(&tied).mul(&tied.transpose());
        let any = tied.add(&zero).norms()?.iter().any(|&n| n > 0.0);
        let (u, s, v) = (u.clone(), s.clone(), v.clone());
        Ok(Self { u, s, v, of, limit, pairs, tied, zero, kept, any })
    }

    /// The part of the direction that the operation uses, times `V`, and `P`.
    fn project(&self, x: &M) -> (M, M) {
        let xv = match self.of {
            Spectrum::Singular => x.matmul(&self.v),
            Spectrum::Hermitian => x.herm().matmul(&self.v),
        };
        let p = self.u.adjoint().matmul(&xv);
        (xv, p)
    }

    fn blocks(&self, xv: &M, p: &M) -> DirectionBlocks<M> {
        let beside = xv.sub(&self.u.matmul(&p.mul_real(&self.kept.transpose())));
        DirectionBlocks { w: p.herm().mul_real(&self.pairs), rest: beside.mul_real(&self.zero) }
    }

    /// Regular part of `dG`: all terms without a quotient 0/0.
    fn regular(&self, c: &M::Real, xv: &M, p: &M) -> M {
        let gaps = self.s.sub(&self.s.transpose()).masked_recip(&self.limit);
        let mut inner = p.herm().mul_real(&c.sub(&c.transpose()).mul(&gaps));
        if self.of == Spectrum::Singular {
            let sums = self.s.add(&self.s.transpose()).masked_recip(&self.limit);
            inner = inner.add(&p.skew().mul_real(&c.add(&c.transpose()).mul(&sums)));
        }
        let mut left = self.u.matmul(&inner);
        if self.u.rows() > self.s.cols() {
            let ratio = c.mul(&self.s.masked_recip(&self.limit));
            left = left.add(&xv.sub(&self.u.matmul(p)).mul_real(&ratio));
        }
        left.matmul(&self.v.adjoint())
    }

    /// `dS`: the diagonal of `P`, and at ties the eigenvalues (singular values) of the blocks.
    fn slopes(&self, p: &M, blocks: &DirectionBlocks<M>) -> M::Real {
        let diagonal = p.diagonal().re();
        if !self.any {
            return diagonal;
        }
        // The blocks form one block-diagonal matrix, each shifted by its own integer, so that one factorisation
        // returns their values in order. The block at zero is not shifted.
        let one = self.s.constant(1, 1, 1.0);
        let after = one.sub(&self.pairs).mask(Region::Upper(1)).mul(&self.kept);
        let shift = after.transpose().sum_rows().add(&one).mul(&self.kept);
        let size = blocks.size();
        let both = blocks.w.stack(&blocks.rest).detached().mul_real(&size.recip());
        let norm = sum_of_squares(&both).powf(0.5);
        let still = norm.within(&one.scale(0.0));
        let unit = norm.add(&still).recip().scale(0.4);
        let (k, m) = (self.s.cols(), self.u.rows());
        let scaled = both.mul_real(&unit);
        // Singular values are nonincreasing, eigenvalues nondecreasing.
        let sign = if self.of == Spectrum::Singular { 1.0 } else { -1.0 };
        let inner = scaled.slice(0..k, 0..k).scale(sign);
        let inner = inner.add(&M::from_re(&shift.diagonal_matrix()));
        let all = self.u.detached().matmul(&inner).add(&scaled.slice(k..k + m, 0..k));
        let values = all.svdvals().sub(&shift).scale(sign).mul(&unit.recip()).mul(&size);
        let blocks = self.tied.add(&self.zero);
        let values = values.mul(&blocks).mul(&one.sub(&still));
        values.add(&diagonal.mul(&one.sub(&blocks)))
    }

    /// Returns an error if the gradient has different slopes at tied values that the direction mixes.
    fn check(&self, c: &M::Real, blocks: &DirectionBlocks<M>) -> Result<()> {
        let inside = blocks.w.mul_real(&c.sub(&c.transpose()));
        let defects = inside.stack(&blocks.rest.mul_real(c)).norms()?;
        let allowed = (blocks.w.stack(&blocks.rest).norms()?, c.norms()?);
        let allowed: Vec<f64> = allowed.0.iter().zip(&allowed.1).map(|(a, b)| a * b).collect();
        self.compare(&defects, &allowed, relative(c.epsilon()))
    }

    /// Returns an error for a direction that splits a tie, or moves values off zero.
    fn unsplit(&self, op: &'static str, x: &M) -> Result<()> {
        if !self.any {
            return Ok(());
        }
        let (xv, p) = self.project(x);
        let DirectionBlocks { w, rest } = self.blocks(&xv, &p);
        let count = self.pairs.sum_rows();
        let count = count.add(&count.within(&count.constant(1, 1, 0.0))).recip();
        let mean = w.diagonal().re().matmul(&self.pairs).mul(&count);
        let split = w.sub(&M::from_re(&mean.diagonal_matrix()));
        let defects = split.stack(&rest).norms()?;
        compare(op, &defects, &x.norms()?, relative(x.epsilon()))
    }

    fn compare(&self, defects: &[f64], sizes: &[f64], tolerance: f64) -> Result<()> {
        compare(self.of.name(), defects, sizes, tolerance)
    }

    /// Tied part of `dG` and `diag h` of the other values, from `h = φ″ w`.
    fn tied_part(&self, blocks: &DirectionBlocks<M>, w: &M::Real, h: &M::Real) -> Result<M> {
        if !self.any {
            return Ok(self.u.mul_real(h).matmul(&self.v.adjoint()));
        }
        let one = self.s.constant(1, 1, 1.0);
        let inverse = blocks.size().recip();
        let w = w.mul(&self.tied.add(&self.zero)).mul(&inverse);
        let block = blocks.w.mul_real(&inverse);
        let rest = blocks.rest.mul_real(&inverse);
        // One message, or several with a common eigenbasis.
        let (whole, parts) = (sum_of_squares(&block.stack(&rest)), sum_of_squares(&w));
        let unit = self.s.epsilon() * rounding(self.u.rows());
        self.compare(&parts.sub(&whole).norms()?, &parts.norms()?, 64.0 * unit)?;

        let count = self.pairs.sum_rows();
        let count = count.add(&count.within(&one.scale(0.0))).recip();
        let centred = |x: &M::Real| x.sub(&x.matmul(&self.pairs).mul(&count)).mul(&self.tied);
        let (z, g) = (centred(&w), centred(h));
        let limit = one.scale(unit * unit);
        let over = |x: &M::Real, y: &M::Real| x.mul(&y.masked_recip(&limit));
        let within = |x: M::Real| x.matmul(&self.pairs);
        let alpha = over(&within(g.mul(&z)), &within(z.mul(&z)));
        let total = |x: M::Real| x.mul(&self.zero).transpose().sum_rows();
        let at_zero = over(&total(h.mul(&w)), &total(w.mul(&w))).mul(&self.zero);

        let left = g.sub(&alpha.mul(&z)).add(&h.mul(&self.zero)).sub(&at_zero.mul(&w));
        let moved = self.tied.add(&self.zero);
        self.compare(&left.norms()?, &h.mul(&moved).norms()?, relative(h.epsilon()))?;

        let diagonal = h.mul(&self.kept).sub(&alpha.mul(&w));
        let inner = block.mul_real(&alpha).add(&M::from_re(&diagonal.diagonal_matrix()));
        let left = self.u.matmul(&inner).add(&rest.mul_real(&at_zero));
        Ok(left.matmul(&self.v.adjoint()))
    }
}

/// `Ā` from the cotangents of values and of their [`Carrier`], for the operations that return values.
pub(crate) fn values_vjp<M: Matrices>(
    a: &M,
    factors: &Factors<M>,
    hidden: &[Part<M>],
    cotangents: &[Option<Part<M>>],
) -> Result<M> {
    let none = || factors.s.scale(0.0);
    match (real(cotangents, 0), full(cotangents, 1)) {
        (h, Some(message)) => {
            let w = real(cotangents, 2).cloned().unwrap_or_else(none);
            factors.joined(h.unwrap_or(&none()), message, &w)
        }
        (Some(c), None) => M::spectral_gradient(factors, Carrier::of(hidden), c),
        (None, None) => Ok(zeros(a)),
    }
}

/// Tangents of values and of their [`Carrier`].
pub(crate) fn values_jvp<M: Matrices>(
    factors: &Factors<M>,
    hidden: &[Part<M>],
    da: &M,
) -> Result<Vec<Part<M>>> {
    let carrier = Carrier::of(hidden);
    let ds = M::spectral_tangent(factors, carrier, da)?;
    Ok(vec![Part::Real(ds), Part::Full(da.clone()), Part::Real(zeros(carrier.w))])
}

fn compare(op: &'static str, defects: &[f64], sizes: &[f64], tolerance: f64) -> Result<()> {
    // NaN is not a tie.
    match defects.iter().zip(sizes).position(|(defect, size)| *defect > tolerance * size) {
        Some(batch) => Err(LinalgError::SecondOrderAtTie { op, batch }),
        None => Ok(()),
    }
}

impl<M: Matrices> Factors<M> {
    /// Leading `k` of thin or full singular vectors.
    pub fn singular(u: &M, s: &M::Real, vh: &M) -> Self {
        let k = s.cols();
        let v = vh.slice(0..k, 0..vh.cols()).adjoint();
        Self { u: u.slice(0..u.rows(), 0..k), s: s.clone(), v, of: Spectrum::Singular }
    }

    /// Eigenvalues and eigenvectors.
    pub fn hermitian(s: &M::Real, v: &M) -> Self {
        Self { u: v.clone(), s: s.clone(), v: v.clone(), of: Spectrum::Hermitian }
    }

    /// Runs `f` on `A`, or on `Aᴴ` if that is tall, with `x` and the result transposed accordingly.
    fn upright<R>(
        &self,
        x: &M,
        f: impl FnOnce(&TiedFactors<M>, &M) -> Result<(M, R)>,
    ) -> Result<(M, R)> {
        self.upright_with(&Degeneracy::DEFAULT, x, f)
    }

    fn upright_with<R>(
        &self,
        ties: &Degeneracy,
        x: &M,
        f: impl FnOnce(&TiedFactors<M>, &M) -> Result<(M, R)>,
    ) -> Result<(M, R)> {
        match self.u.rows() < self.v.rows() {
            true => {
                let frame = TiedFactors::new(&self.v, &self.s, &self.u, self.of, ties)?;
                f(&frame, &x.adjoint()).map(|(out, rest)| (out.adjoint(), rest))
            }
            false => f(&TiedFactors::new(&self.u, &self.s, &self.v, self.of, ties)?, x),
        }
    }

    /// Factors as constants.
    pub(crate) fn detached(&self) -> [Part<M>; 3] {
        let [u, v] = [&self.u, &self.v].map(|x| Part::Full(x.detached()));
        [u, Part::Real(self.s.detached()), v]
    }

    /// Operands of a [`Spectral`] operation on the carrier, these factors and `x`. The operation does not use derivatives
    /// of the factors, but its rules do, on the levels below: a third derivative needs them.
    pub(crate) fn parts(&self, carrier: Carrier<'_, M>, x: Part<M>) -> Vec<Part<M>> {
        let Self { u, s, v, .. } = self.clone();
        let carrier = [Part::Full(carrier.a.clone()), Part::Real(carrier.w.clone()), x];
        carrier.into_iter().chain([Part::Full(u), Part::Real(s), Part::Full(v)]).collect()
    }

    /// Returns an error for directions that split tied values, or move values off zero. The rules of factorisations
    /// have no derivative along these; along other directions tied vectors do not change. For gradients through
    /// `vectors`, values at gaps up to `√ε` count as tied.
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    pub fn unsplit(&self, op: &'static str, x: &M, vectors: bool) -> Result<()> {
        let ties = if vectors { Degeneracy::near(x.epsilon()) } else { Degeneracy::DEFAULT };
        let unmoved =
            |frame: &TiedFactors<M>, x: &M| frame.unsplit(op, x).map(|()| (x.clone(), ()));
        self.upright_with(&ties, x, unmoved).map(|_| ())
    }

    /// `dS` along `X`; for tied values that along `A + t X` for `t > 0`, in their order.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    pub fn tangent(&self, x: &M) -> Result<M::Real> {
        let found = self.upright(x, |frame, x| {
            let (xv, p) = frame.project(x);
            Ok((x.clone(), frame.slopes(&p, &frame.blocks(&xv, &p))))
        });
        Ok(found?.1)
    }

    /// `dG` along `X`, with `dc` along the `dS` of [`Factors::tangent`].
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    pub fn gradient_tangent(&self, c: &M::Real, dc: &M::Real, x: &M) -> Result<M> {
        let found = self.upright(x, |frame, x| {
            let (xv, p) = frame.project(x);
            let blocks = frame.blocks(&xv, &p);
            frame.check(c, &blocks)?;
            let tied = frame.tied_part(&blocks, &frame.slopes(&p, &blocks), dc)?;
            Ok((frame.regular(c, &xv, &p).add(&tied), ()))
        });
        Ok(found?.0)
    }

    /// `d(dS)` along `Y` and `dX`, where `dS` is that along `X`; for values without ties.
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    pub(crate) fn tangent_tangent(&self, x: &M, dx: Option<&M>, y: &M) -> Result<M::Real> {
        let s = &self.s;
        let ties = self.upright(x, |frame, _| {
            let tied = frame.tied.add(&frame.zero);
            Ok((x.clone(), tied.norms()?))
        })?;
        if let Some(batch) = ties.1.iter().position(|&tied| tied > 0.0) {
            return Err(LinalgError::SecondOrderAtTie { op: self.of.name(), batch });
        }
        // ⟨X, d(u vᴴ)⟩ + ⟨dX, u vᴴ⟩ with c = eᵢ for each value i in turn.
        let unit = s.identity(s.cols());
        let one = |i: usize| -> Result<M::Real> {
            let c = unit.slice(i..i + 1, 0..s.cols());
            let gradient = self.gradient_tangent(&c, &c.scale(0.0), y)?;
            let product = gradient.conj().mul(x).re();
            Ok(product.sum_rows().transpose().sum_rows())
        };
        let moving = (0..s.cols()).map(one).collect::<Result<Vec<_>>>()?;
        let turned = moving.into_iter().reduce(|a, b| a.append(&b));
        let turned = turned.unwrap_or_else(|| s.scale(0.0));
        Ok(match dx {
            Some(dx) => turned.add(&self.tangent(dx)?),
            None => turned,
        })
    }

    /// Cotangents of [`Carrier::a`] and of `c` from that of `G`, as input of [`Factors::joined`].
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    pub fn message(&self, c: &M::Real, x: &M) -> Result<(M, M::Real)> {
        self.upright(x, |frame, x| {
            let (xv, p) = frame.project(x);
            let mut cotangent = frame.regular(c, &xv, &p);
            let blocks = frame.blocks(&xv, &p);
            if frame.any {
                frame.check(c, &blocks)?;
                let left = frame.u.matmul(&blocks.w).add(&blocks.rest);
                cotangent = cotangent.add(&left.matmul(&frame.v.adjoint()));
            }
            Ok((cotangent, frame.slopes(&p, &blocks)))
        })
    }

    /// `Ā` from the cotangent of `S` and the sums of the received messages.
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    pub fn joined(&self, h: &M::Real, message: &M, w: &M::Real) -> Result<M> {
        let found = self.upright(message, |frame, message| {
            if !frame.any {
                let values = frame.u.mul_real(h).matmul(&frame.v.adjoint());
                return Ok((message.add(&values), ()));
            }
            let (xv, p) = frame.project(message);
            let blocks = frame.blocks(&xv, &p);
            let left = frame.u.matmul(&blocks.w).add(&blocks.rest);
            let regular = message.sub(&left.matmul(&frame.v.adjoint()));
            Ok((regular.add(&frame.tied_part(&blocks, w, h)?), ()))
        });
        Ok(found?.0)
    }
}
