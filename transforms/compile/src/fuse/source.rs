//! Operands of a group in memory, with broadcasting.

use t4a_algebra::Scalar;

/// Access pattern of an operand in memory.
pub(super) enum OperandAccess<'a, T> {
    /// One element per element of the level's shape.
    Each(&'a [T]),
    /// One element, broadcast to all.
    Uniform(T),
    /// One row, broadcast to all rows; rows are executed one by one.
    Row(&'a [T]),
    /// Broadcast along some axes: sizes and strides of the axes; the last stride is 0 or 1.
    Walk { x: &'a [T], axes: Vec<(usize, usize)> },
}

impl<'a, T: Scalar> OperandAccess<'a, T> {
    /// `by_row`: all instructions that read the operand execute the rows one by one.
    pub(super) fn new(x: &'a [T], shape: &[usize], level: &[usize], by_row: bool) -> Self {
        if shape == level {
            return Self::Each(x);
        }
        if let [only] = x {
            return Self::Uniform(*only);
        }
        if by_row && shape.last() == level.last() && shape.last() == Some(&x.len()) {
            return Self::Row(x);
        }
        // Axes from the innermost outwards, merged where their strides are compatible.
        let mut axes: Vec<(usize, usize)> = Vec::new();
        let mut step = 1;
        for (&size, &all) in shape.iter().zip(level).rev() {
            let stride = if size == 1 { 0 } else { step };
            step *= size;
            if all == 1 {
                continue;
            }
            match axes.last_mut() {
                Some((inner, inner_stride)) if stride == *inner_stride * *inner => *inner *= all,
                _ => axes.push((all, stride)),
            }
        }
        axes.reverse();
        Self::Walk { x, axes }
    }

    /// True if machine code reads the elements in place.
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self, Self::Each(_) | Self::Row(_))
    }

    /// Copies the elements from `lo` on into `out`.
    pub(super) fn load(&self, lo: usize, out: &mut [T]) {
        match self {
            Self::Each(x) => out.copy_from_slice(&x[lo..][..out.len()]),
            Self::Uniform(x) => out.fill(*x),
            Self::Row(_) => unreachable!("rows are read where they lie"),
            Self::Walk { x, axes } => {
                let Some((&(inner, stride), outer)) = axes.split_last() else { return };
                let (mut line, mut column, mut done) = (lo / inner, lo % inner, 0);
                while done < out.len() {
                    let take = (inner - column).min(out.len() - done);
                    let (mut rest, mut base) = (line, 0);
                    for &(size, stride) in outer.iter().rev() {
                        base += rest % size * stride;
                        rest /= size;
                    }
                    let part = &mut out[done..done + take];
                    if stride == 0 {
                        part.fill(x[base]);
                    } else {
                        part.copy_from_slice(&x[base + column..][..take]);
                    }
                    (line, column, done) = (line + 1, 0, done + take);
                }
            }
        }
    }
}
