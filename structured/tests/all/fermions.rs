//! Fermionic signs: independence of the contraction order, adjoints, and comparison with Jordan–Wigner strings.

use t4a_diff::{Array, check};
use t4a_structured::{
    Direction, FermionNumber, FermionParity, GradedTensor, Leg, Product, Sector, Spec,
    StructuredError, U1, einsum,
};
use t4a_tensor::DType;

use crate::oracle::*;

const ODD: FermionParity = FermionParity(true);
const EVEN: FermionParity = FermionParity(false);

fn triangle<S: Sector>(seed: u64, sectors: &[S]) {
    let mut rng = Rng::new(seed);
    for _ in 0..40 {
        let [x, y, z, p, q, r] = std::array::from_fn(|_| rng.leg(sectors));
        let zero = S::TRIVIAL;
        let a = rng.tensor(vec![x.clone(), p, y.clone()], zero, false);
        let b = rng.tensor(vec![y.dual(), z.clone(), q], zero, false);
        let c = rng.tensor(vec![z.dual(), r, x.dual()], zero, false);
        let tensors = [(&a, "xpy"), (&b, "yzq"), (&c, "zrx")];
        let ab = a.contract(&b, &[2], &[0]).unwrap();
        let want = ab.contract(&c, &[0, 2], &[2, 0]).unwrap();
        invariant(&want);
        // Associativity: (AB)C = A(BC).
        let bc = b.contract(&c, &[1], &[0]).unwrap();
        let other = a.contract(&bc, &[0, 2], &[3, 0]).unwrap();
        same(&other, &want);
        // Even tensors commute: all orders of the operands agree.
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let text: Vec<&str> = order.iter().map(|&i| tensors[i].1).collect();
            let operands: Vec<_> = order.iter().map(|&i| tensors[i].0).collect();
            same(&einsum(&format!("{}->pqr", text.join(",")), &operands).unwrap(), &want);
        }
        // Fused bonds, flipped bonds.
        let direction = rng.direction();
        let (fa, fb) = (
            ab.permute(&[1, 3, 0, 2], 2).unwrap().fuse(2..4, direction).unwrap(),
            c.permute(&[2, 0, 1], 2).unwrap().fuse(0..2, direction.dual()).unwrap(),
        );
        same(&fa.contract(&fb, &[2], &[0]).unwrap(), &want);
        let (fa, fc) = (ab.flip(2).unwrap(), c.flip(0).unwrap());
        same(&fa.contract(&fc, &[0, 2], &[2, 0]).unwrap(), &want);
        // A permutation and its inverse.
        let axes = rng.permutation(3);
        let mut inverse = vec![0; 3];
        axes.iter().enumerate().for_each(|(k, &axis)| inverse[axis] = k);
        same(&a.permute(&axes, 1).unwrap().permute(&inverse, 0).unwrap(), &a);
        same(&a.fuse(0..2, direction).unwrap().split(0).unwrap(), &a);
        // ⟨T|T⟩ = ‖T‖², with a sign for odd incoming legs.
        let inward: Vec<usize> =
            (0..3).filter(|&k| a.spec().legs()[k].direction() == Direction::In).collect();
        let norm = check::elements(&a.norm_squared().unwrap());
        let ket = a.twist(&inward).unwrap();
        let conj = a.conj().unwrap().contract(&ket, &[0, 1, 2], &[0, 1, 2]).unwrap();
        let dagger = a.dagger().unwrap().contract(&ket, &[2, 1, 0], &[0, 1, 2]).unwrap();
        if !a.spec().is_empty() {
            close(&check::elements(conj.re()), &norm);
            close(&check::elements(dagger.re()), &norm);
        }
        // A trace equals the contraction with the identity.
        let t = rng.tensor(vec![x.clone(), z.clone(), x.dual(), y], zero, false);
        let id = GradedTensor::identity(&[x], DType::F64).unwrap();
        let by_id = t.contract(&id, &[0, 2], &[1, 0]).unwrap();
        same(&t.trace(&[(0, 2)]).unwrap(), &by_id);
    }
}

#[test]
fn trap_23_contractions_do_not_depend_on_their_order() {
    triangle(1, &[EVEN, ODD]);
    triangle(2, &[-1, 0, 1, 2].map(FermionNumber));
    let spin = |n, s| Product(FermionNumber(n), U1(s));
    triangle(3, &[spin(0, 0), spin(1, 1), spin(1, -1), spin(2, 0)]);
}

#[test]
fn trap_23_sites_in_any_order_agree_with_jordan_and_wigner() {
    // c†ᵢ cⱼ + c†ⱼ cᵢ on five sites: a gate without strings against bit strings with Jordan–Wigner signs.
    let n = 5;
    let site = Leg::new([(FermionNumber(0), 1), (FermionNumber(1), 1)], Direction::Out).unwrap();
    let gate =
        Spec::new(vec![site.clone(), site.clone(), site.dual(), site.dual()], FermionNumber(0), 2)
            .unwrap();
    let hop = check::array(&[2, 2, 2, 2], |k| f64::from([0b0110, 0b1001].contains(&k)));
    let hop =
        GradedTensor::from_dense(&gate, &hop, None, t4a_structured::Forbidden::Error(0.0)).unwrap();
    let mut rng = Rng::new(4);
    let psi = rng.tensor(vec![site; n], FermionNumber(2), false);
    let amplitudes = numbers(&dense(&psi)[0]);
    for i in 0..n {
        for j in (0..n).filter(|&j| j != i) {
            let moved = hop.contract(&psi, &[2, 3], &[i, j]).unwrap();
            let rest: Vec<usize> = (0..n).filter(|&k| k != i && k != j).collect();
            let order = [vec![i, j], rest].concat();
            let mut inverse = vec![0; n];
            order.iter().enumerate().for_each(|(k, &axis)| inverse[axis] = k);
            let moved = moved.permute(&inverse, 1).unwrap();
            let mut want = vec![0.0; 1 << n];
            for (bits, &x) in amplitudes.iter().enumerate() {
                let bit = |k: usize| bits >> (n - 1 - k) & 1;
                if bit(i) != bit(j) {
                    let between = (i.min(j) + 1..i.max(j)).filter(|&k| bit(k) == 1).count();
                    let to = bits ^ (1 << (n - 1 - i)) ^ (1 << (n - 1 - j));
                    want[to] += if between % 2 == 1 { -x } else { x };
                }
            }
            close(&numbers(&dense(&moved)[0]), &want);
        }
    }
}

#[test]
fn trap_25_inner_products_have_no_signs_and_contractions_do() {
    let mut rng = Rng::new(6);
    let leg = |d| Leg::new([(EVEN, 2), (ODD, 3)], d).unwrap();
    let one = |x: &GradedTensor<_>| check::elements(x.re())[0];
    for complex in [false, true] {
        let legs = vec![leg(Direction::Out), leg(Direction::In), leg(Direction::In)];
        let [a, b] = [0, 1].map(|_| rng.tensor(legs.clone(), EVEN, complex));
        let b = b.repartition(a.spec().rows()).unwrap();
        let flat = |x: &GradedTensor<_>, y: &GradedTensor<_>| -> f64 {
            let parts = [(Some(x.re()), Some(y.re())), (x.im(), y.im())];
            let pairs = parts.iter().filter_map(|(x, y)| Some((*x)?.mul((*y)?)));
            pairs.flat_map(|z| check::elements(&z)).sum()
        };
        close(&check::elements(&a.inner(&b).unwrap().0), &[flat(&a, &b)]);
        close(&check::elements(&a.inner(&a).unwrap().0), &[flat(&a, &a)]);
        // As a contraction, the norm uses the conjugate and a sign for odd states of incoming legs.
        let conj = a.conj().unwrap();
        let twisted = b.twist(&[1, 2]).unwrap();
        let full = conj.contract(&twisted, &[0, 1, 2], &[0, 1, 2]).unwrap();
        close(&[one(&full)], &[flat(&a, &b)]);
    }
    // Odd states only, one incoming and one outgoing leg: without that sign the squared norm would be negative.
    let odd = |d| Leg::new([(ODD, 2)], d).unwrap();
    let a = rng.tensor(vec![odd(Direction::Out), odd(Direction::In)], EVEN, false);
    let square = a.conj().unwrap().contract(&a, &[0, 1], &[0, 1]).unwrap();
    let norm = check::elements(&a.norm_squared().unwrap())[0];
    close(&[one(&square)], &[-norm]);
}

#[test]
fn supertraces_and_odd_charges() {
    let leg = Leg::new([(EVEN, 2), (ODD, 3)], Direction::In).unwrap();
    let trace = |leg: &Leg<FermionParity>| {
        let spec = Spec::new(vec![leg.clone(), leg.dual()], EVEN, 1).unwrap();
        let one = check::array(&[5, 5], |k| f64::from(k % 6 == 0));
        let one =
            GradedTensor::from_dense(&spec, &one, None, t4a_structured::Forbidden::Error(0.0));
        check::elements(one.unwrap().trace(&[(0, 1)]).unwrap().re())[0]
    };
    assert_eq!((trace(&leg), trace(&leg.dual())), (5.0, -1.0));
    let error = Spec::new(vec![leg], ODD, 1).unwrap_err();
    assert!(matches!(error, StructuredError::OddParity { .. }));
}
