//! Which kernel computed a product: said by the kernel, not guessed from its operands.

/// The ways to compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Nothing was computed: C has no elements.
    Nothing,
    /// By the library for f32, f64, c32 and c64.
    Library,
    /// By the blocked driver over any semiring.
    Blocked,
    /// By loops without packing.
    Small,
    /// As a product of exponentials, log-sum-exp.
    Exponentials,
    /// By a kernel from outside of this crate.
    Custom,
}

impl Algorithm {
    /// All of them, by their discriminants.
    pub(super) const ALL: [Self; 6] = [
        Self::Nothing,
        Self::Library,
        Self::Blocked,
        Self::Small,
        Self::Exponentials,
        Self::Custom,
    ];
}

const _: () = {
    let mut i = 0;
    while i < Algorithm::ALL.len() {
        assert!(Algorithm::ALL[i] as usize == i);
        i += 1;
    }
};

/// What a product did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// The way taken. Where blocks of one product go different ways, that of its first block.
    pub algorithm: Algorithm,
    /// Whether sums were taken in a wider type than the elements', [`Numeric::Acc`](crate::Numeric).
    pub promoted: bool,
}

impl Report {
    /// A product in the type of its elements.
    #[inline]
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, promoted: false }
    }
}
