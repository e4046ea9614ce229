//! Every operation against the dense computation, on legs generated and shrunk by proptest: irregular degeneracies,
//! sectors without a block, empty legs, tensors with flux; f32 and f64, real and complex.

use proptest::prelude::*;
use t4a_diff::{Array, check};
use t4a_structured::{
    Direction, FluxOn, GradedTensor, Leg, Product, Sector, Spec, StructuredError, U1, Z2,
    einsum as graded_einsum,
};
use t4a_tensor::random::Generator;
use t4a_tensor::{AnyTensor, DType};

use crate::oracle::{close_to, dense, einsum, invariant, numbers, same};

type Q = Product<U1, Z2>;

fn leg() -> impl Strategy<Value = Leg<Q>> {
    let sector = (-2i32..=2, 0i64..2, 1usize..4);
    (prop::collection::vec(sector, 0..5), any::<bool>()).prop_map(|(mut all, out)| {
        all.sort_unstable();
        all.dedup_by_key(|&mut (a, b, _)| (a, b));
        let sectors = all.into_iter().map(|(a, b, n)| (Product(U1(a), Z2::new(b)), n));
        Leg::new(sectors, if out { Direction::Out } else { Direction::In }).unwrap()
    })
}

#[derive(Clone, Debug)]
struct Case {
    legs: Vec<Leg<Q>>,
    flux: Q,
    rows: usize,
    wide: bool,
    complex: bool,
    seed: u64,
}

impl Case {
    fn tensor(&self, legs: Vec<Leg<Q>>, flux: Q) -> GradedTensor<Q> {
        let rows = self.rows.min(legs.len());
        let dtype = if self.wide { DType::F64 } else { DType::F32 };
        let spec = Spec::new(legs, flux, rows).unwrap();
        GradedTensor::random(spec, dtype, self.complex, &Generator::new(self.seed)).unwrap()
    }

    fn x(&self) -> GradedTensor<Q> {
        self.tensor(self.legs.clone(), self.flux)
    }

    fn tolerance(&self) -> f64 {
        if self.wide { 1e-11 } else { 1e-4 }
    }
}

fn case(rank: usize) -> impl Strategy<Value = Case> {
    let legs = prop::collection::vec(leg(), rank);
    let charge = (-1i32..=1, 0i64..2).prop_map(|(a, b)| Product(U1(a), Z2::new(b)));
    (legs, charge, 0..=rank, any::<(bool, bool, u32)>()).prop_map(
        |(legs, flux, rows, (wide, complex, seed))| Case {
            legs,
            flux,
            rows,
            wide,
            complex,
            seed: seed.into(),
        },
    )
}

/// Complex product computed from real einsums.
fn product(text: &str, x: &GradedTensor<Q>, y: &GradedTensor<Q>) -> Vec<Vec<f64>> {
    let (x, y) = (dense(x), dense(y));
    let of = |i: usize, j: usize| numbers(&einsum(text, &[&x[i], &y[j]]));
    let sum = |a: Vec<f64>, b: Vec<f64>, s: f64| a.iter().zip(b).map(|(a, b)| a + s * b).collect();
    match x.len() {
        1 => vec![of(0, 0)],
        _ => vec![sum(of(0, 0), of(1, 1), -1.0), sum(of(0, 1), of(1, 0), 1.0)],
    }
}

fn equal<S: Sector>(x: &GradedTensor<S>, want: &[Vec<f64>], tolerance: f64) {
    for (x, want) in dense(x).iter().zip(want) {
        close_to(&numbers(x), want, tolerance);
    }
}

fn all_numbers<S: Sector>(x: &GradedTensor<S>) -> Vec<Vec<f64>> {
    dense(x).iter().map(numbers).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn moves(case in case(3), turn in 0usize..6, rows in 0usize..4, out in any::<bool>()) {
        let x = case.x();
        invariant(&x);
        let axes = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][turn];
        let y = x.permute(&axes, rows).unwrap();
        invariant(&y);
        let want: Vec<_> =
            dense(&x).iter().map(|x| numbers(&x.clone().permute(&axes).unwrap())).collect();
        equal(&y, &want, 0.0);
        let direction = if out { Direction::Out } else { Direction::In };
        let fused = x.fuse(1..3, direction).unwrap();
        invariant(&fused);
        equal(&fused.split(1).unwrap(), &all_numbers(&x), 0.0);
        equal(&x.conj().unwrap().conj().unwrap(), &all_numbers(&x), 0.0);
        let flipped = x.flip(turn % 3).unwrap();
        invariant(&flipped);
        equal(&flipped.flip(turn % 3).unwrap(), &all_numbers(&x), 0.0);
        let sum = x.add(&x.scale(-0.5)).unwrap();
        let half: Vec<Vec<f64>> =
            all_numbers(&x).iter().map(|x| x.iter().map(|x| 0.5 * x).collect()).collect();
        equal(&sum, &half, case.tolerance());
        let square: f64 = all_numbers(&x).iter().flatten().map(|x| x * x).sum();
        let norm = check::elements(&x.norm().unwrap());
        close_to(&norm, &[square.sqrt()], case.tolerance());
    }

    #[test]
    fn contractions(case in case(3), other in leg(), flux in -1i32..=1, outer in any::<bool>()) {
        let x = case.x();
        let flux = Product(U1(flux), Z2::new(0));
        let [a, b, _] = &case.legs[..] else { unreachable!() };
        let y = case.tensor(vec![b.dual(), other, a.dual()], flux);
        let z = x.contract(&y, &[1, 0], &[0, 2]).unwrap();
        invariant(&z);
        equal(&z, &product("abc,bda->cd", &x, &y), case.tolerance());
        equal(&graded_einsum("abc,bda->cd", &[&x, &y]).unwrap(), &all_numbers(&z), case.tolerance());
        let t = case.tensor(vec![a.clone(), b.clone(), a.dual(), b.dual()], flux);
        let trace = t.trace(&[(0, 2)]).unwrap();
        invariant(&trace);
        let want: Vec<_> =
            dense(&t).iter().map(|t| numbers(&einsum("abac->bc", &[t]))).collect();
        equal(&trace, &want, case.tolerance());
        if outer && x.spec().shape().iter().product::<usize>() < 200 {
            let w = case.tensor(vec![a.clone()], flux);
            let z = x.contract(&w, &[], &[]).unwrap();
            invariant(&z);
            equal(&z, &product("abc,d->abcd", &x, &w), case.tolerance());
        }
    }

    #[test]
    fn factors(case in case(3), left in any::<bool>()) {
        let (x, tolerance) = (case.x(), 10.0 * case.tolerance());
        let on = if left { FluxOn::Left } else { FluxOn::Right };
        let svd = x.svd(case.rows, on).unwrap();
        for (factor, axis) in [(&svd.u, case.rows), (&svd.vh, 0)] {
            invariant(factor);
            let scaled = factor.scale_bond(axis, &svd.s).unwrap();
            invariant(&scaled);
        }
        let us = svd.u.scale_columns(&svd.s).unwrap();
        let back = us.contract(&svd.vh, &[case.rows], &[0]).unwrap();
        equal(&back, &all_numbers(&x), tolerance);
        let qr = x.qr(case.rows, on).unwrap();
        invariant(&qr.q);
        equal(&qr.q.contract(&qr.r, &[case.rows], &[0]).unwrap(), &all_numbers(&x), tolerance);
    }

    #[test]
    fn maps(case in case(1)) {
        let leg = &case.legs[0];
        let spec = vec![leg.clone(), leg.dual()];
        let x = case.tensor(spec, Product::TRIVIAL).repartition(1).unwrap().scale(0.3);
        let (n, tolerance) = (leg.dim(), 10.0 * case.tolerance());
        let h = x.add(&x.dagger().unwrap()).unwrap();
        invariant(&h);
        let eigh = h.eigh().unwrap();
        invariant(&eigh.v);
        let left = h.contract(&eigh.v, &[1], &[0]).unwrap();
        equal(&left, &all_numbers(&eigh.v.scale_columns(&eigh.w).unwrap()), tolerance);
        let exp = x.exp().unwrap();
        invariant(&exp);
        if n == 0 || case.complex {
            return Ok(());
        }
        let wide = |x: &GradedTensor<Q>| dense(x)[0].clone().cast(DType::F64).unwrap();
        let values = |x: &AnyTensor| {
            let values = t4a_linalg::eigh::eigvalsh(x.typed::<f64>().unwrap()).unwrap();
            values.to_vec().unwrap()
        };
        let mut own = check::elements(eigh.w.values());
        own.sort_by(f64::total_cmp);
        close_to(&own, &values(&wide(&h)), tolerance);
        let want = t4a_linalg::expm::expm(wide(&x).typed::<f64>().unwrap()).unwrap();
        equal(&exp, &[want.to_vec().unwrap()], tolerance);
    }

    #[test]
    fn numbers_of_two(case in case(3)) {
        let x = case.x();
        let y = Case { seed: case.seed + 1, ..case.clone() }.x();
        let (a, b) = (all_numbers(&x), all_numbers(&y));
        let pairs = |f: fn(f64, f64) -> f64, i: usize, j: usize| -> Vec<f64> {
            a[i].iter().zip(&b[j]).map(|(&a, &b)| f(a, b)).collect()
        };
        let difference: Vec<_> = (0..a.len()).map(|i| pairs(|a, b| a - b, i, i)).collect();
        let z = x.sub(&y).unwrap();
        invariant(&z);
        equal(&z, &difference, case.tolerance());
        // ⟨x, y⟩ = Σ x̄ y.
        let dot = |i, j| pairs(|a, b| a * b, i, j).iter().sum::<f64>();
        let (re, im) = x.inner(&y).unwrap();
        let (want_re, want_im) = match case.complex {
            false => (dot(0, 0), None),
            true => (dot(0, 0) + dot(1, 1), Some(dot(0, 1) - dot(1, 0))),
        };
        close_to(&check::elements(&re), &[want_re], case.tolerance());
        if let Some(want) = want_im {
            close_to(&check::elements(&im.unwrap()), &[want], case.tolerance());
        }
        // Bosonic symmetries have no signs.
        same(&x.twist(&[0, 2]).unwrap(), &x);
    }

    #[test]
    fn charges(case in case(3), to in -1i32..=1) {
        let x = case.x();
        let sorted = |x: Vec<Vec<f64>>| {
            let mut x: Vec<f64> = x.into_iter().flatten().filter(|&x| x != 0.0).collect();
            x.sort_by(f64::total_cmp);
            x
        };
        for axis in 0..3 {
            let y = x.change_flux(axis, Product(U1(to), Z2::new(1))).unwrap();
            invariant(&y);
            prop_assert_eq!(y.spec().flux(), Product(U1(to), Z2::new(1)));
            prop_assert_eq!(sorted(all_numbers(&y)), sorted(all_numbers(&x)));
            let back = y.change_flux(axis, case.flux).unwrap();
            equal(&back, &all_numbers(&x), 0.0);
        }
        // Coarse graining commutes with products.
        let y = case.tensor(case.legs.iter().map(Leg::dual).collect(), case.flux);
        let z = x.contract(&y, &[0, 2], &[0, 2]).unwrap();
        let coarse = |x: &GradedTensor<Q>| {
            let coarse = x.coarsen(|Product(a, _)| a).unwrap();
            invariant(&coarse);
            coarse
        };
        let both = coarse(&x).contract(&coarse(&y), &[0, 2], &[0, 2]).unwrap();
        equal(&both, &all_numbers(&coarse(&z)), case.tolerance());
        // The first charge is the more significant one, so the dense order does not change.
        equal(&coarse(&x), &all_numbers(&x), 0.0);
        equal(&x.drop_charge().unwrap(), &all_numbers(&x), 0.0);
    }

    #[test]
    fn trap_22_functions_of_entries(case in case(2)) {
        let x = Case { complex: false, ..case.clone() }.x();
        let y = x.map_entries(|x| x.mul(x)).unwrap();
        let want = numbers(&dense(&x)[0]).iter().map(|x| x * x).collect();
        equal(&y, &[want], case.tolerance());
        for error in [x.map_entries(A::exp), x.map_entries(|x| x.shift(1.0)), x.map_entries(A::cos)] {
            let refused = matches!(error, Err(StructuredError::Invalid { .. }));
            prop_assert!(refused);
        }
    }
}

type A = t4a_diff::Eager;
