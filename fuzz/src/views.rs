//! Chains of views, then an operation on the resulting view.
//!
//! The reference represents a view as a map of indices, evaluated backwards in 128-bit integers: from an index of the
//! view to an element of the first tensor. It has no strides.

use t4a_tensor::index::Span;
use t4a_tensor::layout::MAX_NUMEL;
use t4a_tensor::{AnyTensor, DType, Slice};

use crate::input::Input;
use crate::reference::{Naive, position, stored, value, values};

/// Maximum number of views in a chain.
const LENGTH: usize = 8;
/// Maximum number of elements for which operations are computed.
const FEW: usize = 2000;

/// A view operation with its arguments.
#[derive(Clone, Debug)]
enum View {
    Permute(Vec<usize>),
    SwapAxes(usize, usize),
    SliceAxis(usize, usize, usize, isize),
    Select(usize, usize),
    Flip(Vec<usize>),
    Expand(Vec<usize>),
    Diagonal(usize, usize, isize),
    Unfold(usize, usize, usize),
    Unsqueeze(usize),
    Squeeze(usize),
    Reshape(Vec<usize>),
    Slice(Vec<Slice>),
}

/// Number of elements; `None` if it, or the product of the nonzero sizes, exceeds the limit.
fn count(shape: &[usize]) -> Option<u128> {
    let others = shape.iter().filter(|&&n| n != 0).try_fold(1u128, |all, &n| {
        all.checked_mul(n as u128).filter(|&all| all <= MAX_NUMEL as u128)
    })?;
    Some(if shape.contains(&0) { 0 } else { others })
}

impl View {
    fn read(input: &mut Input<'_>, shape: &[usize]) -> Self {
        let rank = shape.len();
        let axis = |input: &mut Input<'_>| {
            if input.once_in(16) { input.size() } else { input.below(rank.max(1)) }
        };
        match input.below(13) {
            0 => {
                let mut axes: Vec<usize> = (0..rank).collect();
                for i in 0..rank {
                    let j = i + input.below(rank - i);
                    axes.swap(i, j);
                }
                if input.once_in(16) {
                    axes.push(input.size());
                }
                Self::Permute(axes)
            }
            1 => Self::SwapAxes(axis(input), axis(input)),
            2 => Self::SliceAxis(axis(input), input.size(), input.size(), input.step()),
            3 => Self::Select(axis(input), input.size()),
            4 => Self::Flip((0..input.below(3)).map(|_| axis(input)).collect()),
            5 | 6 => {
                let mut to = shape.to_vec();
                for n in &mut to {
                    if *n == 1 && !input.once_in(3) {
                        *n = input.size();
                    }
                }
                for _ in 0..input.below(3) {
                    to.insert(0, input.size());
                }
                Self::Expand(to)
            }
            7 => Self::Diagonal(axis(input), axis(input), input.step()),
            8 => Self::Unfold(axis(input), input.size(), input.size()),
            9 => Self::Unsqueeze(input.below(rank + 2)),
            10 => Self::Squeeze(axis(input)),
            11 => {
                // A factorisation of the element count, or arbitrary sizes.
                let mut rest = count(shape).unwrap_or(1);
                let mut to = Vec::new();
                for _ in 0..input.below(4) {
                    let n = input.size();
                    if n > 0 && rest.is_multiple_of(n as u128) {
                        to.push(n);
                        rest /= n as u128;
                    }
                }
                to.push(rest as usize);
                if input.once_in(8) {
                    to.push(input.size());
                }
                Self::Reshape(to)
            }
            _ => {
                let bound = |input: &mut Input<'_>| match input.below(3) {
                    0 => None,
                    _ => Some(input.step()),
                };
                let slices = input.below(rank + 2);
                Self::Slice(
                    (0..slices)
                        .map(|_| {
                            let (start, end) = (bound(input), bound(input));
                            let step = if input.once_in(2) { input.step() } else { 1 };
                            Slice { start, end, step }
                        })
                        .collect(),
                )
            }
        }
    }

    /// Shape of the view; `None` if the arguments are invalid.
    fn shape(&self, shape: &[usize]) -> Option<Vec<usize>> {
        let rank = shape.len();
        let axis = |a: usize| (a < rank).then_some(a);
        let mut out = shape.to_vec();
        match self {
            Self::Permute(axes) => {
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if sorted != (0..rank).collect::<Vec<_>>() {
                    return None;
                }
                out = axes.iter().map(|&a| shape[a]).collect();
            }
            Self::SwapAxes(a, b) => out.swap(axis(*a)?, axis(*b)?),
            &Self::SliceAxis(a, start, len, step) => {
                let size = shape[axis(a)?] as i128;
                if step == 0 {
                    return None;
                }
                if len > 0 {
                    let last = start as i128 + (len as i128 - 1) * step as i128;
                    let inside = |i: i128| i >= 0 && i < size;
                    if !inside(start as i128) || !inside(last) {
                        return None;
                    }
                }
                out[a] = len;
            }
            &Self::Select(a, i) => {
                if i >= shape[axis(a)?] {
                    return None;
                }
                out.remove(a);
            }
            Self::Flip(axes) => {
                for &a in axes {
                    axis(a)?;
                }
            }
            Self::Expand(to) => {
                let lead = to.len().checked_sub(rank)?;
                let fits = |(&have, &want): (&usize, &usize)| have == want || have == 1;
                if !shape.iter().zip(&to[lead..]).all(fits) {
                    return None;
                }
                out = to.clone();
            }
            &Self::Diagonal(a, b, k) => {
                let (n, m) = (shape[axis(a)?] as i128, shape[axis(b)?] as i128);
                if a == b {
                    return None;
                }
                let k = k as i128;
                let len = (n - (-k).max(0)).min(m - k.max(0)).max(0);
                out.remove(a.max(b));
                out.remove(a.min(b));
                out.push(len as usize);
            }
            &Self::Unfold(a, size, step) => {
                let n = shape[axis(a)?];
                if step == 0 || size > n || step > isize::MAX as usize {
                    return None;
                }
                out[a] = (n - size) / step + 1;
                out.push(size);
            }
            &Self::Unsqueeze(a) => {
                if a > rank {
                    return None;
                }
                out.insert(a, 1);
            }
            &Self::Squeeze(a) => {
                if shape[axis(a)?] != 1 {
                    return None;
                }
                out.remove(a);
            }
            Self::Reshape(to) => {
                if count(to)? != count(shape)? {
                    return None;
                }
                out = to.clone();
            }
            Self::Slice(slices) => {
                if slices.len() > rank {
                    return None;
                }
                for (a, slice) in slices.iter().enumerate() {
                    out[a] = python(slice, shape[a])?.1;
                }
            }
        }
        count(&out)?;
        Some(out)
    }

    /// Maps an index of the view to an index of its source, which has shape `shape`.
    fn source(&self, shape: &[usize], index: &[usize]) -> Vec<usize> {
        let mut from = index.to_vec();
        match self {
            Self::Permute(axes) => {
                for (&a, &i) in axes.iter().zip(index) {
                    from[a] = i;
                }
            }
            Self::SwapAxes(a, b) => from.swap(*a, *b),
            &Self::SliceAxis(a, start, _, step) => {
                from[a] = (start as i128 + index[a] as i128 * step as i128) as usize;
            }
            &Self::Select(a, i) => from.insert(a, i),
            Self::Flip(axes) => {
                for &a in axes {
                    from[a] = shape[a] - 1 - from[a];
                }
            }
            Self::Expand(to) => {
                from = index[to.len() - shape.len()..].to_vec();
                for (i, &n) in from.iter_mut().zip(shape) {
                    *i = (*i).min(n - 1);
                }
            }
            &Self::Diagonal(a, b, k) => {
                let i = index[index.len() - 1];
                from.pop();
                let (low, high) = (a.min(b), a.max(b));
                from.insert(low, 0);
                from.insert(high, 0);
                from[a] = i + k.min(0).unsigned_abs();
                from[b] = i + k.max(0) as usize;
            }
            &Self::Unfold(a, _, step) => {
                let inner = from.pop().unwrap_or(0);
                from[a] = index[a] * step + inner;
            }
            &Self::Unsqueeze(a) => {
                from.remove(a);
            }
            &Self::Squeeze(a) => from.insert(a, 0),
            Self::Reshape(to) => {
                let mut rest = position(to, index);
                from = vec![0; shape.len()];
                for axis in (0..shape.len()).rev() {
                    from[axis] = rest % shape[axis];
                    rest /= shape[axis];
                }
            }
            Self::Slice(slices) => {
                for (a, slice) in slices.iter().enumerate() {
                    let start = python(slice, shape[a]).map_or(0, |(start, _)| start);
                    from[a] = (start + index[a] as i128 * slice.step as i128) as usize;
                }
            }
        }
        from
    }

    fn run(&self, x: &AnyTensor) -> Result<AnyTensor, t4a_tensor::TensorError> {
        match self {
            Self::Permute(axes) => x.permute(axes),
            &Self::SwapAxes(a, b) => x.swap_axes(a, b),
            &Self::SliceAxis(a, start, len, step) => x.slice_axis(a, start, len, step),
            &Self::Select(a, i) => x.select(a, i),
            Self::Flip(axes) => x.flip(axes),
            Self::Expand(to) => x.expand(to),
            &Self::Diagonal(a, b, k) => x.diagonal(a, b, k),
            &Self::Unfold(a, size, step) => x.unfold(a, size, step),
            &Self::Unsqueeze(a) => x.unsqueeze(a),
            &Self::Squeeze(a) => x.squeeze(a),
            Self::Reshape(to) => x.reshape(to),
            Self::Slice(slices) => x.slice(slices),
        }
    }
}

/// First index and length of a slice with Python semantics.
fn python(slice: &Slice, size: usize) -> Option<(i128, usize)> {
    let (n, step) = (size as i128, slice.step as i128);
    let at = |bound: Option<isize>, default: i128| match bound {
        None => default,
        Some(b) => {
            let b = b as i128;
            let b = if b < 0 { b + n } else { b };
            if step > 0 { b.clamp(0, n) } else { b.clamp(-1, n - 1) }
        }
    };
    let (start, end) = match step {
        0 => return None,
        1.. => (at(slice.start, 0), at(slice.end, n)),
        _ => (at(slice.start, n - 1), at(slice.end, -1)),
    };
    let distance = if step > 0 { end - start } else { start - end };
    let len = if distance > 0 { (distance + step.abs() - 1) / step.abs() } else { 0 };
    Some((start, len as usize))
}

/// Runs one case.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let dtype = input.pick(&DType::ALL);
    let base = input.small_shape(4);
    let mut x = values(&base, dtype);
    // Every view with the shape of its source.
    let mut chain: Vec<(View, Vec<usize>)> = Vec::new();
    for _ in 0..LENGTH {
        if input.is_over() {
            break;
        }
        let view = View::read(&mut input, x.shape());
        let copies = matches!(view, View::Reshape(_)) && x.numel() > FEW;
        if copies && !matches!(x.layout().reshape(&[x.numel()]), Ok(Some(_))) {
            // A reshape that may require a copy.
            continue;
        }
        let want = view.shape(x.shape());
        match (view.run(&x), want) {
            (Ok(out), Some(shape)) => {
                assert_eq!(out.shape(), shape, "{view:?} of {:?}", x.shape());
                let of = x.shape().to_vec();
                chain.push((view, of));
                x = out;
            }
            (Err(_), None) => {}
            (got, want) => panic!("{view:?} of {:?}: {got:?} instead of {want:?}", x.shape()),
        }
    }
    let shown = |index: &[usize]| {
        let mut index = index.to_vec();
        for (view, of) in chain.iter().rev() {
            index = view.source(of, &index);
        }
        stored(value(position(&base, &index)), dtype)
    };
    if x.numel() > FEW {
        look(&x, &mut input, &shown);
        return;
    }
    let naive = Naive::build(x.shape(), shown);
    assert_eq!(Naive::of(&x), naive, "{chain:?}");
    operate(&x, &naive, &mut input);
}

/// Compares some elements of a large view, through views of one element.
fn look(x: &AnyTensor, input: &mut Input<'_>, shown: &dyn Fn(&[usize]) -> f64) {
    for _ in 0..4 {
        let index: Vec<usize> = x.shape().iter().map(|&n| input.word() as usize % n).collect();
        let mut one = x.clone();
        for (axis, &i) in index.iter().enumerate() {
            one = one.slice_axis(axis, i, 1, 1).expect("an index inside");
        }
        assert_eq!(Naive::of(&one).data, [shown(&index)]);
    }
}

/// An operation on a view with few elements.
fn operate(x: &AnyTensor, naive: &Naive, input: &mut Input<'_>) {
    let (shape, dtype) = (naive.shape.clone(), x.dtype());
    let rank = shape.len();
    let same = |got: &AnyTensor, want: &Naive| assert_eq!(&Naive::of(got), want);
    match input.below(8) {
        0 => same(&x.to_contiguous().expect("few elements"), naive),
        1 => {
            // Logical reductions: exact in every dtype.
            let axes: Vec<usize> = (0..rank).filter(|_| input.once_in(2)).collect();
            let mut kept = shape.clone();
            axes.iter().for_each(|&a| kept[a] = 1);
            if count(&kept).is_none_or(|n| n > FEW as u128) {
                // A reduction of an empty tensor to many elements is skipped.
                return;
            }
            let out = x.any(&axes).expect("axes inside");
            let mut want = Naive::build(&kept, |_| 0.0);
            for index in crate::reference::indices(&shape) {
                let mut to = index.clone();
                axes.iter().for_each(|&a| to[a] = 0);
                if naive.at(&index) != 0.0 {
                    want.data[position(&kept, &to)] = 1.0;
                }
            }
            same(&out, &want);
        }
        2 => {
            let other = values(&shape, dtype).flip(&(0..rank).collect::<Vec<_>>());
            let other = other.expect("axes inside");
            let theirs = Naive::of(&other);
            let equal = x.clone().equal(other).expect("equal shapes");
            let want = Naive::build(&shape, |i| f64::from(naive.at(i) == theirs.at(i)));
            same(&equal, &want);
        }
        3 if rank > 0 && !dtype.is_complex() => {
            let axis = input.below(rank);
            let sorted = x.clone().sort(axis, input.once_in(2)).expect("an axis inside");
            let back = sorted.sort(axis, false).expect("an axis inside");
            let mut want = naive.clone();
            let n = shape[axis];
            for index in crate::reference::indices(&shape).filter(|i| i[axis] == 0) {
                let lane = |i: usize| {
                    let mut at = index.clone();
                    at[axis] = i;
                    at
                };
                let mut lane_values: Vec<f64> = (0..n).map(|i| naive.at(&lane(i))).collect();
                lane_values.sort_by(f64::total_cmp);
                for (i, v) in lane_values.into_iter().enumerate() {
                    want.data[position(&shape, &lane(i))] = v;
                }
            }
            same(&back, &want);
        }
        4 if rank > 0 => {
            let axis = input.below(rank);
            let mut longer = shape.clone();
            longer[axis] *= 2;
            let twice = AnyTensor::cat(&[x.clone(), x.clone()], axis);
            if count(&longer).is_none() {
                assert!(twice.is_err() && x.repeat(axis, 2).is_err());
                return;
            }
            let twice = twice.expect("equal shapes");
            let want = Naive::build(&longer, |i| {
                let mut i = i.to_vec();
                i[axis] %= shape[axis];
                naive.at(&i)
            });
            same(&twice, &want);
            same(&x.repeat(axis, 2).expect("few elements"), &want);
        }
        5 => {
            // A region of a tensor, with shared or uniquely owned memory.
            let spans: Vec<Span> = (0..input.below(rank + 1))
                .map(|_| Span { start: input.size(), len: input.size(), step: input.step() })
                .collect();
            let region = |i: &[usize]| -> Option<Vec<usize>> {
                let mut at = i.to_vec();
                for (a, span) in spans.iter().enumerate() {
                    let off = i[a] as i128 - span.start as i128;
                    let k = off / span.step as i128;
                    if k * span.step as i128 != off || k < 0 || k >= span.len as i128 {
                        return None;
                    }
                    at[a] = k as usize;
                }
                Some(at)
            };
            let valid = spans.iter().zip(&shape).all(|(s, &n)| {
                let view = View::SliceAxis(0, s.start, s.len, s.step);
                view.shape(&[n]).is_some()
            });
            let one = values(&[], dtype);
            let keep = x.clone();
            match x.clone().slice_assign(&spans, &one) {
                Ok(out) => {
                    assert!(valid, "{spans:?} of {shape:?}");
                    let new = stored(value(0), dtype);
                    let want = Naive::build(&shape, |i| match region(i) {
                        Some(_) => new,
                        None => naive.at(i),
                    });
                    same(&out, &want);
                }
                Err(_) => assert!(!valid, "{spans:?} of {shape:?}"),
            }
            same(&keep, naive);
        }
        6 => {
            let all: Vec<usize> = (0..rank).collect();
            if let Ok(out) = x.max(&all) {
                let most = naive.data.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(Naive::of(&out).data, [most]);
            } else {
                assert!(naive.data.is_empty() || dtype.is_complex() || dtype == DType::Bool);
            }
        }
        _ => {
            let found = x.nonzero(DType::I64).expect("few elements");
            let rows: Vec<Vec<usize>> =
                crate::reference::indices(&shape).filter(|i| naive.at(i) != 0.0).collect();
            assert_eq!(found.shape(), [rows.len(), rank]);
            let flat: Vec<f64> = rows.concat().into_iter().map(|i| i as f64).collect();
            assert_eq!(Naive::of(&found).data, flat);
        }
    }
}
