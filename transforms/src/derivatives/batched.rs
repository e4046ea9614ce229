//! Matrices of derivatives by one evaluation for all unit vectors, which are the batch of a [`vmap`].
//!
//! The functions are those of the parent module with one nesting level more: f receives its tree on `Jvp<Vmap<B>>` or
//! `Autodiff<Vmap<B>>`. Values of f are computed once for all unit vectors; every operation on tangents or cotangents
//! is one operation with a batch axis. `chunk` limits the number of unit vectors of one evaluation, and so the memory.

use std::cell::RefCell;

use burn_autodiff::Autodiff;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Shape, Slice, TensorData, TensorMetadata};
use burn_t4a::ext::tree::{Structure, Tree, build_floats, flatten_floats};
use burn_t4a_jvp::{Jvp, jvp};
use burn_t4a_vmap::{Vmap, VmapError, vmap};
use burn_tensor::Tensor;

use super::jacobian::{LeafRange, one_dtype, ranges, row};
use super::{DerivativeError, Jacobian, Result, Twice, hvp, tensor, vjp};

/// A tree shared by all unit vectors.
type Shared<B, P> = <P as Tree<B>>::On<Vmap<B>>;
/// A tree with one tangent per unit vector.
pub type Tangents<B, P> = <Shared<B, P> as Tree<Vmap<B>>>::On<Jvp<Vmap<B>>>;
/// A tree on a tape with one cotangent per unit vector.
pub type Cotangents<B, P> = <Shared<B, P> as Tree<Vmap<B>>>::On<Autodiff<Vmap<B>>>;
/// A tree on a tape on tensors with one tangent per unit vector.
pub type TwiceBatched<B, P> = Twice<Vmap<B>, Shared<B, P>>;

/// Structure of a tree with the shapes of its leaves.
#[derive(Clone, Debug)]
struct Form {
    structure: Structure,
    shapes: Vec<Shape>,
}

impl Form {
    fn of<P: TensorMetadata>(structure: Structure, leaves: &[P]) -> Self {
        Self { structure, shapes: leaves.iter().map(TensorMetadata::shape).collect() }
    }

    fn size(&self) -> usize {
        self.shapes.iter().map(Shape::num_elements).sum()
    }

    fn ranges(&self) -> Vec<LeafRange> {
        ranges(&self.structure, &self.shapes)
    }

    /// The tree of this form with the given elements, leaf by leaf.
    fn tree<B: Backend, P: Tree<B>>(&self, elements: &FloatTensor<B>) -> Result<P> {
        let mut start = 0;
        let leaf = |shape: &Shape| {
            let end = start + shape.num_elements();
            let range = Slice::new(start as isize, Some(end as isize), 1);
            start = end;
            B::float_reshape(B::float_slice(elements.clone(), &[range]), shape.clone())
        };
        Ok(build_floats(&self.structure, self.shapes.iter().map(leaf).collect())?)
    }
}

/// Row `v` of a matrix for each unit vector of `size` elements: `[size, elements of f(x, v)]`.
fn rows<B: Backend, P: Tree<B>>(
    x: P,
    size: usize,
    (dtype, device): (DType, B::Device),
    chunk: Option<usize>,
    f: impl Fn(Shared<B, P>, FloatTensor<Vmap<B>>) -> Result<FloatTensor<Vmap<B>>>,
) -> Result<FloatTensor<B>> {
    let mut unit = vec![0.0f64; size * size];
    unit.iter_mut().step_by(size + 1).for_each(|x| *x = 1.0);
    let unit = TensorData::new(unit, [size, size]).convert_dtype(dtype);
    let unit: Tensor<B, 2> = tensor(B::float_from_data(unit, &device));
    let failed = RefCell::new(None);
    let one = |(x, v): (Shared<B, P>, Tensor<Vmap<B>, 1>)| {
        let v = v.into_primitive().tensor();
        let out = f(x, v.clone()).unwrap_or_else(|error| {
            failed.borrow_mut().get_or_insert(error);
            v
        });
        tensor::<Vmap<B>, 1>(out)
    };
    let mut map = vmap(one).in_axes((None, 0)).size(size);
    if let Some(chunk) = chunk {
        map = map.chunk(chunk);
    }
    let matrix: std::result::Result<Tensor<B, 2>, VmapError> = map.call((x, unit));
    match failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(matrix?.into_primitive().tensor()),
    }
}

/// All leaves as a vector.
fn vector<B: Backend>(leaves: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    let row = row::<B>(leaves);
    let n = row.shape().num_elements();
    B::float_reshape(row, Shape::new([n]))
}

/// Arguments of a function.
struct TreeArguments<B: Backend> {
    form: Form,
    leaves: Vec<FloatTensor<B>>,
    of: (DType, B::Device),
}

impl<B: Backend> TreeArguments<B> {
    fn new<P: Tree<B>>(function: &'static str, x: P) -> Result<Self> {
        let (structure, leaves) = flatten_floats(x)?;
        one_dtype::<B>(function, &leaves)?;
        let Some(first) = leaves.first() else {
            return Err(DerivativeError::DTypes { function, dtypes: Vec::new() });
        };
        let of = (first.dtype(), B::float_device(first));
        Ok(Self { form: Form::of(structure, &leaves), leaves, of })
    }

    fn tree<P: Tree<B>>(&self) -> Result<P> {
        Ok(build_floats(&self.form.structure, self.leaves.clone())?)
    }
}

/// Jacobian of a function on trees in forward mode: one evaluation of f with all tangents.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::derivatives::batched::jacfwd;
///
/// let x = Tensor::<BurnT4a, 1>::from_floats([2.0, 3.0], &T4aDevice);
/// let j = jacfwd(|x: Tensor<_, 1>| x.clone() * x, x, None)?;
/// j.matrix().into_data().assert_eq(&[[4.0f32, 0.0], [0.0, 6.0]].into(), true);
/// # Ok::<(), burn_t4a_transforms::derivatives::DerivativeError>(())
/// ```
///
/// Cost: the tangents have as many elements as x times those of a value of f; `chunk` unit vectors at a time.
///
/// # Errors
/// [`DerivativeError::Tree`] for integers; [`DerivativeError::DTypes`]; [`DerivativeError::Vmap`] for chunks of size 0.
///
/// # Panics
/// As [`Vmap`] for operations without a batching rule.
pub fn jacfwd<B: Backend, P: Tree<B>, R: Tree<Jvp<Vmap<B>>>>(
    f: impl Fn(Tangents<B, P>) -> R,
    x: P,
    chunk: Option<usize>,
) -> Result<Jacobian<B>> {
    let arguments = TreeArguments::new("jacfwd", x)?;
    let (form, x) = (&arguments.form, arguments.tree::<P>()?);
    let results = RefCell::new(None);
    let matrix = rows(x, form.size(), arguments.of, chunk, |x: Shared<B, P>, v| {
        let (_, t) = jvp(&f, x, form.tree(&v)?)?;
        let (structure, t) = flatten_floats::<Vmap<B>, R::On<Vmap<B>>>(t)?;
        one_dtype::<Vmap<B>>("jacfwd", &t)?;
        results.replace(Some(Form::of(structure, &t)));
        Ok(vector::<Vmap<B>>(t))
    })?;
    let results = results.into_inner().map(|form| form.ranges()).unwrap_or_default();
    Ok(Jacobian::new(B::float_transpose(matrix), results, form.ranges()))
}

/// Jacobian of a function on trees in reverse mode: one reverse pass with all cotangents. f is evaluated once more for the
/// shapes of its results, and once per chunk.
///
/// # Errors
/// As [`jacfwd`].
///
/// # Panics
/// As [`jacfwd`].
pub fn jacrev<B: Backend, P: Tree<B>, R: Tree<Autodiff<Vmap<B>>>>(
    f: impl Fn(Cotangents<B, P>) -> R,
    x: P,
    chunk: Option<usize>,
) -> Result<Jacobian<B>> {
    let arguments = TreeArguments::new("jacrev", x)?;
    let (dtype, device) = arguments.of.clone();
    let results = RefCell::new(None);
    rows(arguments.tree::<P>()?, 1, arguments.of.clone(), None, |x: Shared<B, P>, v| {
        let (y, _) = vjp(&f, x)?;
        let (structure, y) = flatten_floats::<Vmap<B>, R::On<Vmap<B>>>(y)?;
        one_dtype::<Vmap<B>>("jacrev", &y)?;
        let dtype = y.first().map_or(dtype, TensorMetadata::dtype);
        results.replace(Some((Form::of(structure, &y), dtype)));
        Ok(v)
    })?;
    let (results, dtype) = results.into_inner().unwrap_or_else(|| unreachable!("f has run"));
    let x = arguments.tree::<P>()?;
    let matrix = rows(x, results.size(), (dtype, device), chunk, |x: Shared<B, P>, u| {
        let (_, pullback) = vjp(&f, x)?;
        let (_, g) = flatten_floats::<Vmap<B>, Shared<B, P>>(pullback.call(results.tree(&u)?)?)?;
        Ok(vector::<Vmap<B>>(g))
    })?;
    Ok(Jacobian::new(matrix, results.ranges(), arguments.form.ranges()))
}

/// Hessian of a scalar function on trees: one [`hvp`] with all unit vectors.
///
/// # Errors
/// As [`hvp`] and [`jacfwd`].
///
/// # Panics
/// As [`jacfwd`].
pub fn hessian<B: Backend, P: Tree<B>>(
    f: impl Fn(TwiceBatched<B, P>) -> Tensor<Autodiff<Jvp<Vmap<B>>>, 1>,
    x: P,
    chunk: Option<usize>,
) -> Result<Jacobian<B>> {
    let arguments = TreeArguments::new("hessian", x)?;
    let (form, x) = (&arguments.form, arguments.tree::<P>()?);
    let matrix = rows(x, form.size(), arguments.of, chunk, |x: Shared<B, P>, v| {
        let (_, product) = hvp(&f, x, form.tree(&v)?)?;
        Ok(vector::<Vmap<B>>(flatten_floats::<Vmap<B>, Shared<B, P>>(product)?.1))
    })?;
    Ok(Jacobian::new(matrix, form.ranges(), form.ranges()))
}
