//! Sizes of a deformable convolution, checked.

use crate::error::{Result, TensorError};
use crate::layout::{MAX_NUMEL, numel_of};

/// Windows of a deformable convolution, and its groups of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeformOptions {
    /// Stride of windows; at least 1.
    pub stride: [usize; 2],
    /// Zeros on either side.
    pub padding: [usize; 2],
    /// Stride of the elements of a window without offsets; at least 1.
    pub dilation: [usize; 2],
    /// Groups of channels that share neither inputs nor outputs; a divisor of both channel counts.
    pub weight_groups: usize,
    /// Groups of input channels with separate offsets; a divisor of the number of input channels.
    pub offset_groups: usize,
}

/// All sizes.
pub(super) struct DeformGeometry {
    /// Images.
    pub(super) n: usize,
    /// Channels of x and of y.
    pub(super) c: usize,
    pub(super) o: usize,
    /// Sizes of x, of a window and of y.
    pub(super) x: [usize; 2],
    pub(super) k: [usize; 2],
    pub(super) y: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) padding: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) weight_groups: usize,
    pub(super) offset_groups: usize,
}

impl DeformGeometry {
    pub(super) fn new(
        op: &'static str,
        [x, offset, weight]: [&[usize]; 3],
        mask: Option<&[usize]>,
        options: &DeformOptions,
    ) -> Result<Self> {
        for shape in [x, offset, weight] {
            numel_of(op, shape)?;
        }
        let DeformOptions { stride, padding, dilation, weight_groups, offset_groups } = *options;
        let far = |v: usize| v > MAX_NUMEL;
        if [stride, dilation].as_flattened().contains(&0)
            || [stride, padding, dilation].as_flattened().iter().any(|&v| far(v))
            || weight_groups == 0
            || offset_groups == 0
        {
            let required = "strides, dilations and groups of at least 1, none above 2⁴⁸";
            return Err(TensorError::value(op, format!("required {required}, got {options:?}")));
        }
        let &[n, c, h, w] = x else {
            return Err(TensorError::shape(op, x, "[images, channels, height, width]"));
        };
        let (o, k) = match *weight {
            [o, per, i, j] if i * j > 0 && per.checked_mul(weight_groups) == Some(c) => (o, [i, j]),
            _ => {
                let required = "a weight [outputs, channels / groups, rows, columns]";
                return Err(TensorError::shapes(op, x, weight, required));
            }
        };
        if c % offset_groups != 0 || o % weight_groups != 0 {
            let groups =
                format!("{weight_groups} groups of the weight, {offset_groups} of offsets");
            let message = format!("{c} and {o} channels do not divide into {groups}");
            return Err(TensorError::value(op, message));
        }
        let mut y = [0; 2];
        for (i, size) in [h, w].into_iter().enumerate() {
            let reach = (k[i] - 1).checked_mul(dilation[i]).and_then(|r| r.checked_add(1));
            match reach.and_then(|r| (size + 2 * padding[i]).checked_sub(r)) {
                Some(room) => y[i] = room / stride[i] + 1,
                None => {
                    let required = "windows inside of the padded input";
                    return Err(TensorError::shapes(op, x, weight, required));
                }
            }
        }
        let elements = offset_groups.saturating_mul(k[0] * k[1]);
        if offset != [n, elements.saturating_mul(2), y[0], y[1]] {
            let want = [n, elements.saturating_mul(2), y[0], y[1]];
            let required = "two offsets per group, window element and position";
            return Err(TensorError::shapes(op, offset, &want, required));
        }
        if let Some(mask) = mask
            && mask != [n, elements, y[0], y[1]]
        {
            let want = [n, elements, y[0], y[1]];
            let required = "a mask per group, window element and position";
            return Err(TensorError::shapes(op, mask, &want, required));
        }
        numel_of(op, &[n, o, y[0], y[1]])?;
        let x = [h, w];
        Ok(Self { n, c, o, x, k, y, stride, padding, dilation, weight_groups, offset_groups })
    }

    pub(super) fn y_shape(&self) -> [usize; 4] {
        [self.n, self.o, self.y[0], self.y[1]]
    }

    pub(super) fn check_bias(&self, op: &'static str, bias: Option<&[usize]>) -> Result<()> {
        match bias {
            Some(bias) if bias != [self.o] => {
                Err(TensorError::shapes(op, bias, &[self.o], "one bias per output channel"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_output(&self, op: &'static str, dy: &[usize]) -> Result<()> {
        if dy == self.y_shape() {
            return Ok(());
        }
        Err(TensorError::shapes(op, dy, &self.y_shape(), "the shape of the result"))
    }
}
