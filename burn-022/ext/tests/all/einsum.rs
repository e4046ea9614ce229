//! Contractions of complex numbers, booleans, integers, counts and K-best lists.

use burn_t4a_022_ext::einsum::{
    Einsum, EinsumError, MaxPlus, MinPlus, bool_einsum, complex_einsum, counting_einsum,
    int_einsum, k_best_einsum,
};
use burn_t4a_022_ext::{Complex, ExtError};
use burn_tensor::{Bool, DType, Int, Tensor, TensorData};

use crate::{close, devices, matrix};

#[test]
fn complex_contractions_and_their_gradients() {
    for device in devices() {
        let device = device.autodiff();
        let [re, im] = [matrix(&device), matrix(&device).triu(0) * 0.5].map(Tensor::require_grad);
        let z = Complex::new(re.clone(), im.clone()).unwrap();
        let ours: Complex<2> = complex_einsum("ij,jk,kl->il", [&z, &z.clone().conj(), &z]).unwrap();
        let want = z.clone().matmul(z.clone().conj()).matmul(z);
        close(ours.re().inner(), want.re().inner());
        close(ours.im().inner(), want.im().inner());
        let [own, want] = [ours, want].map(|y| y.abs_squared().sum().backward());
        for x in [re, im] {
            close(x.grad(&own).unwrap() / 1e3, x.grad(&want).unwrap() / 1e3);
        }
    }
    // A memory limit that only slices can meet.
    let device = &devices()[0];
    let z = Complex::from_real(Tensor::<2>::ones([8, 8], device));
    let tight = Einsum::new("ij,jk->").unwrap().memory(16);
    let error = complex_einsum::<1>(&tight, [&z, &z]).unwrap_err();
    assert!(matches!(error, ExtError::Einsum(EinsumError::BudgetTooSmall { .. })), "{error}");
}

const N: usize = 3;

/// Terms of entry `(i, k)` of a matrix product.
fn terms<T: Copy>(a: &[T], i: usize, k: usize) -> impl Iterator<Item = (T, T)> {
    (0..N).map(move |j| (a[i * N + j], a[j * N + k]))
}

/// Against the loop, with the backend's own boolean store and integer dtype.
#[test]
fn semirings_without_derivatives_are_the_loop() {
    let numbers = [0, 5, 1, 5, 0, 2, 1, 2, 0];
    let all = (0..N * N).map(|at| (at / N, at % N));
    for device in devices() {
        let ints = TensorData::new(numbers.to_vec(), [N, N]);
        let ints = Tensor::<2, Int>::from_data(ints, (&device, DType::I32));
        let best: Tensor<2, Int> = int_einsum::<MinPlus, _>("ij,jk->ik", [&ints, &ints]).unwrap();
        assert_eq!(best.dtype(), DType::I32);
        let want: Vec<i32> = all
            .clone()
            .map(|(i, k)| terms(&numbers, i, k).map(|(a, b)| a + b).min().unwrap())
            .collect();
        assert_eq!(best.into_data().iter::<i32>().collect::<Vec<_>>(), want);

        let flags = numbers.map(|x| x > 1);
        let bools = TensorData::new(flags.to_vec(), [N, N]);
        let bools = Tensor::<2, Bool>::from_data(bools, &device);
        let any: Tensor<2, Bool> = bool_einsum("ij,jk->ik", [&bools, &bools]).unwrap();
        let want: Vec<bool> =
            all.clone().map(|(i, k)| terms(&flags, i, k).any(|(a, b)| a && b)).collect();
        assert_eq!(any.into_data().iter::<bool>().collect::<Vec<_>>(), want);

        let floats = ints.float();
        let (least, ways) = counting_einsum::<MinPlus, 2>("ij,jk->ik", [&floats, &floats]).unwrap();
        let two: Tensor<3> =
            k_best_einsum::<MaxPlus, 2, 3>("ij,jk->ik", [&floats, &floats]).unwrap();
        let (least, ways) = (least.into_data(), ways.into_data());
        let (least, ways): (Vec<i32>, Vec<i32>) = (least.iter().collect(), ways.iter().collect());
        let two: Vec<i32> = two.into_data().iter().collect();
        for (at, (i, k)) in all.clone().enumerate() {
            let mut sums: Vec<i32> = terms(&numbers, i, k).map(|(a, b)| a + b).collect();
            sums.sort_unstable();
            let count = sums.iter().filter(|&&x| x == sums[0]).count();
            assert_eq!((least[at], ways[at]), (sums[0], count as i32));
            assert_eq!(two[2 * at..2 * at + 2], [sums[2], sums[1]]);
        }
    }
}

/// The values of counts have the gradient of the contraction.
#[test]
fn counted_values_have_a_gradient() {
    for device in devices() {
        let a = matrix(&device.autodiff()).require_grad();
        let (best, _) = counting_einsum::<MaxPlus, 2>("ij,jk->ik", [&a, &a]).unwrap();
        assert_eq!(a.grad(&best.sum().backward()).unwrap().sum().into_scalar::<f32>(), 18.0);
    }
}
