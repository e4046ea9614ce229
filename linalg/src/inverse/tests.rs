use super::*;
use crate::error::LinalgError;
use crate::testing::*;

fn rules<T: LinalgScalar>() {
    let a = with_singular_values::<T>(1, &[2], 4, 4, &[0.5, 1.0, 1.5, 2.0]);
    let unit = Batched::new(&a).identity(4).into_tensor().unwrap();
    assert_close(&mm(&a, &inv(&a).unwrap()), &unit, tight::<T>(16));
    check_operation(InvOp, &[a]);
}

for_all_dtypes! {
    the_inverse_and_its_derivatives => rules;
}

#[test]
fn one_singular_matrix_does_not_spoil_the_others() {
    let a = Tensor::from_vec(vec![1.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0, 4.0], &[2, 2, 2]).unwrap();
    let error = inv(&a).unwrap_err();
    assert_eq!(error, LinalgError::Singular { op: "inv", batch: 0, index: 1 });
    let (out, info) = inv_ex(&a).unwrap();
    assert_eq!(info.to_vec().unwrap(), [2, 0]);
    assert_eq!(out.to_vec().unwrap()[4..], [0.5, 0.0, 0.0, 0.25]);
    assert_eq!(inv(&Tensor::<f64>::zeros(&[0, 2, 2]).unwrap()).unwrap().shape(), [0, 2, 2]);
}
