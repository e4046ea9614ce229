use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::TensorError;
use crate::storage::collect;
use t4a_algebra::gemm::MatRef;

fn numbers(len: usize) -> Vec<u64> {
    (0..len as u64).collect()
}

fn out(shape: &[usize]) -> Output<u64> {
    Output::new("test", shape).unwrap()
}

#[test]
fn parts_make_up_the_whole() {
    for len in [1, 4, 7, 100] {
        for parallel in [false, true] {
            let x = out(&[5, 7]).write(|x| {
                x.par_chunks(len, parallel, |i, part| part.each(|j| (i * len + j) as u64))
            });
            assert_eq!(x.to_vec().unwrap(), numbers(35));
        }
    }
    let x = Output::<i32>::new("test", &[0, 3]).unwrap();
    assert_eq!(x.write(|x| x.par_chunks(2, true, |_, part| part.fill(1))).numel(), 0);
}

#[test]
fn blocks_of_columns_make_up_the_lines() {
    for (lines, width) in [(1, 1), (3, 4), (2, 6), (5, 7), (1, 13)] {
        let x = out(&[lines, width]).write(|x| {
            let mut x = x.block_cursor::<4>(width);
            for column in (0..width).step_by(4) {
                for line in 0..x.lines() {
                    x.push(&std::array::from_fn(|j| (line * width + column + j) as u64));
                }
            }
            x.finish()
        });
        assert_eq!(x.to_vec().unwrap(), numbers(lines * width));
    }
}

#[test]
#[should_panic(expected = "not all was written")]
fn a_missing_block_panics() {
    let _ = out(&[2, 5]).write(|x| {
        let mut x = x.block_cursor::<4>(5);
        (0..3).for_each(|_| x.push(&[0; 4]));
        x.finish()
    });
}

#[test]
fn parts_of_groups_end_with_their_group() {
    for (len, grain) in [(1, 1), (3, 2), (7, 1), (8, 5)] {
        let x = out(&[6, 7]).try_write(|x| {
            share(x.parts_of_groups(7, len), grain, true, |i, part| {
                let per_group = 7usize.div_ceil(len);
                let from = i / per_group * 7 + i % per_group * len;
                assert_eq!(part.len(), len.min(7 - i % per_group * len));
                Ok(part.each(|j| (from + j) as u64))
            })
        });
        assert_eq!(x.unwrap().to_vec().unwrap(), numbers(42));
    }
}

#[test]
fn several_runs_are_shared_out_together() {
    let mut sums = vec![0; 4];
    let made = AtomicUsize::new(0);
    let (a, none) = out(&[4, 3])
        .try_write_both(out(&[0]), |a, none| {
            let parts = ((a.parts(3), parts_mut(&mut sums, 4)), none.equal_parts(4));
            let init = || Ok(made.fetch_add(1, Ordering::Relaxed));
            let ((a, ()), none) = share_with(parts, 3, true, init, |_, i, ((a, sum), none)| {
                let a = a.each(|j| (3 * i + j) as u64);
                sum[0] = a.iter().sum();
                Ok(((a, ()), none.extend((0..9).map(|i| i as u64))))
            })?;
            Ok((a, none))
        })
        .unwrap();
    assert_eq!((a.to_vec().unwrap(), none.numel()), (numbers(12), 0));
    assert_eq!((sums, made.into_inner()), (vec![3, 12, 21, 30], 2));
}

#[test]
fn the_first_error_is_the_result() {
    let failed = out(&[100]).try_write(|x| {
        share(x.parts(1), 1, true, |i, part| match i {
            57 => Err(TensorError::value("test", "57")),
            _ => Ok(part.fill(1)),
        })
    });
    assert_eq!(failed.unwrap_err(), TensorError::value("test", "57"));
}

#[test]
fn parts_between_bounds() {
    let bounds = [0, 3, 3, 10];
    let x = out(&[10]).try_write(|x| {
        share(x.between(&bounds), 1, true, |i, part| {
            assert_eq!(part.len(), bounds[i + 1] - bounds[i]);
            Ok(part.each(|j| (bounds[i] + j) as u64))
        })
    });
    assert_eq!(x.unwrap().to_vec().unwrap(), numbers(10));
}

#[test]
#[should_panic(expected = "is_sorted")]
fn bounds_that_fall_are_refused() {
    out(&[10]).write(|x| {
        let x = share(x.between(&[0, 8, 3, 10]), 1, false, |_, part| Ok(part.fill(0)));
        x.unwrap()
    });
}

#[test]
fn columns_make_up_the_whole() {
    for width in [1, 3, 8, 50] {
        let x = out(&[2, 5, 8]).try_write(|x| {
            share(x.columns([5, 8], width), 1, true, |part, columns| {
                let groups = 8usize.div_ceil(width);
                let (matrix, from) = (part / groups, part % groups * width);
                let (rows, width) = (columns.rows(), columns.width());
                let mut done = columns.write(|_, row| row.fill(0));
                for i in 0..rows {
                    for j in 0..width {
                        done.row(i)[j] = ((matrix * 5 + i) * 8 + from + j) as u64;
                    }
                }
                Ok(done)
            })
        });
        assert_eq!(x.unwrap().to_vec().unwrap(), numbers(80));
    }
}

#[test]
fn products_are_written_into_columns() {
    let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 2.0, 5.0, 6.0, 7.0]);
    let b_cols = |from, cols| MatRef::strided(&b, from, (2, cols), (3, 1)).unwrap();
    let a = MatRef::row_major(&a, 2, 2).unwrap();
    let want = [11.0, 12.0, 16.0, 23.0, 24.0, 34.0];
    let whole = Output::<f64>::new("test", &[2, 3]).unwrap();
    let whole = whole.try_write(|x| x.product("test", a, b_cols(0, 3))).unwrap();
    assert_eq!(whole.to_vec().unwrap(), want);
    let twice = Output::<f64>::new("test", &[2, 3]).unwrap().try_write(|x| {
        share(x.columns([2, 3], 2), 1, false, |i, columns| {
            let b = b_cols(2 * i, columns.width());
            let mut done = columns.product("test", a, b)?;
            done.add_product("test", a, b)?;
            Ok(done)
        })
    });
    assert_eq!(twice.unwrap().to_vec().unwrap(), want.map(|x| 2.0 * x));
    // A sum of no terms is written too.
    let none = MatRef::row_major(&[], 2, 0).unwrap();
    let zeros = Output::<f64>::new("test", &[2, 2]).unwrap();
    let zeros = zeros.try_write(|x| x.product("test", none, none.transpose())).unwrap();
    assert_eq!(zeros.to_vec().unwrap(), [0.0; 4]);
    let refused = Output::<f64>::new("test", &[2, 2]).unwrap();
    assert!(refused.try_write(|x| x.product("test", a, none.transpose())).is_err());
}

#[test]
fn a_cursor_writes_from_front_to_back() {
    let x = out(&[3, 5]).write(|x| {
        let mut cursor = x.cursor();
        let piece = cursor.next(2).fill(0);
        cursor.done(piece);
        cursor.copy_from(&numbers(4));
        let piece = cursor.next(8).extend((10..20).map(|i| i as u64));
        cursor.done(piece);
        let none = cursor.next(0).fill(7);
        cursor.done(none);
        cursor.push(7);
        cursor.finish()
    });
    let want = [0, 0, 0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 16, 17, 7];
    assert_eq!(x.to_vec().unwrap(), want);
}

#[test]
fn workspaces_are_written_before_they_are_read() {
    let mut space = Workspace::new(10).unwrap();
    assert_eq!(*space.fresh(10).each(|i| i as u64), *numbers(10));
    let parts = space.fresh(6).together(|[a, b, c]| [a.fill(1), b.fill(2), c.fill(3)]);
    assert_eq!(*parts, [1, 1, 2, 2, 3, 3]);
    assert!(matches!(Workspace::<u128>::new(usize::MAX), Err(TensorError::OutOfMemory { .. })));
    assert!(collect("test", usize::MAX, std::iter::repeat(0u8)).is_err());
}

/// Panics unless a part of it passes for the whole.
fn forged(f: impl for<'a> FnOnce(Fresh<'a, u64>) -> Full<'a, u64> + std::panic::UnwindSafe) {
    let forged = std::panic::catch_unwind(|| out(&[4]).write(f).numel());
    assert!(forged.is_err());
}

#[test]
fn nothing_but_the_whole_passes_for_the_whole() {
    forged(|x| Fresh(&mut x.0[..3]).fill(1));
    forged(|x| Fresh(&mut x.0[1..]).fill(1));
    forged(|x| x.par_chunks(2, false, |_, part| Fresh(&mut part.0[1..]).fill(1)));
    forged(|x| x.together(|[a, b]| [b, a].map(|part| part.fill(1))));
    forged(|x| x.extend((0..3).map(|i| i as u64)));
    forged(|x| {
        let mut cursor = x.cursor();
        let piece = cursor.next(3).fill(1);
        cursor.done(piece);
        cursor.finish()
    });
    forged(|x| {
        let mut cursor = x.cursor();
        let piece = Fresh(&mut cursor.next(4).0[2..]).fill(1);
        cursor.done(piece);
        cursor.finish()
    });
    // A piece cannot be lent twice.
    forged(|x| {
        let mut cursor = x.cursor();
        let (_, again) = (cursor.next(2), cursor.next(2).fill(1));
        cursor.done(again);
        cursor.finish()
    });
    forged(|x| x.framed(1..3, 0, |x| Fresh(&mut x.0[..1]).fill(1)));
    forged(|x| x.interleave(&[1, 1], &[1]));
    forged(|x| {
        let whole = share(x.columns([2, 2], 1), 1, false, |_, columns| {
            Ok(columns.write(|_, row| Fresh(&mut row.0[1..]).fill(1)))
        });
        whole.unwrap()
    });
    forged(|x| {
        let whole = share(x.columns([2, 2], 1), 1, false, |_, mut columns| {
            let (_, again) = (columns.next(), columns.next());
            columns.done(again.fill(1));
            Ok(columns.finish())
        });
        whole.unwrap()
    });
    forged(|x| {
        // Two parts of equal size are exchanged: each is returned for the other.
        let kept = std::sync::Mutex::new(None);
        let whole = share(x.parts(2), 1, false, |_, part| {
            let mut kept = kept.lock().unwrap();
            Ok(match kept.replace(part.fill(1)) {
                Some(other) => other,
                None => Vec::leak(vec![1; 2]).into(),
            })
        });
        whole.unwrap()
    });
}

impl<'a, T> From<&'a mut [T]> for Full<'a, T> {
    fn from(elements: &'a mut [T]) -> Self {
        Self(elements)
    }
}
