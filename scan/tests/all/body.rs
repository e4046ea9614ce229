//! Bodies step by step over arrays of the engine.

use t4a_diff::{Array, Eager};
use t4a_scan::ScanError;
use t4a_scan::body::{Leaves, Options, Prepared, Structure, Tree, leaf};
use t4a_tensor::TensorError;

use super::of;

struct Vector(Eager);

impl Tree<Eager> for Vector {
    fn structure(&self) -> Structure {
        Structure::Leaf
    }
    fn leaves(self, all: &mut Vec<Eager>) {
        all.push(self.0);
    }
    fn build(structure: &Structure, leaves: &mut Leaves<Eager>) -> t4a_scan::Result<Self> {
        Ok(Self(leaf(structure, leaves, 1, Array::shape)?))
    }
}

/// The error of a scan of 2⁴⁰ steps or more.
fn error<Y: Tree<Eager> + 'static>(
    step: impl Fn((), Vector, ()) -> (Vector, Y) + Send + Sync + 'static,
    options: &Options,
) -> ScanError {
    let init = Vector(of(&[1], &[1.0]));
    let scan = Prepared::new(step, (), init, (), options).unwrap();
    scan.steps.run(&scan.consts, scan.init.clone(), &scan.xs).unwrap_err()
}

/// Without ys no list is made, so the body runs until its fifth step fails.
#[test]
fn a_length_of_2_to_the_40_without_ys_takes_no_memory() {
    for reverse in [false, true] {
        let left = std::sync::atomic::AtomicUsize::new(4);
        let step = move |(): (), c: Vector, (): ()| {
            let order = std::sync::atomic::Ordering::SeqCst;
            let last = left.fetch_sub(1, order) == 0;
            (if last { Vector(of(&[2], &[1.0, 2.0])) } else { c }, ())
        };
        let options = Options::default().length(1 << 40).reverse(reverse);
        assert!(matches!(error(step, &options), ScanError::Carry { .. }));
    }
}

#[test]
fn ys_beyond_all_memory_are_an_error_at_the_first_step() {
    for length in [1usize << 46, 1 << 60, usize::MAX] {
        let step = |(): (), c: Vector, (): ()| (Vector(c.0.clone()), c);
        let error = error(step, &Options::default().length(length));
        let ScanError::Tensor(TensorError::OutOfMemory { bytes }) = error else {
            panic!("{length}: {error}")
        };
        assert!(bytes >= length);
    }
}

#[test]
fn ys_lie_at_their_places_in_both_directions() {
    for (reverse, want) in [(false, [1.0, 2.0, 3.0, 4.0]), (true, [4.0, 3.0, 2.0, 1.0])] {
        let step = |(): (), c: Vector, (): ()| {
            let next = Vector(c.0.add(&of(&[1], &[1.0])));
            (next, c)
        };
        let options = Options::default().length(4).reverse(reverse);
        let init = Vector(of(&[1], &[1.0]));
        let scan = Prepared::new(step, (), init, (), &options).unwrap();
        let [_, ys] = scan.steps.run(&scan.consts, scan.init.clone(), &scan.xs).unwrap();
        assert_eq!(t4a_diff::check::elements(&ys[0]), want);
    }
}
