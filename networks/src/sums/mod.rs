//! Sums of products of operators, and their matrix product operators of the smallest bond dimension.
//!
//! ```text
//! mod        the sum
//! strings    a term as operators of one charge per site, Jordan–Wigner strings included
//! symbols    operators of one kind of site up to factors, and a basis of them
//! rank       factors of a sparse matrix of the smallest rank
//! compress   sweeps over the bonds, to the right and back
//! assemble   graded tensors
//! lattice    bonds of two-dimensional lattices along a path
//! ```
//!
//! At each bond the sum is a matrix of coefficients between operators on the left and operators on the right. The bond
//! dimension is its rank, which is found by elimination without fill-in where a row or a column decides, and by
//! elimination with full pivoting where not: coefficients that decay as a sum of k exponentials need k states.
//!
//! References: J. Ren, W. Li, T. Jiang, Z. Shuai, *A general automatic method for optimal construction of matrix product
//! operators using bipartite graph theory* (2020); C. Hubig, I. McCulloch, U. Schollwöck, *Generic construction of
//! efficient matrix product operators* (2017).

mod assemble;
mod compress;
pub mod lattice;
mod rank;
pub(crate) mod strings;
mod symbols;

use t4a_algebra::c64;
use t4a_structured::Sector;

use crate::error::{NetworksError, Result};
use crate::mpo::Mpo;
use crate::sites::Sites;

pub(crate) const OP: &str = "operator sum";

/// A sum of products of operators of the sites of a chain.
///
/// A term has any number of operators in any order, also several of one site; they act from right to left. Signs of
/// fermions follow from the order. Operators without a charge of their own (`Sx` where Sᶻ is conserved) are split into
/// parts; parts of the sum that violate the charge have to cancel.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::Sum;
/// let sites = Sites::uniform(spin_half(), 10);
/// let mut h = Sum::new(&sites);
/// for i in 0..9 {
///     h.add(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(0.5, [("S-", i), ("S+", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let h = h.mpo()?;
/// assert_eq!(h.bond_dims(), [4, 5, 5, 5, 5, 5, 5, 5, 4]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sum<S> {
    pub(crate) sites: Sites<S>,
    pub(crate) terms: Vec<Term>,
    pub(crate) charge: Option<S>,
}

#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) coefficient: c64,
    pub(crate) factors: Vec<(String, usize)>,
    /// True for the adjoint of the product.
    pub(crate) adjoint: bool,
}

impl Term {
    pub(crate) fn text(&self) -> String {
        let factors = self.factors.iter().map(|(name, site)| format!("{name}({site})"));
        let text = factors.collect::<Vec<_>>().join(" ");
        if self.adjoint { format!("adjoint of {text}") } else { text }
    }
}

impl<S: Sector> Sum<S> {
    /// The sum without a term.
    pub fn new(sites: &Sites<S>) -> Self {
        Self { sites: sites.clone(), terms: Vec::new(), charge: None }
    }

    /// Adds `coefficient` times a product of operators, which are names and sites. Names, sites and charges are
    /// checked by [`Sum::mpo`].
    pub fn add<'a>(
        &mut self,
        coefficient: impl Into<c64>,
        factors: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> &mut Self {
        let factors = factors.into_iter().map(|(name, site)| (name.to_owned(), site)).collect();
        self.terms.push(Term { coefficient: coefficient.into(), factors, adjoint: false });
        self
    }

    /// As [`Sum::add`], and the adjoint of the term.
    pub fn add_with_adjoint<'a>(
        &mut self,
        coefficient: impl Into<c64>,
        factors: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> &mut Self {
        self.add(coefficient, factors);
        if let Some(last) = self.terms.last().cloned() {
            let coefficient = last.coefficient.conj();
            self.terms.push(Term { coefficient, adjoint: true, ..last });
        }
        self
    }

    /// Adds `coefficient · λ^(j − i) Aᵢ Bⱼ` for all i < j: one state of a bond for each such interaction.
    pub fn add_exponential(
        &mut self,
        coefficient: impl Into<c64>,
        decay: f64,
        [a, b]: [&str; 2],
    ) -> &mut Self {
        let coefficient = coefficient.into();
        for i in 0..self.sites.len() {
            for j in i + 1..self.sites.len() {
                let factor = decay.powi((j - i) as i32);
                // Beyond double precision of the nearest pair.
                if factor.abs() < 1e-18 * decay.abs() {
                    break;
                }
                self.add(coefficient * factor, [(a, i), (b, j)]);
            }
        }
        self
    }

    /// The charge that every term adds, and that the operator has; terms may then be odd in fermions. Without it, terms
    /// conserve the charge and are even.
    pub fn with_charge(&mut self, charge: S) -> &mut Self {
        self.charge = Some(charge);
        self
    }

    /// The sites of the chain.
    pub fn sites(&self) -> &Sites<S> {
        &self.sites
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// True if there is no term.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The matrix product operator of the sum, of the smallest bond dimension at each bond. Coefficients
    /// that rounding makes of linearly dependent ones, below 10⁻¹³ of those beside them, are left out.
    ///
    /// Cost: (terms) × (sites), and eliminations of matrices of coefficients that no row or column decides.
    ///
    /// # Errors
    /// `UnknownOperator`, `SiteOutOfRange`; `Charge` or `Parity` for a term of another one than the rest;
    /// `Argument` for a coefficient that is not finite; `TooLarge`.
    pub fn mpo(&self) -> Result<Mpo<S>> {
        self.sites.check(OP)?;
        let charge = self.charge.unwrap_or(S::TRIVIAL);
        let strings = strings::Strings::new(self, charge, self.charge.is_some())?;
        let mut chain = compress::to_right(&self.sites, &strings, charge)?;
        compress::to_left(&mut chain);
        assemble::mpo(&self.sites, &strings, &chain)
    }
}

impl Term {
    fn check_finite(&self) -> Result<()> {
        if self.coefficient.is_finite() {
            return Ok(());
        }
        let (name, given) = ("a coefficient", format!("{} of {}", self.coefficient, self.text()));
        Err(NetworksError::Argument { op: OP, name, given, required: "a finite number" })
    }
}
