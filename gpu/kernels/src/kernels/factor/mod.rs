//! Factorisations of small matrices: a cube for a matrix, which is in shared memory meanwhile.
//!
//! ```text
//! s[i · pitch + j]     entry (i, j), pitch = size + 1
//! ```
//!
//! Barriers stand in loops over sizes only: their number does not depend on values.

use cubecl::prelude::*;

pub(crate) mod cholesky;
pub(crate) mod eigh;
pub(crate) mod lu;
pub(crate) mod qr;
pub(crate) mod svd;
pub(crate) mod triangular;

/// Copies a matrix to shared memory, as (A + Aᵀ)/2 if it is `symmetric`. The greatest modulus of what this unit
/// copied; ∞ if there is NaN.
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

/// The greatest of what the units have; each returns it.
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

/// True if the greatest modulus of entries is so far from the greatest number that factors stay below that.
#[cube]
fn within<F: Float>(most: F, infinite: F) -> bool {
    most * F::new(64.0) < infinite
}

/// Pair `k` of round `round` in which each of `n`, an even number, meets each other one once in n − 1 rounds. The
/// first is the smaller one.
#[cube]
fn pair(k: usize, round: usize, n: usize) -> (usize, usize) {
    let others = n - 1;
    let a = select(k == 0, others, (round + k) % others);
    let b = (round + others - k) % others;
    (select(a < b, a, b), select(a < b, b, a))
}

/// Cosine and sine of the rotation that makes `[[app, apq], [apq, aqq]]` diagonal; none if `apq` is not above
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
