//! The table in the documentation lists exactly the functions that these tests run.

use std::collections::BTreeSet;

use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;

use super::cases::cases;
use super::{status, tangents};

type AD = Autodiff<BurnT4a>;

#[test]
fn the_table_in_the_documentation_is_true() {
    let all: BTreeSet<&str> = include_str!("../../../../linalg/src/user/mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split('`').next())
        .collect();
    // Gradients, first and second order. Names may have more words: "qr wide", "complex qr".
    let names = cases::<AD>();
    let differentiated: BTreeSet<&str> = names
        .iter()
        .filter_map(|case| case.name.trim_start_matches("complex ").split(' ').next())
        .collect();
    assert_eq!(all, differentiated);
    let mut statuses: BTreeSet<&str> = status::all::<AD>().iter().map(|row| row.name).collect();
    statuses.extend(status::single::<AD>());
    statuses.extend(["norm", "rcond", "lstsq_residuals", "householder_product"]);
    let linear = BTreeSet::from(["trace", "diag", "diag_embed"]);
    let values: BTreeSet<&str> = all.difference(&linear).copied().collect();
    assert_eq!(values, statuses);
    assert_eq!(values, tangents::rules().iter().map(|row| row.name).collect());
}
