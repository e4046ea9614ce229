//! The program that `burn-022/flex` runs on the engine, run on Burn's own Flex: its losses are the recorded ones.

#[path = "../../flex/tests/training/losses.rs"]
mod losses;
#[path = "../../flex/tests/training/program.rs"]
#[allow(dead_code)]
mod program;

#[test]
fn a_program_trains_on_flex() {
    // `burn-flex` is not patched in this workspace.
    let x = burn::tensor::Tensor::<1>::from_floats([1.0], &burn::tensor::Device::flex());
    let _: burn_flex::FlexTensor =
        x.try_into_primitive::<burn_flex::Flex>().expect("Device::flex() is Flex");
    losses::are_those_of_flex(program::losses());
}
