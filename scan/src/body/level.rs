//! A scan at a level over another one, such as tangents or a hidden batch, as a scan of what is below: for backends
//! below that run a body as a program.
//!
//! ```text
//! level   carry         | x               one array with a tangent, say
//! below   carry, its ċ  | x, its ẋ        as many arrays as its form says
//! ```
//!
//! A carry may begin in the simplest form, without a tangent or the same for all of a batch, and a step may return it in
//! another one. Then its form is that one from the first step on, and the body is run for it once more, until
//! no form changes. Every carry changes its form once at most.

use std::sync::{Arc, Mutex, PoisonError};

use t4a_diff::Array;
use t4a_tensor::TensorError;

use super::options::Options;
use super::steps::Steps;
use crate::error::Result;

/// A level over another one.
pub trait Level: 'static {
    /// Arrays of the level.
    type Above: Array + Send + 'static;
    /// Those that they are made of.
    type Below: Array + Send + 'static;
    /// The arrays below that one array is made of. The default form is one array below; every other form can represent
    /// an array of the default form.
    type Form: Copy + Default + PartialEq + Send + Sync + 'static;

    /// The form of an array.
    fn form(x: &Self::Above) -> Self::Form;

    /// The number of arrays below in a form.
    fn parts(form: Self::Form) -> usize;

    /// The arrays below, in the form of x or in one that can represent it. With `stacked` their leading axis is the leading
    /// axis of x.
    fn lower(x: Self::Above, form: Self::Form, stacked: bool) -> Vec<Self::Below>;

    /// The array of these [`Level::parts`].
    fn raise(parts: Vec<Self::Below>, form: Self::Form, stacked: bool) -> Self::Above;
}

fn lowered<L: Level>(all: Vec<L::Above>, forms: &[L::Form], stacked: bool) -> Vec<L::Below> {
    all.into_iter().zip(forms).flat_map(|(x, &form)| L::lower(x, form, stacked)).collect()
}

fn raised<L: Level>(all: Vec<L::Below>, forms: &[L::Form], stacked: bool) -> Vec<L::Above> {
    let mut all = all.into_iter();
    let one =
        |&form: &L::Form| L::raise(all.by_ref().take(L::parts(form)).collect(), form, stacked);
    forms.iter().map(one).collect()
}

/// Known forms of results, of which a default one becomes that of its array. True if that changes one.
fn widened<L: Level>(known: &mut [L::Form], found: &[L::Above]) -> bool {
    let mut changed = false;
    for (known, x) in known.iter_mut().zip(found) {
        let (simple, form) = (L::Form::default(), L::form(x));
        if *known == simple && form != simple {
            (*known, changed) = (form, true);
        }
    }
    changed
}

/// The forms of carries and, after a first step, of ys.
struct Forms<L: Level> {
    carry: Vec<L::Form>,
    ys: Option<Vec<L::Form>>,
    /// True if a step has changed one.
    changed: bool,
}

/// The last carry and all ys, by `scan` below the level.
///
/// Cost: that of the scan below; one step more for each time that a step changes the form of a carry.
///
/// # Errors
/// Those of the steps and of `scan`.
pub fn scan_below_level<L: Level>(
    steps: &Steps<L::Above>,
    consts: &[L::Above],
    init: &[L::Above],
    xs: &[L::Above],
    options: &Options,
    scan: impl Fn(Steps<L::Below>, [Vec<L::Below>; 3], &Options) -> Result<[Vec<L::Below>; 2]>,
) -> Result<[Vec<L::Above>; 2]> {
    if steps.length == 0 {
        return steps.run(consts, init.to_vec(), xs);
    }
    let forms = |all: &[L::Above]| all.iter().map(L::form).collect::<Vec<_>>();
    let (of_consts, of_xs) = (forms(consts), forms(xs));
    let shared: Arc<Mutex<Forms<L>>> =
        Arc::new(Mutex::new(Forms { carry: forms(init), ys: None, changed: false }));
    loop {
        let of_carry = {
            let mut forms = shared.lock().unwrap_or_else(PoisonError::into_inner);
            forms.changed = false;
            forms.carry.clone()
        };
        let body = {
            let (own, shared) = (steps.clone(), shared.clone());
            let (of_consts, of_carry, of_xs) = (of_consts.clone(), of_carry.clone(), of_xs.clone());
            move |consts, carry, x| {
                let consts = raised::<L>(consts, &of_consts, false);
                let carry = raised::<L>(carry, &of_carry, false);
                let x = raised::<L>(x, &of_xs, false);
                let (carry, y) = own.step(&consts, carry, x)?;
                let of_ys = {
                    let mut forms = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut of_ys = forms.ys.clone();
                    let carries = widened::<L>(&mut forms.carry, &carry);
                    let ys = of_ys.as_mut().is_some_and(|known| widened::<L>(known, &y));
                    let of_ys = of_ys.unwrap_or_else(|| y.iter().map(L::form).collect());
                    forms.ys = Some(of_ys.clone());
                    forms.changed = carries || ys;
                    if forms.changed {
                        let message = "a step changes the form of its carry or of a y";
                        return Err(TensorError::value("scan", message).into());
                    }
                    of_ys
                };
                Ok((lowered::<L>(carry, &of_carry, false), lowered::<L>(y, &of_ys, false)))
            }
        };
        let paths = steps.paths.iter().zip(&of_carry);
        let paths =
            paths.flat_map(|(path, &form)| std::iter::repeat_n(path.clone(), L::parts(form)));
        let below = Steps {
            body: Arc::new(body),
            length: steps.length,
            reverse: steps.reverse,
            paths: Arc::new(paths.collect()),
        };
        let all = [
            lowered::<L>(consts.to_vec(), &of_consts, false),
            lowered::<L>(init.to_vec(), &of_carry, false),
            lowered::<L>(xs.to_vec(), &of_xs, true),
        ];
        let outcome = scan(below, all, options);
        let mut forms = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if forms.changed {
            continue;
        }
        let [last, ys] = outcome?;
        let of_ys = forms.ys.take().unwrap_or_default();
        return Ok([raised::<L>(last, &of_carry, false), raised::<L>(ys, &of_ys, true)]);
    }
}
