//! Copies blocks of A and B into panels in the access order of the microkernel.
//!
//! ```text
//! A  MR rows × kc      a₀₀ a₁₀ … | a₀₁ a₁₁ … | …      one group of MR per k
//! B  kc × NR columns   b₀₀ b₀₁ … | b₁₀ b₁₁ … | …      one group of NR per k
//! ```
//!
//! Both are a panel of `R` lanes over `kc` groups of a strided matrix. Lanes past the edge hold
//! the semiring's zero; their results are discarded.

use super::argmax::K_CHUNK;
use super::arithmetic::PackedArithmetic;
use crate::Scalar;

/// Packs `lanes` × `kc` elements at `src` into panels of `R` lanes.
///
/// # Safety
/// The elements `src + l·lane_stride + k·k_stride` must be readable and `dst` must have room for
/// `⌈lanes/R⌉·R·kc` elements.
#[inline(always)]
pub(super) unsafe fn pack<K: PackedArithmetic<T>, T: Scalar, const R: usize>(
    src: *const T,
    (lanes, lane_stride): (usize, isize),
    (kc, k_stride): (usize, isize),
    mut dst: *mut K::Packed,
) {
    let mut first = 0;
    while first < lanes {
        let panel = src.wrapping_offset(first as isize * lane_stride);
        let width = (lanes - first).min(R);
        // SAFETY: the panel's elements are readable and `dst` has room for `R·kc` more.
        unsafe {
            if width < R {
                pack_edge::<K, T, R>(panel, (width, lane_stride), (kc, k_stride), dst);
            } else if lane_stride == 1 {
                for k in 0..kc {
                    let group = panel.wrapping_offset(k as isize * k_stride);
                    let run = group.cast::<[T; R]>().read();
                    dst.add(k * R).cast::<[K::Packed; R]>().write(encode::<K, T, R>(run));
                }
            } else if k_stride == 1 {
                // R streams with a constant unit stride: the transposition stays in registers.
                for k in 0..kc {
                    for l in 0..R {
                        let at = panel.wrapping_offset(l as isize * lane_stride).add(k);
                        dst.add(k * R + l).write(K::encode(at.read()));
                    }
                }
            } else {
                for k in 0..kc {
                    for l in 0..R {
                        let at = l as isize * lane_stride + k as isize * k_stride;
                        dst.add(k * R + l).write(K::encode(panel.wrapping_offset(at).read()));
                    }
                }
            }
        }
        dst = dst.wrapping_add(R * kc);
        first += R;
    }
}

/// Packs `lanes` × `kc` elements at `src` into panels of `R` lanes with the steps of a k-chunk contiguous: `chunk_len`
/// of the first lane, of the second, …, then the next chunk; with chunks of one step that is [`pack`]. The last panel
/// or chunk is padded with the semiring's zero.
///
/// # Safety
/// As for [`pack`], with room for `⌈lanes/R⌉·R·⌈kc/chunk_len⌉·chunk_len` elements.
#[inline(always)]
pub(super) unsafe fn pack_chunks<K: PackedArithmetic<T>, T: Scalar, const R: usize>(
    src: *const T,
    (lanes, lane_stride): (usize, isize),
    (kc, k_stride): (usize, isize),
    chunk_len: usize,
    mut dst: *mut K::Packed,
) {
    if chunk_len == 1 {
        // SAFETY: passed on.
        return unsafe { pack::<K, T, R>(src, (lanes, lane_stride), (kc, k_stride), dst) };
    }
    for panel in (0..lanes).step_by(R) {
        for chunk in (0..kc).step_by(chunk_len) {
            let (width, steps) = ((lanes - panel).min(R), (kc - chunk).min(chunk_len));
            let whole = width == R && steps == chunk_len;
            for l in 0..R {
                let lane = src.wrapping_offset(
                    (panel + l) as isize * lane_stride + chunk as isize * k_stride,
                );
                // SAFETY: only elements inside the matrix are read, and `dst` has room.
                unsafe {
                    if whole && k_stride == 1 && chunk_len == K_CHUNK {
                        let run = lane.cast::<[T; K_CHUNK]>().read();
                        dst.cast::<[K::Packed; K_CHUNK]>().write(encode::<K, T, K_CHUNK>(run));
                    } else {
                        for t in 0..chunk_len {
                            let inside = whole || (l < width && t < steps);
                            dst.add(t).write(if inside {
                                K::encode(lane.wrapping_offset(t as isize * k_stride).read())
                            } else {
                                K::zero()
                            });
                        }
                    }
                    dst = dst.add(chunk_len);
                }
            }
        }
    }
}

/// The last panel, with `width` < R lanes.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn pack_edge<K: PackedArithmetic<T>, T: Scalar, const R: usize>(
    panel: *const T,
    (width, lane_stride): (usize, isize),
    (kc, k_stride): (usize, isize),
    dst: *mut K::Packed,
) {
    for k in 0..kc {
        for l in 0..R {
            let at = l as isize * lane_stride + k as isize * k_stride;
            // SAFETY: only lanes inside the matrix are read.
            unsafe {
                let inside = l < width;
                let value =
                    if inside { K::encode(panel.wrapping_offset(at).read()) } else { K::zero() };
                dst.add(k * R + l).write(value);
            }
        }
    }
}

/// A run of elements, read by value: otherwise the compiler moves elements one by one, because source and destination
/// may alias.
#[inline(always)]
fn encode<K: PackedArithmetic<T>, T: Scalar, const N: usize>(run: [T; N]) -> [K::Packed; N] {
    let mut packed = [K::zero(); N];
    for i in 0..N {
        packed[i] = K::encode(run[i]);
    }
    packed
}
