//! Two-site effective Hamiltonian LP · W · W · RP applied to θ, f64, against the matrix products alone and two peers.
//!
//! ```text
//! legs        θ [l, s, s, r]   LP [l*, w, l]   W [w*, w, s, s*]   RP [r*, w*, r]
//! profile     U(1): D states over nine charges by a Gaussian of width 1.5; spin ½; w = 5 over {-2, 0, 2}
//!             U(1)²: the same in two charges of width 1; four states per site; w = 6
//! floor       the matrix products of the coupled sectors alone, on packed data
//! dense       the engine's einsum in the same order
//! blocks      a list of dense blocks: one permutation and one product per pair of blocks
//! ```
//!
//! cold = structures and plans are not cached; warm = they are cached; backward = forward pass and cotangents of all
//! four contractions. Arguments: symmetry and D of one row (`U1xU1 64`); a third one, `cold` or `warm`, repeats only
//! this measurement, for a profiler.

use std::hint::black_box;
use std::time::Instant;

use t4a_algebra::gemm::{MatMut, MatRef, Product as Gemm};
use t4a_algebra::{Standard, parallel};
use t4a_diff::{Array, Eager, Kept, Operation, Reverse, Value};
use t4a_einsum::FloatSemiring;
use t4a_structured::{
    BlockSparseTensor, Contract, Direction, GradedTensor, Leg, Pattern, Product, Sector, Spec, U1,
    clear_plans,
};
use t4a_tensor::random::Generator;
use t4a_tensor::{AnyTensor, DType};

/// Milliseconds of the fastest run within about half a second.
fn best(mut f: impl FnMut()) -> f64 {
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    let mut runs = 0;
    while runs < 3 || start.elapsed().as_secs_f64() < 0.5 {
        let now = Instant::now();
        f();
        best = best.min(now.elapsed().as_secs_f64());
        runs += 1;
    }
    1e3 * best
}

fn leg<S: Sector>(states: &[(S, usize)]) -> Leg<S> {
    Leg::new(states.iter().copied().filter(|&(_, n)| n > 0), Direction::Out).unwrap()
}

/// Degeneracies of D states over the charges `step · k`, distributed as a Gaussian of this width.
fn gauss(d: usize, width: f64, reach: i32, step: i32) -> Vec<(i32, f64)> {
    let weight = |k: i32| (-f64::from(k * k) / (2.0 * width * width)).exp();
    let sum: f64 = (-reach..=reach).map(weight).sum();
    (-reach..=reach).map(|k| (step * k, d as f64 * weight(k) / sum)).collect()
}

struct Problem<S> {
    theta: GradedTensor<S>,
    lp: GradedTensor<S>,
    w1: GradedTensor<S>,
    w2: GradedTensor<S>,
    rp: GradedTensor<S>,
}

/// Contracted axes of the four contractions.
const STEPS: [(&[usize], &[usize]); 4] =
    [(&[2], &[0]), (&[1, 2], &[0, 3]), (&[3, 1], &[0, 3]), (&[1, 3], &[0, 1])];

impl<S: Sector> Problem<S> {
    fn new(bond: &Leg<S>, site: &Leg<S>, wire: &Leg<S>) -> Self {
        let generator = Generator::new(1);
        let tensor = |legs: Vec<Leg<S>>, rows| {
            let spec = Spec::new(legs, S::TRIVIAL, rows).unwrap();
            GradedTensor::random(spec, DType::F64, false, &generator).unwrap()
        };
        let (l, r) = (bond.clone(), bond.dual());
        Self {
            theta: tensor(vec![l.clone(), site.clone(), site.clone(), r.clone()], 1),
            lp: tensor(vec![l.clone(), wire.clone(), l.dual()], 2),
            w1: tensor(vec![wire.dual(), wire.clone(), site.clone(), site.dual()], 2),
            w2: tensor(vec![wire.dual(), wire.clone(), site.clone(), site.dual()], 2),
            rp: tensor(vec![r.dual(), wire.dual(), r], 2),
        }
    }

    fn operands(&self) -> [&GradedTensor<S>; 4] {
        [&self.theta, &self.w1, &self.w2, &self.rp]
    }

    /// Results of the four contractions, with legs `[l, w, s, s, r]`, `[l, s, r, w, s]`, `[l, r, s, w, s]`, `[l, s,
    /// s, r]`.
    fn run(&self) -> Vec<GradedTensor<S>> {
        let mut all: Vec<GradedTensor<S>> = Vec::new();
        for (other, (i, j)) in self.operands().into_iter().zip(STEPS) {
            let next = all.last().unwrap_or(&self.lp).contract(other, i, j).unwrap();
            all.push(next);
        }
        all
    }

    fn plans(&self) -> Vec<(Contract, GradedTensor<S>, GradedTensor<S>)> {
        let all = self.run();
        let others = self.operands();
        (0..4)
            .map(|k| {
                let left = if k == 0 { self.lp.clone() } else { all[k - 1].clone() };
                let plan =
                    left.spec().contract(others[k].spec(), STEPS[k].0, STEPS[k].1).unwrap().1;
                (plan, left, others[k].clone())
            })
            .collect()
    }
}

/// Time of the matrix products of all steps alone, on packed buffers.
fn floor<S: Sector>(plans: &[(Contract, GradedTensor<S>, GradedTensor<S>)]) -> f64 {
    let mut buffers: Vec<[Vec<f64>; 3]> = plans
        .iter()
        .map(|(plan, ..)| plan.plan.products().lens().map(|len| vec![0.5; len]))
        .collect();
    best(|| {
        for ((plan, ..), [a, b, c]) in plans.iter().zip(&mut buffers) {
            let products = plan.plan.products();
            let views = products.views();
            for &[i, j, k] in products.terms() {
                let (va, vb, vc) =
                    (views[0][i as usize], views[1][j as usize], views[2][k as usize]);
                let a = &a[va.offset..va.offset + va.len()];
                let b = &b[vb.offset..vb.offset + vb.len()];
                let c = &mut c[vc.offset..vc.offset + vc.len()];
                Gemm::new(
                    MatRef::row_major(a, va.rows, va.cols).unwrap(),
                    MatRef::row_major(b, vb.rows, vb.cols).unwrap(),
                    MatMut::row_major(c, vc.rows, vc.cols).unwrap(),
                )
                .unwrap()
                .run::<Standard>();
            }
        }
        black_box(&mut buffers);
    })
}

/// Converts the tensor to a block-sparse tensor with the same blocks.
fn listed<S: Sector>(x: &GradedTensor<S>) -> BlockSparseTensor {
    let spec = x.spec();
    let legs = spec.legs().iter().map(|leg| leg.sectors().iter().map(|&(_, n)| n).collect());
    let mut blocks: Vec<Vec<u32>> = spec.blocks().iter().map(|b| b.places().to_vec()).collect();
    blocks.sort_unstable();
    let parts: Vec<Eager> = blocks
        .iter()
        .map(|places| {
            let block = x.block(places).unwrap().unwrap().0;
            let len = block.shape().iter().product();
            block.reshape(&[len])
        })
        .collect();
    let pattern = Pattern::new(legs.collect(), blocks).unwrap();
    BlockSparseTensor::new(pattern.into(), <Eager as Array>::cat(&parts, 0)).unwrap()
}

fn row<S: Sector>(name: &str, d: usize, problem: impl FnOnce() -> Problem<S>) {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if arguments.iter().zip([name, &d.to_string()]).any(|(given, own)| given != own) {
        return;
    }
    let problem = &problem();
    if let Some(only) = arguments.get(2) {
        let time = best(|| {
            if only == "cold" {
                clear_plans();
            }
            black_box(problem.run());
        });
        return println!("{name:>6} {d:>5} {only} {time:.4} ms");
    }
    let plans = problem.plans();
    let floor = floor(&plans);
    let cold = best(|| {
        clear_plans();
        black_box(problem.run());
    });
    let warm = best(|| drop(black_box(problem.run())));
    let backward = best(|| {
        let all = problem.run();
        let mut cotangent = all[3].re().clone();
        for (k, (plan, _, right)) in plans.iter().enumerate().rev() {
            let left = if k == 0 { &problem.lp } else { &all[k - 1] };
            let inputs = [Value::Float(left.re().clone()), Value::Float(right.re().clone())];
            let out = t4a_diff::Outcome::from(cotangent.clone());
            let wanted = [true, true];
            let kept = Kept::new(plan.keep(&wanted), &inputs, &out);
            let cotangents = [Some(cotangent)];
            let reverse =
                Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &wanted };
            let both = plan.fused_vjp(&reverse).unwrap();
            cotangent = both[0].clone().unwrap();
            black_box(both);
        }
    });
    parallel::set_threads(2);
    let two = best(|| drop(black_box(problem.run())));
    parallel::set_threads(1);
    let operands = [&problem.lp, &problem.theta, &problem.w1, &problem.w2, &problem.rp];
    let lists: Vec<BlockSparseTensor> = operands.map(|x| listed(x)).into();
    let blocks = best(|| {
        let std = FloatSemiring::Standard;
        let x = lists[0].contract(&lists[1], &[2], &[0], std).unwrap();
        let x = x.contract(&lists[2], &[1, 2], &[0, 3], std).unwrap();
        let x = x.contract(&lists[3], &[3, 1], &[0, 3], std).unwrap();
        black_box(x.contract(&lists[4], &[1, 3], &[0, 1], std).unwrap());
    });
    let dense = (d <= 256).then(|| {
        let dense: Vec<AnyTensor> =
            operands.iter().map(|x| x.to_dense().unwrap().0.into_tensor().unwrap()).collect();
        best(|| {
            let run = |text: &str, a: &AnyTensor, b: &AnyTensor| {
                t4a_einsum::Einsum::new(text).unwrap().contract_any(&[a, b]).unwrap()
            };
            let x = run("lwk,kstr->lwstr", &dense[0], &dense[1]);
            let x = run("lwstr,wvus->ltrvu", &x, &dense[2]);
            let x = run("ltrvu,vxyt->lruxy", &x, &dense[3]);
            black_box(run("lruxy,rxq->luyq", &x, &dense[4]));
        })
    });
    let count: usize = plans.iter().map(|(plan, ..)| plan.plan.products().terms().len()).sum();
    println!(
        "{name:>6} {d:>5} {count:>5}  {floor:>8.3} {warm:>8.3} {:>5.2} {cold:>8.3} {:>5.2} \
         {backward:>9.3} {:>5.2} {two:>8.3} {:>5.2} {blocks:>9.3} {:>5.1} {:>9}",
        warm / floor,
        cold / warm,
        (backward - warm) / warm,
        warm / two,
        blocks / warm,
        dense.map_or("-".into(), |dense| format!("{dense:.3}")),
    );
}

fn main() {
    parallel::set_threads(1);
    println!(
        "{:>6} {:>5} {:>5}  {:>8} {:>8} {:>5} {:>8} {:>5} {:>9} {:>5} {:>8} {:>5} {:>9} {:>5} {:>9}  ms",
        "",
        "D",
        "gemms",
        "floor",
        "warm",
        "/",
        "cold",
        "/",
        "fwd+bwd",
        "b/f",
        "2 thr",
        "x",
        "blocks",
        "/",
        "dense"
    );
    for d in [64, 256, 1024] {
        let spin = leg(&[(U1(-1), 1), (U1(1), 1)]);
        let wire = leg(&[(U1(-2), 1), (U1(0), 3), (U1(2), 1)]);
        let bond: Vec<(U1, usize)> =
            gauss(d, 1.5, 4, 2).iter().map(|&(q, n)| (U1(q), n.round() as usize)).collect();
        row("U1", d, || Problem::new(&leg(&bond), &spin, &wire));
    }
    for d in [64, 256, 1024] {
        let at = |a: i32, b: i32| Product(U1(a), U1(b));
        let site = leg(&[(at(0, 0), 1), (at(1, 0), 1), (at(0, 1), 1), (at(1, 1), 1)]);
        let wire =
            leg(&[(at(0, 0), 2), (at(1, 0), 1), (at(-1, 0), 1), (at(0, 1), 1), (at(0, -1), 1)]);
        let profile = gauss(1, 1.0, 3, 1);
        let mut bond = Vec::new();
        for &(a, p) in &profile {
            for &(b, q) in &profile {
                bond.push((at(a, b), (d as f64 * p * q).round() as usize));
            }
        }
        row("U1xU1", d, || Problem::new(&leg(&bond), &site, &wire));
    }
}
