//! Plans as operations with derivatives.

use std::sync::Arc;

use t4a_diff::{Array, Cotangents, Eager, Kept, Meta, Operation, Pairs, Reverse, Value, check};
use t4a_einsum::FloatSemiring;
use t4a_linalg::MatrixOp;
use t4a_linalg::det::DetOp;
use t4a_linalg::expm::ExpmOp;
use t4a_linalg::qr::{Columns, QrOp};
use t4a_structured::operation::{
    ByMatrix, Contract, ContractOver, ContractionNetwork, FrobeniusNorm, InnerProduct, Rearrange,
    ScaleBond,
};
use t4a_structured::plan::{MatrixList, Rearrangement};
use t4a_structured::{Direction, FermionNumber, FluxOn, Leg, Pattern, Spec, StructuredError, U1};
use t4a_tensor::DType;

use crate::oracle::*;

const TOLERANCE: f64 = 1e-8;

fn random(len: usize, seed: u64) -> Value<Eager> {
    Value::Float(check::noise(&check::array(&[len], |_| 0.0), seed))
}

#[test]
fn rearrangements() {
    let mut rng = Rng::new(1);
    for _ in 0..6 {
        let legs = rng.legs(2, &[-1, 0, 1].map(FermionNumber));
        let legs = vec![legs[0].clone(), legs[1].clone(), legs[0].dual()];
        let x = rng.tensor(legs, FermionNumber(0), false);
        let spec = x.spec();
        if spec.is_empty() {
            continue;
        }
        let plans: Vec<Rearrange> = vec![
            spec.permute(&[2, 0, 1], 1).unwrap().1,
            spec.fuse(0..2, Direction::In).unwrap().1,
            spec.trace(&[(0, 2)]).unwrap().1,
            spec.conj().unwrap().1,
            spec.flip(1).unwrap().1,
            spec.to_dense().unwrap(),
            spec.to_dense().unwrap().adjoint(),
            spec.trace(&[(0, 2)]).unwrap().1.adjoint(),
        ];
        for plan in plans {
            let text = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Rearrange>(&text).unwrap(), plan);
            check::operation(&plan, &[random(plan.plan.from_len(), 3)], TOLERANCE);
        }
    }
}

fn contraction(rng: &mut Rng) -> Contract {
    loop {
        let sectors = [-1, 0, 1].map(FermionNumber);
        let legs = rng.legs(3, &sectors);
        let other = vec![legs[2].dual(), rng.leg(&sectors), legs[0].dual()];
        let (a, b) =
            (rng.tensor(legs, FermionNumber(0), false), rng.tensor(other, FermionNumber(2), false));
        let (c, plan) = a.spec().contract(b.spec(), &[0, 2], &[2, 0]).unwrap();
        if !a.spec().is_empty() && !b.spec().is_empty() && !c.is_empty() {
            return plan;
        }
    }
}

#[test]
fn contractions_real_and_complex() {
    let mut rng = Rng::new(2);
    for round in 0..6 {
        let plan = contraction(&mut rng);
        let [a, b, _] = plan.plan.lens();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Contract>(&text).unwrap(), plan);
        check::operation(&plan, &[random(a, 1), random(b, 2)], TOLERANCE);
        let conj = [round % 2 == 0, round % 3 == 0];
        let pairs = Pairs { op: plan, conj };
        let inputs = [random(a, 1), random(a, 2), random(b, 3), random(b, 4)];
        check::operation(&pairs, &inputs, TOLERANCE);
    }
}

fn sent<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(op: &T) {
    assert_eq!(&serde_json::from_str::<T>(&serde_json::to_string(op).unwrap()).unwrap(), op);
}

#[test]
fn networks_real_and_complex() {
    let mut rng = Rng::new(12);
    let sectors = [-1, 0, 1].map(FermionNumber);
    let mut checked = 0;
    while checked < 4 {
        let [x, y, z, p] = std::array::from_fn(|_| rng.leg(&sectors));
        let zero = FermionNumber(0);
        let specs = [
            rng.tensor(vec![x.clone(), y.clone(), p.clone(), p.dual()], zero, false),
            rng.tensor(vec![y.dual(), z.clone()], zero, false),
            rng.tensor(vec![z.dual(), x.dual(), y.clone(), z.clone()], zero, false),
        ];
        let specs: Vec<_> = specs.iter().map(|x| x.spec()).collect();
        let (spec, network) = Spec::einsum("xyqq,yz,zxvw->wv", &specs).unwrap();
        if spec.is_empty() || specs.iter().any(|spec| spec.is_empty()) {
            continue;
        }
        checked += 1;
        sent(&network);
        let pairs = ContractionNetwork { complex: true, ..network.clone() };
        let inputs = |n: usize| -> Vec<Value<Eager>> {
            (0..n * 3).map(|i| random(specs[i / n].len(), 5 + i as u64)).collect()
        };
        check::operation(&network, &inputs(1), TOLERANCE);
        check::operation(&pairs, &inputs(2), TOLERANCE);
    }
}

#[test]
fn linear_algebra_by_matrix() {
    let sizes = vec![[2, 3], [3, 2], [1, 1], [2, 2]];
    let orders = vec![vec![0, 1, 2, 3], vec![3, 1, 0, 2]];
    let plan = Arc::new(MatrixList::new(sizes, orders).unwrap());
    let square = vec![vec![1, 0]];
    let square = Arc::new(MatrixList::new(vec![[2, 2], [3, 3]], square).unwrap());
    let qr: MatrixOp = QrOp { columns: Columns::Thin }.into();
    let ops = [
        (qr, plan.clone()),
        (ExpmOp.into(), square.clone()),
        // Operations that save more than their results.
        (DetOp.into(), square.clone()),
    ];
    for (op, plan) in ops {
        for complex in [false, true] {
            let op = ByMatrix { op, complex, plan: plan.clone() };
            sent(&op);
            let inputs: Vec<_> =
                (0..1 + u64::from(complex)).map(|i| random(plan.len(), 3 + i)).collect();
            check::operation(&op, &inputs, 1e-6);
        }
    }
    let wide = ByMatrix { op: ExpmOp.into(), complex: false, plan };
    let meta = Meta { shape: vec![wide.plan.len()], dtype: DType::F64 };
    assert!(matches!(wide.results(&[meta]), Err(StructuredError::Invalid { .. })));
    let wide = Arc::new(MatrixList::new(vec![[1, 2]], vec![vec![0]]).unwrap());
    let wide = ByMatrix { op: ExpmOp.into(), complex: false, plan: wide };
    let meta = Meta { shape: vec![2], dtype: DType::F64 };
    assert!(matches!(wide.results(&[meta]), Err(StructuredError::Linalg(_))));
    for orders in [vec![0, 0], vec![0], vec![0, 2]] {
        assert!(MatrixList::new(vec![[1, 1]; 2], vec![orders]).is_err());
    }
}

#[test]
fn scales_and_numbers() {
    let mut rng = Rng::new(13);
    let leg = Leg::new([-1, 0, 1].map(|q| (U1(q), 2 + q as usize % 3)), Direction::Out).unwrap();
    let x = rng.tensor(vec![leg.dual(), leg.clone(), leg.clone(), leg.dual()], U1(0), false);
    let svd = x.svd(2, FluxOn::Right).unwrap();
    for (x, axis) in [(&svd.u, 2), (&svd.vh, 0)] {
        let len = x.spec().len();
        let scaled = x.scale_bond(axis, &svd.s).unwrap();
        let text = ["abz,z->abz", "zab,z->zab"][usize::from(axis == 0)];
        let want = einsum(text, &[&dense(x)[0], svd.s.values().tensor().unwrap()]);
        close(&numbers(&dense(&scaled)[0]), &numbers(&want));
        let plan = x.spec().numbers(axis).unwrap();
        let [a, b, s] = [random(len, 1), random(len, 2), random(svd.s.leg().dim(), 3)];
        sent(&plan);
        check::operation(&plan, &[a.clone(), s.clone()], TOLERANCE);
        let pairs = ScaleBond { complex: true, ..plan };
        check::operation(&pairs, &[a.clone(), b.clone(), s], TOLERANCE);
        check::operation(&InnerProduct { complex: false }, &[a.clone(), b.clone()], TOLERANCE);
        let pairs = [a.clone(), b.clone(), random(len, 7), random(len, 8)];
        check::operation(&InnerProduct { complex: true }, &pairs, TOLERANCE);
        check::operation(&FrobeniusNorm { complex: false }, &pairs[..1], TOLERANCE);
        check::operation(&FrobeniusNorm { complex: true }, &pairs[..2], TOLERANCE);
        let zero = Value::Float(pairs[0].float().scale(0.0));
        let out = FrobeniusNorm { complex: false }.portable(&[zero], &[true]).unwrap();
        assert_eq!(check::elements(&out.results[0]), [0.0]);
    }
}

#[test]
fn contractions_over_semirings() {
    let legs = vec![vec![1, 2], vec![2, 1]];
    let pattern = |blocks: &[[u32; 2]]| {
        Pattern::new(legs.clone(), blocks.iter().map(|b| b.to_vec()).collect()).unwrap()
    };
    let a = Arc::new(pattern(&[[0, 0], [0, 1], [1, 0]]));
    let b = Arc::new(pattern(&[[0, 1], [1, 0], [1, 1]]));
    let plan = a.contract(&b, &[1], &[1]).unwrap().1;
    for semiring in [
        FloatSemiring::MaxPlus,
        FloatSemiring::MinPlus,
        FloatSemiring::LogSumExp,
        FloatSemiring::Standard,
    ] {
        let op = ContractOver { plan: plan.clone(), semiring };
        sent(&op);
        check::operation(&op, &[random(a.len(), 1), random(b.len(), 2)], TOLERANCE);
    }
}

/// Kernel against the portable definition, for a contraction and recursively for its derivative rules.
fn kernels_agree(plan: &Contract, depth: usize, seed: u64) {
    let [a, b, _] = plan.plan.lens();
    let inputs = [random(a, seed), random(b, seed + 1)];
    let of = |out: t4a_diff::Outcome<Eager>| check::elements(&out.results[0]);
    let got = of(plan.forward(&inputs, &[false; 2]).unwrap());
    close_to(&got, &of(plan.portable(&inputs, &[false; 2]).unwrap()), 1e-13);
    if depth > 0 {
        (0..2).for_each(|i| kernels_agree(&plan.cotangent(i), depth - 1, seed + 2));
    }
}

#[test]
fn contractions_by_panels_are_those_of_whole_matrices() {
    let bond = |n: usize, d| Leg::new([-1, 0, 1].map(|q| (U1(q), n + 3 * (q + 1) as usize)), d);
    let (out, into) = (Direction::Out, Direction::In);
    let site = Leg::new([(U1(-1), 1), (U1(1), 1)], out).unwrap();
    let wire = Leg::new([(U1(-2), 1), (U1(0), 3), (U1(2), 1)], out).unwrap();
    let many = Leg::new([(U1(0), 9), (U1(1), 12)], into).unwrap();
    // More elements than the bound below which a contraction has no panels.
    let (l, r) = (bond(60, out).unwrap(), bond(50, into).unwrap());
    let spec = |legs: Vec<Leg<U1>>, rows| Spec::new(legs, U1(0), rows).unwrap();
    // Operator on few states and inner axes: panels of rows of C; as right operand, panels of columns of C.
    let x = spec(vec![l.clone(), wire.clone(), site.clone(), r.clone()], 2);
    let w = spec(vec![wire.dual(), wire.clone(), site.clone(), site.dual()], 2);
    // Long dimensions: panels in the L2 cache.
    let y = spec(vec![r.dual(), many.clone(), l.dual()], 1);
    for (a, b, i, j) in [
        (&x, &w, vec![1, 2], vec![0, 3]),
        (&w, &x, vec![0, 3], vec![1, 2]),
        (&x, &y, vec![0], vec![2]),
        (&y, &x, vec![2], vec![0]),
        (&x, &y, vec![3, 0], vec![0, 2]),
        (&y, &x, vec![2, 0], vec![0, 3]),
    ] {
        kernels_agree(&a.contract(b, &i, &j).unwrap().1, 2, 5);
    }
    // Odd legs: moves with signs. Coupled sectors without contracted states: zeros among the panels.
    let leg = |q: &[i32], n, d| Leg::new(q.iter().map(|&q| (FermionNumber(q), n)), d).unwrap();
    let a = vec![leg(&[0, 1, 2], 35, out), leg(&[0, 1, 3], 12, out), leg(&[0, 1, 2], 20, into)];
    let b = vec![leg(&[0, 1, 2], 35, into), leg(&[1, 2, 4], 4, out), leg(&[0, 1, 2], 20, out)];
    let a = Spec::new(a, FermionNumber(0), 1).unwrap();
    let b = Spec::new(b, FermionNumber(0), 2).unwrap();
    assert!(x.len().min(a.len()) > 1 << 15);
    kernels_agree(&a.contract(&b, &[0, 2], &[0, 2]).unwrap().1, 2, 7);
    kernels_agree(&a.contract(&b, &[2], &[2]).unwrap().1, 2, 7);
}

#[test]
fn trap_28_an_operand_twice_one_untracked() {
    let mut rng = Rng::new(3);
    let leg = rng.leg(&[0, 1].map(U1));
    let x = rng.tensor(vec![leg.clone(), leg.dual()], U1(0), false).repartition(1).unwrap();
    let (_, plan) = x.spec().contract(x.spec(), &[1], &[0]).unwrap();
    let value = Value::Float(x.re().clone());
    let inputs = [value.clone(), value];
    let gradient = |wanted: [bool; 2]| -> Cotangents<Eager> {
        let out = plan.forward(&inputs, &wanted).unwrap();
        let kept = Kept::new(plan.keep(&wanted), &inputs, &out);
        let one = out.results[0].full(&[x.spec().len()], 1.0);
        // Expanded (stride 0), as the cotangent of a sum is.
        let one = one.narrow(0, 0, 1).expand(&[x.spec().len()]);
        let reverse =
            Reverse { kept: &kept, cotangents: &[Some(one)], hidden: &[], wanted: &wanted };
        plan.fused_vjp(&reverse).unwrap()
    };
    let both = gradient([true, true]);
    let total = both[0].as_ref().unwrap().add(both[1].as_ref().unwrap());
    // d/dε of Σ (x + ε)² along each entry.
    let sum = |shift: f64, at: usize| {
        let bump = check::array(&[x.spec().len()], |i| if i == at { shift } else { 0.0 });
        let y = x.re().add(&bump);
        let inputs = [Value::Float(y.clone()), Value::Float(y)];
        check::elements(&plan.forward(&inputs, &[false; 2]).unwrap().results[0]).iter().sum::<f64>()
    };
    for (at, g) in check::elements(&total).into_iter().enumerate() {
        let want = (sum(1e-5, at) - sum(-1e-5, at)) / 2e-5;
        assert!((g - want).abs() < 1e-8 * (1.0 + want.abs()));
    }
    let [None, Some(_)] = &gradient([false, true])[..] else { panic!("one cotangent is wanted") };
}

#[test]
fn trap_27_gradients_without_a_common_charge() {
    // Charges of rows, bond and columns with partial overlap.
    let leg = |q: &[i32], d| Leg::new(q.iter().map(|&q| (U1(q), 2)), d).unwrap();
    let (rows, bond, cols) =
        (leg(&[0, 1], Direction::Out), leg(&[1], Direction::In), leg(&[0, 2], Direction::In));
    let a = Spec::new(vec![rows.clone(), bond.clone()], U1(0), 1).unwrap();
    let b = Spec::new(vec![bond.dual(), cols], U1(1), 1).unwrap();
    let (_, plan) = a.contract(&b, &[1], &[0]).unwrap();
    assert_eq!((a.len(), b.len()), (4, 4));
    let inputs = [random(a.len(), 1), random(b.len(), 2)];
    check::operation(&plan, &inputs, TOLERANCE);
    // No contracted state at all: zeros in C and in both gradients.
    let far = Spec::new(vec![bond.dual(), leg(&[5], Direction::In)], U1(-4), 1).unwrap();
    let (d, plan) = a.contract(&far, &[1], &[0]).unwrap();
    let inputs = [random(a.len(), 1), random(far.len(), 2)];
    let wanted = [true, true];
    let out = plan.forward(&inputs, &wanted).unwrap();
    assert_eq!(out.results[0].shape(), [d.len()]);
    let kept = Kept::new(plan.keep(&wanted), &inputs, &out);
    let one = out.results[0].full(&[d.len()], 1.0);
    let reverse = Reverse { kept: &kept, cotangents: &[Some(one)], hidden: &[], wanted: &wanted };
    let both = plan.fused_vjp(&reverse).unwrap();
    assert_eq!(both[0].as_ref().unwrap().shape(), [a.len()]);
    assert_eq!(both[1].as_ref().unwrap().shape(), [far.len()]);
}

#[test]
fn trap_29_threads_do_not_change_a_bit() {
    let mut rng = Rng::new(4);
    let sectors = [-1, 0, 1].map(U1);
    let leg = |n: usize, d| t4a_structured::Leg::new(sectors.map(|s| (s, n + s.0 as usize % 7)), d);
    let (wide, d) = (leg(60, Direction::Out).unwrap(), leg(3, Direction::Out).unwrap());
    let a = rng.tensor(vec![wide.clone(), d.clone(), wide.dual()], U1(0), false);
    let b = rng.tensor(vec![d.dual(), wide.clone(), wide.dual()], U1(0), false);
    let run = || {
        let c = a.contract(&b, &[2, 1], &[1, 0]).unwrap();
        check::elements(c.permute(&[1, 0], 1).unwrap().re())
    };
    t4a_algebra::parallel::set_threads(1);
    let one = run();
    for threads in [2, 3, 7] {
        t4a_algebra::parallel::set_threads(threads);
        assert!(run().iter().zip(&one).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[test]
fn operands_are_checked() {
    let plan = contraction(&mut Rng::new(5));
    let [a, b, _] = plan.plan.lens();
    let meta = |len: usize, dtype| Meta { shape: vec![len], dtype };
    let (good, other) = (meta(a, DType::F64), meta(b, DType::F64));
    assert!(plan.results(&[good.clone(), other.clone()]).is_ok());
    let short = plan.results(&[good.clone(), meta(b + 1, DType::F64)]);
    assert!(matches!(short, Err(StructuredError::Shape { .. })));
    let mixed = plan.results(&[good.clone(), meta(b, DType::F32)]);
    assert!(matches!(mixed, Err(StructuredError::DType { .. })));
    assert!(matches!(plan.results(&[good]), Err(StructuredError::Invalid { .. })));
    let ints = plan.results(&[meta(a, DType::I32), meta(b, DType::I32)]);
    assert!(matches!(ints, Err(StructuredError::Tensor(_))));
}

#[test]
fn corrupted_plans_are_refused() {
    let plan = contraction(&mut Rng::new(6));
    let text = serde_json::to_string(&plan).unwrap();
    let lens = plan.plan.products().lens();
    let given = format!("\"lens\":[{},{},{}]", lens[0], lens[1], lens[2]);
    assert!(text.contains(&given));
    let other =
        text.replace(&given, &format!("\"lens\":[{},{},{}]", lens[0], lens[1], lens[2] + 1));
    assert!(serde_json::from_str::<Contract>(&other).is_err());
    let mut rng = Rng::new(7);
    let x = rng.tensor(rng_legs(), U1(0), false);
    let text = serde_json::to_string(&x.spec().to_dense().unwrap()).unwrap();
    let far = text.replace("\"from\":0,\"to\":0", "\"from\":0,\"to\":99");
    assert_ne!(far, text);
    assert!(serde_json::from_str::<Rearrange>(&far).is_err());
    // Lengths beyond any memory, and an axis that repeats a move without bound.
    let plan = |len: u64, axes: &str| {
        format!(
            "{{\"from_len\":{len},\"to_len\":{len},\"moves\":[{{\"from\":0,\"to\":0,\"negative\":false,\
             \"first\":0,\"rank\":1}}],\"axes\":[{axes}]}}"
        )
    };
    let one = plan(4, "{\"size\":2,\"from\":1,\"to\":1}");
    assert!(serde_json::from_str::<Rearrangement>(&one).is_ok());
    let long = plan(u64::MAX, "{\"size\":2,\"from\":1,\"to\":1}");
    let error = serde_json::from_str::<Rearrangement>(&long).unwrap_err().to_string();
    assert!(error.contains("elements of a plan"), "{error}");
    for size in [1u64 << 60, 1 << 40, (1 << 32) + 1] {
        let endless = plan(4, &format!("{{\"size\":{size},\"from\":0,\"to\":0}}"));
        let error = serde_json::from_str::<Rearrangement>(&endless).unwrap_err().to_string();
        assert!(error.contains("repeated moves"), "{error}");
    }
}

/// Reading a plan of 2³² elements takes as long as reading a small one, and its claims are checked all the same.
#[test]
fn large_plans_are_read_at_once() {
    let plan = |len: u64, moves: &str, axes: &str| -> Rearrangement {
        let text = format!(
            "{{\"from_len\":{len},\"to_len\":{len},\"moves\":[{moves}],\"axes\":[{axes}]}}"
        );
        serde_json::from_str(&text).unwrap()
    };
    let block = |at: u64, first: u32, rank: u32| {
        format!(
            "{{\"from\":{at},\"to\":{at},\"negative\":false,\"first\":{first},\"rank\":{rank}}}"
        )
    };
    let axis =
        |size: u64, from: u64, to: u64| format!("{{\"size\":{size},\"from\":{from},\"to\":{to}}}");
    let start = std::time::Instant::now();
    // A transposed matrix of 2¹⁶ × 2¹⁶.
    let turned = [axis(1 << 16, 1 << 16, 1), axis(1 << 16, 1, 1 << 16)].join(",");
    let turned = plan(1 << 32, &block(0, 0, 2), &turned);
    assert!(turned.is_disjoint());
    // Two halves one behind the other, and two that overlap in one place.
    let half = axis(1 << 31, 1, 1);
    let both = |second| [block(0, 0, 1), block(second, 0, 1)].join(",");
    assert!(plan(1 << 32, &both(1 << 31), &half).is_disjoint());
    assert!(!plan(1 << 32, &both((1 << 31) - 1), &half).is_disjoint());
    // Even and odd places: too many to be compared.
    let comb = axis(1 << 31, 2, 2);
    assert!(!plan(1 << 32, &[block(0, 0, 1), block(1, 0, 1)].join(","), &comb).is_disjoint());
    let comb = axis(1 << 10, 2, 2);
    assert!(plan(1 << 11, &[block(0, 0, 1), block(1, 0, 1)].join(","), &comb).is_disjoint());
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}

fn rng_legs() -> Vec<t4a_structured::Leg<U1>> {
    let leg = t4a_structured::Leg::new([(U1(0), 2), (U1(1), 1)], Direction::Out).unwrap();
    vec![leg.clone(), leg.dual()]
}
