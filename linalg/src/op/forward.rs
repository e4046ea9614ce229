//! The operations on engine tensors.

use t4a_tensor::Tensor;

use super::{Op, Outcome, Part};
use crate::error::{OUTSIDE_DOMAIN, Result, SINGULAR, check};
use crate::hermitian::{check_domain, hermitian_function_ex};
use crate::lu::Pivoting;
use crate::qr::Columns;
use crate::scalar::LinalgScalar;
use crate::svd::Vectors;
use crate::vocabulary::{Batched, Matrices};
use crate::{cholesky, det, eig, eigh, expm, inverse, lstsq, lu, lyapunov, pinv, polar, qr, solve};
use crate::{logm, sqrtm, svd, triangular};

type Parts<T> = Vec<Part<Batched<T>>>;

fn full<T: LinalgScalar>(t: &Tensor<T>) -> Part<Batched<T>> {
    Part::Full(Batched::new(t))
}

fn row<T: LinalgScalar>(t: &Tensor<T::R>) -> Part<Batched<T>> {
    Part::Real(Batched::rows_of(t))
}

fn svd_parts<T: LinalgScalar>(out: &svd::Svd<T>) -> Parts<T> {
    vec![full(&out.u), row(&out.s), full(&out.vh)]
}

fn eigh_parts<T: LinalgScalar>(out: &eigh::Eigh<T>) -> Parts<T> {
    vec![row(&out.values), full(&out.vectors)]
}

/// The info tensor of a function with these values at the spectrum.
fn outside_domain<T: LinalgScalar>(
    mut info: Tensor<i32>,
    values: &Tensor<T::R>,
) -> Result<Tensor<i32>> {
    let norms = Batched::<T::R>::rows_of(values).norms()?;
    for (code, norm) in info.as_mut_slice()?.iter_mut().zip(norms) {
        if *code == 0 && !norm.is_finite() {
            *code = OUTSIDE_DOMAIN;
        }
    }
    Ok(info)
}

impl Op {
    /// Runs the operation; with `tracked`, also what its rules need is kept.
    ///
    /// # Errors
    /// Those of the operation, with the batch index.
    ///
    /// # Panics
    /// If the number of inputs is not [`Op::arity`].
    pub fn forward<T: LinalgScalar>(
        &self,
        inputs: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        assert_eq!(inputs.len(), self.arity(), "{}: number of inputs", self.name());
        let a = inputs[0];
        let mut outcome = Outcome { parts: Vec::new(), saved: None, rows: None, cols: None };
        outcome.parts = match self {
            Op::Svd(vectors, _) => svd_parts(&svd::svd(a, *vectors)?),
            Op::SvdVals if tracked => {
                let parts = svd_parts(&svd::svd(a, Vectors::Thin)?);
                let values = vec![parts[1].clone()];
                outcome.saved = Some((Op::Svd(Vectors::Thin, Default::default()), parts));
                values
            }
            Op::SvdVals => vec![row(&svd::svdvals(a)?)],
            Op::Qr(columns) => {
                let out = qr::qr(a, *columns)?;
                vec![full(&out.q), full(&out.r)]
            }
            Op::QrPivoted(columns) => {
                let (out, cols) = qr::qr_pivoted(a, *columns)?;
                outcome.cols = Some(cols);
                vec![full(&out.q), full(&out.r)]
            }
            Op::Lq => {
                let out = qr::lq(a)?;
                vec![full(&out.l), full(&out.q)]
            }
            Op::LuFactor(pivoting) => {
                let (out, cols) = lu::packed(a, *pivoting)?;
                (outcome.rows, outcome.cols) = (Some(out.rows), cols);
                vec![full(&out.packed)]
            }
            Op::Cholesky => vec![full(&cholesky::cholesky(a)?)],
            Op::Eigh(_) => eigh_parts(&eigh::eigh(a)?),
            Op::EigvalsH if tracked => {
                let parts = eigh_parts(&eigh::eigh(a)?);
                let values = vec![parts[0].clone()];
                outcome.saved = Some((Op::Eigh(Default::default()), parts));
                values
            }
            Op::EigvalsH => vec![row(&eigh::eigvalsh(a)?)],
            Op::Spectrum(of) => {
                let out = of.values().forward(inputs, true)?;
                outcome.saved = out.saved;
                let a = Batched::new(a);
                let padded = a.stack(&a.constant(1, a.cols(), 0.0));
                out.parts.into_iter().chain([Part::Full(padded)]).collect()
            }
            Op::Unsplit => vec![full(a)],
            Op::SpectrumGradient(of) | Op::SpectrumTangent(of) => {
                let padded = Batched::new(a);
                let a = padded.slice(0..padded.rows().saturating_sub(1), 0..padded.cols());
                let op = of.values();
                let out = op.forward(&[&a.clone().into_tensor()?], true)?;
                let x = Batched::new(inputs[1]);
                let parts = match self {
                    Op::SpectrumTangent(_) => op.jvp(&[a], &out, &[x])?,
                    _ => {
                        let bars = op.vjp(&[a], &out, &[Some(Part::Real(x.re()))])?;
                        bars.into_iter().map(Part::Full).collect()
                    }
                };
                outcome.saved = out.saved;
                parts
            }
            Op::Eig(_) => {
                let out = eig::eig(a)?;
                let values = Part::Complex(Batched::rows_of(&out.values));
                vec![values, Part::Complex(Batched::new(&out.vectors))]
            }
            Op::EigVals if tracked => {
                let out = Op::Eig(Default::default()).forward(inputs, true)?;
                let values = vec![out.parts[0].clone()];
                outcome.saved = Some((Op::Eig(Default::default()), out.parts));
                values
            }
            Op::EigVals => vec![Part::Complex(Batched::rows_of(&eig::eigvals(a)?))],
            Op::Polar(side) => {
                let out = polar::polar(a, *side)?;
                vec![full(&out.u), full(&out.p)]
            }
            Op::Expm => vec![full(&expm::expm(a)?)],
            Op::Sqrtm => vec![full(&sqrtm::sqrtm(a)?)],
            Op::Logm => vec![full(&logm::logm(a)?)],
            Op::Hermitian(f) => {
                let ((out, values), eigh, info) = hermitian_function_ex(a, f)?;
                check(self.name(), &info, SINGULAR)?;
                check_domain(self.name(), &Batched::<T::R>::rows_of(&values))?;
                outcome.saved = Some((Op::Eigh(Default::default()), eigh_parts(&eigh)));
                vec![full(&out)]
            }
            Op::SvdFunction(f) => {
                let (out, values, svd, info) = svd::svd_function_ex(a, f)?;
                check(self.name(), &info, SINGULAR)?;
                check_domain(self.name(), &Batched::<T::R>::rows_of(&values))?;
                let thin = Op::Svd(Vectors::Thin, Default::default());
                outcome.saved = Some((thin, svd_parts(&svd)));
                vec![full(&out)]
            }
            Op::Inv => vec![full(&inverse::inv(a)?)],
            Op::Pinv(rtol) => vec![full(&pinv::pinv(a, *rtol)?)],
            Op::Det => {
                let (value, factors, info) = det::det_ex(a)?;
                check(self.name(), &info, SINGULAR)?;
                if tracked && det::nearly_singular(&factors)? {
                    let parts = svd_parts(&svd::svd(a, Vectors::Thin)?);
                    outcome.saved = Some((Op::Svd(Vectors::Thin, Default::default()), parts));
                } else {
                    let packed = vec![full(&factors.packed)];
                    outcome.saved = Some((Op::LuFactor(Pivoting::Partial), packed));
                    outcome.rows = Some(factors.rows);
                }
                vec![Part::Full(Batched::numbers(&value))]
            }
            Op::Slogdet => {
                let ((sign, log), factors, info) = det::slogdet_ex(a)?;
                check(self.name(), &info, SINGULAR)?;
                outcome.saved =
                    Some((Op::LuFactor(Pivoting::Partial), vec![full(&factors.packed)]));
                outcome.rows = Some(factors.rows);
                vec![Part::Full(Batched::numbers(&sign)), Part::Real(Batched::numbers(&log))]
            }
            Op::Solve => {
                let (x, factors, info) = solve::solve_ex(a, inputs[1])?;
                check(self.name(), &info, SINGULAR)?;
                outcome.saved =
                    Some((Op::LuFactor(Pivoting::Partial), vec![full(&factors.packed)]));
                outcome.rows = Some(factors.rows);
                vec![full(&x)]
            }
            Op::SolveTriangular(t) => {
                vec![full(&triangular::solve_triangular(a, inputs[1], *t)?)]
            }
            Op::Lstsq => {
                let out = lstsq::lstsq(a, inputs[1])?;
                let (q, r) = (Batched::new(&out.qr.q), Batched::new(&out.qr.r));
                outcome.saved = Some(match q.rows() == a.shape()[a.rank() - 2] {
                    true => (Op::Qr(Columns::Thin), vec![Part::Full(q), Part::Full(r)]),
                    false => (Op::Lq, vec![Part::Full(r.adjoint()), Part::Full(q.adjoint())]),
                });
                vec![full(&out.x)]
            }
            Op::LstsqMinNorm(rtol) => {
                let (x, p) = lstsq::min_norm(a, inputs[1], *rtol)?;
                outcome.saved = Some((Op::Pinv(*rtol), vec![full(&p)]));
                vec![full(&x)]
            }
            Op::Lyapunov => vec![full(&lyapunov::lyapunov(a, inputs[1])?)],
        };
        Ok(outcome)
    }

    /// The info tensor of the operation, of the batch's shape: 0 for every matrix that it can
    /// serve, else a pivot, [`NON_FINITE`](crate::error::NON_FINITE) or another code of
    /// [`error`](crate::error).
    ///
    /// # Errors
    /// Those of the operation, save for what the info tensor reports.
    ///
    /// # Panics
    /// As [`Op::forward`].
    pub fn info<T: LinalgScalar>(&self, inputs: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        assert_eq!(inputs.len(), self.arity(), "{}: number of inputs", self.name());
        let a = inputs[0];
        Ok(match self {
            Op::Svd(..) | Op::SvdVals | Op::Polar(_) => svd::svdvals_ex(a)?.1,
            Op::Qr(_) | Op::QrPivoted(_) | Op::Lq => qr::qr_ex(a, Columns::Thin)?.1,
            Op::LuFactor(_) | Op::Det | Op::Slogdet => {
                // A zero pivot is a value here.
                let codes = lu::lu_factor_ex(a)?.1.to_vec()?;
                let batch = &a.shape()[..a.rank() - 2];
                Tensor::from_vec(codes.into_iter().map(|code| code.min(0)).collect(), batch)?
            }
            Op::Cholesky => cholesky::cholesky_ex(a)?.1,
            Op::Eigh(_) | Op::EigvalsH => eigh::eigvalsh_ex(a)?.1,
            Op::Unsplit => Tensor::zeros(&a.shape()[..a.rank().saturating_sub(2)])?,
            Op::Spectrum(of) => of.values().info(&inputs[..1])?,
            Op::SpectrumGradient(of) | Op::SpectrumTangent(of) => {
                let padded = Batched::new(a);
                let a = padded.slice(0..padded.rows().saturating_sub(1), 0..padded.cols());
                of.values().info(&[&a.into_tensor()?])?
            }
            Op::Eig(_) => eig::eig_ex(a)?.1,
            Op::EigVals => eig::eigvals_ex(a)?.1,
            Op::Expm => expm::expm_ex(a)?.1,
            Op::Sqrtm => sqrtm::sqrtm_ex(a)?.1,
            Op::Logm => logm::logm_ex(a)?.1,
            Op::Hermitian(f) => {
                let ((_, values), _, info) = hermitian_function_ex(a, f)?;
                outside_domain::<T>(info, &values)?
            }
            Op::SvdFunction(f) => {
                let (_, values, _, info) = svd::svd_function_ex(a, f)?;
                outside_domain::<T>(info, &values)?
            }
            Op::Inv => inverse::inv_ex(a)?.1,
            Op::Pinv(rtol) => pinv::pinv_ex(a, *rtol)?.1,
            Op::Solve => solve::solve_ex(a, inputs[1])?.2,
            Op::SolveTriangular(t) => triangular::solve_triangular_ex(a, inputs[1], *t)?.1,
            Op::Lstsq => lstsq::lstsq_ex(a, inputs[1])?.1,
            Op::LstsqMinNorm(rtol) => lstsq::lstsq_min_norm_ex(a, inputs[1], *rtol)?.1,
            Op::Lyapunov => lyapunov::lyapunov_ex(a, inputs[1])?.1,
        })
    }
}
