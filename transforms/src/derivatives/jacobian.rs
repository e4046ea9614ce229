//! Jacobian matrices: one column per element of the arguments, computed in forward mode, or one row per element of the
//! results, computed in reverse mode.

use burn_autodiff::Autodiff;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, FloatDType, Shape, Slice, TensorData, TensorMetadata};
use burn_t4a::ext::level::LevelGuard;
use burn_t4a::ext::tree::{Structure, Tree, build_floats, flatten_floats};
use burn_t4a_jvp::{Jvp, JvpError, constant, jvp, unzip};
use burn_tensor::Tensor;

use super::{Below, DerivativeError, Result, Twice, hvp, level, tensor, vjp};

/// Range of rows or columns of one leaf of the results or arguments.
#[derive(Clone, Debug)]
pub(super) struct LeafRange {
    path: String,
    shape: Shape,
    start: usize,
}

/// Jacobian of a function on trees: the derivatives of all results with respect to all arguments.
///
/// Rows are the elements of the results, columns those of the arguments, leaf by leaf in the order of their paths.
#[derive(Clone, Debug)]
pub struct Jacobian<B: Backend> {
    matrix: FloatTensor<B>,
    results: Vec<LeafRange>,
    arguments: Vec<LeafRange>,
}

pub(super) fn ranges(structure: &Structure, shapes: &[Shape]) -> Vec<LeafRange> {
    let mut start = 0;
    let part = |(path, shape): (String, &Shape)| {
        let part = LeafRange { path, shape: shape.clone(), start };
        start += part.shape.num_elements();
        part
    };
    structure.paths().into_iter().zip(shapes).map(part).collect()
}

fn find<'a>(all: &'a [LeafRange], path: &str) -> Result<&'a LeafRange> {
    let missing = || DerivativeError::NoLeaf {
        path: path.to_owned(),
        leaves: all.iter().map(|part| part.path.clone()).collect(),
    };
    all.iter().find(|part| part.path == path).ok_or_else(missing)
}

impl<B: Backend> Jacobian<B> {
    pub(super) fn new(
        matrix: FloatTensor<B>,
        results: Vec<LeafRange>,
        arguments: Vec<LeafRange>,
    ) -> Self {
        Self { matrix, results, arguments }
    }

    /// The Jacobian as a matrix `[elements of the results, elements of the arguments]`.
    pub fn matrix(&self) -> Tensor<B, 2> {
        tensor(self.matrix.clone())
    }

    /// Paths of the leaves of results and of arguments: `.` for a tensor, `.0` for the first of a tuple, `.name` for a
    /// field.
    pub fn paths(&self) -> [Vec<&str>; 2] {
        [&self.results, &self.arguments].map(|all| all.iter().map(|part| &part.path[..]).collect())
    }

    /// Jacobian of one leaf of the results with respect to one leaf of the arguments, `[y…, x…]`.
    ///
    /// # Errors
    /// [`DerivativeError::NoLeaf`]; [`DerivativeError::Rank`] unless K is the sum of both ranks.
    pub fn block<const K: usize>(&self, result: &str, argument: &str) -> Result<Tensor<B, K>> {
        let (y, x) = (find(&self.results, result)?, find(&self.arguments, argument)?);
        let shape: Shape = y.shape.iter().chain(x.shape.iter()).copied().collect();
        if shape.num_dims() != K {
            let required = shape.num_dims();
            return Err(DerivativeError::Rank { function: "block", required, given: K });
        }
        let range = |part: &LeafRange| {
            let end = part.start + part.shape.num_elements();
            Slice::new(part.start as isize, Some(end as isize), 1)
        };
        if shape.num_elements() == 0 {
            let (device, dtype) = (B::float_device(&self.matrix), self.matrix.dtype());
            return Ok(tensor(B::float_zeros(shape, &device, FloatDType::from(dtype))));
        }
        let block = B::float_slice(self.matrix.clone(), &[range(y), range(x)]);
        Ok(tensor(B::float_reshape(block, shape)))
    }
}

/// Unit vectors of a tree: one leaf is a unit tensor, the others are zero.
fn basis<B: Backend>(like: &[FloatTensor<B>]) -> impl Iterator<Item = Vec<FloatTensor<B>>> {
    let of = |x: &FloatTensor<B>| (x.shape(), B::float_device(x), x.dtype());
    let like: Vec<_> = like.iter().map(of).collect();
    let places: Vec<(usize, usize)> = like
        .iter()
        .enumerate()
        .flat_map(|(k, (shape, ..))| (0..shape.num_elements()).map(move |i| (k, i)))
        .collect();
    places.into_iter().map(move |(leaf, element)| {
        let one = |(k, (shape, device, dtype)): (usize, &(Shape, B::Device, DType))| {
            if k != leaf {
                return B::float_zeros(shape.clone(), device, FloatDType::from(*dtype));
            }
            let mut unit = vec![0.0f64; shape.num_elements()];
            unit[element] = 1.0;
            let data = TensorData::new(unit, shape.clone()).convert_dtype(*dtype);
            B::float_from_data(data, device)
        };
        like.iter().enumerate().map(one).collect()
    })
}

/// Flattens all leaves into a row `[1, n]`.
pub(super) fn row<B: Backend>(leaves: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let flat = |x: FloatTensor<B>| {
        let n = x.shape().num_elements();
        B::float_reshape(x, Shape::new([1, n]))
    };
    B::float_cat(leaves.into_iter().map(flat).collect(), 1)
}

/// Stacks rows into a matrix; transposed if they are columns.
fn stacked<B: Backend>(
    function: &'static str,
    rows: Vec<FloatTensor<B>>,
    transposed: bool,
    [results, arguments]: [(&Structure, &[FloatTensor<B>]); 2],
) -> Result<Jacobian<B>> {
    let [results, arguments] = [results, arguments].map(|(structure, all)| {
        let shapes: Vec<Shape> = all.iter().map(TensorMetadata::shape).collect();
        (ranges(structure, &shapes), all)
    });
    let count = |all: &[LeafRange]| all.iter().map(|part| part.shape.num_elements()).sum::<usize>();
    let size = [count(&results.0), count(&arguments.0)];
    let like = arguments.1.first().or(results.1.first());
    let matrix = match (like, size.contains(&0)) {
        (Some(x), true) => {
            let (device, dtype) = (B::float_device(x), FloatDType::from(x.dtype()));
            B::float_zeros(Shape::new(size), &device, dtype)
        }
        (None, _) => {
            let dtypes = Vec::new();
            return Err(DerivativeError::DTypes { function, dtypes });
        }
        (_, false) => {
            let matrix = B::float_cat(rows, 0);
            if transposed { B::float_transpose(matrix) } else { matrix }
        }
    };
    Ok(Jacobian { matrix, results: results.0, arguments: arguments.0 })
}

/// # Errors
/// [`DerivativeError::DTypes`] for leaves of several dtypes.
pub(super) fn one_dtype<B: Backend>(
    function: &'static str,
    leaves: &[FloatTensor<B>],
) -> Result<()> {
    let mut dtypes: Vec<DType> = leaves.iter().map(TensorMetadata::dtype).collect();
    dtypes.dedup();
    if dtypes.len() > 1 { Err(DerivativeError::DTypes { function, dtypes }) } else { Ok(()) }
}

/// Jacobian of a function on trees in forward mode: one [`jvp`] per element of x. Efficient for few arguments and many
/// results.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::jacfwd_tree;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let f = |(a, b): (Tensor<_, 1>, Tensor<_, 1>)| (a.clone() * b, a.sum());
/// let j = jacfwd_tree(f, (of([1.0, 2.0]), of([3.0, 4.0])))?;
/// j.matrix().into_data().assert_eq(
///     &[[3.0f32, 0.0, 1.0, 0.0], [0.0, 4.0, 0.0, 2.0], [1.0, 1.0, 0.0, 0.0]].into(),
///     true,
/// );
/// assert_eq!(j.paths(), [vec![".0", ".1"], vec![".0", ".1"]]);
/// let of_b: Tensor<BurnT4a, 2> = j.block(".0", ".1")?;
/// of_b.into_data().assert_eq(&[[1.0f32, 0.0], [0.0, 2.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Tree`] for integers; [`DerivativeError::DTypes`].
pub fn jacfwd_tree<B: Backend, P: Tree<B>, R: Tree<Jvp<B>>>(
    f: impl Fn(P::On<Jvp<B>>) -> R,
    x: P,
) -> Result<Jacobian<B>> {
    let (structure, x) = flatten_floats(x)?;
    one_dtype::<B>("jacfwd", &x)?;
    let tree = |leaves| Ok::<P, DerivativeError>(build_floats(&structure, leaves)?);
    let still = constant(tree(x.clone())?)?;
    let level = LevelGuard::enter::<Jvp<B>>().ok_or(JvpError::Nested)?;
    let (y, _): (R::On<B>, R::On<B>) = unzip(f(still))?;
    drop(level);
    let (of_y, y) = flatten_floats(y)?;
    one_dtype::<B>("jacfwd", &y)?;
    let column = |v| {
        let (_, t) = jvp(&f, tree(x.clone())?, tree(v)?)?;
        Ok(row::<B>(flatten_floats::<B, R::On<B>>(t)?.1))
    };
    let columns = basis::<B>(&x).map(column).collect::<Result<_>>()?;
    stacked::<B>("jacfwd", columns, true, [(&of_y, &y), (&structure, &x)])
}

/// Jacobian of a function on trees in reverse mode: one evaluation of f and one reverse pass per element of the
/// results. Efficient for few results and many arguments.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::jacrev_tree;
///
/// let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
/// let f = |(a, b): (Tensor<_, 1>, Tensor<_, 1>)| (a * b).sum();
/// let j = jacrev_tree(f, (of([1.0, 2.0]), of([3.0, 4.0])))?;
/// j.matrix().into_data().assert_eq(&[[3.0f32, 4.0, 1.0, 2.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// As [`jacfwd_tree`].
pub fn jacrev_tree<B: Backend, P: Tree<B>, R: Tree<Autodiff<B>>>(
    f: impl Fn(P::On<Autodiff<B>>) -> R,
    x: P,
) -> Result<Jacobian<B>> {
    let (structure, x) = flatten_floats(x)?;
    one_dtype::<B>("jacrev", &x)?;
    let tree = |leaves| Ok::<P, DerivativeError>(build_floats(&structure, leaves)?);
    let on_tape = x.iter().cloned().map(<Autodiff<B> as burn_backend::AutodiffBackend>::from_inner);
    let on_tape = build_floats(&structure, on_tape.collect())?;
    let level = level::<B>()?;
    let (of_y, y) = flatten_floats(f(on_tape))?;
    drop(level);
    let y: Vec<_> =
        y.into_iter().map(<Autodiff<B> as burn_backend::AutodiffBackend>::inner).collect();
    one_dtype::<B>("jacrev", &y)?;
    let one = |u| {
        let (_, pullback) = vjp(&f, tree(x.clone())?)?;
        let u: Below<B, R> = build_floats(&of_y, u)?;
        Ok(row::<B>(flatten_floats::<B, P>(pullback.call(u)?)?.1))
    };
    let rows = basis::<B>(&y).map(one).collect::<Result<_>>()?;
    stacked::<B>("jacrev", rows, false, [(&of_y, &y), (&structure, &x)])
}

/// Hessian of a scalar function on trees: one [`hvp`] per element of x.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::hessian_tree;
///
/// let of = |x: f32| Tensor::<BurnT4a, 1>::from_floats([x], &T4aDevice);
/// // The second derivatives of a² b are 2 b, 2 a and 0.
/// let f = |(a, b): (Tensor<_, 1>, Tensor<_, 1>)| (a.clone() * a * b).sum();
/// let h = hessian_tree(f, (of(3.0), of(5.0)))?;
/// h.matrix().into_data().assert_eq(&[[10.0f32, 6.0], [6.0, 0.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// As [`hvp`]; [`DerivativeError::DTypes`].
pub fn hessian_tree<B: Backend, P: Tree<B>>(
    f: impl Fn(Twice<B, P>) -> Tensor<Autodiff<Jvp<B>>, 1>,
    x: P,
) -> Result<Jacobian<B>> {
    let (structure, x) = flatten_floats(x)?;
    one_dtype::<B>("hessian", &x)?;
    let tree = |leaves| Ok::<P, DerivativeError>(build_floats(&structure, leaves)?);
    let one = |v| {
        let (_, product) = hvp(&f, tree(x.clone())?, tree(v)?)?;
        Ok(row::<B>(flatten_floats::<B, P>(product)?.1))
    };
    let rows = basis::<B>(&x).map(one).collect::<Result<_>>()?;
    stacked::<B>("hessian", rows, false, [(&structure, &x), (&structure, &x)])
}

/// Checks the requested rank before any computation.
fn rank(function: &'static str, required: usize, given: usize) -> Result<()> {
    if required == given {
        Ok(())
    } else {
        Err(DerivativeError::Rank { function, required, given })
    }
}

/// Jacobian ∂y/∂x of a function of one tensor, `[y…, x…]`, in forward mode: one [`jvp`] per element of x. Efficient for
/// few arguments and many results. Use [`jacfwd_tree`] for trees.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::jacfwd;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([2.0, 3.0], &T4aDevice);
/// let j: Tensor<BurnT4a, 2> = jacfwd(|x| x.clone() * x, x)?;
/// j.into_data().assert_eq(&[[4.0f32, 0.0], [0.0, 6.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Rank`] unless `K = E + D`.
pub fn jacfwd<B: Backend, const D: usize, const E: usize, const K: usize>(
    f: impl Fn(Tensor<Jvp<B>, D>) -> Tensor<Jvp<B>, E>,
    x: Tensor<B, D>,
) -> Result<Tensor<B, K>> {
    rank("jacfwd", E + D, K)?;
    jacfwd_tree(f, x)?.block(".", ".")
}

/// Jacobian ∂y/∂x of a function of one tensor, `[y…, x…]`, in reverse mode: one evaluation of f and one reverse pass per
/// element of y. Efficient for few results and many arguments. Use [`jacrev_tree`] for trees.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::jacrev;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([2.0, 3.0], &T4aDevice);
/// let j: Tensor<BurnT4a, 2> = jacrev(|x| x.clone() * x, x)?;
/// j.into_data().assert_eq(&[[4.0f32, 0.0], [0.0, 6.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Rank`] unless `K = E + D`.
pub fn jacrev<B: Backend, const D: usize, const E: usize, const K: usize>(
    f: impl Fn(Tensor<Autodiff<B>, D>) -> Tensor<Autodiff<B>, E>,
    x: Tensor<B, D>,
) -> Result<Tensor<B, K>> {
    rank("jacrev", E + D, K)?;
    jacrev_tree(f, x)?.block(".", ".")
}

/// Hessian of a scalar function of one tensor, `[x…, x…]`: one [`hvp`] per element of x. Use [`hessian_tree`] for trees.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::hessian;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([2.0, 3.0], &T4aDevice);
/// let h: Tensor<BurnT4a, 2> = hessian(|x: Tensor<_, 1>| x.powi_scalar(3).sum(), x)?;
/// h.into_data().assert_eq(&[[12.0f32, 0.0], [0.0, 18.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// # Errors
/// [`DerivativeError::Rank`] unless `K = 2 D`; as [`hvp`].
pub fn hessian<B: Backend, const D: usize, const K: usize>(
    f: impl Fn(Tensor<Autodiff<Jvp<B>>, D>) -> Tensor<Autodiff<Jvp<B>>, 1>,
    x: Tensor<B, D>,
) -> Result<Tensor<B, K>> {
    rank("hessian", 2 * D, K)?;
    hessian_tree(f, x)?.block(".", ".")
}
