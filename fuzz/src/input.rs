//! Interpretation of fuzzer bytes as choices.

/// Sizes that overflow, or nearly overflow, some integer computation.
pub(crate) const ABSURD: [usize; 16] = [
    64,
    1000,
    1 << 16,
    (1 << 31) - 1,
    1 << 32,
    (1 << 40) - 1,
    1 << 46,
    1 << 47,
    1 << 48,
    (1 << 48) + 1,
    49477,
    93208683194765,
    1 << 61,
    1 << 62,
    1 << 63,
    usize::MAX,
];

/// Reader of choices; returns zeros after the end of the bytes.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Creates a reader of the choices of one case.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// True if all bytes are consumed.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    /// A number in `0..n`; `n` must be positive.
    pub fn below(&mut self, n: usize) -> usize {
        self.byte() as usize % n
    }

    /// True with probability about `1/n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of the given elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A 64-bit word from eight bytes.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A size: below 8, up to 64, or extreme.
    pub fn size(&mut self) -> usize {
        match self.byte() {
            byte @ 0..192 => byte as usize % 8,
            byte @ 192..224 => 2 * (byte as usize - 191),
            byte @ 224..254 => ABSURD[byte as usize % 16],
            _ => self.word() as usize,
        }
    }

    /// A step of either sign, occasionally 0.
    pub fn step(&mut self) -> isize {
        let size = self.size() as isize;
        if self.once_in(3) { size.wrapping_neg() } else { size }
    }

    /// A shape with at most `rank` axes and few elements.
    pub fn small_shape(&mut self, rank: usize) -> Vec<usize> {
        let rank = self.below(rank + 1);
        (0..rank).map(|_| self.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 9])).collect()
    }
}

/// Pseudo-random numbers (Marsaglia 2003, xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 40 pseudo-random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 24
    }

    /// One of the given elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.bits() as usize % from.len()]
    }

    /// Bytes of a case, for use without a fuzzer.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.bits() as u8).collect()
    }
}
