//! Bytes as choices.

/// Sizes that overflow something, or nearly.
const ABSURD: [usize; 16] = [
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

/// Reads choices; zeros when the bytes have ended.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All choices of a case.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether there is nothing left to choose from.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    /// One of `n > 0` choices.
    pub fn below(&mut self, n: usize) -> usize {
        self.byte() as usize % n
    }

    /// Whether, once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of the elements.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Eight bytes.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    /// A size: below 8, up to 64, or absurd.
    pub fn size(&mut self) -> usize {
        match self.byte() {
            byte @ 0..192 => byte as usize % 8,
            byte @ 192..224 => 2 * (byte as usize - 191),
            byte @ 224..254 => ABSURD[byte as usize % 16],
            _ => self.word() as usize,
        }
    }

    /// A step of either sign, 0 now and then.
    pub fn step(&mut self) -> isize {
        let size = self.size() as isize;
        if self.once_in(3) { size.wrapping_neg() } else { size }
    }

    /// A shape of up to `rank` axes with few elements.
    pub fn small_shape(&mut self, rank: usize) -> Vec<usize> {
        let rank = self.below(rank + 1);
        (0..rank).map(|_| self.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 9])).collect()
    }
}
