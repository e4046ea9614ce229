//! Fermions on a 2 × 3 lattice without Jordan–Wigner strings: fermionic signs are part of the tensor operations.
//!
//! ```text
//! cargo run --release --example fermions_2d
//! ```
//!
//! `H = −t Σ (c†ᵢ cⱼ + h.c.) + V Σ nᵢ nⱼ` over neighbours, t = V = 1, two particles. A bond operator is a tensor of
//! four legs; it does not depend on the numbering of the other sites. The energy is asserted against exact
//! diagonalisation, and is reproduced from the ground state, split into its two rows, for every order of contraction.

#[path = "chain/lanczos.rs"]
mod lanczos;

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Tensor, TensorData};
use burn_t4a::ext::structured::{
    Direction, FermionNumber, FluxOn, Forbidden, GradedTensor, Leg, Result, Spec, Structured, Svd,
    einsum,
};
use burn_t4a::{BurnT4a, T4aDevice};

use lanczos::lanczos;

type T = GradedTensor<BurnT4a, FermionNumber>;

const SITES: usize = 6;
const EXACT: f64 = -3.205727926295;

/// Neighbours in the numbering  0 1 2
///                              3 4 5
const BONDS: [[usize; 2]; 7] = [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]];

fn site() -> Result<Leg<FermionNumber>> {
    Leg::new([(FermionNumber(0), 1), (FermionNumber(1), 1)], Direction::Out)
}

/// Operator of a bond, `[i, j, j*, i*]`: the legs of the bra are in reverse order, so that entries are plain matrix
/// elements `⟨nᵢ nⱼ| h |mᵢ mⱼ⟩`.
fn bond() -> Result<T> {
    let mut dense = [0.0; 16];
    let mut set =
        |[a, b]: [usize; 2], [c, d]: [usize; 2], x| dense[((a * 2 + b) * 2 + d) * 2 + c] = x;
    set([1, 0], [0, 1], -1.0);
    set([0, 1], [1, 0], -1.0);
    set([1, 1], [1, 1], 1.0);
    let site = site()?;
    let legs = vec![site.clone(), site.clone(), site.dual(), site.dual()];
    let spec = Spec::new(legs, FermionNumber(0), 2)?;
    let device = T4aDevice;
    let dense = Tensor::<BurnT4a, 1>::from_data(TensorData::from(dense), (&device, DType::F64));
    T::from_tensor(&spec, dense.reshape([2, 2, 2, 2]), Forbidden::Error(0.0))
}

/// Applies an operator to two legs of a state.
fn apply(h: &T, state: &T, [i, j]: [usize; 2]) -> Result<T> {
    let moved = h.contract(state, &[3, 2], &[i, j])?;
    // The legs i and j are leading now; they are permuted back, with the fermionic signs of the permutation.
    let rest: Vec<usize> = (0..SITES).filter(|axis| ![i, j].contains(axis)).collect();
    let place = |axis: usize| match axis {
        _ if axis == i => 0,
        _ if axis == j => 1,
        _ => 2 + rest.iter().filter(|&&other| other < axis).count(),
    };
    moved.permute(&(0..SITES).map(place).collect::<Vec<_>>(), state.spec().rows())
}

/// All permutations of n elements.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let insert = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, n - 1);
            order
        })
    };
    orders(n - 1).into_iter().flat_map(insert).collect()
}

fn number(x: &T) -> f64 {
    x.flat().into_data().iter::<f64>().sum()
}

fn main() -> Result<()> {
    let (h, device) = (bond()?, T4aDevice);
    BurnT4a::seed(&device, 1);
    let spec = Spec::new(vec![site()?; SITES], FermionNumber(2), 3)?;
    println!("two of six sites: {} states of {}", spec.len(), 1 << SITES);
    let start = T::random(&spec, Distribution::Normal(0.0, 1.0), (&device, DType::F64))?;
    let total = |x: &T| {
        let mut sum = x.zeros_of(x.spec());
        for bond in BONDS {
            sum = sum.add(&apply(&h, x, bond)?)?;
        }
        Ok(sum)
    };
    let (energy, ground) = lanczos(total, &start, 20)?;
    println!("energy {energy:.12}, exact {EXACT:.12}");
    assert!((energy - EXACT).abs() < 1e-9, "{energy}");

    // Upper row `[a, b, c, bond]` and lower row `[bond, d, e, f]` of the ground state, and their adjoints.
    let Svd { u, s, vh } = ground.svd(3, FluxOn::Right)?;
    let (upper, lower) = (u, vh.scale_rows(&s)?);
    let (bra_upper, bra_lower) = (upper.dagger()?, lower.dagger()?);
    println!("\nupper row\n{upper}\n\nbond   ⟨h⟩, the same in all 120 orders of the five tensors");
    let names = ['a', 'b', 'c', 'd', 'e', 'f'];
    let mut sum = 0.0;
    for [i, j] in BONDS {
        // The sites of the bond have separate labels in the bra.
        let bra =
            |k: usize| if [i, j].contains(&k) { names[k].to_ascii_uppercase() } else { names[k] };
        let row = |sites: [usize; 3]| sites.map(bra).iter().collect::<String>();
        let tensors = [
            (&upper, "abcx".to_string()),
            (&lower, "xdef".to_string()),
            (&bra_upper, format!("y{}", row([2, 1, 0]))),
            (&bra_lower, format!("{}y", row([5, 4, 3]))),
            (&h, format!("{}{}{}{}", bra(i), bra(j), names[j], names[i])),
        ];
        let mut values = Vec::new();
        for order in orders(tensors.len()) {
            let labels: Vec<&str> = order.iter().map(|&k| &tensors[k].1[..]).collect();
            let operands: Vec<&T> = order.iter().map(|&k| tensors[k].0).collect();
            values.push(number(&einsum(&format!("{}->", labels.join(",")), &operands)?));
        }
        assert!(values.iter().all(|x| (x - values[0]).abs() < 1e-12), "{values:?}");
        println!("{i} – {j}  {:>15.12}", values[0]);
        sum += values[0];
    }
    println!("sum    {sum:>15.12}");
    assert!((sum - EXACT).abs() < 1e-9, "{sum}");
    Ok(())
}
