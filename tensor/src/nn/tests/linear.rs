use super::random;
use crate::testing::assert_close;
use crate::{AnyTensor, TensorError};

#[test]
fn linear_maps_agree_with_sums_on_every_order_of_axes() {
    let (w, b) = (random(&[5, 4], 1), random(&[4], 2));
    let (w_any, b_any) = (AnyTensor::from(w.clone()), AnyTensor::from(b.clone()));
    for x in [
        random(&[2, 3, 5], 3),
        random(&[3, 5, 2], 4).permute(&[2, 0, 1]).unwrap(),
        random(&[5, 3, 2], 5).permute(&[2, 1, 0]).unwrap(),
        random(&[1, 3, 5], 6).expand(&[2, 3, 5]).unwrap(),
    ] {
        let dy = random(&[4, 3, 2], 7).permute(&[2, 1, 0]).unwrap();
        let (mut y, mut dw) = (Vec::new(), vec![0.0; 20]);
        for (i, j) in (0..2).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let at = |k| x.get(&[i, j, k]).unwrap();
            for n in 0..4 {
                let sum: f64 = (0..5).map(|k| at(k) * w.get(&[k, n]).unwrap()).sum();
                y.push(sum + b.get(&[n]).unwrap());
                for k in 0..5 {
                    dw[k * 4 + n] += at(k) * dy.get(&[i, j, n]).unwrap();
                }
            }
        }
        let (x, dy) = (AnyTensor::from(x), AnyTensor::from(dy));
        let read = |x: AnyTensor| x.into_typed::<f64>().unwrap().to_vec().unwrap();
        let got = x.linear(&w_any, Some(b_any.clone())).unwrap();
        assert_eq!(got.shape(), [2, 3, 4]);
        assert_close(&read(got), &y, 1e-14, "linear");
        assert_close(&read(x.linear_weight(&dy).unwrap()), &dw, 1e-14, "linear_weight");
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let any = |shape: &[usize]| AnyTensor::from(random(shape, 1));
    let mismatch = |result: crate::Result<AnyTensor>| {
        assert!(matches!(result.unwrap_err(), TensorError::ShapeMismatch { .. }));
    };
    mismatch(any(&[5]).linear(&any(&[5, 4]), None));
    mismatch(any(&[2, 6]).linear(&any(&[5, 4]), None));
    mismatch(any(&[2, 5]).linear(&any(&[1, 5, 4]), None));
    mismatch(any(&[2, 5]).linear(&any(&[5, 4]), Some(any(&[1]))));
    mismatch(any(&[2, 3, 5]).linear_weight(&any(&[3, 2, 4])));
    assert_eq!(any(&[0, 5]).linear(&any(&[5, 4]), None).unwrap().shape(), [0, 4]);
}
