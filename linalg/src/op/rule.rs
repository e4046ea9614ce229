//! The rules of all operations, on any implementor of the vocabulary.

use t4a_tensor::TensorError;

use super::{Op, Outcome, Part};
use crate::degeneracy::rounding;
use crate::error::{LinalgError, Result};
use crate::idle::{Idle, sparing};
use crate::permutation::Permutation;
use crate::spectrum::{Factors, Spectrum};
use crate::vocabulary::{Matrices, RealMatrices};
use crate::{cholesky, det, eig, eigh, expm, hermitian, inverse, lstsq, lu, lyapunov, pinv, polar};
use crate::{logm, qr, solve, sqrtm, svd, triangular};

impl<M: Matrices> Outcome<M> {
    fn saved(&self) -> &[Part<M>] {
        match &self.saved {
            Some((_, parts)) => parts,
            None => unreachable!("the forward pass of this operation keeps its factors"),
        }
    }

    /// The thin singular value decomposition.
    fn singular_triplets(&self) -> (&M, &M::Real, &M) {
        let parts = self.saved();
        (parts[0].full(), parts[1].real(), parts[2].full())
    }

    /// Rejects directions that split ties of the decomposition behind.
    fn unsplit(&self, x: &M) -> Result<()> {
        let saved = self.saved();
        match &self.saved {
            Some((Op::Svd(..), _)) => factors(Spectrum::Singular, saved).unsplit("svd", x),
            Some((Op::Eig(_), _)) => {
                eig::unsplit(saved[0].complex(), saved[1].complex(), &x.to_complex())
            }
            _ => factors(Spectrum::Hermitian, saved).unsplit("eigh", x),
        }
    }

    /// `f` of the factors behind values.
    fn spectrum<R>(&self, of: Spectrum, f: impl FnOnce(Factors<M>) -> Result<R>) -> Result<R> {
        f(factors(of, self.saved()))
    }

    /// Packed factors and their permutation.
    fn factors(&self) -> (&M, &Permutation) {
        (self.saved()[0].full(), permutation(&self.rows))
    }

    /// `adj(A)`, if the forward pass met a singular matrix.
    fn adjugate(&self, a: &M) -> Result<Option<M>> {
        match &self.saved {
            Some((Op::Svd(..), svd)) => {
                det::adjugate(a, svd[0].full(), svd[1].real(), svd[2].full()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `A = Q R`, or `Aᴴ = Q R` for a wide matrix.
    fn least_squares(&self) -> (M, M) {
        let (first, second) = (self.saved()[0].full(), self.saved()[1].full());
        match &self.saved {
            Some((Op::Lq, _)) => (second.adjoint(), first.adjoint()),
            _ => (first.clone(), second.clone()),
        }
    }
}

fn permutation(found: &Option<Permutation>) -> &Permutation {
    match found {
        Some(permutation) => permutation,
        None => unreachable!("a pivoted factorisation has a permutation"),
    }
}

fn zeros<M: Matrices>(inputs: &[M]) -> Vec<M> {
    inputs.iter().map(|x| x.constant(x.rows(), x.cols(), 0.0)).collect()
}

/// The factors in the results of a decomposition.
fn factors<M: Matrices>(of: Spectrum, parts: &[Part<M>]) -> Factors<M> {
    match of {
        Spectrum::Singular => Factors::singular(parts[0].full(), parts[1].real(), parts[2].full()),
        Spectrum::Hermitian => Factors::hermitian(parts[0].real(), parts[1].full()),
    }
}

/// The gradient of a function of values with these slopes.
fn sum<M: Matrices>(a: &M, factors: Factors<M>, c: Option<&M::Real>) -> Result<M> {
    match c {
        Some(c) => a.spectral_sum(&factors, c),
        None => Ok(a.constant(factors.u.rows(), factors.v.rows(), 0.0)),
    }
}

/// The cotangent of result `i`, if there is one.
fn bar<M: Matrices>(bars: &[Option<Part<M>>], i: usize) -> Option<&Part<M>> {
    bars.get(i).and_then(Option::as_ref)
}

fn full<M: Matrices>(bars: &[Option<Part<M>>], i: usize) -> Option<&M> {
    bar(bars, i).map(Part::full)
}

fn real<M: Matrices>(bars: &[Option<Part<M>>], i: usize) -> Option<&M::Real> {
    bar(bars, i).map(Part::real)
}

/// Pivots that are zero to rounding, for each matrix.
fn check_pivots<M: Matrices>(op: &'static str, packed: &M) -> Result<()> {
    let diagonal = packed.diagonal();
    // Relative to the largest: squares of small numbers underflow.
    let largest = diagonal.largest();
    let diagonal = diagonal.mul_real(&largest.masked_recip(&largest.scale(0.0)));
    let (re, im) = (diagonal.re(), diagonal.im());
    let squares = re.mul(&re).add(&im.mul(&im));
    let limit = squares.largest_real().scale((packed.epsilon() * rounding(packed.rows())).powi(2));
    for (batch, zero) in squares.within(&limit).norms()?.into_iter().enumerate() {
        if zero > 0.0 {
            let required = packed.rows();
            let rank = required - (zero * zero).round() as usize;
            return Err(LinalgError::RankDeficient { op, batch, rank, required });
        }
    }
    Ok(())
}

impl<M: Matrices> Part<M> {
    fn activity(&self) -> M::Real {
        match self {
            Part::Full(x) => x.activity(),
            Part::Real(x) => x.activity(),
            Part::Complex(x) => x.activity(),
        }
    }

    fn cotangent(&self, idle: &Idle<M::Real>) -> Self {
        match self {
            Part::Full(x) => Part::Full(idle.cotangent(x)),
            Part::Real(x) => Part::Real(idle.cotangent(x)),
            Part::Complex(x) => Part::Complex(idle.cotangent(x)),
        }
    }

    fn factor(&self, idle: &Idle<M::Real>) -> Self {
        match self {
            Part::Full(x) => Part::Full(idle.factor(x)),
            Part::Real(x) => Part::Real(idle.values(x)),
            Part::Complex(x) if x.rows() == 1 => Part::Complex(idle.values(x)),
            Part::Complex(x) => Part::Complex(idle.factor(x)),
        }
    }
}

impl Op {
    /// Cotangents of the inputs from those of the results; `None` is zero. A matrix whose
    /// cotangents are zero cannot fail.
    ///
    /// # Errors
    /// Those of the rule: `GaugeIllDefined`, `RankDeficient`, `Singular`.
    pub fn vjp<M: Matrices>(
        &self,
        inputs: &[M],
        out: &Outcome<M>,
        bars: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let activity = || {
            let all = bars.iter().flatten().map(Part::activity);
            all.reduce(|a, b| a.add(&b))
        };
        sparing(activity, |idle| {
            let inputs: Vec<M> = inputs.iter().map(|x| idle.factor(x)).collect();
            let factors = |parts: &[Part<M>]| parts.iter().map(|part| part.factor(idle)).collect();
            let out = Outcome {
                parts: factors(&out.parts),
                saved: out.saved.as_ref().map(|(op, parts)| (*op, factors(parts))),
                rows: out.rows.clone(),
                cols: out.cols.clone(),
            };
            let bars: Vec<_> =
                bars.iter().map(|bar| bar.as_ref().map(|bar| bar.cotangent(idle))).collect();
            let bars = self.rule(&inputs, &out, &bars)?;
            match bars.iter().find_map(M::error) {
                Some(error) => Err(error),
                None => Ok(bars),
            }
        })
    }

    fn rule<M: Matrices>(
        &self,
        inputs: &[M],
        out: &Outcome<M>,
        bars: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let a = &inputs[0];
        let zero = || a.constant(a.rows(), a.cols(), 0.0);
        if bars.iter().all(Option::is_none) {
            return Ok(zeros(inputs));
        }
        let parts = &out.parts;
        match self {
            Op::Svd(..) => a.unsplit("svd", || factors(Spectrum::Singular, parts))?,
            Op::SvdFunction(_) => a.unsplit("svd", || factors(Spectrum::Singular, out.saved()))?,
            Op::Eigh(_) => a.unsplit("eigh", || factors(Spectrum::Hermitian, parts))?,
            Op::Hermitian(_) => a.unsplit("eigh", || factors(Spectrum::Hermitian, out.saved()))?,
            _ => {}
        }
        Ok(vec![match self {
            Op::Svd(_, degeneracy) => {
                let bar = svd::SvdRule {
                    u: full(bars, 0).cloned(),
                    s: real(bars, 1).cloned(),
                    vh: full(bars, 2).cloned(),
                };
                svd::vjp(parts[0].full(), parts[1].real(), parts[2].full(), &bar, degeneracy)?
            }
            Op::SvdVals => out.spectrum(Spectrum::Singular, |f| sum(a, f, real(bars, 0)))?,
            Op::Qr(_) => qr::vjp(parts[0].full(), parts[1].full(), full(bars, 0), full(bars, 1))?,
            Op::QrPivoted(_) => {
                let bar = qr::vjp(parts[0].full(), parts[1].full(), full(bars, 0), full(bars, 1))?;
                bar.permute_cols(&permutation(&out.cols).inverse()?)
            }
            Op::Lq => {
                let (l, q) = (parts[0].full().adjoint(), parts[1].full().adjoint());
                let (l_bar, q_bar) = (full(bars, 0).map(M::adjoint), full(bars, 1).map(M::adjoint));
                qr::vjp(&q, &l, q_bar.as_ref(), l_bar.as_ref())?.adjoint()
            }
            Op::LuFactor(_) => match full(bars, 0) {
                Some(bar) => {
                    let (rows, cols) = (permutation(&out.rows), out.cols.as_ref());
                    lu::vjp_packed(parts[0].full(), rows, cols, bar)?
                }
                None => zero(),
            },
            Op::Cholesky => {
                full(bars, 0).map_or_else(zero, |bar| cholesky::vjp(parts[0].full(), bar))
            }
            Op::Eigh(degeneracy) => {
                let (values, vectors) = (parts[0].real(), parts[1].full());
                eigh::vjp(values, vectors, real(bars, 0), full(bars, 1), degeneracy)?
            }
            Op::EigvalsH => out.spectrum(Spectrum::Hermitian, |f| sum(a, f, real(bars, 0)))?,
            Op::Spectrum(of) => out.spectrum(*of, |f| match (real(bars, 0), full(bars, 1)) {
                (h, Some(message)) => f.joined(h.unwrap_or(&f.s.scale(0.0)), message),
                (h, None) => sum(a, f, h),
            })?,
            Op::Unsplit => {
                let Some(x) = full(bars, 0) else { return Ok(zeros(inputs)) };
                out.unsplit(x)?;
                x.clone()
            }
            Op::SpectrumGradient(of) => {
                let Some(x) = full(bars, 0) else { return Ok(zeros(inputs)) };
                let (bar, w) = out.spectrum(*of, |f| f.message(&inputs[1].re(), x))?;
                return Ok(vec![bar, M::from_re(&w)]);
            }
            Op::SpectrumTangent(of) => {
                let Some(c) = real(bars, 0) else { return Ok(zeros(inputs)) };
                let rule = |f: Factors<M>| Ok((f.message(c, &inputs[1])?.0, f.sum(c)));
                let (bar, da_bar) = out.spectrum(*of, rule)?;
                return Ok(vec![bar, da_bar]);
            }
            Op::Eig(degeneracy) => {
                let (values, vectors) = (parts[0].complex(), parts[1].complex());
                let values_bar = bar(bars, 0).map(Part::complex);
                let vectors_bar = bar(bars, 1).map(Part::complex);
                M::from_complex(&eig::vjp(values, vectors, values_bar, vectors_bar, degeneracy)?)
            }
            Op::EigVals => {
                let (values, vectors) = (out.saved()[0].complex(), out.saved()[1].complex());
                let bar = bar(bars, 0).map(Part::complex);
                M::from_complex(&eig::vjp(values, vectors, bar, None, &Default::default())?)
            }
            Op::Polar(side) => {
                let (u, p) = (parts[0].full(), parts[1].full());
                polar::vjp_on(*side, u, p, full(bars, 0), full(bars, 1))?
            }
            Op::Expm => expm::vjp(a, full(bars, 0).unwrap_or(&zero()))?,
            Op::Sqrtm => sqrtm::vjp(a, full(bars, 0).unwrap_or(&zero()))?,
            Op::Logm => logm::vjp(a, full(bars, 0).unwrap_or(&zero()))?,
            Op::Hermitian(f) => {
                let (values, vectors) = (out.saved()[0].real(), out.saved()[1].full());
                let bar = hermitian::vjp(values, vectors, full(bars, 0).unwrap_or(&zero()), f);
                hermitian::check_domain("hermitian_function_vjp", &bar)?;
                bar
            }
            Op::SvdFunction(f) => {
                let (u, s, vh) = out.singular_triplets();
                let bar = svd::vjp_function(u, s, vh, full(bars, 0).unwrap_or(&zero()), f);
                hermitian::check_domain("svd_function_vjp", &bar)?;
                bar
            }
            Op::Inv => full(bars, 0).map_or_else(zero, |bar| inverse::vjp(parts[0].full(), bar)),
            Op::Pinv(_) => {
                full(bars, 0).map_or_else(zero, |bar| pinv::vjp(a, parts[0].full(), bar))
            }
            Op::Det => match (full(bars, 0), out.adjugate(a)?) {
                (Some(bar), Some(adjugate)) => adjugate.adjoint().mul(bar),
                (Some(bar), None) => {
                    let (packed, rows) = out.factors();
                    det::vjp(packed, rows, parts[0].full(), bar)?
                }
                (None, _) => zero(),
            },
            Op::Slogdet => {
                let (packed, rows) = out.factors();
                check_pivots("slogdet_vjp", packed)?;
                let sign = parts[0].full();
                det::slogdet_rule(packed, rows, sign, full(bars, 0), real(bars, 1))?
            }
            Op::Solve => {
                let (packed, rows) = out.factors();
                let x = parts[0].full();
                let bar = full(bars, 0).cloned().unwrap_or_else(|| x.scale(0.0));
                let (a_bar, b_bar) = solve::vjp(packed, rows, x, &bar)?;
                return Ok(vec![a_bar, b_bar]);
            }
            Op::SolveTriangular(triangle) => {
                let x = parts[0].full();
                let bar = full(bars, 0).cloned().unwrap_or_else(|| x.scale(0.0));
                let (t_bar, b_bar) = triangular::vjp(a, x, &bar, *triangle);
                return Ok(vec![t_bar, b_bar]);
            }
            Op::Lstsq => {
                let (x, (q, r)) = (parts[0].full(), out.least_squares());
                let bar = full(bars, 0).cloned().unwrap_or_else(|| x.scale(0.0));
                let (a_bar, b_bar) = lstsq::vjp(a, &inputs[1], x, &q, &r, &bar);
                return Ok(vec![a_bar, b_bar]);
            }
            Op::LstsqMinNorm(_) => {
                let (x, p) = (parts[0].full(), out.saved()[0].full());
                let bar = full(bars, 0).cloned().unwrap_or_else(|| x.scale(0.0));
                let a_bar = pinv::vjp(a, p, &bar.matmul(&inputs[1].adjoint()));
                return Ok(vec![a_bar, p.adjoint().matmul(&bar)]);
            }
            Op::Lyapunov => {
                let x = parts[0].full();
                let bar = full(bars, 0).cloned().unwrap_or_else(|| x.scale(0.0));
                let (p_bar, b_bar) = lyapunov::vjp(a, x, &bar);
                return Ok(vec![p_bar, b_bar]);
            }
        }])
    }

    /// Tangents of the results along tangents of the inputs.
    ///
    /// # Errors
    /// Those of the rule.
    pub fn jvp<M: Matrices>(
        &self,
        inputs: &[M],
        out: &Outcome<M>,
        tangents: &[M],
    ) -> Result<Vec<Part<M>>> {
        let (a, da, parts) = (&inputs[0], &tangents[0], &out.parts);
        Ok(match self {
            Op::Svd(_, degeneracy) => {
                let (u, s, vh) = (parts[0].full(), parts[1].real(), parts[2].full());
                let (du, ds, dvh) = svd::jvp(u, s, vh, da, degeneracy);
                vec![Part::Full(du), Part::Real(ds), Part::Full(dvh)]
            }
            Op::SvdVals => {
                vec![Part::Real(out.spectrum(Spectrum::Singular, |f| f.tangent(da))?)]
            }
            Op::Qr(_) => {
                let (dq, dr) = qr::jvp(parts[0].full(), parts[1].full(), da)?;
                vec![Part::Full(dq), Part::Full(dr)]
            }
            Op::QrPivoted(_) => {
                let da = da.permute_cols(permutation(&out.cols));
                let (dq, dr) = qr::jvp(parts[0].full(), parts[1].full(), &da)?;
                vec![Part::Full(dq), Part::Full(dr)]
            }
            Op::Lq => {
                let (l, q) = (parts[0].full().adjoint(), parts[1].full().adjoint());
                let (dq, dl) = qr::jvp(&q, &l, &da.adjoint())?;
                vec![Part::Full(dl.adjoint()), Part::Full(dq.adjoint())]
            }
            Op::LuFactor(_) => {
                let (rows, cols) = (permutation(&out.rows), out.cols.as_ref());
                vec![Part::Full(lu::jvp_packed(parts[0].full(), rows, cols, da))]
            }
            Op::Cholesky => vec![Part::Full(cholesky::jvp(parts[0].full(), da))],
            Op::Eigh(degeneracy) => {
                let (values, vectors) = (parts[0].real(), parts[1].full());
                let (de, dv) = eigh::jvp(values, vectors, da, degeneracy);
                vec![Part::Real(de), Part::Full(dv)]
            }
            Op::EigvalsH => {
                vec![Part::Real(out.spectrum(Spectrum::Hermitian, |f| f.tangent(da))?)]
            }
            Op::Spectrum(of) => {
                let row = da.constant(1, da.cols(), 0.0);
                let ds = out.spectrum(*of, |f| f.tangent(da))?;
                vec![Part::Real(ds), Part::Full(da.stack(&row))]
            }
            Op::SpectrumGradient(of) => {
                let (c, dc) = (inputs[1].re(), tangents[1].re());
                let da = da.slice(0..da.rows() - 1, 0..da.cols());
                vec![Part::Full(out.spectrum(*of, |f| f.moved(&c, &dc, &da))?)]
            }
            Op::Unsplit => {
                out.unsplit(da)?;
                vec![Part::Full(da.clone())]
            }
            Op::SpectrumTangent(_) => {
                let message = "a tangent of a tangent is that of the gradient";
                return Err(TensorError::value(self.name(), message).into());
            }
            Op::Eig(degeneracy) => {
                let (values, vectors) = (parts[0].complex(), parts[1].complex());
                let (dl, dv) = eig::jvp(values, vectors, &da.to_complex(), degeneracy)?;
                vec![Part::Complex(dl), Part::Complex(dv)]
            }
            Op::EigVals => {
                let (values, vectors) = (out.saved()[0].complex(), out.saved()[1].complex());
                let policy = Default::default();
                vec![Part::Complex(eig::jvp(values, vectors, &da.to_complex(), &policy)?.0)]
            }
            Op::Polar(side) => {
                let (du, dp) = polar::jvp_on(*side, parts[0].full(), parts[1].full(), da)?;
                vec![Part::Full(du), Part::Full(dp)]
            }
            Op::Expm => vec![Part::Full(expm::jvp(a, da)?)],
            Op::Sqrtm => vec![Part::Full(sqrtm::jvp(a, da)?)],
            Op::Logm => vec![Part::Full(logm::jvp(a, da)?)],
            Op::Hermitian(f) => {
                let (values, vectors) = (out.saved()[0].real(), out.saved()[1].full());
                let moved = hermitian::jvp(values, vectors, da, f);
                hermitian::check_domain("hermitian_function_jvp", &moved)?;
                vec![Part::Full(moved)]
            }
            Op::SvdFunction(f) => {
                let (u, s, vh) = out.singular_triplets();
                let moved = svd::vjp_function(u, s, vh, da, f);
                hermitian::check_domain("svd_function_jvp", &moved)?;
                vec![Part::Full(moved)]
            }
            Op::Inv => vec![Part::Full(inverse::jvp(parts[0].full(), da))],
            Op::Pinv(_) => vec![Part::Full(pinv::jvp(a, parts[0].full(), da))],
            Op::Det => vec![Part::Full(match out.adjugate(a)? {
                Some(adjugate) => adjugate.matmul(da).trace(),
                None => {
                    let (packed, rows) = out.factors();
                    solve::apply_inverse(packed, rows, da).trace().mul(parts[0].full())
                }
            })],
            Op::Slogdet => {
                let (packed, rows) = out.factors();
                check_pivots("slogdet_jvp", packed)?;
                let trace = solve::apply_inverse(packed, rows, da).trace();
                let turn = M::from_parts(&trace.re().scale(0.0), &trace.im());
                vec![Part::Full(turn.mul(parts[0].full())), Part::Real(trace.re())]
            }
            Op::Solve => {
                let (packed, rows) = out.factors();
                let db = Some(&tangents[1]);
                vec![Part::Full(solve::jvp(packed, rows, parts[0].full(), Some(da), db))]
            }
            Op::SolveTriangular(triangle) => {
                let (x, db) = (parts[0].full(), Some(&tangents[1]));
                vec![Part::Full(triangular::jvp(a, x, Some(da), db, *triangle))]
            }
            Op::Lstsq => {
                let (x, (q, r)) = (parts[0].full(), out.least_squares());
                vec![Part::Full(lstsq::jvp(a, &inputs[1], x, &q, &r, da, &tangents[1]))]
            }
            Op::LstsqMinNorm(_) => {
                let p = out.saved()[0].full();
                let moved = pinv::jvp(a, p, da).matmul(&inputs[1]);
                vec![Part::Full(moved.add(&p.matmul(&tangents[1])))]
            }
            Op::Lyapunov => {
                let (x, db) = (parts[0].full(), Some(&tangents[1]));
                vec![Part::Full(lyapunov::jvp(a, x, Some(da), db))]
            }
        })
    }
}
