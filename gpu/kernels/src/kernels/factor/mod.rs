//! Factorisations of small matrices: one cube per matrix, which is held in shared memory.
//!
//! ```text
//! s[i · pitch + j]     entry (i, j), pitch = size + 1
//! ```
//!
//! Barriers occur only in loops over sizes, so their number does not depend on values.

use cubecl::prelude::*;

pub(crate) mod cholesky;
pub(crate) mod eigh;
#[cfg(feature = "cusolver")]
pub(crate) mod large;
pub(crate) mod lu;
pub(crate) mod qr;
pub(crate) mod svd;
pub(crate) mod triangular;

/// Copies a matrix to shared memory, as (A + Aᵀ)/2 if `symmetric`. Returns the maximum modulus of the elements that
/// this unit copied; ∞ if one is NaN.
#[cube]
fn load<F: Float>(
    a: &Tensor<F>,
    s: &mut SharedMemory<F>,
    base: usize,
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
    infinite: F,
    #[comptime] pitch: usize,
    #[comptime] units: usize,
    #[comptime] symmetric: bool,
) -> F {
    let mut most = F::new(0.0);
    let mut e = UNIT_POS as usize;
    while e < rows * columns {
        let i = e / columns;
        let j = e % columns;
        let mut x = a[base + i * row + j * column];
        if comptime!(symmetric) {
            let half = F::new(0.5);
            x = half * x + half * a[base + j * row + i * column];
        }
        s[i * pitch + j] = x;
        let modulus = x.abs();
        let modulus = select(modulus < infinite, modulus, infinite);
        most = select(modulus > most, modulus, most);
        e += units;
    }
    most
}

/// Maximum over all units; every unit returns it.
#[cube]
fn greatest<F: Float>(own: F, #[comptime] units: usize) -> F {
    let mut all = SharedMemory::<F>::new(units);
    all[UNIT_POS as usize] = own;
    sync_cube();
    let mut most = all[0];
    for i in 1..units {
        most = select(all[i] > most, all[i], most);
    }
    sync_cube();
    most
}

/// Returns true if the maximum modulus of the entries is small enough that no factor overflows.
#[cube]
fn within<F: Float>(most: F, infinite: F) -> bool {
    most * F::new(64.0) < infinite
}

/// Pair `k` of round `round` of a round-robin tournament of `n` (even) players: in n − 1 rounds each pair occurs
/// once. The first index is the smaller one.
#[cube]
fn pair(k: usize, round: usize, n: usize) -> (usize, usize) {
    let others = n - 1;
    let a = select(k == 0, others, (round + k) % others);
    let b = (round + others - k) % others;
    (select(a < b, a, b), select(a < b, b, a))
}

/// Cosine and sine of the rotation that diagonalises `[[app, apq], [apq, aqq]]`; the identity if `|apq|` is at most
/// `negligible`.
#[cube]
fn rotation<F: Float>(app: F, aqq: F, apq: F, negligible: F) -> (F, F) {
    let one = F::new(1.0);
    let turns = apq.abs() > negligible;
    let tau = (aqq - app) / (F::new(2.0) * select(turns, apq, one));
    let tangent = one / (tau.abs() + (one + tau * tau).sqrt());
    let tangent = select(tau < F::new(0.0), F::new(0.0) - tangent, tangent);
    let cosine = one / (one + tangent * tangent).sqrt();
    (select(turns, cosine, one), select(turns, tangent * cosine, F::new(0.0)))
}
