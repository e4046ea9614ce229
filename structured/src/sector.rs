//! Sectors: labels of the irreducible representations of an abelian symmetry, the quantum numbers by which
//! the values of an index are grouped.
//!
//! Sectors form a group under fusion. Fermionic sectors have a parity, a homomorphism to Z₂: the fusion of two odd
//! sectors is even.

use std::fmt::{Debug, Display, Formatter, Result};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// Quantum number of an abelian symmetry.
pub trait Sector: Copy + Ord + Hash + Debug + Display + Send + Sync + 'static {
    /// Neutral element.
    const TRIVIAL: Self;
    /// True if some sectors are odd.
    const FERMIONIC: bool;

    /// Fusion product; `None` on overflow of the charge type.
    fn fuse(self, other: Self) -> Option<Self>;

    /// Inverse; `None` on overflow of the charge type.
    fn dual(self) -> Option<Self>;

    /// True if the exchange of two states of this sector changes the sign.
    fn is_odd(self) -> bool;

    /// Name of the symmetry in serialised data; data with another name is rejected.
    fn symmetry() -> String {
        std::any::type_name::<Self>().into()
    }

    /// True for elements of the group; deserialised data may contain other values.
    fn is_valid(self) -> bool {
        true
    }
}

/// Trivial symmetry with one sector.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Trivial;

impl Sector for Trivial {
    const TRIVIAL: Self = Self;
    const FERMIONIC: bool = false;

    fn symmetry() -> String {
        "trivial".into()
    }
    fn fuse(self, _: Self) -> Option<Self> {
        Some(self)
    }
    fn dual(self) -> Option<Self> {
        Some(self)
    }
    fn is_odd(self) -> bool {
        false
    }
}

impl Display for Trivial {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("0")
    }
}

/// Integers modulo `N`, from 0 to N − 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Zn<const N: u32>(u32);

/// Parity of bosonic (commuting) states.
pub type Z2 = Zn<2>;

impl<const N: u32> Zn<N> {
    /// Residue of an integer modulo N.
    ///
    /// ```
    /// use t4a_structured::Zn;
    /// assert_eq!(Zn::<3>::new(-1), Zn::<3>::new(2));
    /// ```
    pub const fn new(charge: i64) -> Self {
        const { assert!(N > 0, "the order of a group is positive") };
        Self(charge.rem_euclid(N as i64) as u32)
    }

    /// Representative from 0 to N − 1.
    pub const fn charge(self) -> u32 {
        self.0
    }
}

impl<const N: u32> Sector for Zn<N> {
    const TRIVIAL: Self = Self(0);
    const FERMIONIC: bool = false;

    fn symmetry() -> String {
        format!("Z{N}")
    }
    fn fuse(self, other: Self) -> Option<Self> {
        Some(Self::new(i64::from(self.0) + i64::from(other.0)))
    }
    fn dual(self) -> Option<Self> {
        Some(Self::new(-i64::from(self.0)))
    }
    fn is_odd(self) -> bool {
        false
    }
    fn is_valid(self) -> bool {
        self.0 < N
    }
}

impl<const N: u32> Display for Zn<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Display::fmt(&self.0, f)
    }
}

/// Conserved integer, such as a particle number or twice the magnetisation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct U1(pub i32);

impl Sector for U1 {
    const TRIVIAL: Self = Self(0);
    const FERMIONIC: bool = false;

    fn symmetry() -> String {
        "U1".into()
    }
    fn fuse(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
    fn dual(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }
    fn is_odd(self) -> bool {
        false
    }
}

impl Display for U1 {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Display::fmt(&self.0, f)
    }
}

/// Parity of a number of fermions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FermionParity(pub bool);

impl Sector for FermionParity {
    const TRIVIAL: Self = Self(false);
    const FERMIONIC: bool = true;

    fn symmetry() -> String {
        "fermion parity".into()
    }
    fn fuse(self, other: Self) -> Option<Self> {
        Some(Self(self.0 != other.0))
    }
    fn dual(self) -> Option<Self> {
        Some(self)
    }
    fn is_odd(self) -> bool {
        self.0
    }
}

impl Display for FermionParity {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.0 { "odd" } else { "even" })
    }
}

/// Conserved number of fermions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FermionNumber(pub i32);

impl Sector for FermionNumber {
    const TRIVIAL: Self = Self(0);
    const FERMIONIC: bool = true;

    fn symmetry() -> String {
        "fermion number".into()
    }
    fn fuse(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
    fn dual(self) -> Option<Self> {
        self.0.checked_neg().map(Self)
    }
    fn is_odd(self) -> bool {
        self.0 % 2 != 0
    }
}

impl Display for FermionNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Display::fmt(&self.0, f)
    }
}

/// Product of two symmetries, ordered by the first; more by nesting.
impl<A: Sector, B: Sector> Sector for Product<A, B> {
    const TRIVIAL: Self = Self(A::TRIVIAL, B::TRIVIAL);
    const FERMIONIC: bool = A::FERMIONIC || B::FERMIONIC;

    fn symmetry() -> String {
        format!("({} x {})", A::symmetry(), B::symmetry())
    }
    fn fuse(self, other: Self) -> Option<Self> {
        Some(Self(self.0.fuse(other.0)?, self.1.fuse(other.1)?))
    }
    fn dual(self) -> Option<Self> {
        Some(Self(self.0.dual()?, self.1.dual()?))
    }
    fn is_odd(self) -> bool {
        self.0.is_odd() != self.1.is_odd()
    }
    fn is_valid(self) -> bool {
        self.0.is_valid() && self.1.is_valid()
    }
}

/// Sector of a product of two symmetries.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Product<A, B>(pub A, pub B);

impl<A: Display, B: Display> Display for Product<A, B> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{},{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the group axioms and the homomorphism of parity on all triples.
    fn group<S: Sector>(elements: &[S]) {
        for &a in elements {
            assert!(a.is_valid());
            assert_eq!(a.fuse(S::TRIVIAL), Some(a));
            assert_eq!(a.fuse(a.dual().unwrap()), Some(S::TRIVIAL));
            assert_eq!(a.dual().unwrap().dual(), Some(a));
            for &b in elements {
                let ab = a.fuse(b).unwrap();
                assert_eq!(Some(ab), b.fuse(a));
                assert_eq!(ab.is_odd(), a.is_odd() != b.is_odd());
                assert!(S::FERMIONIC || !ab.is_odd());
                for &c in elements {
                    assert_eq!(ab.fuse(c), a.fuse(b.fuse(c).unwrap()));
                }
            }
        }
    }

    #[test]
    fn sectors_form_groups() {
        group(&[Trivial]);
        group(&[0, 1].map(Z2::new));
        group(&[0, 1, 2, 3, 4].map(Zn::<5>::new));
        group(&[-3, -1, 0, 2, 7].map(U1));
        group(&[false, true].map(FermionParity));
        group(&[-2, -1, 0, 1, 3].map(FermionNumber));
        let both = |n: i32| Product(FermionNumber(n), Product(U1(n - 1), Zn::<3>::new(n.into())));
        group(&[both(-2), both(0), both(1), Product::TRIVIAL]);
        let pair = |a, b| Product(FermionParity(a), FermionParity(b));
        group(&[pair(false, false), pair(false, true), pair(true, false), pair(true, true)]);
    }

    #[test]
    fn residues_are_not_negative() {
        assert_eq!(Zn::<3>::new(-1).charge(), 2);
        assert_eq!(Zn::<1>::new(7), Zn::TRIVIAL);
        assert_eq!(Zn::<{ u32::MAX }>::new(-1).charge(), u32::MAX - 1);
        let last = Zn::<{ u32::MAX }>::new(-1);
        assert_eq!(last.fuse(last).unwrap().charge(), u32::MAX - 2);
    }

    #[test]
    fn charges_do_not_wrap() {
        assert_eq!(U1(i32::MAX).fuse(U1(1)), None);
        assert_eq!(U1(i32::MIN).dual(), None);
        assert_eq!(FermionNumber(i32::MIN).fuse(FermionNumber(-1)), None);
        assert_eq!(Product(U1(i32::MIN), Trivial).dual(), None);
    }
}
