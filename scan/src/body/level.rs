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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use t4a_diff::{Array, Value};
use t4a_tensor::TensorError;

use super::options::Options;
use super::repeat::Repeated;
use super::steps::{Flat, Steps};
use crate::error::Result;

/// A level over another one.
pub trait Level: 'static {
    /// Arrays of the level.
    type Above: Array<Integers: Send, Flags: Send> + Send + 'static;
    /// Those that they are made of.
    type Below: Array<Integers: Send, Flags: Send> + Send + 'static;
    /// The arrays below that one array is made of. The default form is one array below; every other form can represent
    /// an array of the default form.
    type Form: Copy + Default + PartialEq + Send + Sync + 'static;

    /// The form of an array.
    fn form(x: &Value<Self::Above>) -> Self::Form;

    /// The number of arrays below in a form.
    fn parts(form: Self::Form) -> usize;

    /// The arrays below, in the form of x or in one that can represent it. With `stacked` their leading axis is the leading
    /// axis of x.
    fn lower(x: Value<Self::Above>, form: Self::Form, stacked: bool) -> Flat<Self::Below>;

    /// The array of these [`Level::parts`].
    fn raise(parts: Flat<Self::Below>, form: Self::Form, stacked: bool) -> Value<Self::Above>;
}

fn lowered<L: Level>(all: Flat<L::Above>, forms: &[L::Form], stacked: bool) -> Flat<L::Below> {
    all.into_iter().zip(forms).flat_map(|(x, &form)| L::lower(x, form, stacked)).collect()
}

fn raised<L: Level>(all: Flat<L::Below>, forms: &[L::Form], stacked: bool) -> Flat<L::Above> {
    let mut all = all.into_iter();
    let one =
        |&form: &L::Form| L::raise(all.by_ref().take(L::parts(form)).collect(), form, stacked);
    forms.iter().map(one).collect()
}

/// Forms of two lists of results, recorded as steps run.
struct RecordedForms<L: Level> {
    /// `None` before a list was made for the first time.
    forms: [Option<Vec<L::Form>>; 2],
    /// True if results have changed one.
    changed: bool,
}

/// Forms shared by the steps of one loop.
struct SharedForms<L: Level>(Arc<Mutex<RecordedForms<L>>>);

impl<L: Level> Clone for SharedForms<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: Level> SharedForms<L> {
    fn new(forms: [Option<Vec<L::Form>>; 2]) -> Self {
        Self(Arc::new(Mutex::new(RecordedForms { forms, changed: false })))
    }

    fn known(&self) -> MutexGuard<'_, RecordedForms<L>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The forms of a list, as far as they are known.
    fn forms(&self, list: usize) -> Vec<L::Form> {
        self.known().forms[list].clone().unwrap_or_default()
    }

    /// Results below, in the forms of their list.
    ///
    /// # Errors
    /// If a result has another form than the default one that was known: that one is known from now on.
    fn lower(&self, list: usize, all: Flat<L::Above>) -> Result<Flat<L::Below>> {
        let found: Vec<L::Form> = all.iter().map(L::form).collect();
        let forms = {
            let mut known = self.known();
            let forms = known.forms[list].get_or_insert_with(|| found.clone());
            let mut changed = false;
            for (form, found) in forms.iter_mut().zip(found) {
                if *form == L::Form::default() && found != L::Form::default() {
                    (*form, changed) = (found, true);
                }
            }
            let forms = forms.clone();
            known.changed |= changed;
            if changed {
                let message = "a step changes the form of a result";
                return Err(TensorError::value("scan", message).into());
            }
            forms
        };
        Ok(lowered::<L>(all, &forms, false))
    }

    /// Runs until no result changes a form.
    fn settled<R>(&self, mut run: impl FnMut() -> Result<R>) -> Result<R> {
        loop {
            self.known().changed = false;
            let outcome = run();
            if !self.known().changed {
                return outcome;
            }
        }
    }
}

fn forms<L: Level>(all: &[Value<L::Above>]) -> Vec<L::Form> {
    all.iter().map(L::form).collect()
}

/// Paths of the arrays below.
fn paths<L: Level>(paths: &[String], forms: &[L::Form]) -> Arc<Vec<String>> {
    let all = paths.iter().zip(forms);
    Arc::new(
        all.flat_map(|(path, &form)| std::iter::repeat_n(path.clone(), L::parts(form))).collect(),
    )
}

/// The last carry and all ys, by `scan` below the level.
///
/// Cost: that of the scan below; one step more for each time that a step changes the form of a carry.
///
/// # Errors
/// Those of the steps and of `scan`.
pub fn scan_below_level<L: Level>(
    steps: &Steps<L::Above>,
    consts: &[Value<L::Above>],
    init: &[Value<L::Above>],
    xs: &[Value<L::Above>],
    options: &Options,
    scan: impl Fn(Steps<L::Below>, [Flat<L::Below>; 3], &Options) -> Result<[Flat<L::Below>; 2]>,
) -> Result<[Flat<L::Above>; 2]> {
    if steps.length == 0 {
        return steps.run(consts, init.to_vec(), xs);
    }
    let (of_consts, of_xs) = (forms::<L>(consts), forms::<L>(xs));
    let shared = SharedForms::<L>::new([Some(forms::<L>(init)), None]);
    shared.settled(|| {
        let of_carry = shared.forms(0);
        let body = {
            let (own, shared) = (steps.clone(), shared.clone());
            let (of_consts, of_carry, of_xs) = (of_consts.clone(), of_carry.clone(), of_xs.clone());
            move |consts, carry, x| {
                let consts = raised::<L>(consts, &of_consts, false);
                let carry = raised::<L>(carry, &of_carry, false);
                let (carry, y) = own.step(&consts, carry, raised::<L>(x, &of_xs, false))?;
                Ok((shared.lower(0, carry)?, shared.lower(1, y)?))
            }
        };
        let below = Steps {
            body: Arc::new(body),
            length: steps.length,
            reverse: steps.reverse,
            paths: paths::<L>(&steps.paths, &of_carry),
        };
        let all = [
            lowered::<L>(consts.to_vec(), &of_consts, false),
            lowered::<L>(init.to_vec(), &of_carry, false),
            lowered::<L>(xs.to_vec(), &of_xs, true),
        ];
        let [last, ys] = scan(below, all, options)?;
        let of_ys = shared.forms(1);
        Ok([raised::<L>(last, &of_carry, false), raised::<L>(ys, &of_ys, true)])
    })
}

/// [`iterate`](super::iterate) of a level, by `run` below it. The tests of the loop give one truth value of the default form.
///
/// # Errors
/// Those of the steps and of `run`.
pub fn iterate_below_level<L: Level>(
    repeated: &Repeated<L::Above>,
    consts: &[Value<L::Above>],
    init: &[Value<L::Above>],
    given: &[Value<L::Above>],
    run: impl Fn(Repeated<L::Below>, [Flat<L::Below>; 3]) -> Result<Flat<L::Below>>,
) -> Result<Flat<L::Above>> {
    let of_consts = forms::<L>(consts);
    let shared = SharedForms::<L>::new([Some(forms::<L>(init)), Some(forms::<L>(given))]);
    shared.settled(|| {
        let forms = [shared.forms(0), shared.forms(1)];
        // A step whose carry has the forms of one list; the x of a step back is a carry.
        let below = |steps: &Steps<L::Above>, list: usize| {
            let (own, shared, forms) = (steps.clone(), shared.clone(), forms.clone());
            let of_consts = of_consts.clone();
            let of_x = if list == 1 { forms[0].clone() } else { Vec::new() };
            let paths = paths::<L>(&steps.paths, &forms[list]);
            let body = move |consts, carry, x| {
                let consts = raised::<L>(consts, &of_consts, false);
                let carry = raised::<L>(carry, &forms[list], false);
                let (carry, y) = own.step(&consts, carry, raised::<L>(x, &of_x, false))?;
                let simple = vec![L::Form::default(); y.len()];
                Ok((shared.lower(list, carry)?, lowered::<L>(y, &simple, false)))
            };
            Steps { body: Arc::new(body), length: 1, reverse: false, paths }
        };
        let repeated = Repeated {
            test: below(&repeated.test, 0),
            body: below(&repeated.body, 0),
            back: repeated.back.as_ref().map(|back| below(back, 1)),
            limit: repeated.limit,
        };
        let result = usize::from(repeated.back.is_some());
        let all = [
            lowered::<L>(consts.to_vec(), &of_consts, false),
            lowered::<L>(init.to_vec(), &forms[0], false),
            lowered::<L>(given.to_vec(), &forms[1], false),
        ];
        Ok(raised::<L>(run(repeated, all)?, &forms[result], false))
    })
}

/// [`switch`](super::switch) of a level, by `run` below it. The index is of the default form.
///
/// # Errors
/// Those of the branches and of `run`.
pub fn switch_below_level<L: Level>(
    index: &Value<L::Above>,
    branches: &[Steps<L::Above>],
    operands: &[Value<L::Above>],
    run: impl Fn(Value<L::Below>, Vec<Steps<L::Below>>, Flat<L::Below>) -> Result<Flat<L::Below>>,
) -> Result<Flat<L::Above>> {
    let of_operands = forms::<L>(operands);
    let shared = SharedForms::<L>::new([None, None]);
    shared.settled(|| {
        let below = |branch: &Steps<L::Above>| {
            let (own, shared, of_operands) = (branch.clone(), shared.clone(), of_operands.clone());
            let body = move |operands, _, _| {
                let operands = raised::<L>(operands, &of_operands, false);
                let (_, y) = own.step(&operands, Vec::new(), Vec::new())?;
                Ok((Vec::new(), shared.lower(0, y)?))
            };
            Steps { body: Arc::new(body), length: 1, reverse: false, paths: Arc::default() }
        };
        let index = L::lower(index.clone(), L::Form::default(), false).swap_remove(0);
        let operands = lowered::<L>(operands.to_vec(), &of_operands, false);
        let results = run(index, branches.iter().map(below).collect(), operands)?;
        Ok(raised::<L>(results, &shared.forms(0), false))
    })
}
