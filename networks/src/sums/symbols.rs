//! Operators of one kind of site, of one charge each, up to factors.

use t4a_algebra::c64;
use t4a_structured::Sector;

use crate::sites::LocalMatrix;

/// Entries that differ by less are equal. Operators are scaled to a largest entry of 1.
const EQUAL: f64 = 1e-13;
/// Components of this size outside of the span of the others make an operator independent of them.
const INDEPENDENT: f64 = 1e-10;

/// The operators that occur at one kind of site. Number 0 is the identity.
#[derive(Clone, Debug)]
pub(crate) struct Symbols<S> {
    /// Scaled so that their first largest entry is 1.
    pub(crate) matrices: Vec<(S, LocalMatrix)>,
    /// Linearly independent ones, by number.
    pub(crate) basis: Vec<u32>,
    /// Each operator as a combination of the basis.
    pub(crate) combinations: Vec<Combination>,
}

impl<S: Sector> Symbols<S> {
    pub(crate) fn new(n: usize) -> Self {
        let mut symbols =
            Self { matrices: Vec::new(), basis: Vec::new(), combinations: Vec::new() };
        symbols.intern(S::TRIVIAL, &LocalMatrix::identity(n));
        symbols
    }

    /// The number of an operator of this charge, and its factor; `None` for zero.
    pub(crate) fn intern(&mut self, charge: S, x: &LocalMatrix) -> Option<(u32, c64)> {
        let largest = x.largest();
        // The first entry of nearly the largest modulus, whatever rounding does.
        let lead = x.entries.iter().find(|x| x.norm() >= 0.999_999 * largest).copied();
        let lead = lead.filter(|_| largest > 0.0)?;
        let scaled = x.scale(lead.inv());
        let equal = |(other, y): &(S, LocalMatrix)| {
            *other == charge
                && y.entries.iter().zip(&scaled.entries).all(|(a, b)| (a - b).norm() < EQUAL)
        };
        let number = self.matrices.iter().position(equal).unwrap_or_else(|| {
            self.matrices.push((charge, scaled));
            self.express();
            self.matrices.len() - 1
        });
        Some((number as u32, lead))
    }

    /// The last operator as a combination of those of the basis, or a new one of it.
    fn express(&mut self) {
        let last = (self.matrices.len() - 1) as u32;
        let (charge, x) = &self.matrices[last as usize];
        let mut directions: Vec<Direction> = Vec::new();
        for (place, &number) in self.basis.iter().enumerate() {
            let (other, y) = &self.matrices[number as usize];
            if other != charge {
                continue;
            }
            let (rest, own) = project(&y.entries, &directions);
            let norm = rest.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            let combination = own.iter().map(|&(k, c)| (k, -c / norm));
            directions.push(Direction {
                entries: rest.iter().map(|x| x / norm).collect(),
                combination: combination.chain([(place as u32, (1.0 / norm).into())]).collect(),
            });
        }
        let (rest, own) = project(&x.entries, &directions);
        if rest.iter().any(|x| x.norm() > INDEPENDENT) {
            self.basis.push(last);
            self.combinations.push(vec![((self.basis.len() - 1) as u32, c64::ONE)]);
            return;
        }
        let mut sums = vec![c64::ZERO; self.basis.len()];
        own.iter().for_each(|&(k, c)| sums[k as usize] += c);
        let all = sums.into_iter().enumerate().filter(|(_, c)| c.norm() > EQUAL);
        self.combinations.push(all.map(|(k, c)| (k as u32, c)).collect());
    }

    /// An operator of the basis.
    pub(crate) fn basis(&self, place: u32) -> &(S, LocalMatrix) {
        &self.matrices[self.basis[place as usize] as usize]
    }
}

/// A direction of the span of the basis, of norm 1, as a combination of the basis.
struct Direction {
    entries: Vec<c64>,
    combination: Combination,
}

/// Places in the basis and coefficients.
type Combination = Vec<(u32, c64)>;

/// The component orthogonal to all directions, and the rest as a combination of the basis (Gram–Schmidt, twice).
fn project(x: &[c64], directions: &[Direction]) -> (Vec<c64>, Combination) {
    let (mut rest, mut own) = (x.to_vec(), Vec::new());
    for _ in 0..2 {
        for Direction { entries, combination } in directions {
            let overlap: c64 = entries.iter().zip(&rest).map(|(a, b)| a.conj() * b).sum();
            rest.iter_mut().zip(entries).for_each(|(r, d)| *r -= overlap * d);
            own.extend(combination.iter().map(|&(k, c)| (k, c * overlap)));
        }
    }
    (rest, own)
}
