//! Matrix products of coupled sectors on several threads.
//!
//! Large products run one after another on all threads; the others run concurrently on one thread each, longest
//! first. Neither changes the order of any sum.

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism};
use t4a_algebra::parallel::{self, SendPtr};
use t4a_algebra::{Numeric, Semiring, Standard};

use super::matrix::{multiply, strides};
use crate::plan::{MatrixView, Products, TermGroup};

/// Number of multiply-adds from which one product may use several threads.
const MANY_STEPS: usize = 1 << 21;

/// Computes all of C.
///
/// # Safety
/// The buffers have the lengths of the plan; A and B are initialised.
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
    // SAFETY: views are inside of their buffers, and the views of C do not overlap.
    unsafe {
        if !parallel {
            return groups.iter().for_each(|x| group(plan, x, a, b, c, Parallelism::Seq));
        }
        let share = plan.steps() / parallel::threads().max(2);
        let is_large = |x: &TermGroup| x.steps >= MANY_STEPS && 2 * x.steps >= share;
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
    group: &TermGroup,
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
    // SAFETY: the plan has checked that the views are inside of their buffers and that the shapes match; no other
    // thread writes this view of C.
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

unsafe fn matrix<'a, T>(view: MatrixView, x: *const T) -> MatRef<'a, T> {
    let (rs, cs) = strides(view);
    // SAFETY: the view is inside of the buffer.
    unsafe { MatRef::from_raw_parts(x.wrapping_add(view.offset), (view.rows, view.cols), (rs, cs)) }
}
