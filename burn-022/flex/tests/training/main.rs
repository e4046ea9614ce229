//! A program for Burn 0.22.1 with the engine in the place of Flex: it prints what it prints on Flex, as the test of
//! the same name in `burn-022/conformance` has it.

mod losses;
#[allow(dead_code)]
mod program;

use burn::backend::Flex;
use burn::tensor::{Device, Tensor};
use burn_t4a_022::T4aTensor;

#[test]
fn a_program_trains_as_on_flex() {
    // The patch is in use: what Burn calls Flex are tensors of the engine.
    let x = Tensor::<1>::from_floats([1.0], &Device::flex());
    let _: T4aTensor = x.try_into_primitive::<Flex>().expect("Device::flex() is Flex");
    losses::are_those_of_flex(program::losses());
}
