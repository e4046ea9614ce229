//! Naive reference: tensors as shapes and values, processed one element at a time.

use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, DType, Tensor};

/// A shape with its elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Naive {
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Elements in row-major order.
    pub data: Vec<f64>,
}

impl Naive {
    /// Builds a tensor whose element at an index is `f(index)`.
    pub fn build(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Self {
        let data = indices(shape).map(|index| f(&index)).collect();
        Self { shape: shape.to_vec(), data }
    }

    /// Element at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[position(&self.shape, index)]
    }

    /// Reads the elements of an engine tensor one by one.
    pub fn of(x: &AnyTensor) -> Self {
        let x = x.clone().cast(DType::F64).expect("a cast of few elements");
        let x = x.typed::<f64>().expect("cast just now");
        Self::build(x.shape(), |index| x.get(index).expect("an index inside"))
    }

    /// Converts to an engine tensor.
    pub fn tensor(&self, dtype: DType) -> AnyTensor {
        let x = Tensor::from_slice(&self.data, &self.shape).expect("as many as the shape has");
        AnyTensor::from(x).cast(dtype).expect("a cast of few elements")
    }
}

/// Numbers that every dtype represents; as `bool`, true if they are not 0.
pub fn value(i: usize) -> f64 {
    [0.0, 1.0, 3.0, 2.0, 7.0, 5.0, 1.0, 4.0, 0.0, 6.0, 2.0][i % 11]
}

/// A contiguous tensor of [`value`]s.
pub fn values(shape: &[usize], dtype: DType) -> AnyTensor {
    let count: usize = shape.iter().product();
    let data: Vec<f64> = (0..count).map(value).collect();
    Naive { shape: shape.to_vec(), data }.tensor(dtype)
}

/// A number after conversion to a dtype, as an `f64`.
pub fn stored(v: f64, dtype: DType) -> f64 {
    let x = AnyTensor::full(&[], Number::Float(v), dtype).expect("one element");
    Naive::of(&x).data[0]
}

/// All indices of a shape in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let count: usize = shape.iter().product();
    (0..count).map(move |mut rest| {
        let mut index = vec![0; shape.len()];
        for axis in (0..shape.len()).rev() {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        index
    })
}

/// Row-major position of an index.
pub fn position(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i)
}
