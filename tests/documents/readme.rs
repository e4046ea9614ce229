//! The code of README.md, compiled and run as documentation tests.

#![doc = include_str!("../../README.md")]
