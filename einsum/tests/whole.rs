//! Random whole einsums, right and wrong ones, against the definition.

#[path = "whole/case.rs"]
mod case;
#[path = "whole/check.rs"]
mod check;

/// A quick part; `T4A_CASES=10000000` runs more, from `T4A_FIRST` on.
#[test]
fn random_einsums_mean_what_the_definition_says() {
    let number = |name, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let first: u64 = number("T4A_FIRST", 0);
    let (mut right, mut sliced) = (0, 0);
    let cases = number("T4A_CASES", 4000);
    for seed in first..first + cases {
        let case = case::case(&case::bytes(seed));
        right += u64::from(case.meaning().is_some());
        sliced += u64::from(case.memory.is_some());
        let checked = std::panic::catch_unwind(|| check::check(&case));
        assert!(checked.is_ok(), "seed {seed}: {} {case:?}", case.text());
    }
    // Neither kind is rare.
    assert!(right > cases / 4 && right < cases && sliced > 0, "{right} of {cases}");
}
