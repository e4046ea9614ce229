//! Order-preserving conversion of elements to unsigned words.
//!
//! For signed integers and floats the order differs from that of their bits by two masks, [`Order`], so that sorts are
//! compiled once per width.

use std::ops::{BitAnd, BitXor};

use t4a_algebra::Scalar;

use crate::dtypes;
use crate::scalars::*;

mod sealed {
    /// Restricts [`RadixWord`](super::RadixWord) to types whose digits are below 256.
    pub trait Sealed {}
}
use sealed::Sealed;

/// Unsigned words that can be sorted by their digits.
pub trait RadixWord: Sealed + Copy + Default + Ord + Send + Sync + 'static {
    /// Width.
    const BITS: u32;
    /// The eight bits from `shift` on.
    fn digit(self, shift: u32) -> usize;
}

/// A key, and a wider word that holds an index in its low bits.
pub trait RadixKey: RadixWord + Scalar + BitXor<Output = Self> + BitAnd<Output = Self> {
    /// Key above, index below: orders by key, then by index.
    type Tagged: RadixWord;
    /// Lowest bit of the key in the tagged word.
    const SHIFT: u32;
    /// All bits set.
    const ONES: Self;
    /// The highest bit set.
    const TOP: Self;
    /// No bit set.
    const NONE: Self;
    /// All bits set if the highest one is, else none.
    fn sign(self) -> Self;
    /// `self + rhs`, wrapping.
    fn plus(self, rhs: Self) -> Self;
    /// `self − rhs`, wrapping.
    fn minus(self, rhs: Self) -> Self;
    /// Joins key and index; `index < 2³²`.
    fn tag(self, index: usize) -> Self::Tagged;
    /// The key.
    fn of(tagged: Self::Tagged) -> Self;
    /// The index.
    fn index(tagged: Self::Tagged) -> usize;
}

macro_rules! words {
    ($($t:ident)*) => {$(
        impl Sealed for $t {}
        impl RadixWord for $t {
            const BITS: u32 = $t::BITS;
            #[inline(always)]
            fn digit(self, shift: u32) -> usize {
                (self >> shift) as usize & 255
            }
        }
    )*};
}

words!(u8 u16 u32 u64 u128);

macro_rules! keys {
    ($($t:ident in $tagged:ident at $shift:literal),*) => {$(
        impl RadixKey for $t {
            type Tagged = $tagged;
            const SHIFT: u32 = $shift;
            const ONES: Self = $t::MAX;
            const TOP: Self = 1 << ($t::BITS - 1);
            const NONE: Self = 0;
            #[inline(always)]
            fn sign(self) -> Self {
                (self >> ($t::BITS - 1)).wrapping_neg()
            }
            #[inline(always)]
            fn plus(self, rhs: Self) -> Self {
                self.wrapping_add(rhs)
            }
            #[inline(always)]
            fn minus(self, rhs: Self) -> Self {
                self.wrapping_sub(rhs)
            }
            #[inline(always)]
            fn tag(self, index: usize) -> $tagged {
                $tagged::from(self) << $shift | index as $tagged
            }
            #[inline(always)]
            fn of(tagged: $tagged) -> Self {
                (tagged >> $shift) as $t
            }
            #[inline(always)]
            fn index(tagged: $tagged) -> usize {
                (tagged & 0xffff_ffff) as usize
            }
        }
    )*};
}

keys!(u8 in u64 at 32, u16 in u64 at 32, u32 in u64 at 32, u64 in u128 at 64);

/// The unsigned word of `N` bytes.
pub trait WordOf<const N: usize> {
    /// The word.
    type Word: RadixKey;
}

/// Maps a size to the unsigned integer of that size.
pub enum BySize {}

macro_rules! word_of {
    ($($t:ident)*) => {$(
        impl WordOf<{ size_of::<$t>() }> for BySize {
            type Word = $t;
        }
    )*};
}
word_of!(u8 u16 u32 u64);

/// The order of elements of one width: the bits of a word that are complemented to obtain its key.
#[derive(Clone, Copy, Debug)]
pub struct Order<K> {
    /// Of every word.
    all: K,
    /// Additional mask for words whose highest bit is set; it excludes the highest bit.
    negative: K,
    /// Number of smallest keys that become the largest: those of NaN with the sign set.
    nan: K,
    /// Of every key, to reverse the order.
    reverse: K,
    /// The word of −0; for integers that of 0.
    negative_zero: K,
}

impl<K: RadixKey> Order<K> {
    /// The order, or its reverse.
    #[inline]
    pub fn reversed(self, reversed: bool) -> Self {
        if reversed { Self { reverse: self.reverse ^ K::ONES, ..self } } else { self }
    }

    /// The key of a word.
    #[inline(always)]
    pub fn key(self, word: K) -> K {
        (word ^ (word.sign() & self.negative) ^ self.all).minus(self.nan) ^ self.reverse
    }

    /// The key of a word for stable sorts, in which −0 has the key of +0.
    #[inline(always)]
    pub fn stable_key(self, word: K) -> K {
        self.key(if word == self.negative_zero { K::NONE } else { word })
    }

    /// The word of a stable key, given its index in the row.
    #[inline(always)]
    pub fn element(self, tagged: K::Tagged, row: &[K]) -> K {
        match self.word(K::of(tagged)) {
            word if word == K::NONE => row[K::index(tagged)],
            word => word,
        }
    }

    /// The word of a key.
    #[inline(always)]
    pub fn word(self, key: K) -> K {
        let word = (key ^ self.reverse).plus(self.nan) ^ self.all;
        word ^ (word.sign() & self.negative)
    }
}

/// Elements with a total order. The sorts reinterpret elements as words of their size and alignment, so the trait is
/// implemented for rows of the dtype table only.
///
/// Floats are ordered by IEEE 754 `totalOrder`, except that NaN with the sign set (0/0 of x86) is the largest: −∞ < … <
/// −0 < +0 < … < +∞ < +NaN < −NaN. This agrees with `<` on numbers other than zeros, and every NaN is greater than
/// every number. In sorts with indices, zeros are equal.
pub trait SortKey: crate::Element {
    /// Words of the same size.
    type Key: RadixKey;
    /// Order of the words of elements.
    const ORDER: Order<Self::Key>;
}

macro_rules! sort_key {
    ({ $key:ident, $float:ident => $all:expr, $negative:expr, $nan:expr, $zero:expr } $($tag:ident $t:ident,)*) => {$(
        impl SortKey for $t {
            type Key = <BySize as WordOf<{ size_of::<$t>() }>>::Word;
            const ORDER: Order<Self::Key> = {
                /// Words of this size.
                type $key = <$t as SortKey>::Key;
                /// The element.
                #[allow(dead_code)]
                type $float = $t;
                Order {
                    all: $all,
                    negative: $negative,
                    nan: $nan,
                    reverse: $key::NONE,
                    negative_zero: $zero,
                }
            };
        }
    )*};
}

dtypes!([unsigned truth] => [sort_key] { K, T => K::NONE, K::NONE, K::NONE, K::NONE });
dtypes!([signed] => [sort_key] { K, T => K::TOP, K::NONE, K::NONE, K::NONE });
// Positive floats are ordered like their bits and negative ones in reverse.
dtypes!(float => [sort_key] { K, T => K::TOP, K::ONES >> 1, (K::ONES >> 1) - T::INFINITY.to_bits(), K::TOP });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_total_order_and_come_back() {
        let floats =
            [f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-40, 2.0, f32::INFINITY, f32::NAN, -f32::NAN];
        for reversed in [false, true] {
            let single = f32::ORDER.reversed(reversed);
            for pair in floats.windows(2) {
                let [a, b] = [pair[0], pair[1]].map(|f| single.key(f.to_bits()));
                assert!(if reversed { a > b } else { a < b }, "{pair:?}");
            }
            let double = f64::ORDER.reversed(reversed);
            for f in floats {
                assert_eq!(single.word(single.key(f.to_bits())), f.to_bits());
                let bits = (f as f64).to_bits();
                assert_eq!(double.word(double.key(bits)), bits);
            }
        }
        for bits in 0..=u16::MAX {
            let order = f16::ORDER;
            let key = order.key(bits);
            assert_eq!(order.word(key), bits);
            let next = f16::from_bits(order.word(key.wrapping_add(1)));
            let value = f16::from_bits(bits);
            let sign = |x: f16| x.is_nan() && x.is_sign_negative();
            let before = (sign(value).cmp(&sign(next))).then(value.total_cmp(&next));
            assert!(key == u16::MAX || before.is_lt());
        }
        let key = |x: i8| i8::ORDER.key(x as u8);
        assert!(key(i8::MIN) < key(-1) && key(-1) < key(0));
        assert_eq!(i64::ORDER.word(i64::ORDER.key(1 << 63)), 1 << 63);
        let tagged = 7u64.tag(3);
        assert_eq!((u64::of(tagged), u64::index(tagged)), (7, 3));
    }
}
