//! Gather, scatter, select and masks with arbitrary indices, on operands of any layout.
//!
//! An index out of range is an error and leaves every operand unchanged.

use t4a_tensor::index::Reduction;
use t4a_tensor::{AnyTensor, DType};

use crate::input::Input;
use crate::reference::{Naive, indices, position, stored, value, values};

const INTS: [DType; 8] =
    [DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8];

/// Copies a tensor into a randomly chosen layout.
fn laid_out(input: &mut Input<'_>, x: AnyTensor) -> AnyTensor {
    let axes: Vec<usize> = (0..x.rank()).rev().collect();
    match input.below(4) {
        0 => x,
        1 => {
            let turned = x.permute(&axes).and_then(|x| x.to_contiguous());
            turned.and_then(|x| x.permute(&axes)).expect("a permutation")
        }
        2 => {
            let back = x.flip(&axes).and_then(|x| x.to_contiguous());
            back.and_then(|x| x.flip(&axes)).expect("axes inside")
        }
        // A slice of a longer tensor.
        _ if x.rank() > 0 => {
            let axis = input.below(x.rank());
            let n = x.shape()[axis];
            let both = AnyTensor::cat(&[x.clone(), x], axis).expect("equal shapes");
            both.slice_axis(axis, n, n, 1).expect("the second half")
        }
        _ => x,
    }
}

/// Indices in `0..limit`, occasionally out of range.
fn index_tensor(input: &mut Input<'_>, shape: &[usize], limit: usize) -> (Naive, AnyTensor) {
    let dtype = input.pick(&INTS);
    let wild = input.once_in(4);
    let naive = Naive::build(shape, |_| {
        let v = input.below(limit.clamp(1, 100)) as f64;
        match wild && input.once_in(8) {
            true => input.pick(&[-1.0, limit as f64, 127.0, -128.0, 255.0]),
            false => v,
        }
    });
    let tensor = naive.tensor(dtype);
    // The values after the conversion to the dtype.
    let naive = Naive::of(&tensor);
    (naive, laid_out(input, tensor))
}

fn inside(index: &Naive, limit: usize) -> bool {
    index.data.iter().all(|&i| i >= 0.0 && i < limit as f64)
}

fn combine(reduction: Reduction, dtype: DType, old: f64, new: f64) -> f64 {
    let v = match reduction {
        Reduction::Assign => new,
        Reduction::Add if dtype == DType::Bool => old.max(new),
        Reduction::Mul if dtype == DType::Bool => old.min(new),
        Reduction::Add => old + new,
        Reduction::Mul => old * new,
        Reduction::Min => old.min(new),
        _ => old.max(new),
    };
    // Integer overflow wraps.
    match dtype {
        DType::I8 => (v as i64 as i8).into(),
        DType::U8 => (v as i64 as u8).into(),
        DType::I16 => (v as i64 as i16).into(),
        DType::U16 => (v as i64 as u16).into(),
        _ => stored(v, dtype),
    }
}

/// Compares the result of an operation; without an expected result, it must be an error.
#[track_caller]
fn check(got: Result<AnyTensor, t4a_tensor::TensorError>, want: Option<Naive>, context: &str) {
    match (got, want) {
        (Ok(got), Some(want)) => assert_eq!(Naive::of(&got), want, "{context}"),
        (Err(_), None) => {}
        (got, want) => panic!("{context}: {got:?} instead of {want:?}"),
    }
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let input = &mut input;
    let dtype = input.pick(&DType::ALL);
    let mut shape = input.small_shape(4);
    if shape.is_empty() {
        shape.push(input.below(5));
    }
    let axis = input.below(shape.len());
    let limit = shape[axis];
    let x = laid_out(input, values(&shape, dtype));
    let naive = Naive::of(&x);
    let reductions =
        [Reduction::Assign, Reduction::Add, Reduction::Mul, Reduction::Min, Reduction::Max];
    let reduction = input.pick(&reductions);
    // Combining reductions of 16-bit and complex elements are tested elsewhere.
    let plain = matches!(reduction, Reduction::Assign);
    let combines = plain || !(dtype.is_complex() || matches!(dtype, DType::F16 | DType::BF16));
    // Reference scatter; `place` maps an index to its target position along the axis.
    let scattered = |to: &[usize], new: &Naive, place: &dyn Fn(&[usize]) -> usize| {
        let mut out = naive.clone();
        for i in indices(to) {
            let mut at = i.clone();
            at[axis] = place(&i);
            let slot = &mut out.data[position(&shape, &at)];
            *slot = combine(reduction, dtype, *slot, new.at(&i));
        }
        out
    };
    match input.below(7) {
        0 => {
            let mut to = shape.clone();
            to[axis] = input.below(6);
            let (index, tensor) = index_tensor(input, &to, limit);
            let want = inside(&index, limit).then(|| {
                Naive::build(&to, |i| {
                    let mut from = i.to_vec();
                    from[axis] = index.at(i) as usize;
                    naive.at(&from)
                })
            });
            check(x.gather(axis, &tensor), want, "gather");
        }
        1 => {
            let len = input.below(6);
            let (index, tensor) = index_tensor(input, &[len], limit);
            let mut to = shape.clone();
            to[axis] = len;
            let want = inside(&index, limit).then(|| {
                Naive::build(&to, |i| {
                    let mut from = i.to_vec();
                    from[axis] = index.data[i[axis]] as usize;
                    naive.at(&from)
                })
            });
            check(x.index_select(axis, &tensor), want, "index_select");
        }
        2 if combines => {
            let mut to = shape.clone();
            to[axis] = input.below(6);
            let (index, tensor) = index_tensor(input, &to, limit);
            let new = laid_out(input, values(&to, dtype));
            let theirs = Naive::of(&new);
            let want =
                inside(&index, limit).then(|| scattered(&to, &theirs, &|i| index.at(i) as usize));
            let keep = x.clone();
            check(x.scatter(axis, &tensor, &new, reduction), want, "scatter");
            assert_eq!(Naive::of(&keep), naive);
        }
        3 if combines => {
            let len = input.below(6);
            let (index, tensor) = index_tensor(input, &[len], limit);
            let mut to = shape.clone();
            to[axis] = len;
            let new = laid_out(input, values(&to, dtype));
            let theirs = Naive::of(&new);
            let place = |i: &[usize]| index.data[i[axis]] as usize;
            let want = inside(&index, limit).then(|| scattered(&to, &theirs, &place));
            let keep = x.clone();
            check(x.index_scatter(axis, &tensor, &new, reduction), want, "index_scatter");
            assert_eq!(Naive::of(&keep), naive);
        }
        4 => {
            // Index tuples for the first k axes.
            let k = input.below(shape.len() + 1);
            let n = input.below(5);
            let small = shape[..k].iter().copied().min().unwrap_or(1);
            let (index, tensor) = index_tensor(input, &[n, k], small);
            let named = |row: usize| -> Option<Vec<usize>> {
                let tuple = (0..k).map(|j| index.at(&[row, j]));
                let fits =
                    |(i, &size): (f64, &usize)| (i >= 0.0 && i < size as f64).then_some(i as usize);
                tuple.zip(&shape[..k]).map(fits).collect()
            };
            let rows: Option<Vec<Vec<usize>>> = (0..n).map(named).collect();
            let mut to = vec![n];
            to.extend_from_slice(&shape[k..]);
            let want = rows.map(|rows| {
                Naive::build(&to, |i| {
                    let mut from = rows[i[0]].clone();
                    from.extend_from_slice(&i[1..]);
                    naive.at(&from)
                })
            });
            check(x.gather_nd(&tensor), want, "gather_nd");
        }
        5 => {
            let mask = laid_out(input, values(&shape, input_mask(dtype)));
            let theirs = Naive::of(&mask);
            let fill = values(&[], dtype);
            let want = Naive::build(&shape, |i| match theirs.at(i) != 0.0 {
                true => stored(value(0), dtype),
                false => naive.at(i),
            });
            let keep = x.clone();
            check(x.mask_where(mask, fill), Some(want), "mask_where");
            assert_eq!(Naive::of(&keep), naive);
        }
        _ => {
            // Shapes that do not match are rejected for any indices.
            let mut to = shape.clone();
            to.push(input.below(3) + 2);
            let (_, tensor) = index_tensor(input, &to, limit);
            check(x.gather(axis, &tensor), None, "gather of another rank");
            check(x.index_select(axis, &tensor), None, "index_select by a matrix");
            check(x.gather(shape.len() + input.size().min(9), &tensor), None, "gather outside");
        }
    }
}

fn input_mask(dtype: DType) -> DType {
    match dtype {
        DType::U8 | DType::U32 => dtype,
        _ => DType::Bool,
    }
}
