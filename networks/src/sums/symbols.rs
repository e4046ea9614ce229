//! Operators of one kind of site, of one charge each, up to factors.

use t4a_algebra::c64;
use t4a_structured::Sector;

use crate::sites::LocalMatrix;

/// Entries that differ by less are equal. Operators are scaled to a largest entry of 1.
const EQUAL: f64 = 1e-13;

/// The operators that occur at one kind of site. Number 0 is the identity.
#[derive(Clone, Debug)]
pub(crate) struct Symbols<S> {
    /// Scaled so that their first largest entry is 1.
    pub(crate) matrices: Vec<(S, LocalMatrix)>,
    /// Linearly independent ones, by number.
    pub(crate) basis: Vec<u32>,
    /// Each operator as a combination of the basis.
    pub(crate) combinations: Vec<Vec<(u32, c64)>>,
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
        // Gram–Schmidt over the basis of the same charge, with the combinations of each direction.
        let mut directions: Vec<(Vec<c64>, Vec<(u32, c64)>)> = Vec::new();
        let project = |x: &[c64],
                       own: &mut Vec<(u32, c64)>,
                       directions: &[(Vec<c64>, Vec<(u32, c64)>)]| {
            let mut rest = x.to_vec();
            for _ in 0..2 {
                for (direction, combination) in directions {
                    let overlap: c64 = direction.iter().zip(&rest).map(|(a, b)| a.conj() * b).sum();
                    rest.iter_mut().zip(direction).for_each(|(r, d)| *r -= overlap * d);
                    own.extend(combination.iter().map(|&(k, c)| (k, c * overlap)));
                }
            }
            rest
        };
        for (place, &number) in self.basis.iter().enumerate() {
            let (other, y) = &self.matrices[number as usize];
            if other != charge {
                continue;
            }
            let mut own = Vec::new();
            let rest = project(&y.entries, &mut own, &directions);
            let norm = rest.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            let combination = own.iter().map(|&(k, c)| (k, -c / norm));
            let combination = combination.chain([(place as u32, c64::from(1.0 / norm))]).collect();
            directions.push((rest.iter().map(|x| x / norm).collect(), combination));
        }
        let mut own = Vec::new();
        let rest = project(&x.entries, &mut own, &directions);
        if rest.iter().any(|x| x.norm() > 1e-10) {
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
