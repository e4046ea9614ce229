//! Plans as operations with derivatives.

use t4a_diff::{Array, Cotangents, Eager, Kept, Meta, Operation, Reverse, Value, check};
use t4a_structured::operation::{Contract, Rearrange};
use t4a_structured::plan::Rearrangement;
use t4a_structured::{Direction, FermionNumber, StructuredError, U1};
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
        let pairs = Contract { pairs: Some(conj), ..plan };
        let inputs = [random(a, 1), random(a, 2), random(b, 3), random(b, 4)];
        check::operation(&pairs, &inputs, TOLERANCE);
    }
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
        // Expanded, as the cotangent of a sum is.
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
    // Lengths that no memory holds, and an axis that repeats a move without end.
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
    let endless = plan(4, "{\"size\":1152921504606846976,\"from\":0,\"to\":0}");
    let error = serde_json::from_str::<Rearrangement>(&endless).unwrap_err().to_string();
    assert!(error.contains("repeated moves"), "{error}");
}

fn rng_legs() -> Vec<t4a_structured::Leg<U1>> {
    let leg = t4a_structured::Leg::new([(U1(0), 2), (U1(1), 1)], Direction::Out).unwrap();
    vec![leg.clone(), leg.dual()]
}
