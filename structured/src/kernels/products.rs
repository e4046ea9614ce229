//! Matrix products of coupled sectors, over threads.
//!
//! Products with much of the arithmetic run one after the other on all threads, the others at once on one
//! thread each, those that take longest first. Neither changes the order of any sum.

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism};
use t4a_algebra::parallel::{self, SendPtr};
use t4a_algebra::{Numeric, Semiring, Standard};

use super::panels::multiply;
use crate::plan::{Group, Products, View};

/// Multiply-adds from which a product may be cut into pieces.
const MANY_STEPS: usize = 1 << 21;

/// All of C.
///
/// # Safety
/// The buffers hold, or have room for, as many elements as the plan says.
pub(super) unsafe fn run<T: Numeric>(
    plan: &Products,
    a: *const T,
    b: *const T,
    c: *mut T,
    parallel: bool,
) where
    Standard: Semiring<T>,
{
    let groups = plan.groups();
    // SAFETY: views lie in their buffers, those of C apart from each other.
    unsafe {
        if !parallel {
            return groups.iter().for_each(|x| group(plan, x, a, b, c, Parallelism::Seq));
        }
        let share = plan.steps() / parallel::threads().max(2);
        let is_large = |x: &Group| x.steps >= MANY_STEPS && 2 * x.steps >= share;
        let large = groups.iter().take_while(|x| is_large(x)).count();
        for x in &groups[..large] {
            group(plan, x, a, b, c, Parallelism::Threads(0));
        }
        let small = &groups[large..];
        let [a, b] = [a, b].map(|x| SendPtr(x.cast_mut()));
        let c = SendPtr(c);
        parallel::for_each(small.len(), true, &|i| {
            group(plan, &small[i], a.get(), b.get(), c.get(), Parallelism::Seq);
        });
    }
}

unsafe fn group<T: Numeric>(
    plan: &Products,
    group: &Group,
    a: *const T,
    b: *const T,
    c: *mut T,
    parallelism: Parallelism,
) where
    Standard: Semiring<T>,
{
    let [va, vb, vc] = plan.views();
    let to = vc[group.c as usize];
    let terms = plan.terms_of(group);
    // SAFETY: views lie in their buffers and shapes fit, which the plan has checked; nobody else writes
    // this part of C.
    unsafe {
        if terms.is_empty() {
            return (0..to.len()).for_each(|i| c.wrapping_add(to.offset + i).write(T::ZERO));
        }
        for (i, &[x, y, _]) in terms.iter().enumerate() {
            let (a, b) = (matrix(va[x as usize], a), matrix(vb[y as usize], b));
            let (rs, cs) = strides(to);
            let c = MatMut::from_raw_parts(c.wrapping_add(to.offset), (to.rows, to.cols), (rs, cs));
            multiply(a, b, c, i > 0, parallelism);
        }
    }
}

pub(super) fn strides(view: View) -> (isize, isize) {
    match view.transposed {
        false => (view.cols as isize, 1),
        true => (1, view.rows as isize),
    }
}

unsafe fn matrix<'a, T>(view: View, x: *const T) -> MatRef<'a, T> {
    let (rs, cs) = strides(view);
    // SAFETY: the view lies in the buffer.
    unsafe { MatRef::from_raw_parts(x.wrapping_add(view.offset), (view.rows, view.cols), (rs, cs)) }
}
