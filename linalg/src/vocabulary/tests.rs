use super::*;
use crate::scalar::LinalgScalar;
use crate::testing::*;

fn equal<T: LinalgScalar>(got: &Batched<T>, want: &Batched<T>) {
    let (got, want) = (got.clone().into_tensor().unwrap(), want.clone().into_tensor().unwrap());
    assert_close(&got, &want, tight::<T>(2));
}

/// Methods of engine tensors in one pass, against the compositions that other matrices use.
fn passes<T: LinalgScalar>() {
    let x = Batched::new(&random::<T>(1, &[2, 5, 5]));
    for x in [x.clone(), x.transpose(), x.scale(0.0)] {
        equal(&x.herm(), &x.add(&x.adjoint()).scale(0.5));
        equal(&x.skew(), &x.sub(&x.adjoint()).scale(0.5));
        let lower = x.mask(Region::Lower(-1));
        let diagonal = x.add(&x.conj()).scale(0.5).mask(Region::Diagonal);
        equal(&x.hermitian_from_lower(), &lower.add(&lower.adjoint()).add(&diagonal));
        let (row, re) = (x.slice(1..2, 0..5), x.re());
        equal(&row.diagonal_matrix(), &x.constant(5, 5, 0.0).add(&row).mask(Region::Diagonal));
        equal::<T>(&Batched::from_re(&re), &Batched::from_parts(&re, &re.scale(0.0)));
        let limit = re.each(&[0.25, 0.5]);
        let (inverse, kept) = (re.masked_recip(&limit), re.within(&limit));
        equal(&inverse.mul(&kept), &re.scale(0.0));
        equal(&inverse.mul(&re).add(&kept), &re.constant(5, 5, 1.0));
        let tangent = DualMatrix::new(re.clone(), x.herm().re());
        let moved = tangent.masked_recip(&DualMatrix::constant_of(limit)).into_tangent();
        equal(&moved, &x.herm().re().mul(&inverse).mul(&inverse).neg());
        let squares: Vec<f64> =
            [x.re(), x.im()].iter().flat_map(|x| x.entries().unwrap()).collect();
        let sums = [0, 1].map(|i| {
            let of = |part: usize| squares[part * 50 + i * 25..][..25].iter().map(|x| x * x);
            of(0).chain(of(1)).sum::<f64>().sqrt()
        });
        for (norm, want) in x.norms().unwrap().into_iter().zip(sums) {
            assert!((norm - want).abs() <= tight::<T>(5), "{norm} {want}");
        }
    }
    // More than one tile.
    let x = Batched::new(&random::<T>(3, &[37, 37]));
    let lower = x.mask(Region::Lower(-1));
    let diagonal = x.add(&x.conj()).scale(0.5).mask(Region::Diagonal);
    equal(&x.hermitian_from_lower(), &lower.add(&lower.adjoint()).add(&diagonal));
    let none = Batched::new(&random::<T>(2, &[2, 0, 0]));
    for x in [none.herm(), none.skew(), none.hermitian_from_lower(), none.slice(0..0, 0..0)] {
        assert_eq!(x.into_tensor().unwrap().shape(), [2, 0, 0]);
    }
}

for_all_dtypes! {
    methods_in_one_pass_are_their_definitions => passes;
}
