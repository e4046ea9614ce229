//! Floating-point state during a call. XLA flushes denormal numbers to zero on its threads, and `torch.set_flush_denormal`
//! on the calling thread; factorisations, whose tests of convergence need these numbers, would return wrong results.

/// Denormal numbers as in IEEE 754 until it is dropped; then the state of the caller.
pub(crate) struct Denormals(State);

impl Denormals {
    pub(crate) fn kept() -> Self {
        let state = read();
        if state & FLUSH != 0 {
            write(state & !FLUSH);
        }
        Self(state)
    }
}

impl Drop for Denormals {
    fn drop(&mut self) {
        if self.0 & FLUSH != 0 {
            write(self.0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;

    pub(super) type State = u32;
    /// Bits of MXCSR: results and operands that are denormal become 0.
    pub(super) const FLUSH: State = 1 << 15 | 1 << 6;

    pub(super) fn read() -> State {
        let mut state: State = 0;
        // SAFETY: writes the register to the variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut state, options(nostack)) };
        state
    }

    pub(super) fn write(state: State) {
        // SAFETY: a state that was read, without the bits above; Rust requires this state of them.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const state, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;

    pub(super) type State = u64;
    /// Bit of FPCR: denormal numbers become 0.
    pub(super) const FLUSH: State = 1 << 24;

    pub(super) fn read() -> State {
        let state: State;
        // SAFETY: reads the register.
        unsafe { asm!("mrs {}, fpcr", out(reg) state, options(nomem, nostack)) };
        state
    }

    pub(super) fn write(state: State) {
        // SAFETY: a state that was read, without the bit above; Rust requires this state of it.
        unsafe { asm!("msr fpcr, {}", in(reg) state, options(nomem, nostack)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    pub(super) type State = u32;
    pub(super) const FLUSH: State = 0;

    pub(super) fn read() -> State {
        0
    }

    pub(super) fn write(_: State) {}
}

use arch::{FLUSH, State, read, write};
