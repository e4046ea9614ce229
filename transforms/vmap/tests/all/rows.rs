//! Functions on a batch against a loop over its examples, for all combinations of batched and shared operands, with one
//! and two nested levels.

use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Shape, Slice, TensorMetadata};
use burn_t4a::ext::tree::{Leaf, Structure, Tree, build, flatten};
use burn_t4a::{BurnT4a, T4aDevice, T4aTensor};
use burn_t4a_vmap::{Vmap, VmapTensor};
use burn_tensor::{Bool, Int, Tensor, TensorData, TensorPrimitive};

pub(crate) type B = BurnT4a;
pub(crate) type V = Vmap<B>;
pub(crate) type VV = Vmap<V>;

/// Batch sizes of the outer and of the inner level.
const BATCH: [usize; 2] = [3, 2];

/// Element kind of an operand.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Floats in (−2, 2).
    Float,
    /// 0, 1 or 2.
    Int,
    Bool,
}

/// Element kind of an operand type.
pub(crate) trait Operand {
    const KIND: Kind;
}
impl<B: Backend, const D: usize> Operand for Tensor<B, D> {
    const KIND: Kind = Kind::Float;
}
impl<B: Backend, const D: usize> Operand for Tensor<B, D, Int> {
    const KIND: Kind = Kind::Int;
}
impl<B: Backend, const D: usize> Operand for Tensor<B, D, Bool> {
    const KIND: Kind = Kind::Bool;
}

/// Unwraps the float primitive of a tensor.
pub(crate) fn p<B: Backend, const D: usize>(x: Tensor<B, D>) -> FloatTensor<B> {
    x.into_primitive().tensor()
}

/// Wraps a float primitive as a tensor.
pub(crate) fn t<B: Backend, const D: usize>(x: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

/// Deterministic pseudo-random numbers.
pub(crate) fn noise(n: usize, seed: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1);
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f32 / (1u64 << 31) as f32) * 4.0 - 2.0
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// An operand, and the levels in which it is batched.
pub(crate) struct Drawn {
    kind: Kind,
    tensor: T4aTensor,
    batched: [bool; 2],
}

impl Drawn {
    /// Draws an operand; `case` has two bits per operand, one per level.
    pub(crate) fn new(kind: Kind, shape: &[usize], operand: usize, case: usize) -> Self {
        let batched = [0, 1].map(|level| case >> (2 * operand + level) & 1 == 1);
        let sizes =
            batched.iter().zip(BATCH).filter(|(batched, _)| **batched).map(|(_, size)| size);
        let shape: Vec<usize> = sizes.chain(shape.iter().copied()).collect();
        let values = noise(shape.iter().product(), 7 * operand + case + 1);
        let tensor = match kind {
            Kind::Float => B::float_from_data(TensorData::new(values, shape), &T4aDevice),
            Kind::Int => {
                let values: Vec<i32> = values.iter().map(|x| (x + 2.0) as i32 % 3).collect();
                B::int_from_data(TensorData::new(values, shape), &T4aDevice)
            }
            Kind::Bool => {
                let values: Vec<bool> = values.iter().map(|x| *x > 0.0).collect();
                B::bool_from_data(TensorData::new(values, shape), &T4aDevice)
            }
        };
        Self { kind, tensor, batched }
    }

    fn build<C: Backend, X: Tree<C>>(leaf: Leaf<C>) -> X {
        build(&Structure::Leaf, vec![leaf]).unwrap()
    }

    /// The operand of one example.
    pub(crate) fn at<X: Tree<B>>(&self, at: [usize; 2]) -> X {
        let mut x = self.tensor.clone();
        for (i, _) in at.into_iter().zip(self.batched).filter(|(_, batched)| *batched) {
            let shape = x.shape();
            let one = Slice::new(i as isize, Some(i as isize + 1), 1);
            // All tensor kinds have the same primitive type.
            x = B::float_reshape(B::float_slice(x, &[one]), Shape::from(shape[1..].to_vec()));
        }
        Self::build(match self.kind {
            Kind::Float => Leaf::Float(x),
            Kind::Int => Leaf::Int(x),
            Kind::Bool => Leaf::Bool(x),
        })
    }

    /// The operand of all examples, with one level.
    pub(crate) fn one<X: Tree<V>>(&self) -> X {
        let x = wrap(self.tensor.clone(), self.batched[0] || self.batched[1]);
        Self::build(match self.kind {
            Kind::Float => Leaf::Float(x),
            Kind::Int => Leaf::Int(x),
            Kind::Bool => Leaf::Bool(x),
        })
    }

    /// The operand of all examples, with two levels.
    pub(crate) fn two<X: Tree<VV>>(&self) -> X {
        let x = wrap(wrap(self.tensor.clone(), self.batched[0]), self.batched[1]);
        Self::build(match self.kind {
            Kind::Float => Leaf::Float(x),
            Kind::Int => Leaf::Int(x),
            Kind::Bool => Leaf::Bool(x),
        })
    }
}

fn wrap<P: 'static>(x: P, batched: bool) -> VmapTensor<P> {
    if batched { VmapTensor::batched(x) } else { VmapTensor::shared(x) }
}

/// A result: its elements, and the levels in which it is batched.
struct Found {
    shape: Vec<usize>,
    dtype: burn_tensor::DType,
    values: Vec<f64>,
    batched: [bool; 2],
}

fn found(leaf: Leaf<B>, batched: [bool; 2]) -> Found {
    let (dtype, data) = match leaf {
        Leaf::Float(x) => (x.dtype(), x.try_into_data()),
        Leaf::Int(x) => (x.dtype(), x.try_into_data()),
        Leaf::Bool(x) => (x.dtype(), x.try_into_data()),
    };
    let data = data.unwrap();
    let values = data.iter::<f64>().collect();
    Found { shape: data.shape.to_vec(), dtype, values, batched }
}

fn below<C: Backend>(leaf: Leaf<Vmap<C>>) -> (Leaf<C>, bool) {
    match leaf {
        Leaf::Float(x) => {
            let (x, batched) = x.into_inner();
            (Leaf::Float(x), batched)
        }
        Leaf::Int(x) => {
            let (x, batched) = x.into_inner();
            (Leaf::Int(x), batched)
        }
        Leaf::Bool(x) => {
            let (x, batched) = x.into_inner();
            (Leaf::Bool(x), batched)
        }
    }
}

/// Compares every example. `levels` is 1 or 2; with one level the batch is that of the operands.
pub(crate) fn compare<R: Tree<B>, M: Tree<V>, N: Tree<VV>>(
    name: &str,
    case: usize,
    drawn: &[Drawn],
    example: impl Fn([usize; 2]) -> R,
    one: impl Fn() -> M,
    two: impl Fn() -> N,
) {
    let any = [0, 1].map(|level| drawn.iter().any(|x| x.batched[level]));
    let single = !(any[0] && any[1]);
    let two: Vec<Found> = flatten(two())
        .1
        .into_iter()
        .map(|leaf| {
            let (leaf, inner) = below(leaf);
            let (leaf, outer) = below(leaf);
            found(leaf, [outer, inner])
        })
        .collect();
    let one: Vec<Found> = match single {
        false => Vec::new(),
        true => flatten(one())
            .1
            .into_iter()
            .map(|leaf| {
                let (leaf, batched) = below(leaf);
                found(leaf, [batched && any[0], batched && any[1]])
            })
            .collect(),
    };
    let ranges = [0, 1].map(|level| if any[level] { BATCH[level] } else { 1 });
    for i in 0..ranges[0] {
        for j in 0..ranges[1] {
            let expected = flatten(example([i, j])).1;
            for (k, expected) in expected.into_iter().enumerate() {
                let expected = found(expected, [false; 2]);
                let context = format!("{name}, case {case:b}, example {i} {j}, result {k}");
                equal(&context, &expected, &two[k], [i, j]);
                if single {
                    equal(&format!("{context}, one level"), &expected, &one[k], [i, j]);
                }
            }
        }
    }
}

fn equal(context: &str, expected: &Found, given: &Found, at: [usize; 2]) {
    let prefix = given.batched.iter().filter(|batched| **batched).count();
    assert_eq!(given.shape[prefix..], expected.shape[..], "{context}: shape");
    assert_eq!(given.dtype, expected.dtype, "{context}: dtype");
    let mut index = 0;
    for (level, &i) in at.iter().enumerate() {
        if given.batched[level] {
            index = index * BATCH[level] + i;
        }
    }
    let n = expected.values.len();
    for (e, g) in expected.values.iter().zip(&given.values[index * n..][..n]) {
        let close = (e - g).abs() <= 2e-4 * (1.0 + e.abs());
        assert!(close || e == g || (e.is_nan() && g.is_nan()), "{context}: {e} and {g}");
    }
}

/// One test per function: operands with their shapes, and a body generic over backends with this trait.
macro_rules! rows {
    (on $bound:ident: $($name:ident($($x:ident: $t:ty = $shape:expr),*) -> $r:ty $body:block)*) => {$(
        #[test]
        fn $name() {
            fn function<B: $bound>($($x: $t),*) -> $r $body
            macro_rules! operand {
                ($drawn:expr, $k:ident, $method:ident $arg:tt) => {{
                    $k += 1;
                    $drawn[$k - 1].$method $arg
                }};
            }
            let operands = [$(stringify!($x)),*].len();
            // Rows with many operands test a subset of the combinations; the step is prime.
            let (cases, step) = (1usize << (2 * operands), [1, 1, 1, 1, 3, 11][operands]);
            for case in (0..cases).step_by(step) {
                let mut drawn = Vec::new();
                $({
                    type B = $crate::rows::B;
                    let kind = <$t as $crate::rows::Operand>::KIND;
                    drawn.push($crate::rows::Drawn::new(kind, &$shape, drawn.len(), case));
                })*
                $crate::rows::compare(
                    stringify!($name),
                    case,
                    &drawn,
                    |at| {
                        let mut k = 0;
                        $(let $x = operand!(drawn, k, at(at));)*
                        let _ = k;
                        function::<$crate::rows::B>($($x),*)
                    },
                    || {
                        let mut k = 0;
                        $(let $x = operand!(drawn, k, one());)*
                        let _ = k;
                        function::<$crate::rows::V>($($x),*)
                    },
                    || {
                        let mut k = 0;
                        $(let $x = operand!(drawn, k, two());)*
                        let _ = k;
                        function::<$crate::rows::VV>($($x),*)
                    },
                );
            }
        }
    )*};
    ($($row:tt)*) => { $crate::rows::rows! { on Backend: $($row)* } };
}
pub(crate) use rows;
