//! Plans of many tensors: bounded time, bounded stack, and `is_cut` if a search stops early.
//!
//! Time limits are for unoptimised builds on a busy machine; a search that is cubic, or quadratic with a large factor,
//! takes minutes.

use std::time::{Duration, Instant};

use t4a_algebra::Standard;
use t4a_einsum::{Einsum, EinsumError, Optimizer, Path, Plan, Subscripts};
use t4a_tensor::Tensor;

fn plan_of(inputs: &[Vec<usize>], output: Vec<usize>, size: usize) -> (Einsum, Vec<Vec<usize>>) {
    let shapes = inputs.iter().map(|term| vec![size; term.len()]).collect();
    (Subscripts::new(inputs.to_vec(), output).into(), shapes)
}

fn timed(einsum: &Einsum, shapes: &[Vec<usize>]) -> Result<std::sync::Arc<Plan>, EinsumError> {
    let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let start = Instant::now();
    let plan = einsum.plan(&views, 8);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(25), "{} operands took {took:?}", shapes.len());
    plan
}

/// Pseudo-random numbers below n, the same in every run.
fn random(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % n
}

#[test]
fn operands_that_share_a_label() {
    for (output, want) in [(vec![0], vec![1, 1]), (vec![], vec![2])] {
        let (einsum, shapes) = plan_of(&vec![vec![0]; 3000], output, 2);
        let plan = timed(&einsum, &shapes).unwrap();
        assert!(!plan.is_cut());
        assert_eq!(plan.cost().flops, 6000.0 - 2.0);
        let signs = Tensor::from_vec(vec![1i64, -1], &[2]).unwrap();
        let product = plan.contract::<Standard, i64>(&vec![&signs; 3000]).unwrap();
        assert_eq!(product.to_vec().unwrap(), want);
    }
}

/// In a thread whose stack would overflow under recursion over the operands.
#[test]
fn long_chains() {
    let n = 20_000;
    let run = move || {
        let inputs: Vec<Vec<usize>> = (0..n).map(|i| vec![i, i + 1]).collect();
        let (einsum, shapes) = plan_of(&inputs, vec![0, n], 2);
        let plan = timed(&einsum, &shapes).unwrap();
        let data: Vec<Tensor<i64>> = (0..n as i64)
            .map(|i| Tensor::from_vec(vec![i % 3, 1, 1, i % 2], &[2, 2]).unwrap())
            .collect();
        let operands: Vec<&Tensor<i64>> = data.iter().collect();
        let got = plan.contract::<Standard, i64>(&operands).unwrap().to_vec().unwrap();
        // Wrapping arithmetic is exact in any order.
        let mut want = [1i64, 0, 0, 1];
        for i in 0..n as i64 {
            let (x, [a, b, c, d]) = ([i % 3, 1, 1, i % 2], want);
            let dot =
                |p: i64, q: i64, r: i64, s: i64| p.wrapping_mul(r).wrapping_add(q.wrapping_mul(s));
            want = [
                dot(a, b, x[0], x[2]),
                dot(a, b, x[1], x[3]),
                dot(c, d, x[0], x[2]),
                dot(c, d, x[1], x[3]),
            ];
        }
        assert_eq!(got, want);
        // The order found is also valid as a path, and is resolved in bounded time.
        let again = timed(&einsum.path(plan.path().clone()), &shapes).unwrap();
        assert_eq!((again.path(), again.cost()), (plan.path(), plan.cost()));
        assert_eq!(plan.steps().unwrap().len(), n - 1);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn ten_thousand_tensors_of_other_kinds() {
    let n = 10_000;
    let mut state = 7;
    let tree = |i: usize| if i == 0 { vec![0] } else { vec![random(&mut state, i), i] };
    let tree: Vec<Vec<usize>> = (0..n).map(tree).collect();
    let batch: Vec<Vec<usize>> = (0..n).map(|i| vec![0, i + 1, i + 2]).collect();
    let loose: Vec<Vec<usize>> =
        (0..n).map(|i| if i % 500 == 0 { vec![i] } else { vec![] }).collect();
    for inputs in [tree, batch, loose] {
        let (einsum, shapes) = plan_of(&inputs, vec![], 2);
        let plan = timed(&einsum, &shapes).unwrap();
        assert!(!plan.is_cut() && plan.cost().largest <= 64.0);
    }
}

/// All labels are kept; in a sequential order the steps would have n² labels in total.
#[test]
fn sums_without_a_term() {
    let n = 10_000;
    let inputs: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
    let (einsum, shapes) = plan_of(&inputs, (0..n).collect(), 0);
    let plan = timed(&einsum, &shapes).unwrap();
    let steps = plan.steps().unwrap();
    let labels: usize = steps.iter().map(|step| step.plan.result_labels().len()).sum();
    assert!(steps.len() == n - 1 && labels < 16 * n, "{labels}");
    assert_eq!(plan.shape().len(), n);
}

/// Three random bonds each: every order has an intermediate that exceeds any memory.
#[test]
fn hopeless_networks_are_refused_in_time() {
    let (n, mut state) = (4000, 12345);
    let mut stubs: Vec<usize> = (0..3 * n).map(|i| i / 3).collect();
    (1..stubs.len()).rev().for_each(|i| stubs.swap(i, random(&mut state, i + 1)));
    let mut inputs = vec![Vec::new(); n];
    for (bond, pair) in stubs.chunks(2).enumerate() {
        pair.iter().for_each(|&tensor| inputs[tensor].push(bond));
    }
    let (einsum, shapes) = plan_of(&inputs, vec![], 2);
    for einsum in [einsum.clone(), einsum.clone().memory(usize::MAX), einsum.memory(0)] {
        let error = timed(&einsum, &shapes).unwrap_err();
        assert!(matches!(error, EinsumError::IntermediateOverflow { elements } if elements > 1e30));
    }
}

/// Among thousands of labels only those at the peak are tried: those of a ring of four large matrices between two long
/// chains.
#[test]
fn large_networks_are_sliced_in_time() {
    let n = 6000;
    let mut inputs: Vec<Vec<usize>> = (0..n).map(|i| vec![i, i + 1]).collect();
    inputs.extend((0..4).map(|i| vec![n + 1 + i, n + 1 + (i + 1) % 4]));
    inputs.push(vec![n / 2, n + 1]);
    let (einsum, mut shapes) = plan_of(&inputs, vec![], 2);
    for (shape, term) in shapes.iter_mut().zip(&inputs) {
        let large = |label: &usize| if *label > n { 40 } else { 2 };
        *shape = term.iter().map(large).collect();
    }
    let whole = timed(&einsum, &shapes).unwrap();
    assert!(whole.sliced().is_empty() && !whole.is_cut());
    let budget = (whole.cost().bytes(8) * 0.6) as usize;
    let sliced = timed(&einsum.memory(budget), &shapes).unwrap();
    assert!(!sliced.sliced().is_empty() && sliced.cost().bytes(8) <= budget as f64);
}

#[test]
fn a_search_that_was_cut_says_so() {
    let inputs: Vec<Vec<usize>> = (0..600).map(|i| vec![i, i + 1]).collect();
    let (einsum, shapes) = plan_of(&inputs, vec![0, 600], 2);
    let greedy = timed(&einsum, &shapes).unwrap();
    let annealed = timed(&einsum.optimizer(Optimizer::TreeSa), &shapes).unwrap();
    assert!(!greedy.is_cut() && annealed.is_cut());
    assert_eq!(annealed.cost(), greedy.cost());
    let (einsum, shapes) = plan_of(&inputs[..40], vec![0, 40], 2);
    assert!(!timed(&einsum.optimizer(Optimizer::TreeSa), &shapes).unwrap().is_cut());
    // A grid of spins: the possible gain exceeds the time limit of the search.
    let side = 30;
    let site = |r: usize, c: usize| r * side + c;
    let right = (0..side).flat_map(|r| (1..side).map(move |c| vec![site(r, c - 1), site(r, c)]));
    let down = (1..side).flat_map(|r| (0..side).map(move |c| vec![site(r - 1, c), site(r, c)]));
    let inputs: Vec<Vec<usize>> = right.chain(down).collect();
    let (einsum, shapes) = plan_of(&inputs, vec![], 2);
    assert!(timed(&einsum.memory(usize::MAX), &shapes).unwrap().is_cut());
}

/// A path of many steps with three tensors is resolved step by step, each with its own labels.
#[test]
fn long_paths_over_three_tensors_each() {
    let n = 10_001;
    let inputs: Vec<Vec<usize>> = (0..n).map(|i| vec![i, i + 1]).collect();
    let (einsum, shapes) = plan_of(&inputs, vec![0, n], 2);
    let left = |step: usize| n - 2 * step;
    let steps = (0..n / 2).map(|step| vec![0, 1, left(step) - 1]).map(|mut step| {
        // The last product is the first of the chain.
        step.rotate_right(1);
        step
    });
    let plan = timed(&einsum.path(Path::new(steps.collect())), &shapes).unwrap();
    assert_eq!(plan.steps().unwrap().len(), n - 1);
}

/// A MERA network of 26 tensors with nine open labels, on which greedy orders, refined in the same few subtrees, cost
/// twice the order that a long random search of opt_einsum finds (1.551e10 multiply-adds).
#[test]
fn mera_of_26_tensors() {
    let text = "ab,acg,bdh,cek,dft,ewP,fJQ,ghij,ilo,jps,klmn,mxy,nqzA,opqr,ruBC,stuv,vDE,wxÁ,yzÂ,ABÃ,CDÄ,EFÅ,FG,GHÇ,\
                HI,IJÉ->PQÁÂÃÄÅÇÉ";
    let sizes = "a13 b9 c5 g46 d27 h7 e17 k19 f10 t68 w17 P3 J79 Q3 i15 j25 l6 o26 p24 s9 m68 n22 x5 y7 q22 z11 A56 r7 u8 \
                 B7 C48 v6 D4 E11 Á9 Â9 Ã9 Ä9 F20 Å9 G5 H6 Ç9 I25 É9";
    let size = |label: char| -> usize {
        let entry = sizes.split_whitespace().find(|entry| entry.starts_with(label));
        entry.unwrap()[label.len_utf8()..].parse().unwrap()
    };
    let inputs = text.split("->").next().unwrap().split(',');
    let shapes: Vec<Vec<usize>> = inputs.map(|term| term.chars().map(size).collect()).collect();
    let plan = timed(&Einsum::new(text).unwrap(), &shapes).unwrap();
    assert!(plan.cost().flops <= 1.5516e10, "{:e} multiply-adds", plan.cost().flops);
}
