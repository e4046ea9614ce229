//! Algorithm that computed a product, reported by the kernel.

/// Algorithms for a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// No computation: C has no elements.
    Nothing,
    /// The library for f32, f64, c32 and c64.
    Library,
    /// The blocked driver over any semiring.
    Blocked,
    /// Loops without packing.
    Small,
    /// Log-sum-exp as a product of exponentials.
    Exponentials,
    /// A user-defined kernel.
    Custom,
}

impl Algorithm {
    /// All algorithms, in the order of their discriminants.
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

/// Properties of an executed product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// The algorithm. If blocks of one product use different ones, that of its first block.
    pub algorithm: Algorithm,
    /// True if sums were accumulated in a wider type than the elements', [`Numeric::Acc`](crate::Numeric).
    pub promoted: bool,
}

impl Report {
    /// A product accumulated in the type of its elements.
    #[inline]
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, promoted: false }
    }
}
