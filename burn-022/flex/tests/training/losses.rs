//! Losses of the program on Burn's own Flex 0.22.1, for the tests of both workspaces.

/// Losses of the images and of the sentences before each step, with six digits.
const FLEX: [[f32; 8]; 2] = [
    [1.377406, 1.188119, 1.009624, 0.904756, 0.780639, 0.607607, 0.483159, 0.382664],
    [2.786546, 1.832527, 1.50516, 1.563964, 1.507159, 1.297012, 1.129741, 0.950613],
];

/// Sums in another order differ in the last bits, which steps of Adam amplify.
const TOLERANCE: f32 = 1e-4;

/// Compares losses with those of Flex.
#[track_caller]
pub(crate) fn are_those_of_flex(losses: [Vec<f32>; 2]) {
    for (losses, recorded) in losses.iter().zip(FLEX) {
        assert_eq!(losses.len(), recorded.len());
        for (step, (loss, want)) in losses.iter().zip(recorded).enumerate() {
            let off = (loss - want).abs() / want;
            assert!(off < TOLERANCE, "step {step}: {loss}, on Flex {want}; all: {losses:?}");
        }
        assert!(losses[losses.len() - 1] < losses[0] / 2.0, "nothing is learnt: {losses:?}");
    }
}
