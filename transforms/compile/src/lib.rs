//! Compilation: `Traced<B>` records what a function does; a program is optimised once and run often.
