//! The maximum cut of the Petersen graph: one contraction over (max, +), whose gradient is the partition of the
//! vertices.
//!
//! ```text
//! cargo run --release --example max_cut
//! ```
//!
//! Every vertex is a label with two values, its side. Every edge is a 2 × 2 tensor with value 1 for different sides.
//! The sum over all labels is a maximum over 2¹⁰ partitions, evaluated pairwise along a contraction tree. A vertex
//! tensor of zeros does not change the value; its gradient marks the side in the best partition.

use burn::backend::Autodiff;
use burn::tensor::Tensor;
use burn_t4a::ext::einsum::{MaxPlus, Operand, Subscripts, einsum, semiring_einsum};
use burn_t4a::{BurnT4a, T4aDevice};

type B = Autodiff<BurnT4a>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const N: usize = 10;

/// An outer pentagon, an inner pentagram, five spokes.
fn petersen() -> Vec<[usize; 2]> {
    let outer = (0..5).map(|v| [v, (v + 1) % 5]);
    let inner = (0..5).map(|v| [5 + v, 5 + (v + 2) % 5]);
    outer.chain(inner).chain((0..5).map(|v| [v, v + 5])).collect()
}

fn main() -> Result<()> {
    let edges = petersen();
    let pays = Tensor::<B, 2>::from_floats([[0.0, 1.0], [1.0, 0.0]], &T4aDevice);
    let sides: Vec<Tensor<B, 1>> =
        (0..N).map(|_| Tensor::zeros([2], &T4aDevice).require_grad()).collect();

    let labels = edges.iter().map(|edge| edge.to_vec()).chain((0..N).map(|v| vec![v]));
    let network = Subscripts::new(labels, []);
    let operands = |edge: &Tensor<B, 2>| {
        let edges = edges.iter().map(|_| Operand::from(edge));
        edges.chain(sides.iter().map(Operand::from)).collect::<Vec<_>>()
    };
    let best: Tensor<B, 1> = semiring_einsum::<MaxPlus, _, _>(network.clone(), operands(&pays))?;
    let grads = best.backward();
    let size = best.into_scalar();

    let side = sides.iter().map(|side| {
        let marks: Vec<f32> = side.grad(&grads).ok_or("no gradient")?.into_data().iter().collect();
        assert_eq!(marks.iter().sum::<f32>(), 1.0, "one side for each vertex");
        Ok(usize::from(marks[1] == 1.0))
    });
    let side: Vec<usize> = side.collect::<Result<_>>()?;
    let cut = |&[v, w]: &[usize; 2]| side[v] != side[w];

    println!("largest cut of the Petersen graph: {size} of {} edges\n", edges.len());
    for (name, s) in [("left", 0), ("right", 1)] {
        let members: Vec<String> =
            (0..N).filter(|&v| side[v] == s).map(|v| v.to_string()).collect();
        println!("{name:<6} {}", members.join(" "));
    }
    for (name, wanted) in [("cut", true), ("whole", false)] {
        let these = edges.iter().filter(|edge| cut(edge) == wanted);
        let these: Vec<String> = these.map(|[v, w]| format!("{v}─{w}")).collect();
        println!("{name:<6} {}", these.join("  "));
    }
    assert_eq!(size, 12.0);
    assert_eq!(edges.iter().filter(|edge| cut(edge)).count(), 12);

    // The same network over (+, ×) counts independent sets.
    let allowed = Tensor::<B, 2>::from_floats([[1.0, 1.0], [1.0, 0.0]], &T4aDevice);
    let apart = Subscripts::new(edges.iter().map(|edge| edge.to_vec()), []);
    let sets: Tensor<B, 1> = einsum(apart, edges.iter().map(|_| &allowed).collect::<Vec<_>>())?;
    let sets = sets.into_scalar();
    println!("\nand it has {sets} independent sets");
    assert_eq!(sets, 76.0);
    Ok(())
}
