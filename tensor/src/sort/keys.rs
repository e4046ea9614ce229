//! Elements as unsigned words whose order is that of the elements.

use crate::dtypes;
use crate::scalars::*;

mod sealed {
    /// Keeps [`Word`](super::Word) to types whose digits are known to be below 256.
    pub trait Sealed {}
}
use sealed::Sealed;

/// Unsigned words that can be sorted by their digits.
pub trait Word: Sealed + Copy + Default + Ord + Send + Sync + 'static {
    /// Width.
    const BITS: u32;
    /// The eight bits from `shift` on.
    fn digit(self, shift: u32) -> usize;
}

/// A key, and the wider word in which an index is carried along below it.
pub trait Key: Word {
    /// Key above, index below: orders by key, then by index.
    type Tagged: Word;
    /// Lowest bit of the key in the tagged word.
    const SHIFT: u32;
    /// The key with all bits complemented, if `flip`: reverses the order.
    fn flip(self, flip: bool) -> Self;
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
        impl Word for $t {
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
        impl Key for $t {
            type Tagged = $tagged;
            const SHIFT: u32 = $shift;
            #[inline(always)]
            fn flip(self, flip: bool) -> Self {
                if flip { !self } else { self }
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
    type Word: Key;
}

/// Stands for words by their size.
pub enum BySize {}

macro_rules! word_of {
    ($($t:ident)*) => {$(
        impl WordOf<{ size_of::<$t>() }> for BySize {
            type Word = $t;
        }
    )*};
}
word_of!(u8 u16 u32 u64);

/// Elements with a total order. The sorts rely on keys of the size and alignment of the elements, so
/// the trait is implemented for rows of the table of dtypes only.
///
/// Floats are ordered by IEEE 754 `totalOrder`: −NaN < −∞ < … < −0 < +0 < … < +∞ < +NaN, where the
/// sign is the bit in memory. It agrees with `<` on numbers other than zeros.
pub trait SortKey: crate::Element {
    /// Words in the same order.
    type Key: Key;
    /// The word of an element.
    fn to_key(self) -> Self::Key;
    /// The element of a word.
    fn from_key(key: Self::Key) -> Self;
}

macro_rules! sort_key {
    ({ $x:ident => $to_key:expr, $key:ident => $from_key:expr } $($tag:ident $t:ident,)*) => {$(
        impl SortKey for $t {
            type Key = <BySize as WordOf<{ size_of::<$t>() }>>::Word;
            #[inline(always)]
            fn to_key(self) -> Self::Key {
                /// The same number of bits.
                #[allow(dead_code)]
                type Bits = <$t as SortKey>::Key;
                let $x = self;
                $to_key
            }
            #[inline(always)]
            fn from_key($key: Self::Key) -> Self {
                #[allow(dead_code)]
                type Bits = <$t as SortKey>::Key;
                $from_key
            }
        }
    )*};
}

/// The highest bit of a word.
#[inline(always)]
const fn top<K: Key>() -> u32 {
    K::BITS - 1
}

dtypes!([unsigned] => [sort_key] { x => x, key => key });
dtypes!([truth] => [sort_key] { x => x.into(), key => key != 0 });
dtypes!([signed] => [sort_key] {
    x => x as Bits ^ (1 << top::<Bits>()),
    key => (key ^ (1 << top::<Bits>())) as Self
});
// Positive floats are ordered like their bits and negative ones in reverse: flip the sign bit of the
// former and all bits of the latter.
dtypes!(float => [sort_key] {
    x => {
        let bits = x.to_bits();
        let negative = (bits >> top::<Bits>()).wrapping_neg();
        bits ^ (negative | 1 << top::<Bits>())
    },
    key => {
        let positive = (key >> top::<Bits>()).wrapping_neg();
        Self::from_bits(key ^ (!positive | 1 << top::<Bits>()))
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_total_order_and_come_back() {
        let floats =
            [-f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-40, 2.0, f32::INFINITY, f32::NAN];
        for pair in floats.windows(2) {
            assert!(pair[0].to_key() < pair[1].to_key(), "{pair:?}");
        }
        for f in floats {
            assert_eq!(f32::from_key(f.to_key()).to_bits(), f.to_bits());
            assert_eq!(f64::from_key((f as f64).to_key()).to_bits(), (f as f64).to_bits());
        }
        for bits in 0..=u16::MAX {
            let h = f16::from_bits(bits);
            assert_eq!(f16::from_key(h.to_key()).to_bits(), bits);
            let next = f16::from_key(h.to_key().wrapping_add(1));
            assert!(h.to_key() == u16::MAX || h.total_cmp(&next).is_lt());
        }
        assert!(i8::MIN.to_key() < (-1i8).to_key() && (-1i8).to_key() < 0i8.to_key());
        assert_eq!(i64::from_key(i64::MIN.to_key()), i64::MIN);
        let tagged = 7u64.flip(true).tag(3);
        assert_eq!((u64::of(tagged).flip(true), u64::index(tagged)), (7, 3));
    }
}
