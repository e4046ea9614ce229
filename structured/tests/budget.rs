//! The limit for intermediates counts the elements that structures store. It is a setting of the process: one test alone.

use t4a_diff::check;
use t4a_einsum::EinsumError;
use t4a_structured::{Direction, GradedTensor, Leg, Spec, StructuredError, U1, einsum};
use t4a_tensor::DType;
use t4a_tensor::config::BackendConfig;
use t4a_tensor::random::Generator;

/// A random matrix between legs of `sectors` charges with `dim` states each.
fn matrix(sectors: i32, dim: usize, seed: u64) -> GradedTensor<U1> {
    let leg = Leg::new((0..sectors).map(|q| (U1(q), dim)), Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    GradedTensor::random(spec, DType::F64, false, &Generator::new(seed)).unwrap()
}

#[test]
fn budgets_count_stored_elements() {
    // Diagonal matrices of 4096 charges: 32 KiB each, 128 MiB as dense arrays.
    let x = [1, 2, 3].map(|seed| matrix(4096, 1, seed));
    let product = |x: &[GradedTensor<U1>; 3]| einsum("ab,bc,cd->ad", &[&x[0], &x[1], &x[2]]);
    let free = product(&x).unwrap();
    // Two intermediates at once.
    BackendConfig::new().einsum_memory(64 << 10).set().unwrap();
    assert_eq!(check::elements(product(&x).unwrap().re()), check::elements(free.re()));
    // Blocks of 16 × 16, planned within the limit or before it was set.
    let blocks = [1, 2, 3].map(|seed| matrix(64, 16, seed));
    for sectors in [64, 65] {
        let blocks =
            if sectors == 64 { blocks.clone() } else { [1, 2, 3].map(|k| matrix(65, 16, k)) };
        if sectors == 64 {
            BackendConfig::new().einsum_memory(1 << 30).set().unwrap();
            product(&blocks).unwrap();
            BackendConfig::new().einsum_memory(64 << 10).set().unwrap();
        }
        let e = product(&blocks).unwrap_err();
        let needed = 2 * sectors as usize * 16 * 16 * 8;
        let want = EinsumError::BudgetTooSmall { budget: 64 << 10, needed };
        assert_eq!(e, StructuredError::Einsum(want));
    }
}
