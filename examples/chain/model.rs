//! Spin chains as graded matrix product operators.
//!
//! ```text
//!        out              in a sum of products of operators, the bond says what has been placed so far:
//!         │               `start` nothing yet, `end` a complete term, the others one half of a term
//!  left ──W── right
//!         │               a charge is conserved: right = left + (what the operator adds)
//!        in
//! ```

use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::{
    Direction, Forbidden, GradedTensor, Leg, Result, Sector, Spec, U1, Z2,
};

type Operator = [[f64; 2]; 2];

const ONE: Operator = [[1.0, 0.0], [0.0, 1.0]];

/// A chain with two states per site.
pub struct Model<S> {
    /// Charges of the two states of a site.
    pub site: [S; 2],
    /// Charges of the states of a bond, ascending.
    bond: Vec<S>,
    start: usize,
    end: usize,
    /// Transition between two states of the bond with an operator, `O[out][in]`.
    terms: Vec<(usize, usize, f64, Operator)>,
}

/// `Σ ½(S⁺S⁻ + S⁻S⁺) + Δ SᶻSᶻ`, graded by twice the magnetisation.
pub fn xxz(delta: f64) -> Model<U1> {
    // States: ↓, ↑.
    let (up, down) = ([[0.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]);
    let z = [[-0.5, 0.0], [0.0, 0.5]];
    let (lowered, start, half, end, raised) = (0, 1, 2, 3, 4);
    let terms = vec![
        (start, start, 1.0, ONE),
        (start, raised, 0.5, up),
        (raised, end, 1.0, down),
        (start, lowered, 0.5, down),
        (lowered, end, 1.0, up),
        (start, half, delta, z),
        (half, end, 1.0, z),
        (end, end, 1.0, ONE),
    ];
    Model { site: [U1(-1), U1(1)], bond: [-2, 0, 0, 0, 2].map(U1).to_vec(), start, end, terms }
}

/// `−Σ ZZ − Σ X`, graded by the parity of the number of spins in the state − of X.
pub fn ising() -> Model<Z2> {
    let (x, z) = ([[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]);
    let (start, end, half) = (0, 1, 2);
    let terms = vec![
        (start, start, 1.0, ONE),
        (start, end, -1.0, x),
        (start, half, -1.0, z),
        (half, end, 1.0, z),
        (end, end, 1.0, ONE),
    ];
    Model { site: [0, 1].map(Z2::new), bond: [0, 0, 1].map(Z2::new).to_vec(), start, end, terms }
}

/// A leg of states with these charges; equal charges are adjacent.
pub fn leg<S: Sector>(charges: &[S], direction: Direction) -> Result<Leg<S>> {
    let sectors = charges.chunk_by(|a, b| a == b).map(|same| (same[0], same.len()));
    Leg::new(sectors, direction)
}

impl<S: Sector> Model<S> {
    /// Matrix product operator of a chain of n sites: `[left, out, in, right]` each.
    pub fn operator<B: Operations>(&self, n: usize) -> Result<Vec<GradedTensor<B, S>>> {
        let all: Vec<usize> = (0..self.bond.len()).collect();
        let tensor = |left: &[usize], right: &[usize]| {
            let mut dense = vec![0.0; left.len() * right.len() * 4];
            for &(from, to, factor, operator) in &self.terms {
                let place = |states: &[usize], state| states.iter().position(|&s| s == state);
                let (Some(l), Some(r)) = (place(left, from), place(right, to)) else { continue };
                for (out, row) in operator.iter().enumerate() {
                    for (into, x) in row.iter().enumerate() {
                        dense[((l * 2 + out) * 2 + into) * right.len() + r] += factor * x;
                    }
                }
            }
            let charges =
                |states: &[usize]| states.iter().map(|&s| self.bond[s]).collect::<Vec<S>>();
            let site = leg(&self.site, Direction::Out)?;
            let legs = vec![
                leg(&charges(left), Direction::Out)?,
                site.clone(),
                site.dual(),
                leg(&charges(right), Direction::In)?,
            ];
            let shape = [left.len(), 2, 2, right.len()];
            let device = B::Device::default();
            let dense = TensorData::new(dense, shape);
            let dense = Tensor::<B, 4>::from_data(dense, (&device, DType::F64));
            let spec = Spec::new(legs, S::TRIVIAL, 2)?;
            GradedTensor::<B, S>::from_dense(&spec, &dense.into(), None, Forbidden::Error(0.0))
        };
        let (start, end) = ([self.start], [self.end]);
        let left = |i: usize| if i == 0 { &start[..] } else { &all };
        let right = |i: usize| if i + 1 == n { &end[..] } else { &all };
        (0..n).map(|i| tensor(left(i), right(i))).collect()
    }
}
