//! Orthonormal vectors.
//!
//! References: L. Giraud, J. Langou, M. Rozložník, *The loss of orthogonality in the Gram–Schmidt orthogonalization
//! process* (2005), for "twice is enough"; J. W. Daniel et al. (1976) for the criterion of the second pass.

use t4a_algebra::c64;

use super::vector::Vector;

/// A vector orthogonalised against a basis, the removed components, and its norm.
pub(super) struct Orthogonal<V> {
    pub(super) rest: V,
    pub(super) components: Vec<c64>,
    pub(super) norm: f64,
}

/// Removes the components along orthonormal vectors from a vector of the given norm, all in one pass (classical
/// Gram–Schmidt). A second pass follows if the first one cancels digits.
pub(super) fn orthogonalise<V: Vector>(
    x: V,
    norm: f64,
    basis: &[V],
) -> Result<Orthogonal<V>, V::Error> {
    let mut components = vec![c64::ZERO; basis.len()];
    if basis.is_empty() {
        return Ok(Orthogonal { rest: x, components, norm });
    }
    let mut rest = x;
    for _ in 0..2 {
        let found = rest.inners(basis)?;
        let removed: f64 = found.iter().map(|c| c.norm_sqr()).sum();
        rest = rest.add_terms(&found.iter().map(|&c| -c).collect::<Vec<_>>(), basis)?;
        components.iter_mut().zip(found).for_each(|(component, c)| *component += c);
        if removed < 0.5 * norm * norm {
            break;
        }
    }
    let norm = rest.norm()?;
    Ok(Orthogonal { rest, components, norm })
}

/// `Σ cᵢ vᵢ`; at least one vector.
pub(super) fn combine<V: Vector>(basis: &[V], c: &[c64]) -> Result<V, V::Error> {
    basis[0].scale(c[0])?.add_terms(&c[1..], &basis[1..])
}

/// Number of random vectors tried to extend a basis.
const ATTEMPTS: u64 = 3;

/// Random unit vector orthogonal to two sets of orthonormal vectors; `None` if they span the space.
pub(super) fn fresh<V: Vector>(
    like: &V,
    seed: u64,
    sets: [&[V]; 2],
) -> Result<Option<V>, V::Error> {
    for attempt in 0..ATTEMPTS {
        // Mixed, so that a caller is unlikely to have used the same seed for the start vector.
        let mixed = seed.wrapping_mul(ATTEMPTS).wrapping_add(attempt);
        let mixed = mixed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if let Some(x) = outside(like.random(mixed)?, sets)? {
            return Ok(Some(x));
        }
    }
    Ok(None)
}

/// Component orthogonal to two sets, of norm 1; `None` if only rounding errors remain.
fn outside<V: Vector>(mut x: V, sets: [&[V]; 2]) -> Result<Option<V>, V::Error> {
    let first = x.norm()?;
    let mut norm = first;
    for _ in 0..2 {
        for set in sets {
            let found = orthogonalise(x, norm, set)?;
            (x, norm) = (found.rest, found.norm);
        }
        if norm.is_nan() || norm <= 1e3 * x.epsilon() * first {
            return Ok(None);
        }
    }
    Ok(Some(x.scale(c64::new(1.0 / norm, 0.0))?))
}
