//! Time to plan networks of many tensors, and the cost of the plans.
//!
//! `cargo bench -p t4a-einsum --bench planning [-- PART]` prints one row per network; PART filters by a substring of
//! the name.

use std::time::Instant;

use t4a_einsum::{Einsum, Subscripts, clear_plans};

struct Network {
    name: String,
    inputs: Vec<Vec<usize>>,
    output: Vec<usize>,
    size: fn(usize) -> usize,
}

fn network(
    name: &str,
    inputs: Vec<Vec<usize>>,
    output: Vec<usize>,
    size: fn(usize) -> usize,
) -> Network {
    let name = format!("{name}_{}", inputs.len());
    Network { name, inputs, output, size }
}

struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

fn two(_: usize) -> usize {
    2
}
fn varied(label: usize) -> usize {
    2 + (label * 97) % 48
}

/// `a,a,…->a`.
fn star(n: usize) -> Network {
    network("one_label", vec![vec![0]; n], vec![0], two)
}

/// `a,a,…->`.
fn dot(n: usize) -> Network {
    network("one_label_summed", vec![vec![0]; n], vec![], two)
}

/// `sa,sb,sc,…->s`: a batch label in all tensors.
fn batch(n: usize) -> Network {
    network("batch_chain", (0..n).map(|i| vec![0, i + 1, i + 2]).collect(), vec![0, 1, n + 1], two)
}

fn chain(n: usize, size: fn(usize) -> usize) -> Network {
    let name = if size(1) == size(2) { "chain" } else { "chain_varied" };
    network(name, (0..n).map(|i| vec![i, i + 1]).collect(), vec![0, n], size)
}

/// A chain with a vector on every label: a hidden Markov model.
fn markov(n: usize) -> Network {
    let pairs = (0..n / 2).map(|i| vec![i, i + 1]);
    network("markov", pairs.chain((0..n / 2).map(|i| vec![i])).collect(), vec![], |_| 8)
}

/// Spins on a grid: a matrix per edge, a label per site.
fn ising(rows: usize, cols: usize) -> Network {
    let site = |r: usize, c: usize| r * cols + c;
    let mut inputs = Vec::new();
    for r in 0..rows {
        for c in 0..cols {
            if c + 1 < cols {
                inputs.push(vec![site(r, c), site(r, c + 1)]);
            }
            if r + 1 < rows {
                inputs.push(vec![site(r, c), site(r + 1, c)]);
            }
        }
    }
    network(&format!("ising_{rows}x{cols}"), inputs, vec![], two)
}

/// A tensor per site of a grid, bonds of size 3.
fn peps(rows: usize, cols: usize) -> Network {
    let mut inputs = vec![Vec::new(); rows * cols];
    let mut bond = 0;
    for r in 0..rows {
        for c in 0..cols {
            for (dr, dc) in [(0, 1), (1, 0)] {
                if r + dr < rows && c + dc < cols {
                    inputs[r * cols + c].push(bond);
                    inputs[(r + dr) * cols + c + dc].push(bond);
                    bond += 1;
                }
            }
        }
    }
    network(&format!("peps_{rows}x{cols}"), inputs, vec![], |_| 3)
}

fn regular(n: usize, degree: usize) -> Network {
    let mut random = Random(12345);
    let mut stubs: Vec<usize> = (0..degree * n).map(|i| i / degree).collect();
    for i in (1..stubs.len()).rev() {
        stubs.swap(i, random.below(i + 1));
    }
    let mut inputs = vec![Vec::new(); n];
    for (bond, pair) in stubs.chunks(2).enumerate() {
        pair.iter().for_each(|&tensor| inputs[tensor].push(bond));
    }
    network(&format!("regular_{degree}"), inputs, vec![], two)
}

/// A random tree with hyperedges: tensor i shares the label of an earlier one.
fn tree(n: usize) -> Network {
    let mut random = Random(7);
    let inputs = (0..n).map(|i| if i == 0 { vec![0] } else { vec![random.below(i), i] }).collect();
    network("hypertree", inputs, vec![0], |l| 2 + l % 5)
}

/// Factors in which each label occurs in many tensors.
fn factors(n: usize, labels: usize) -> Network {
    let mut random = Random(99);
    let inputs = (0..n).map(|i| {
        let mut f = vec![i % labels, random.below(labels), random.below(labels)];
        f.sort_unstable();
        f.dedup();
        f
    });
    network(&format!("factors_{labels}"), inputs.collect(), vec![], two)
}

/// Scalars and vectors without shared labels.
fn loose(n: usize) -> Network {
    network(
        "loose",
        (0..n).map(|i| if i % 100 == 0 { vec![i] } else { vec![] }).collect(),
        vec![],
        two,
    )
}

fn main() {
    let pick: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let most: usize = std::env::var("MOST").ok().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let networks = vec![
        star(100),
        star(400),
        star(3000),
        star(10_000),
        dot(400),
        dot(10_000),
        batch(300),
        batch(10_000),
        chain(100, two),
        chain(1000, two),
        chain(20_000, two),
        chain(100, varied),
        chain(1000, varied),
        chain(10_000, varied),
        markov(200),
        markov(2000),
        markov(10_000),
        ising(5, 5),
        ising(10, 10),
        ising(14, 14),
        ising(4, 1400),
        ising(70, 70),
        peps(6, 6),
        peps(10, 10),
        peps(4, 2500),
        peps(100, 100),
        regular(40, 3),
        regular(100, 3),
        regular(200, 3),
        regular(1000, 3),
        regular(10_000, 3),
        regular(60, 4),
        tree(200),
        tree(2000),
        tree(10_000),
        factors(60, 30),
        factors(300, 40),
        factors(10_000, 100),
        factors(10_000, 2000),
        loose(10_000),
    ];
    println!("{:24} {:>10} {:>8} {:>8}", "network", "plan ms", "lg flops", "lg peak");
    for Network { name, inputs, output, size } in networks {
        if inputs.len() > most
            || !(pick.is_empty() || pick.iter().any(|p| name.contains(p.as_str())))
        {
            continue;
        }
        let shapes: Vec<Vec<usize>> =
            inputs.iter().map(|t| t.iter().map(|&l| size(l)).collect()).collect();
        let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let einsum = Einsum::from(Subscripts::new(inputs, output)).memory(usize::MAX);
        clear_plans();
        let start = Instant::now();
        let plan = einsum.plan(&views, 1);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        match plan {
            Ok(plan) => println!(
                "{name:24} {ms:10.2} {:8.2} {:8.2}",
                plan.cost().flops.log10(),
                plan.cost().peak.log10()
            ),
            Err(error) => println!(
                "{name:24} {ms:10.2} {}",
                error.to_string().chars().take(60).collect::<String>()
            ),
        }
    }
}
