//! Defining equations of matrix functions and solutions.

use super::jet::Jet;
use super::{CaseKind, SweepCase};

/// Residuals of operands and results, zero for exact ones.
pub(super) fn equations(kind: CaseKind, x: &[Jet], y: &[Jet], case: &SweepCase) -> Vec<Jet> {
    let (a, f) = (&x[0], &y[0]);
    let unit = || Jet::unit(a.terms[0].n);
    match kind {
        CaseKind::Expm | CaseKind::HermitianExp => {
            let a = if let CaseKind::Expm = kind { a.clone() } else { a.herm() };
            vec![a.exp().plus(-1.0, f)]
        }
        CaseKind::Logm => vec![f.exp().plus(-1.0, a)],
        CaseKind::HermitianLn => vec![f.exp().plus(-1.0, &a.herm())],
        CaseKind::Sqrtm => vec![f.times(f).plus(-1.0, a)],
        CaseKind::Sylvester | CaseKind::Lyapunov => {
            vec![a.times(f).plus(1.0, &f.times(&x[1])).plus(-1.0, &x[2])]
        }
        CaseKind::LyapunovPositive => {
            let p = a.herm();
            vec![p.times(f).plus(1.0, &f.times(&p)).plus(-1.0, &x[1])]
        }
        CaseKind::Polar => {
            let p = &y[1];
            let isometry = f.adjoint().times(f).plus(-1.0, &unit());
            vec![f.times(p).plus(-1.0, a), isometry, p.plus(-1.0, &p.adjoint())]
        }
        CaseKind::SvdFunction(p) => match p {
            1.0 => {
                // Multiplied by a regular matrix that varies, since the second derivative of A alone is zero.
                let left = a.times(&a.adjoint());
                let left = left.plus(1.0, &Jet::unit(left.terms[0].n));
                vec![left.times(a).plus(-1.0, &left.times(f))]
            }
            0.5 => {
                // Both Hermitian factors of A are squares; A intertwines their roots.
                let [left, right] = [a, f].map(|x| x.times(&x.adjoint()));
                let rows = left.plus(-1.0, &right.times(&right));
                let [left, right] = [a, f].map(|x| x.adjoint().times(x));
                let columns = left.plus(-1.0, &right.times(&right));
                let [above, below] = [f.times(&a.adjoint()), f.adjoint().times(a)];
                let even = |x: &Jet| x.plus(-1.0, &x.adjoint());
                vec![rows, columns, even(&above), even(&below)]
            }
            3.0 => vec![a.times(&a.adjoint()).times(a).plus(-1.0, f)],
            5.0 => {
                let square = a.times(&a.adjoint());
                vec![square.times(&square).times(a).plus(-1.0, f)]
            }
            0.0 => {
                // An isometry, or its adjoint, with a Hermitian product.
                let tall = a.terms[0].m >= a.terms[0].n;
                let (a, f) = if tall { (a.clone(), f.clone()) } else { (a.adjoint(), f.adjoint()) };
                let unit = Jet::unit(a.terms[0].n);
                let product = f.adjoint().times(&a);
                let isometry = f.adjoint().times(&f).plus(-1.0, &unit);
                let whole = f.times(&product).plus(-1.0, &a);
                vec![isometry, whole, product.plus(-1.0, &product.adjoint())]
            }
            _ => vec![f.times(&a.adjoint()).plus(-1.0, &unit())],
        },
        CaseKind::LowRank => {
            let rank = case.rank;
            if rank == case.values.len() {
                return vec![a.plus(-1.0, f)];
            }
            // For [0 A; Aᴴ 0]: the eigenvalues above the cut, and those below its negative.
            let cut = 0.5 * (case.values[rank - 1] + case.values[rank]);
            let whole = a.dilation();
            let unit = Jet::unit(whole.terms[0].n);
            let above = whole.plus(-cut, &unit).projector();
            let below = whole.scaled(-1.0).plus(-cut, &unit).projector();
            vec![whole.times(&above.plus(1.0, &below)).plus(-1.0, &f.dilation())]
        }
        CaseKind::HermitianPower(p) => {
            let a = a.herm();
            match p {
                3.0 => vec![a.times(&a).times(&a).plus(-1.0, f)],
                2.0 => vec![a.times(&a).plus(-1.0, f)],
                0.5 => vec![f.times(f).plus(-1.0, &a)],
                _ => vec![f.times(&a).plus(-1.0, &unit())],
            }
        }
    }
}
