//! Data movement: gather, select, masks, nonzero, regions.

use super::{index_layouts, index_of, replaced, resized};
use crate::any::{AnyTensor, FromNumber, Number};
use crate::dtype::{DType, Element};
use crate::index::{self, Span};
use crate::kernels::compare::Truth;
use crate::tensor::Tensor;
use crate::testing::{SHAPES, elements, layouts, layouts_of, naive, value};
use crate::with_dtype;

fn ints() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_int())
}

/// Runs a typed row for every dtype.
macro_rules! every_dtype {
    ($row:ident) => {
        for dtype in DType::ALL {
            with_dtype!(dtype, T in all => $row::<T>(), else => unreachable!());
        }
    };
}

fn gather_row<T: Element + FromNumber>() {
    for shape in SHAPES {
        for axis in 0..shape.len() {
            let wanted = resized(shape, axis);
            for (name, x) in layouts::<T>(shape) {
                for (index_name, i) in index_layouts(&wanted, shape[axis]) {
                    let got = index::gather(&x, axis, &i).unwrap();
                    let want = naive(&wanted, |at| {
                        x.get(&replaced(at, axis, i.get(at).unwrap() as usize)).unwrap()
                    });
                    assert_eq!(elements(&got), want, "{name} {index_name} {shape:?} {axis}");
                }
            }
        }
    }
}

#[test]
fn gather_reads_where_the_index_says() {
    // One row per element size, and a size that is none of them.
    gather_row::<bool>();
    gather_row::<t4a_algebra::bf16>();
    gather_row::<f32>();
    gather_row::<t4a_algebra::c32>();
    gather_row::<t4a_algebra::c64>();
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Triple([u8; 3]);
impl t4a_algebra::Scalar for Triple {}

#[test]
fn elements_of_odd_sizes_move_too() {
    let f = |i: usize| Triple([i as u8, (i / 256) as u8, 7]);
    for (name, x) in layouts_of(&[5, 6], f) {
        for (index_name, i) in index_layouts(&[5, 9], 6) {
            let got = index::gather(&x, 1, &i).unwrap();
            let want = naive(&[5, 9], |at| x.get(&[at[0], i.get(at).unwrap() as usize]).unwrap());
            assert_eq!(elements(&got), want, "{name} {index_name}");
        }
        let assigned = index::slice_assign(x.clone(), &[], &x.flip(&[0]).unwrap()).unwrap();
        assert_eq!(elements(&assigned), elements(&x.flip(&[0]).unwrap()), "{name}");
    }
}

#[test]
fn an_index_may_have_any_integer_type() {
    let x = AnyTensor::from(Tensor::from_fn(&[4, 6], |i| i as f32).unwrap());
    let i = Tensor::from_vec(vec![5, 0, 3, 3, 1, 2, 0, 5], &[4, 2]).unwrap();
    let rows = Tensor::from_vec(vec![3, 0, 0], &[3]).unwrap();
    for dtype in ints() {
        let got = x.gather(1, &index_of(dtype, &i)).unwrap();
        let want = [5., 0., 9., 9., 13., 14., 18., 23.];
        assert_eq!(got.typed::<f32>().unwrap().to_vec().unwrap(), want, "{dtype}");
        let got = x.index_select(0, &index_of(dtype, &rows)).unwrap();
        let want = x.typed::<f32>().unwrap();
        for (r, from) in [3, 0, 0].into_iter().enumerate() {
            for c in 0..6 {
                assert_eq!(got.typed::<f32>().unwrap().get(&[r, c]), want.get(&[from, c]));
            }
        }
    }
}

fn select_row<T: Element + FromNumber>() {
    for shape in SHAPES {
        for axis in 0..shape.len() {
            let len = resized(shape, axis)[axis];
            for (name, x) in layouts::<T>(shape) {
                for (index_name, i) in index_layouts(&[len], shape[axis]) {
                    let any = AnyTensor::from(x.clone());
                    let got = any.index_select(axis, &i.clone().into()).unwrap();
                    let wanted = replaced(shape, axis, len);
                    let want = naive(&wanted, |at| {
                        x.get(&replaced(at, axis, i.get(&at[axis..=axis]).unwrap() as usize))
                            .unwrap()
                    });
                    let got = elements(got.typed::<T>().unwrap());
                    assert_eq!(got, want, "{name} {index_name} {shape:?} {axis}");
                }
            }
        }
    }
}

#[test]
fn index_select_takes_slices() {
    every_dtype!(select_row);
}

#[test]
fn large_gathers_on_threads_agree() {
    let x = Tensor::from_fn(&[700, 500], |i| i as u32).unwrap();
    for x in [x.clone(), x.permute(&[1, 0]).unwrap()] {
        let [rows, cols] = [x.shape()[0], x.shape()[1]];
        for (axis, size) in [(0, rows), (1, cols)] {
            let (_, i) = index_layouts(&[rows, cols], size).remove(0);
            let got = index::gather(&x, axis, &i).unwrap();
            let want = naive(&[rows, cols], |at| {
                x.get(&replaced(at, axis, i.get(at).unwrap() as usize)).unwrap()
            });
            assert_eq!(elements(&got), want);
        }
    }
}

/// Rows that share their indices read them once per tile: of many rows, and of parts of long rows.
#[test]
fn rows_share_a_long_index() {
    for (rows, cols) in [(700, 50), (3, 2500)] {
        let x = Tensor::from_fn(&[rows, cols], |i| i as u8).unwrap();
        let at = |i: usize| i * 7919 % cols;
        let wide = Tensor::from_fn(&[cols], |i| at(i) as i64).unwrap();
        let narrow = Tensor::from_fn(&[cols], |i| at(i) as i16).unwrap();
        let want = naive(&[rows, cols], |i| x.get(&[i[0], at(i[1])]).unwrap());
        assert_eq!(elements(&index::index_select(&x, 1, &wide).unwrap()), want);
        assert_eq!(elements(&index::index_select(&x, 1, &narrow).unwrap()), want);
        let index = wide.expand(&[rows, cols]).unwrap();
        assert_eq!(elements(&index::gather(&x, 1, &index).unwrap()), want);
    }
}

fn nd_row<T: Element + FromNumber>() {
    for shape in SHAPES {
        for k in 0..=shape.len() {
            for prefix in [&[][..], &[3], &[2, 4]] {
                if shape[..k].contains(&0) {
                    continue;
                }
                let mut index_shape = prefix.to_vec();
                index_shape.push(k);
                let limit = shape[..k].iter().copied().min().unwrap_or(1);
                for (index_name, i) in index_layouts(&index_shape, limit) {
                    for (name, x) in layouts::<T>(shape) {
                        let any = AnyTensor::from(x.clone());
                        let got = any.gather_nd(&i.clone().into()).unwrap();
                        let mut wanted = prefix.to_vec();
                        wanted.extend_from_slice(&shape[k..]);
                        let want = naive(&wanted, |at| {
                            let (tuple, rest) = at.split_at(prefix.len());
                            let mut from: Vec<usize> = (0..k)
                                .map(|j| i.get(&[tuple, &[j]].concat()).unwrap() as usize)
                                .collect();
                            from.extend_from_slice(rest);
                            x.get(&from).unwrap()
                        });
                        assert_eq!(got.shape(), wanted);
                        let got = elements(got.typed::<T>().unwrap());
                        assert_eq!(got, want, "{name} {index_name} {shape:?} {k}");
                    }
                }
            }
        }
    }
}

#[test]
fn gather_nd_reads_where_the_tuples_say() {
    nd_row::<f32>();
    nd_row::<bool>();
    nd_row::<t4a_algebra::c64>();
}

fn mask_row<T: Element + FromNumber>() {
    for shape in [&[][..], &[7], &[37, 66], &[2, 3, 41], &[0, 4]] {
        let others = layouts_of(shape, |i| value::<T>(i + 1000));
        for ((name, x), (_, v)) in layouts::<T>(shape).into_iter().zip(others.into_iter().rev()) {
            for (mask_name, mask) in layouts::<bool>(shape) {
                let context = format!("{} {name} {mask_name} {shape:?}", T::DTYPE);
                let pick = |at: &[usize], other: T| {
                    if mask.get(at).unwrap() { other } else { x.get(at).unwrap() }
                };
                let any = AnyTensor::from(x.clone());
                let got = any.mask_where(mask.clone().into(), v.clone().into()).unwrap();
                let want = naive(shape, |at| pick(at, v.get(at).unwrap()));
                assert_eq!(elements(got.typed::<T>().unwrap()), want, "{context}");

                let fill = Number::Int(1);
                let got = AnyTensor::from(x.clone()).mask_fill(mask.clone().into(), fill).unwrap();
                let want = naive(shape, |at| pick(at, fill.to()));
                assert_eq!(elements(got.typed::<T>().unwrap()), want, "{context}");
            }
        }
    }
}

#[test]
fn masks_choose_between_two_tensors() {
    every_dtype!(mask_row);
}

#[test]
fn masks_may_be_bytes_or_words_and_broadcast() {
    let x = AnyTensor::from(Tensor::from_fn(&[2, 3], |i| i as f64).unwrap());
    let bytes = AnyTensor::from(Tensor::from_vec(vec![0u8, 1, 7], &[3]).unwrap());
    let words = AnyTensor::from(Tensor::from_vec(vec![0u32, 1, 256], &[1, 3]).unwrap());
    for mask in [bytes, words] {
        let got = x.clone().mask_fill(mask.clone(), Number::Float(-1.0)).unwrap();
        let want = [0., -1., -1., 3., -1., -1.];
        assert_eq!(got.typed::<f64>().unwrap().to_vec().unwrap(), want);
        let column = AnyTensor::from(Tensor::from_vec(vec![10., 20.], &[2, 1]).unwrap());
        let got = x.clone().mask_where(mask, column).unwrap();
        let want = [0., 10., 10., 3., 20., 20.];
        assert_eq!(got.typed::<f64>().unwrap().to_vec().unwrap(), want);
    }
}

#[test]
fn a_mask_fill_overwrites_a_unique_tensor() {
    let x = Tensor::full(&[100, 100], 2.0f32).unwrap();
    let mask = Tensor::full(&[100, 100], true).unwrap();
    let ptr = x.as_ptr();
    assert_eq!(index::mask_fill(x, mask, 1.0).unwrap().as_ptr(), ptr);
}

fn nonzero_row<T: Element + FromNumber + Truth>() {
    for shape in SHAPES {
        for (name, x) in layouts::<T>(shape) {
            let got = AnyTensor::from(x.clone()).nonzero(DType::I16).unwrap();
            let want: Vec<i16> = crate::testing::indices(shape)
                .filter(|at| x.get(at).unwrap() != Number::Int(0).to::<T>())
                .flatten()
                .map(|i| i as i16)
                .collect();
            assert_eq!(got.shape()[1], shape.len());
            assert_eq!(elements(got.typed::<i16>().unwrap()), want, "{name} {shape:?}");
        }
    }
}

#[test]
fn nonzero_lists_the_indices_in_order() {
    every_dtype!(nonzero_row);
    // More than one chunk, and rows that cross their borders.
    let x = Tensor::from_fn(&[371, 1003], |i| i % 7 == 3 || i % 65536 == 0).unwrap();
    let got: Tensor<u32> = index::nonzero(&x).unwrap();
    let want: Vec<u32> = (0..371 * 1003u32)
        .filter(|i| i % 7 == 3 || i % 65536 == 0)
        .flat_map(|i| [i / 1003, i % 1003])
        .collect();
    assert_eq!(elements(&got), want);
    assert_eq!(
        elements(&index::nonzero::<_, i8>(&Tensor::full(&[], f32::NAN).unwrap()).unwrap()),
        []
    );
}

fn assign_row<T: Element + FromNumber>() {
    let spans = |spans: &[(usize, usize, isize)]| -> Vec<Span> {
        spans.iter().map(|&(start, len, step)| Span { start, len, step }).collect()
    };
    let rows: [(&[usize], Vec<Span>); 7] = [
        (&[], vec![]),
        (&[7], spans(&[(6, 4, -2)])),
        (&[37, 66], spans(&[(3, 30, 1), (65, 22, -3)])),
        (&[37, 66], spans(&[(36, 37, -1)])),
        (&[2, 3, 41], spans(&[(0, 2, 1), (1, 1, 5), (0, 41, 1)])),
        (&[2, 3, 41], spans(&[(0, 2, 1), (1, 0, 1)])),
        (&[7, 3, 11, 2], spans(&[(1, 3, 2), (2, 3, -1), (10, 5, -2), (0, 2, 1)])),
    ];
    for (shape, spans) in rows {
        let region: Vec<usize> = shape
            .iter()
            .enumerate()
            .map(|(axis, &size)| spans.get(axis).map_or(size, |s| s.len))
            .collect();
        for (name, x) in layouts::<T>(shape) {
            for (value_name, v) in layouts_of(&region, |i| value::<T>(i + 500)) {
                let mut want = elements(&x);
                for at in crate::testing::indices(&region) {
                    let to = at.iter().enumerate().fold(0, |to, (axis, &i)| {
                        let span = spans.get(axis);
                        let i =
                            span.map_or(i, |s| (s.start as isize + i as isize * s.step) as usize);
                        to * shape[axis] + i
                    });
                    want[to] = v.get(&at).unwrap();
                }
                let x = AnyTensor::from(x.clone());
                let got = x.slice_assign(&spans, &v.into()).unwrap();
                let got = elements(got.typed::<T>().unwrap());
                assert_eq!(got, want, "{name} {value_name} {shape:?} {spans:?}");
            }
        }
    }
}

#[test]
fn slice_assign_writes_the_region_and_nothing_else() {
    every_dtype!(assign_row);
}

#[test]
fn slice_assign_overwrites_unique_memory_and_spares_shared() {
    let x = Tensor::<f32>::zeros(&[40, 50]).unwrap();
    let ones = Tensor::full(&[50], 1.0f32).unwrap();
    let row = [Span { start: 3, len: 1, step: 1 }];
    let ptr = x.as_ptr();
    let x = index::slice_assign(x, &row, &ones).unwrap();
    assert_eq!(x.as_ptr(), ptr);
    let y = index::slice_assign(x.clone(), &[], &ones).unwrap();
    assert_ne!(y.as_ptr(), ptr);
    assert_eq!(x.to_vec().unwrap().iter().sum::<f32>(), 50.0);
    // A unique view keeps the rest of its memory.
    drop(y);
    let view = x.permute(&[1, 0]).unwrap();
    drop(x);
    let view = index::slice_assign(
        view,
        &[Span { start: 0, len: 1, step: 1 }],
        &ones.slice_axis(0, 0, 40, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(view.as_ptr(), ptr);
    assert_eq!(view.to_vec().unwrap().iter().sum::<f32>(), 50.0 + 39.0);
}

fn cat_row<T: Element + FromNumber>() {
    for shape in [&[7][..], &[3, 5], &[37, 66], &[2, 3, 41], &[0, 4], &[3, 0, 2]] {
        for axis in 0..shape.len() {
            let parts: Vec<(&str, Tensor<T>)> = (0..3)
                .flat_map(|n| layouts_of(&replaced(shape, axis, n), move |i| value(i + n)))
                .collect();
            let tensors: Vec<AnyTensor> = parts.iter().map(|(_, x)| x.clone().into()).collect();
            let got = AnyTensor::cat(&tensors, axis).unwrap();
            let owner: Vec<(usize, usize)> = tensors
                .iter()
                .enumerate()
                .flat_map(|(n, x)| (0..x.shape()[axis]).map(move |i| (n, i)))
                .collect();
            let want = naive(&replaced(shape, axis, owner.len()), |at| {
                let (n, i) = owner[at[axis]];
                parts[n].1.get(&replaced(at, axis, i)).unwrap()
            });
            assert_eq!(elements(got.typed::<T>().unwrap()), want, "{shape:?} {axis}");

            for (name, x) in layouts::<T>(shape) {
                for times in [0, 1, 3] {
                    let got = AnyTensor::from(x.clone()).repeat(axis, times).unwrap();
                    let wanted = replaced(shape, axis, shape[axis] * times);
                    assert_eq!(got.shape(), wanted);
                    let want = naive(&wanted, |at| {
                        x.get(&replaced(at, axis, at[axis] % shape[axis])).unwrap()
                    });
                    assert_eq!(elements(got.typed::<T>().unwrap()), want, "{name} {shape:?}");
                }
            }
        }
    }
}

#[test]
fn long_rows_are_joined_front_to_back() {
    let shape = [5, 3, 40];
    for axis in 0..3 {
        let part = |n: usize| {
            let first = (1000 * n) as i32;
            let elements = move |i| first + i as i32;
            AnyTensor::from(Tensor::from_fn(&replaced(&shape, axis, 30 + n), elements).unwrap())
        };
        let rows = [part(0), part(1), part(2)];
        let got = AnyTensor::cat(&rows, axis).unwrap();
        let mut start = 0;
        for x in &rows {
            let (all, x) = (got.typed::<i32>().unwrap(), x.typed::<i32>().unwrap());
            let piece = all.slice_axis(axis, start, x.shape()[axis], 1).unwrap();
            start += x.shape()[axis];
            assert_eq!(elements(&piece), elements(x));
        }
    }
}

#[test]
fn cat_and_repeat_join_along_the_axis() {
    every_dtype!(cat_row);
}
