//! Philox4x32-10: 128 random bits as a function of a counter and a key.
//!
//! Ten rounds of two 32 × 32 → 64 bit products, no state: blocks can be computed in any order, so the numbers do not
//! depend on the partition of the work. Sixteen counters are vectorised.
//!
//! Reference: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).

/// Counters per group.
pub(super) const LANES: usize = 16;
/// The four words of sixteen blocks: `group[word][block]`.
pub(super) type PhiloxGroup = [[u32; LANES]; 4];

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Ten rounds on sixteen counters.
#[inline(always)]
pub(super) fn rounds(mut c: PhiloxGroup, mut key: [u32; 2]) -> PhiloxGroup {
    for _ in 0..10 {
        let mut next = [[0; LANES]; 4];
        for lane in 0..LANES {
            let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c[0][lane]);
            let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c[2][lane]);
            next[0][lane] = (p1 >> 32) as u32 ^ c[1][lane] ^ key[0];
            next[1][lane] = p1 as u32;
            next[2][lane] = (p0 >> 32) as u32 ^ c[3][lane] ^ key[1];
            next[3][lane] = p0 as u32;
        }
        c = next;
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    c
}

/// A stream of groups: the seed is the key, the stream the upper half of the counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhiloxStream {
    pub(super) seed: u64,
    pub(super) number: u64,
}

impl PhiloxStream {
    /// Group `index` of the stream: blocks `16·index` to `16·index + 15`.
    #[inline(always)]
    pub(super) fn group(self, index: u64) -> PhiloxGroup {
        let mut counter = [[0; LANES]; 4];
        for lane in 0..LANES {
            let block = index.wrapping_mul(LANES as u64).wrapping_add(lane as u64);
            counter[0][lane] = block as u32;
            counter[1][lane] = (block >> 32) as u32;
            counter[2][lane] = self.number as u32;
            counter[3][lane] = (self.number >> 32) as u32;
        }
        rounds(counter, [self.seed as u32, (self.seed >> 32) as u32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        // From the known-answer tests of the authors' library.
        let rows = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([!0; 4], [!0; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, want) in rows {
            let group = rounds(counter.map(|word: u32| [word; LANES]), key);
            for lane in 0..LANES {
                assert_eq!(group.map(|word| word[lane]), want);
            }
        }
    }

    #[test]
    fn lanes_are_neighbouring_blocks() {
        let stream = PhiloxStream { seed: 0, number: 0 };
        assert_eq!(
            stream.group(0).map(|word| word[0]),
            rounds([[0; LANES]; 4], [0; 2]).map(|w| w[0])
        );
        let far = PhiloxStream { seed: 1, number: 2 }.group(1 << 40);
        let block = (1u64 << 44) + 5;
        let counter = [block as u32, (block >> 32) as u32, 2, 0].map(|word| [word; LANES]);
        assert_eq!(far.map(|word| word[5]), rounds(counter, [1, 0]).map(|w| w[0]));
    }
}
