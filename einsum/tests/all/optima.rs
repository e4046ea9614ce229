//! Argmax, number of optima and K best values against all assignments of the labels.

use std::sync::Arc;

use t4a_diff::{Eager, Meta, Operation, Value, check};
use t4a_einsum::{Einsum, FloatSemiring, Optima, OptimalAssignments, Plan};
use t4a_tensor::DType;

const SEMIRINGS: [FloatSemiring; 5] = [
    FloatSemiring::MaxPlus,
    FloatSemiring::MinPlus,
    FloatSemiring::MaxMul,
    FloatSemiring::MinMul,
    FloatSemiring::MaxMin,
];

/// Subscripts, shapes, and the summed labels with their sizes in the order of their first places.
type Network = (&'static str, &'static [&'static [usize]], &'static [(char, usize)]);
const NETWORKS: [Network; 6] = [
    ("ij,jk->ik", &[&[2, 3], &[3, 2]], &[('j', 3)]),
    ("aij,kj,lk->l", &[&[2, 2, 3], &[2, 3], &[3, 2]], &[('a', 2), ('i', 2), ('j', 3), ('k', 2)]),
    ("iij->", &[&[2, 2, 3]], &[('i', 2), ('j', 3)]),
    ("ij,j->i", &[&[2, 1], &[3]], &[('j', 3)]),
    ("bi,i->ib", &[&[2, 3], &[3]], &[]),
    ("ij,j->", &[&[2, 0], &[0]], &[('i', 2), ('j', 0)]),
];

fn plan(text: &str, shapes: &[&[usize]]) -> Arc<Plan> {
    Einsum::new(text).unwrap().plan(shapes, 8).unwrap()
}

/// Few different numbers above 0, so that there are ties.
fn operands(shapes: &[&[usize]]) -> Vec<Vec<f64>> {
    let one = |(k, shape): (usize, &&[usize])| {
        let numbers =
            (0..shape.iter().product()).map(|i| ((7 * i + 5 * k) * (i + 3) % 4 + 1) as f64);
        numbers.collect()
    };
    shapes.iter().enumerate().map(one).collect()
}

/// Values of the terms of every element of the result, in the order of the numbers of assignments.
fn terms(
    semiring: FloatSemiring,
    (text, shapes, summed): Network,
    operands: &[Vec<f64>],
) -> Vec<Vec<f64>> {
    let (left, right) = text.split_once("->").unwrap();
    let size = |label: char| {
        let sizes = left.split(',').zip(shapes).flat_map(|(term, shape)| term.chars().zip(*shape));
        let sizes = sizes.filter(|(own, _)| *own == label).map(|(_, &n)| n);
        sizes.clone().find(|&n| n != 1).unwrap_or(1)
    };
    let count = |labels: &[(char, usize)]| labels.iter().map(|(_, n)| n).product::<usize>();
    let of = |labels: &[(char, usize)], mut number: usize| -> Vec<(char, usize)> {
        let digit = |&(label, n): &(char, usize)| {
            let digit = number % n;
            number /= n;
            (label, digit)
        };
        labels.iter().rev().map(digit).collect()
    };
    let kept: Vec<(char, usize)> = right.chars().map(|label| (label, size(label))).collect();
    let value = |assignment: &[(char, usize)]| {
        let factors = left.split(',').zip(shapes).zip(operands).map(|((term, shape), x)| {
            let index = |label| assignment.iter().find(|(own, _)| *own == label).unwrap().1;
            let place = term.chars().zip(*shape);
            x[place.fold(0, |place, (label, &n)| place * n + if n == 1 { 0 } else { index(label) })]
        });
        let product = |a: f64, b: f64| match semiring {
            FloatSemiring::MaxMul | FloatSemiring::MinMul => a * b,
            FloatSemiring::MaxMin => a.min(b),
            _ => a + b,
        };
        factors.reduce(product).unwrap()
    };
    let element = |i: usize| {
        let own = of(&kept, i);
        (0..count(summed)).map(|k| value(&[&own[..], &of(summed, k)].concat())).collect()
    };
    (0..count(&kept)).map(element).collect()
}

fn zero(semiring: FloatSemiring) -> f64 {
    match semiring {
        FloatSemiring::MinPlus | FloatSemiring::MinMul => f64::INFINITY,
        FloatSemiring::MaxMul => 0.0,
        _ => f64::NEG_INFINITY,
    }
}

fn run(network: Network, semiring: FloatSemiring, of: Optima) -> (Vec<f64>, Vec<i64>) {
    let (text, shapes, _) = network;
    let op = OptimalAssignments { plan: plan(text, shapes), semiring, of };
    let given = operands(shapes);
    let inputs: Vec<Value<Eager>> = shapes
        .iter()
        .zip(&given)
        .map(|(shape, x)| Value::Float(check::array(shape, |i| x[i])))
        .collect();
    let metas: Vec<Meta> =
        shapes.iter().map(|shape| Meta { shape: shape.to_vec(), dtype: DType::F64 }).collect();
    let results = op.results(&metas).unwrap();
    for out in [op.forward(&inputs, &[]).unwrap(), op.portable(&inputs, &[]).unwrap()] {
        assert_eq!(out.results[0].tensor().unwrap().shape(), results[0].shape);
        let shapes: Vec<_> =
            out.extra.iter().map(|x| x.integers().tensor().unwrap().shape().to_vec()).collect();
        assert_eq!(shapes, op.indices(&metas));
    }
    let out = op.forward(&inputs, &[]).unwrap();
    let numbers = out
        .extra
        .first()
        .map(|x| x.integers().tensor().unwrap().typed::<i64>().unwrap().to_vec().unwrap());
    (check::elements(&out.results[0]), numbers.unwrap_or_default())
}

#[test]
fn all_assignments_are_compared() {
    for semiring in SEMIRINGS {
        let least = matches!(semiring, FloatSemiring::MinPlus | FloatSemiring::MinMul);
        let better = |a: f64, b: f64| if least { a < b } else { a > b };
        for network in NETWORKS {
            let name = format!("{semiring:?} {}", network.0);
            let terms = terms(semiring, network, &operands(network.1));
            let best = |terms: &Vec<f64>| {
                terms.iter().fold(zero(semiring), |best, &x| if better(x, best) { x } else { best })
            };
            let values: Vec<f64> = terms.iter().map(best).collect();
            let (found, first) = run(network, semiring, Optima::Argmax);
            assert_eq!(found, values, "{name}");
            for ((terms, value), first) in terms.iter().zip(&values).zip(first) {
                let wanted = terms.iter().position(|x| x == value).map_or(-1, |i| i as i64);
                match semiring {
                    // One of the optima.
                    FloatSemiring::MaxMin if first >= 0 => {
                        assert_eq!(terms[first as usize], *value, "{name}");
                    }
                    _ => assert_eq!(first, wanted, "{name}"),
                }
            }
            if semiring != FloatSemiring::MaxMin {
                let (found, counts) = run(network, semiring, Optima::Count);
                assert_eq!(found, values, "{name}");
                for ((terms, value), count) in terms.iter().zip(&values).zip(counts) {
                    assert_eq!(
                        count,
                        terms.iter().filter(|x| *x == value).count() as i64,
                        "{name}"
                    );
                }
            }
            for k in [1, 3, 4, 5, 16] {
                let (found, _) = run(network, semiring, Optima::Best { k });
                for (i, terms) in terms.iter().enumerate() {
                    let mut sorted = terms.clone();
                    sorted.sort_by(|a, b| {
                        if better(*a, *b) {
                            std::cmp::Ordering::Less
                        } else {
                            std::cmp::Ordering::Greater
                        }
                    });
                    sorted.resize(k.max(sorted.len()), zero(semiring));
                    assert_eq!(found[i * k..(i + 1) * k], sorted[..k], "{name} {k}");
                }
            }
        }
    }
}

#[test]
fn other_optima_are_refused() {
    let x = [Meta { shape: vec![2, 2], dtype: DType::F64 }];
    let refused = |semiring, of| {
        let op = OptimalAssignments { plan: plan("ij->i", &[&[2, 2]]), semiring, of };
        op.results(&x).unwrap_err().to_string()
    };
    assert!(refused(FloatSemiring::Standard, Optima::Argmax).contains("none of their terms"));
    assert!(refused(FloatSemiring::LogSumExp, Optima::Count).contains("none of their terms"));
    assert!(refused(FloatSemiring::MaxMin, Optima::Count).contains("distinct"));
    for k in [0, 17] {
        assert!(refused(FloatSemiring::MaxPlus, Optima::Best { k }).contains("1 to 16"));
    }
    let op = OptimalAssignments {
        plan: plan("ij->i", &[&[2, 2]]),
        semiring: FloatSemiring::MaxPlus,
        of: Optima::Argmax,
    };
    assert!(op.check_second_order().unwrap_err().to_string().contains("no derivative"));
}
