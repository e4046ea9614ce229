//! Chains return an error at every point where memory is exhausted. A separate program, because the limit is
//! process-wide.

use t4a_diff::check::{array, noise};
use t4a_diff::{Eager, Kept, Operation, Reverse, Value};
use t4a_einsum::EinsumError;
use t4a_scan::{LinearChain, LogPartition};
use t4a_tensor::{TensorError, pool};

type Outcome = Result<(), EinsumError>;

fn read(x: Eager) -> Outcome {
    x.into_tensor().map(|_| ()).map_err(Into::into)
}

#[test]
fn chains_run_out_of_memory_with_an_error() {
    let [x, w, s] =
        [&[32, 4, 32][..], &[32, 32], &[32]].map(|shape| noise(&array(shape, |_| 0.0), 1));
    let chain = || LinearChain::new(x.clone(), w.clone(), None)?.start(&s);
    let tags = vec![vec![0; 4]; 32];
    let op = LogPartition { lengths: [4, 3].repeat(16) };
    let inputs = [&x, &w].map(|x| Value::Float(x.clone()));
    let out = op.forward(&inputs, &[true; 2]).unwrap();
    let kept = Kept::new(op.keep(&[true; 2]), &inputs, &out);
    let cotangents = [Some(array(&[32], |_| 1.0))];
    let wanted = &[true; 2];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted };
    let rule = || op.vjp(&reverse)?.into_iter().flatten().try_for_each(read);
    let fused = || op.fused_vjp(&reverse)?.into_iter().flatten().try_for_each(read);
    let calls: [(&str, &dyn Fn() -> Outcome); 8] = [
        ("log_partition", &|| read(chain()?.log_partition()?)),
        ("marginals", &|| read(chain()?.marginals()?)),
        ("viterbi", &|| read(chain()?.viterbi()?.1)),
        ("k_best", &|| chain()?.k_best(2).map(|_| ())),
        ("score", &|| read(chain()?.score(&tags)?)),
        ("end", &|| read(chain()?.end(&s)?.log_partition()?)),
        ("rule", &rule),
        ("fused rule", &fused),
    ];
    pool::set_cache_limit(0);
    for (name, call) in calls {
        let (mut failed, mut passed) = (0, 0);
        let limits = std::iter::successors(Some(50_000), |limit| Some(limit / 8 * 9));
        for limit in limits.take_while(|&limit| limit < 10_000_000) {
            pool::set_memory_limit(limit);
            match call() {
                Ok(()) => passed += 1,
                Err(EinsumError::Tensor(TensorError::OutOfMemory { .. })) => failed += 1,
                Err(other) => panic!("{name} with {limit} bytes: {other}"),
            }
        }
        assert!(failed > 0 && passed > 0, "{name}: {failed} failed, {passed} passed");
    }
}
