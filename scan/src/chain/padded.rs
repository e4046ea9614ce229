//! Lengths and tags of sequences in padded arrays `[batch, length]`.

use t4a_diff::Array;

use super::messages::{LinearChain, Result, rejected};

/// Length of each sequence, from a mask `[batch, length]` in row-major order that is true at the steps of a sequence.
/// Padding follows the sequence.
///
/// # Errors
/// `Tensor` for a sequence without steps, and for a step after padding, with the first place.
///
/// ```
/// use t4a_scan::mask_lengths;
///
/// // Two sequences of three steps at most.
/// let mask = [true, true, true, true, false, false];
/// assert_eq!(mask_lengths(&mask, 3)?, [3, 1]);
/// # Ok::<(), t4a_scan::ScanError>(())
/// ```
pub fn mask_lengths(mask: &[bool], length: usize) -> Result<Vec<usize>> {
    let of = |(b, mask): (usize, &[bool])| {
        let n = mask.iter().position(|&on| !on).unwrap_or(length);
        match mask[n..].iter().position(|&on| on) {
            Some(after) => {
                let t = n + after;
                rejected(format!(
                    "sequence {b}: the mask is true at step {t} and false at step {n}; padding has to follow the sequence"
                ))
            }
            None if n == 0 => rejected(format!("sequence {b}: the mask is false at every step")),
            None => Ok(n),
        }
    };
    mask.chunks(length.max(1)).enumerate().map(of).collect()
}

impl<A: Array> LinearChain<A> {
    /// Tags of each sequence, from an array `[batch, length]` in row-major order. Elements past the end of a sequence are
    /// ignored.
    ///
    /// # Errors
    /// `Tensor` for an array of another shape, and for a negative tag, with the first place.
    pub fn padded_tags(&self, tags: &[i64], shape: [usize; 2]) -> Result<Vec<Vec<usize>>> {
        let [batch, length, _] = self.sizes;
        if shape != [batch, length] {
            return rejected(format!("tags [{batch}, {length}] are required, given {shape:?}"));
        }
        let of = |(b, (tags, &n)): (usize, (&[i64], &usize))| {
            let tag = |(t, &tag): (usize, &i64)| {
                usize::try_from(tag)
                    .or_else(|_| rejected(format!("sequence {b}, step {t}: tag {tag} is negative")))
            };
            tags[..n].iter().enumerate().map(tag).collect()
        };
        tags.chunks(length).zip(&self.lengths).enumerate().map(of).collect()
    }
}
