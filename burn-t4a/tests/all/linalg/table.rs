//! The table in the documentation lists exactly the functions that these tests run.

use std::collections::BTreeSet;

use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;

use super::cases::cases;
use super::{status, tangents};

type AD = Autodiff<BurnT4a>;

#[test]
fn the_table_in_the_documentation_is_true() {
    let rows: Vec<Vec<&str>> = include_str!("../../../../linalg/src/user/mod.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`"))
        .map(|line| line.split('|').map(|cell| cell.trim().split('`').next().unwrap()).collect())
        .collect();
    let marked = |column: usize| -> BTreeSet<&str> {
        rows.iter().filter(|row| row[column] == "✓").map(|row| row[0]).collect()
    };
    let all: BTreeSet<&str> = rows.iter().map(|row| row[0]).collect();
    // Gradients, first and second order. Names may have more words: "qr wide", "complex qr".
    let names = cases::<AD>();
    let differentiated: BTreeSet<&str> = names
        .iter()
        .filter_map(|case| case.name.trim_start_matches("complex ").split(' ').next())
        .collect();
    assert_eq!(all, differentiated);
    let mut statuses: BTreeSet<&str> = status::all::<AD>().iter().map(|row| row.name).collect();
    statuses.extend(status::left_dims::<AD>());
    assert_eq!(marked(3), statuses);
    assert_eq!(marked(4), tangents::rules().iter().map(|row| row.name).collect());
}
