//! Bit operations on integers. Shift counts are taken modulo the width.

use t4a_algebra::Int;

use super::{binary, unary};

binary! {
    /// `a & b`.
    BitAnd "bitwise_and" 1 commutes if [true]: Int |a, b| -> T { a.and(b) };
    /// `a | b`.
    BitOr "bitwise_or" 1 commutes if [true]: Int |a, b| -> T { a.or(b) };
    /// `a ^ b`.
    BitXor "bitwise_xor" 1 commutes if [true]: Int |a, b| -> T { a.xor(b) };
    /// `a · 2ᵇ`.
    ShiftLeft "bitwise_left_shift" 1: Int |a, b| -> T { a.shl(b) };
    /// `⌊a / 2ᵇ⌋`.
    ShiftRight "bitwise_right_shift" 1: Int |a, b| -> T { a.shr(b) };
}

unary! {
    /// `!x`.
    BitNot "bitwise_not" 1: Int |x| x.not();
}
