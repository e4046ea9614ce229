//! A loop over examples is a fallback, which the policy may reject. The policy is global, so this test runs in a
//! process of its own.

use burn_t4a::ext::operation::{
    Array, Cotangents, Meta, Operation, Outcome, Reverse, TensorError, Value, call, float,
};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_vmap::{Vmap, vmap};
use burn_tensor::Tensor;
use t4a_tensor::route::{Policy, set_policy};

/// The identity, which reads the elements of x.
#[derive(Clone, Debug)]
struct Looked;

impl Operation for Looked {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "looked"
    }
    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
        Ok(vec![inputs[0].clone()])
    }
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, TensorError> {
        let x = inputs[0].float();
        x.elements()?;
        Ok(x.clone().into())
    }
    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
        Ok(vec![Some(reverse.cotangent().clone())])
    }
}

#[test]
fn a_loop_over_examples_asks_the_policy() {
    const CHILD: &str = "BURN_T4A_POLICY_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "policy::a_loop_over_examples_asks_the_policy", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    type V = Vmap<BurnT4a>;
    let x = || Tensor::<BurnT4a, 2>::ones([3, 2], &T4aDevice);
    let look = |x: Tensor<V, 1>| -> Tensor<V, 1> {
        match call(&Looked, &[float(x)]) {
            Ok(y) => y,
            Err(error) => panic!("{error}"),
        }
    };
    let y: Tensor<BurnT4a, 2> = vmap(look).call(x()).unwrap();
    y.into_data().assert_eq(&x().into_data(), true);
    set_policy(Policy::RejectFallback);
    let rejected = |x: Tensor<V, 1>| -> Tensor<V, 1> {
        let error = call::<_, _, 1>(&Looked, &[float(x.clone())]).unwrap_err();
        assert!(matches!(error, TensorError::RouteRejected { op: "looked", .. }), "{error}");
        x
    };
    let _: Tensor<BurnT4a, 2> = vmap(rejected).call(x()).unwrap();
    set_policy(Policy::Allow);
}
