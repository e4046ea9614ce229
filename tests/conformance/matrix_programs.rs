//! Random programs over matrices, and their operands and results.

use burn::backend::Autodiff;
use burn::tensor::activation::softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};

use t4a_fuzz::input::Input;

type B = BurnT4a;
pub(crate) type Matrix<A> = Tensor<A, 2>;

/// Maximum number of elements of a value.
const MOST: usize = 4096;

/// Kind of a case. Sums, softmax and matrix-vector products add in memory order, which a program may change: it makes
/// fused results row-major, and replaces a sum of one element by its operand.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Without transposed values and sums of one element: bitwise equal to the function.
    RowMajor,
    /// With them: every call is bitwise equal to the first one.
    Any,
    /// With gradients, too. Burn's tape adds the cotangents of a value in an order that varies between tapes.
    Reverse,
}

/// One operation on two of the values; `None` if their sizes do not fit. Choices depend on sizes, too.
fn operation<A: Backend>(input: &mut Input, mode: Mode, values: &[Matrix<A>]) -> Option<Matrix<A>> {
    let kind = input.below(28);
    let [a, b] = [(); 2].map(|()| values[input.below(values.len())].clone());
    let ([p, q], [r, s]) = (a.dims(), b.dims());
    let axis = input.below(2);
    let (size, number) = (a.dims()[axis], f64::from(input.byte()) / 64.0 - 2.0);
    let spread = (p == r || p == 1 || r == 1) && (q == s || q == 1 || s == 1);
    let count = match kind {
        0..=5 if !spread => return None,
        0..=5 => p.max(r) * q.max(s),
        15 if mode == Mode::RowMajor => return None,
        12 | 13 if mode == Mode::RowMajor && size == 1 => return None,
        16 if q != r => return None,
        16 => p * s,
        17 if a.dims()[1 - axis] != b.dims()[1 - axis] => return None,
        17 => p * q + r * s,
        18 => 2 * p * q,
        _ => p * q,
    };
    let device = a.device();
    (count <= MOST).then(|| match kind {
        0 => a + b,
        1 => a - b,
        2 => a * b,
        3 => a / b,
        4 => a.max_pair(b),
        5 => {
            let mask = a.clone().greater(b.clone());
            let [a, b] = [&a, &b].map(|x| x.clone().expand([p.max(r), q.max(s)]));
            a.mask_where(mask, b)
        }
        6 => a.tanh(),
        7 => a.clamp(-3.0, 2.0).exp(),
        8 => a.abs(),
        9 => a.abs().sqrt(),
        10 => a * number,
        11 => a + (size as f64 / 3.0),
        12 => a.sum_dim(axis),
        13 => a.mean_dim(axis),
        14 => a.max_dim(axis),
        15 => a.transpose(),
        16 => a.matmul(b),
        17 => Tensor::cat(vec![a, b], axis),
        18 => a.repeat_dim(axis, 2),
        19 => a.narrow(axis, size / 3, size - size / 2),
        20 if number < 0.0 => a.reshape([1, p * q]),
        20 => a.reshape([q, p]),
        21 => a.flip([axis as isize]),
        22 => a.cumsum(axis),
        23 if size.is_multiple_of(2) => a * 2.0,
        23 => -a,
        24 => {
            let chosen = [size - 1, 0, size / 2].map(|i| i as i64);
            a.select(axis, Tensor::<A, 1, Int>::from_data(chosen, &device))
        }
        25 => {
            let steps = Tensor::<A, 1, Int>::arange(0..q as i64, &device);
            a.clone() + steps.float().cast(a.dtype()).reshape([1, q])
        }
        26 => softmax(a, axis),
        _ => a.powi_scalar(2) - Matrix::<A>::ones([p, q], &device).cast(b.dtype()),
    })
}

/// The last values of a program.
fn program<A: Backend>(bytes: &[u8], mode: Mode, [x, y]: [Matrix<A>; 2]) -> Vec<Matrix<A>> {
    let (mut input, mut values) = (Input::new(bytes), vec![x, y]);
    for _ in 0..24 {
        if input.is_over() {
            break;
        }
        values.extend(operation(&mut input, mode, &values));
    }
    let from = values.len().saturating_sub(3);
    values.split_off(from)
}

/// Values of a program; in reverse mode, with the gradients of their sums.
pub(crate) fn function<A: Backend>(
    bytes: &[u8],
    mode: Mode,
    inputs: [Matrix<A>; 2],
) -> Vec<Matrix<A>> {
    if mode != Mode::Reverse {
        return program(bytes, mode, inputs);
    }
    let inputs = inputs.map(|x| Matrix::<Autodiff<A>>::from_inner(x).require_grad());
    let values = program(bytes, mode, inputs.clone());
    let weight = |(i, x): (usize, &Matrix<Autodiff<A>>)| (x.clone() * (i as f64 - 0.5)).sum();
    let loss = values.iter().enumerate().map(weight).reduce(|a, b| a + b);
    let found = loss.expect("values").backward();
    let gradients = inputs.map(|x| x.grad(&found).unwrap_or_else(|| x.inner().zeros_like()));
    values.into_iter().map(|x| x.inner()).chain(gradients).collect()
}

pub(crate) fn noise(shape: [usize; 2], seed: usize, dtype: DType) -> Matrix<B> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 2500.0 - 2.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
}

/// Bit patterns of floats; all NaN are mapped to one.
pub(crate) fn bits(x: &Matrix<B>) -> ([usize; 2], Vec<u64>) {
    let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
    (x.dims(), x.to_data().iter::<f64>().map(bits).collect())
}
