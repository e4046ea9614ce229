//! All-pairs shortest paths by squaring a matrix over (min, +), and the paths themselves as gradients.
//!
//! ```text
//! cargo run --release --example shortest_path
//! ```
//!
//! `D ← D ⊗ D` doubles the maximum number of edges of a path. A distance is the sum of the edges on its path, so its
//! derivative with respect to an edge is the number of times the path uses that edge. The graph and its distances are
//! figure 25.1 of Cormen, Leiserson, Rivest and Stein (third edition).

use burn::backend::Autodiff;
use burn::tensor::{Tensor, TensorData};
use burn_t4a::ext::einsum::{MinPlus, semiring_einsum};
use burn_t4a::{BurnT4a, T4aDevice};

type B = Autodiff<BurnT4a>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const N: usize = 5;
const EDGES: [(usize, usize, f32); 9] = [
    (1, 2, 3.0),
    (1, 3, 8.0),
    (1, 5, -4.0),
    (2, 4, 1.0),
    (2, 5, 7.0),
    (3, 2, 4.0),
    (4, 1, 2.0),
    (4, 3, -5.0),
    (5, 4, 6.0),
];
const DISTANCES: [[f32; N]; N] = [
    [0.0, 1.0, -3.0, 2.0, -4.0],
    [3.0, 0.0, -4.0, 1.0, -1.0],
    [7.0, 4.0, 0.0, 5.0, 3.0],
    [2.0, -1.0, -5.0, 0.0, -2.0],
    [8.0, 5.0, 1.0, 6.0, 0.0],
];

fn distances(edges: &Tensor<B, 2>) -> Result<Tensor<B, 2>> {
    let mut d = edges.clone();
    // Paths have at most N − 1 edges.
    for _ in 0..(N - 1).next_power_of_two().ilog2() {
        d = semiring_einsum::<MinPlus, _, _>("ij,jk->ik", [&d, &d])?;
    }
    Ok(d)
}

fn main() -> Result<()> {
    let mut lengths = [f32::INFINITY; N * N];
    (0..N).for_each(|v| lengths[v * N + v] = 0.0);
    EDGES.iter().for_each(|&(from, to, length)| lengths[(from - 1) * N + to - 1] = length);
    let edges = Tensor::<B, 2>::from_data(TensorData::new(lengths.to_vec(), [N, N]), &T4aDevice);
    let edges = edges.require_grad();

    let d: Vec<f32> = distances(&edges)?.into_data().iter().collect();
    assert_eq!(d, DISTANCES.concat());
    println!("      {}", (1..=N).map(|v| format!("{v:>5}")).collect::<String>());
    for (v, row) in d.chunks(N).enumerate() {
        println!("{:>5} {}", v + 1, row.iter().map(|d| format!("{d:>5}")).collect::<String>());
    }

    println!();
    for (from, to) in [(1, 2), (2, 3), (5, 2)] {
        let length = distances(&edges)?.slice([from - 1..from, to - 1..to]);
        let grads = length.sum().backward();
        let taken = edges.grad(&grads).ok_or("no gradient")?.into_data();
        let taken: Vec<f32> = taken.iter().collect();
        // Follow the edges that the gradient marks.
        let (mut way, mut at) = (vec![from], from);
        while at != to {
            let next = (1..=N).find(|&v| v != at && taken[(at - 1) * N + v - 1] == 1.0);
            at = next.ok_or("the way ends early")?;
            way.push(at);
        }
        let sum: f32 = way.windows(2).map(|e| lengths[(e[0] - 1) * N + e[1] - 1]).sum();
        assert_eq!(sum, DISTANCES[from - 1][to - 1]);
        let way: Vec<String> = way.iter().map(ToString::to_string).collect();
        println!("{from} to {to}: {:<18} length {sum}", way.join(" → "));
    }
    Ok(())
}
