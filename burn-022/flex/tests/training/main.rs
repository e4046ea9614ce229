//! A program for Burn 0.22.1 with the engine in place of Flex: its losses are those of Flex, which the test of the
//! same name in `burn-022/conformance` checks.

mod losses;
#[allow(dead_code)]
mod program;

use burn::backend::Flex;
use burn::tensor::{Device, Tensor};
use burn_t4a_022::T4aTensor;

#[test]
fn a_program_trains_as_on_flex() {
    // The patch is in use: tensors of Flex are engine tensors.
    let x = Tensor::<1>::from_floats([1.0], &Device::flex());
    let _: T4aTensor = x.try_into_primitive::<Flex>().expect("Device::flex() is Flex");
    losses::are_those_of_flex(program::losses());
}
