//! Operations of neural networks on erased tensors, computed in the accumulator of the dtype.

use super::AnyTensor;
use super::elementwise::{same_dtype, unsupported};
use super::promote::{computed_in, narrow, wide};
use crate::error::{Result, TensorError};
use crate::layout::{Dims, numel_of};
use crate::nn::attention::{self, AttentionOptions, AttentionVjp};
use crate::nn::conv::{self, ConvOptions};
use crate::nn::norm::{self, NormVjp};
use crate::nn::pool::{self, PoolOptions};
use crate::nn::{cross_entropy, softmax};
use crate::tensor::Tensor;

fn indices(op: &'static str, at: &AnyTensor) -> Result<Tensor<i64>> {
    if !at.dtype().is_int() {
        return Err(unsupported(op, at.dtype(), "integer indices"));
    }
    wide(at)
}

/// All operands share the dtype of the first.
fn checked(op: &'static str, x: &AnyTensor, others: &[Option<&AnyTensor>]) -> Result<()> {
    others.iter().flatten().try_for_each(|other| same_dtype(op, x, other))
}

impl AnyTensor {
    /// See [`softmax::softmax`].
    ///
    /// # Errors
    /// [`Axis`](crate::TensorError::Axis), `DTypeUnsupported`, `OutOfMemory`.
    pub fn softmax(&self, axis: usize) -> Result<Self> {
        computed_in!("softmax", self.dtype(), T => {
            narrow(softmax::softmax(&wide::<T>(self)?, axis)?, self.dtype())
        })
    }

    /// See [`softmax::log_softmax`]. Errors: as [`AnyTensor::softmax`].
    pub fn log_softmax(&self, axis: usize) -> Result<Self> {
        computed_in!("log_softmax", self.dtype(), T => {
            narrow(softmax::log_softmax(&wide::<T>(self)?, axis)?, self.dtype())
        })
    }

    /// See [`softmax::softmax_vjp`]; `self` is the result.
    ///
    /// # Errors
    /// As [`AnyTensor::softmax`]; `ShapeMismatch`, `DTypeMismatch`.
    pub fn softmax_vjp(&self, dy: &Self, axis: usize) -> Result<Self> {
        checked("softmax_vjp", self, &[Some(dy)])?;
        computed_in!("softmax_vjp", self.dtype(), T => {
            narrow(softmax::softmax_vjp(&wide::<T>(self)?, &wide::<T>(dy)?, axis)?, self.dtype())
        })
    }

    /// See [`softmax::log_softmax_vjp`]; `self` is the result. Errors: as
    /// [`AnyTensor::softmax_vjp`].
    pub fn log_softmax_vjp(&self, dy: &Self, axis: usize) -> Result<Self> {
        checked("log_softmax_vjp", self, &[Some(dy)])?;
        computed_in!("log_softmax_vjp", self.dtype(), T => {
            let dx = softmax::log_softmax_vjp(&wide::<T>(self)?, &wide::<T>(dy)?, axis)?;
            narrow(dx, self.dtype())
        })
    }

    /// See [`norm::layer_norm`].
    ///
    /// # Errors
    /// `ShapeMismatch`, `Shape`, `DTypeMismatch`, `DTypeUnsupported`, `OutOfMemory`.
    pub fn layer_norm(&self, gamma: &Self, beta: Option<&Self>, epsilon: f64) -> Result<Self> {
        checked("layer_norm", self, &[Some(gamma), beta])?;
        computed_in!("layer_norm", self.dtype(), T => {
            let beta = beta.map(wide::<T>).transpose()?;
            let (x, gamma) = (wide::<T>(self)?, wide::<T>(gamma)?);
            narrow(norm::layer_norm(&x, &gamma, beta.as_ref(), epsilon)?, self.dtype())
        })
    }

    /// See [`norm::rms_norm`]. Errors: as [`AnyTensor::layer_norm`].
    pub fn rms_norm(&self, gamma: &Self, epsilon: f64) -> Result<Self> {
        checked("rms_norm", self, &[Some(gamma)])?;
        computed_in!("rms_norm", self.dtype(), T => {
            let y = norm::rms_norm(&wide::<T>(self)?, &wide::<T>(gamma)?, epsilon)?;
            narrow(y, self.dtype())
        })
    }

    /// Cotangents of `x`, γ and β; see [`norm::layer_norm_vjp`]. Errors: as
    /// [`AnyTensor::layer_norm`].
    pub fn layer_norm_vjp(&self, gamma: &Self, epsilon: f64, dy: &Self) -> Result<[Self; 3]> {
        checked("layer_norm_vjp", self, &[Some(gamma), Some(dy)])?;
        computed_in!("layer_norm_vjp", self.dtype(), T => {
            let (x, gamma, dy) = (wide::<T>(self)?, wide::<T>(gamma)?, wide::<T>(dy)?);
            let NormVjp { x, gamma, beta } = norm::layer_norm_vjp(&x, &gamma, epsilon, &dy)?;
            let dtype = self.dtype();
            Ok([narrow(x, dtype)?, narrow(gamma, dtype)?, narrow(beta, dtype)?])
        })
    }

    /// Cotangents of `x` and γ; see [`norm::rms_norm_vjp`]. Errors: as [`AnyTensor::layer_norm`].
    pub fn rms_norm_vjp(&self, gamma: &Self, epsilon: f64, dy: &Self) -> Result<[Self; 2]> {
        checked("rms_norm_vjp", self, &[Some(gamma), Some(dy)])?;
        computed_in!("rms_norm_vjp", self.dtype(), T => {
            let (x, gamma, dy) = (wide::<T>(self)?, wide::<T>(gamma)?, wide::<T>(dy)?);
            let NormVjp { x, gamma, .. } = norm::rms_norm_vjp(&x, &gamma, epsilon, &dy)?;
            Ok([narrow(x, self.dtype())?, narrow(gamma, self.dtype())?])
        })
    }
}

/// Affine maps. Errors of both: `ShapeMismatch`, `DTypeMismatch`, `DTypeUnsupported`, `OutOfMemory`.
impl AnyTensor {
    /// `x·W + β`. Shapes: `self: […, k]` of rank 2 or more, `weight: [k, n]`, `bias: [n]`.
    ///
    /// Cost: one matrix product and one pass over its result.
    pub fn linear(&self, weight: &Self, bias: Option<Self>) -> Result<Self> {
        let ([head @ .., k], &[k2, n]) = (self.shape(), weight.shape()) else {
            return Err(linear_shapes("linear", self, weight));
        };
        if head.is_empty() || *k != k2 || bias.as_ref().is_some_and(|bias| bias.shape() != [n]) {
            return Err(linear_shapes("linear", self, weight));
        }
        let mut shape = Dims::from_slice(head);
        shape.push(n);
        // All rows are one matrix if the strides permit it.
        let flat = [numel_of("linear", head)?, *k];
        let y = match self.layout().reshape(&flat)? {
            Some(_) => self.reshape(&flat)?.matmul(weight)?.reshape(&shape)?,
            None => self.matmul(&weight.reshape(&leading_ones(head.len() + 1, &[*k, n]))?)?,
        };
        match bias {
            Some(bias) => y.add(bias.reshape(&leading_ones(shape.len(), &[n]))?),
            None => Ok(y),
        }
    }

    /// Cotangent `Xᵀ·Ȳ` of the weight of [`AnyTensor::linear`], summed over leading axes; `self`
    /// is `x: […, k]`, `dy: […, n]`.
    ///
    /// Cost: one matrix product; an operand whose leading axes do not merge is copied.
    pub fn linear_weight(&self, dy: &Self) -> Result<Self> {
        match (self.shape(), dy.shape()) {
            ([x @ .., k], [y @ .., n]) if x == y => {
                let rows = numel_of("linear_weight", x)?;
                let x = self.reshape(&[rows, *k])?.swap_axes(0, 1)?;
                x.matmul(&dy.reshape(&[rows, *n])?)
            }
            _ => Err(linear_shapes("linear_weight", self, dy)),
        }
    }
}

fn linear_shapes(op: &'static str, x: &AnyTensor, other: &AnyTensor) -> TensorError {
    TensorError::shapes(op, x.shape(), other.shape(), "[…, k] with [k, n] or […, n], and [n]")
}

/// The sizes, preceded by axes of size 1.
fn leading_ones(rank: usize, sizes: &[usize]) -> Dims {
    let mut shape = Dims::from_elem(1, rank - sizes.len());
    shape.extend_from_slice(sizes);
    shape
}

/// Convolutions. Errors of all of them: `Shape`, `ShapeMismatch` and `Value` for shapes and options
/// that do not fit, `DTypeMismatch`, `DTypeUnsupported`, `OutOfMemory`.
impl AnyTensor {
    /// See [`conv::conv`].
    pub fn conv(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions) -> Result<Self> {
        checked("conv", self, &[Some(weight), bias])?;
        computed_in!("conv", self.dtype(), T => {
            let bias = bias.map(wide::<T>).transpose()?;
            let (x, weight) = (wide::<T>(self)?, wide::<T>(weight)?);
            narrow(conv::conv(&x, &weight, bias.as_ref(), options)?, self.dtype())
        })
    }

    /// See [`conv::conv_x`]; `self` is the cotangent of the result.
    pub fn conv_x(&self, x: &[usize], weight: &Self, options: &ConvOptions) -> Result<Self> {
        checked("conv_x", self, &[Some(weight)])?;
        computed_in!("conv_x", self.dtype(), T => {
            let dx = conv::conv_x(x, &wide::<T>(weight)?, &wide::<T>(self)?, options)?;
            narrow(dx, self.dtype())
        })
    }

    /// See [`conv::conv_weight`]; `self` is the cotangent of the result.
    pub fn conv_weight(&self, x: &Self, weight: &[usize], options: &ConvOptions) -> Result<Self> {
        checked("conv_weight", self, &[Some(x)])?;
        computed_in!("conv_weight", self.dtype(), T => {
            let dw = conv::conv_weight(&wide::<T>(x)?, weight, &wide::<T>(self)?, options)?;
            narrow(dw, self.dtype())
        })
    }

    /// See [`conv::conv_transpose`].
    pub fn conv_transpose(
        &self,
        weight: &Self,
        bias: Option<&Self>,
        extra: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
        checked("conv_transpose", self, &[Some(weight), bias])?;
        computed_in!("conv_transpose", self.dtype(), T => {
            let bias = bias.map(wide::<T>).transpose()?;
            let (x, weight) = (wide::<T>(self)?, wide::<T>(weight)?);
            let y = conv::conv_transpose(&x, &weight, bias.as_ref(), extra, options)?;
            narrow(y, self.dtype())
        })
    }

    /// See [`conv::conv_transpose_x`]; `self` is the cotangent of the result.
    pub fn conv_transpose_x(
        &self,
        x: &[usize],
        weight: &Self,
        extra: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
        checked("conv_transpose_x", self, &[Some(weight)])?;
        computed_in!("conv_transpose_x", self.dtype(), T => {
            let (weight, dy) = (wide::<T>(weight)?, wide::<T>(self)?);
            narrow(conv::conv_transpose_x(x, &weight, &dy, extra, options)?, self.dtype())
        })
    }

    /// See [`conv::conv_transpose_weight`]; `self` is the cotangent of the result.
    pub fn conv_transpose_weight(
        &self,
        x: &Self,
        weight: &[usize],
        extra: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
        checked("conv_transpose_weight", self, &[Some(x)])?;
        computed_in!("conv_transpose_weight", self.dtype(), T => {
            let (x, dy) = (wide::<T>(x)?, wide::<T>(self)?);
            narrow(conv::conv_transpose_weight(&x, weight, &dy, extra, options)?, self.dtype())
        })
    }
}

/// Pooling. Errors of all of them: `Shape`, `ShapeMismatch` and `Value` for shapes and options that
/// do not fit, `Index`, `DTypeUnsupported`, `OutOfMemory`.
impl AnyTensor {
    /// See [`pool::max_pool`].
    pub fn max_pool(&self, options: &PoolOptions) -> Result<Self> {
        computed_in!("max_pool", self.dtype(), T => {
            narrow(pool::max_pool(&wide::<T>(self)?, options)?, self.dtype())
        })
    }

    /// See [`pool::max_pool_with_indices`]; indices are `i64`.
    pub fn max_pool_with_indices(&self, options: &PoolOptions) -> Result<(Self, Self)> {
        computed_in!("max_pool_with_indices", self.dtype(), T => {
            let (y, indices) = pool::max_pool_with_indices(&wide::<T>(self)?, options)?;
            Ok((narrow(y, self.dtype())?, indices.into()))
        })
    }

    /// See [`pool::max_pool_vjp`]; `self` is the cotangent of the result, indices of any integer
    /// type.
    pub fn max_pool_vjp(&self, x: &[usize], indices: &Self) -> Result<Self> {
        let indices = self::indices("max_pool_vjp", indices)?;
        computed_in!("max_pool_vjp", self.dtype(), T => {
            narrow(pool::max_pool_vjp(x, &wide::<T>(self)?, &indices)?, self.dtype())
        })
    }

    /// See [`pool::mean_pool`].
    pub fn mean_pool(&self, options: &PoolOptions, count_padding: bool) -> Result<Self> {
        computed_in!("mean_pool", self.dtype(), T => {
            narrow(pool::mean_pool(&wide::<T>(self)?, options, count_padding)?, self.dtype())
        })
    }

    /// See [`pool::mean_pool_vjp`]; `self` is the cotangent of the result.
    pub fn mean_pool_vjp(
        &self,
        x: &[usize],
        options: &PoolOptions,
        count_padding: bool,
    ) -> Result<Self> {
        computed_in!("mean_pool_vjp", self.dtype(), T => {
            let dx = pool::mean_pool_vjp(x, &wide::<T>(self)?, options, count_padding)?;
            narrow(dx, self.dtype())
        })
    }

    /// See [`pool::adaptive_mean_pool`].
    pub fn adaptive_mean_pool(&self, size: [usize; 2]) -> Result<Self> {
        computed_in!("adaptive_mean_pool", self.dtype(), T => {
            narrow(pool::adaptive_mean_pool(&wide::<T>(self)?, size)?, self.dtype())
        })
    }

    /// See [`pool::adaptive_mean_pool_vjp`]; `self` is the cotangent of the result.
    pub fn adaptive_mean_pool_vjp(&self, x: &[usize]) -> Result<Self> {
        computed_in!("adaptive_mean_pool_vjp", self.dtype(), T => {
            narrow(pool::adaptive_mean_pool_vjp(x, &wide::<T>(self)?)?, self.dtype())
        })
    }
}

impl AnyTensor {
    /// See [`attention::attention`]; `self` holds the queries.
    ///
    /// # Errors
    /// `Shape`, `ShapeMismatch`, `Value`, `DTypeMismatch`, `DTypeUnsupported`, `OutOfMemory`.
    pub fn attention(
        &self,
        key: &Self,
        value: &Self,
        mask: Option<&Self>,
        bias: Option<&Self>,
        options: &AttentionOptions,
    ) -> Result<Self> {
        checked("attention", self, &[Some(key), Some(value), bias])?;
        let mask = mask.map(|mask| mask.typed::<bool>()).transpose()?;
        computed_in!("attention", self.dtype(), T => {
            let bias = bias.map(wide::<T>).transpose()?;
            let (q, k, v) = (wide::<T>(self)?, wide::<T>(key)?, wide::<T>(value)?);
            let y = attention::attention(&q, &k, &v, mask, bias.as_ref(), options)?;
            narrow(y, self.dtype())
        })
    }

    /// Cotangents of queries, keys and values, and of the bias if requested; see [`attention::attention_vjp`]. Errors:
    /// as [`AnyTensor::attention`].
    pub fn attention_vjp(
        &self,
        [key, value, dy]: [&Self; 3],
        mask: Option<&Self>,
        bias: Option<&Self>,
        options: &AttentionOptions,
        with_bias: bool,
    ) -> Result<([Self; 3], Option<Self>)> {
        checked("attention_vjp", self, &[Some(key), Some(value), bias, Some(dy)])?;
        let mask = mask.map(|mask| mask.typed::<bool>()).transpose()?;
        let dtype = self.dtype();
        computed_in!("attention_vjp", dtype, T => {
            let bias = bias.map(wide::<T>).transpose()?;
            let (q, k, v) = (wide::<T>(self)?, wide::<T>(key)?, wide::<T>(value)?);
            let (operands, dy) = ([&q, &k, &v], wide::<T>(dy)?);
            let AttentionVjp { query, key, value, bias } =
                attention::attention_vjp(operands, mask, bias.as_ref(), options, &dy, with_bias)?;
            let bias = bias.map(|bias| narrow(bias, dtype)).transpose()?;
            Ok(([narrow(query, dtype)?, narrow(key, dtype)?, narrow(value, dtype)?], bias))
        })
    }

    /// See [`cross_entropy::cross_entropy`]; targets of any integer type.
    ///
    /// # Errors
    /// `ShapeMismatch`, `Index`, `DTypeMismatch`, `DTypeUnsupported`, `OutOfMemory`.
    pub fn cross_entropy(&self, targets: &Self) -> Result<Self> {
        let targets = indices("cross_entropy", targets)?;
        computed_in!("cross_entropy", self.dtype(), T => {
            narrow(cross_entropy::cross_entropy(&wide::<T>(self)?, &targets)?, self.dtype())
        })
    }

    /// See [`cross_entropy::cross_entropy_vjp`]. Errors: as [`AnyTensor::cross_entropy`].
    pub fn cross_entropy_vjp(&self, targets: &Self, y: &Self, dy: &Self) -> Result<Self> {
        let op = "cross_entropy_vjp";
        checked(op, self, &[Some(y), Some(dy)])?;
        let targets = indices(op, targets)?;
        computed_in!(op, self.dtype(), T => {
            let (x, y, dy) = (wide::<T>(self)?, wide::<T>(y)?, wide::<T>(dy)?);
            let dx = cross_entropy::cross_entropy_vjp(&x, &targets, &y, &dy)?;
            narrow(dx, self.dtype())
        })
    }
}
