//! Runs one loop with the widest vector instructions of the CPU.
//!
//! A loop is a value implementing [`Loop`]; its `run` is compiled once per instruction set, and vectorised by the
//! compiler. No `-C target-cpu` is needed. All instruction sets share one source, so their results are identical: the
//! elementary functions use fused multiply-add everywhere, in hardware or emulated.

use std::sync::OnceLock;

use crate::environment::Variable;

/// A loop to be compiled for every instruction set. `run` and all hot functions that it calls must be
/// `#[inline(always)]`: only inlined code uses the wide instructions.
pub trait Loop {
    /// Return type of the loop.
    type Output;
    /// Runs the loop once.
    fn run(self) -> Self::Output;
}

/// Instruction sets for which loops are compiled, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Minimum of the target: SSE2 on x86-64, NEON on AArch64.
    Baseline,
    /// AVX2 with FMA and F16C (x86-64-v3): 256-bit vectors.
    Avx2,
    /// AVX-512 F/BW/CD/DQ/VL (x86-64-v4): 512-bit vectors.
    Avx512,
}

impl Isa {
    /// The instruction set of all loops, chosen once: the widest of the CPU, or the one in the environment variable
    /// `T4A_ISA` (`baseline`, `avx2`, `avx512`) if it is narrower, for tests of narrower sets on one machine. Matrix
    /// products over (+, ×) by a library are not affected.
    #[inline]
    pub fn detect() -> Self {
        static ISA: OnceLock<Isa> = OnceLock::new();
        *ISA.get_or_init(|| {
            let widest = Self::of_machine();
            let asked = Variable::new("T4A_ISA", "baseline, avx2 or avx512", Self::named).get();
            asked.map_or(widest, |asked| asked.min(widest))
        })
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "baseline" => Some(Isa::Baseline),
            "avx2" => Some(Isa::Avx2),
            "avx512" => Some(Isa::Avx512),
            _ => None,
        }
    }

    fn of_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let v3 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt");
            let v4 = v3
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512cd")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if v4 {
                return Isa::Avx512;
            }
            if v3 {
                return Isa::Avx2;
            }
        }
        Isa::Baseline
    }

    /// Width of a vector register in bytes.
    #[inline]
    pub const fn vector_bytes(self) -> usize {
        match self {
            Isa::Baseline => 16,
            Isa::Avx2 => 32,
            Isa::Avx512 => 64,
        }
    }
}

/// Runs `body` compiled for [`Isa::detect`]. Builds with debug assertions stop at AVX2: the third copy of every loop
/// takes a third of their compile time.
#[inline]
pub fn dispatch<L: Loop>(body: L) -> L::Output {
    match Isa::detect() {
        // SAFETY: `detect` checked every feature that the two functions enable.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Isa::Avx512 => unsafe { avx512(body) },
        // SAFETY: as above; the wider set includes the narrower.
        #[cfg(target_arch = "x86_64")]
        isa if isa >= Isa::Avx2 => unsafe { avx2(body) },
        _ => baseline(body),
    }
}

/// [`dispatch`] to registers of at most 256 bits, for loops that are bound by memory or by unaligned loads: on Zen 4,
/// which computes 512 bits in two halves, an addition of two arrays in the L3 cache is 5 % slower with 512 bits, and
/// loads that cross cache lines take twice as long.
#[inline]
pub fn dispatch_narrow<L: Loop>(body: L) -> L::Output {
    match Isa::detect() {
        // SAFETY: `detect` checked every feature that the function enables; a wider set includes the narrower.
        #[cfg(target_arch = "x86_64")]
        isa if isa >= Isa::Avx2 => unsafe { avx2(body) },
        _ => baseline(body),
    }
}

/// Runs `body` compiled for [`Isa::Baseline`]. Not inlined, like the others, so that the example `kernels` can find the
/// symbol and check its vectorisation.
#[inline(never)]
pub(crate) fn baseline<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// Runs `body` compiled for [`Isa::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt")]
pub(crate) fn avx2<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// Runs `body` compiled for [`Isa::Avx512`].
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[target_feature(
    enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
pub(crate) fn avx512<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// Prefetches the cache line at `p` for reading, if the instruction set can; any address is valid.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast());
    }
    let _ = p;
}

/// [`prefetch`] for writing.
#[inline(always)]
pub fn prefetch_write<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; CPUs without the instruction ignore it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(p.cast());
    }
    let _ = p;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dot<'a>(&'a [f64], &'a [f64]);
    impl Loop for Dot<'_> {
        type Output = f64;
        #[inline(always)]
        fn run(self) -> f64 {
            self.0.iter().zip(self.1).fold(0.0, |acc, (&a, &b)| a.mul_add(b, acc))
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let a: Vec<f64> = (0..1000).map(|i| (i as f64).sin()).collect();
        let b: Vec<f64> = (0..1000).map(|i| (i as f64).cos()).collect();
        assert_eq!(dispatch(Dot(&a, &b)).to_bits(), Dot(&a, &b).run().to_bits());
        assert_eq!(dispatch_narrow(Dot(&a, &b)).to_bits(), Dot(&a, &b).run().to_bits());
    }
}
