//! Steps that a tape records one by one, over elements of a tracked array.
//!
//! ```text
//!            ┌── element 0
//! xs ── hub ─┼── element 1
//!            └── …
//! ```
//!
//! The cotangent of a slice is as large as the array, so slices would take time quadratic in the number of steps.
//! Elements put theirs into a list instead, and the hub, whose value is one number, makes the cotangent of the array
//! of that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use t4a_diff::{Array, Value};

use super::steps::{Flat, Steps, one};
use super::tape::{Tape, is_tracked};
use crate::error::Result;

/// Cotangents of elements, by their place.
#[derive(Clone)]
struct ElementCotangents<A>(Arc<Mutex<Vec<Option<A>>>>);

impl<A> ElementCotangents<A> {
    fn all(&self) -> MutexGuard<'_, Vec<Option<A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An array over the leading axis of which steps run.
enum ScannedArray<T: Tape> {
    Constant(Value<T>),
    Tracked { x: Value<T::Below>, hub: T, cotangents: ElementCotangents<T::Below> },
}

impl<T: Tape> ScannedArray<T> {
    fn new(x: &Value<T>, length: usize) -> Result<Self> {
        let x = match x {
            Value::Float(x) if x.is_tracked() => x,
            x => return Ok(Self::Constant(x.clone())),
        };
        let cotangents = ElementCotangents(Arc::new(Mutex::new(vec![None; length])));
        let (shape, of_elements) = (x.shape(), cotangents.clone());
        let hub = T::record(
            [x.clone()],
            |[x]| {
                let number = x.full(&[1], 0.0);
                Ok((number.clone(), number))
            },
            move |number, _| {
                let row = [&[1], &shape[1..]].concat();
                let all = std::mem::take(&mut *of_elements.all());
                let zeros = number.full(&row, 0.0);
                let fill =
                    |g: Option<T::Below>| g.map_or_else(|| zeros.clone(), |g| g.reshape(&row));
                let rows: Vec<T::Below> = all.into_iter().map(fill).collect();
                Ok([Some(T::Below::cat(&rows, 0))])
            },
        )?;
        Ok(Self::Tracked { x: Value::Float(x.clone().below()), hub, cotangents })
    }

    fn at(&self, t: usize) -> Result<Value<T>> {
        match self {
            Self::Constant(x) => Ok(one(x, t)),
            Self::Tracked { x, hub, cotangents } => {
                let (x, cotangents) = (one(x, t).float().clone(), cotangents.clone());
                let element = T::record(
                    [hub.clone()],
                    |_| Ok((x, ())),
                    move |(), g| {
                        cotangents.all()[t] = Some(g);
                        Ok([None])
                    },
                );
                Ok(Value::Float(element?))
            }
        }
    }
}

/// [`Steps::run`], each operation a node of the tape.
///
/// Cost: as without the tape up to a factor; memory for all of its records.
///
/// # Errors
/// Those of the steps.
pub(super) fn run<T: Tape>(
    steps: &Steps<T>,
    consts: &[Value<T>],
    init: Flat<T>,
    xs: &[Value<T>],
) -> Result<[Flat<T>; 2]> {
    if steps.length == 0 || !xs.iter().any(is_tracked) {
        return steps.run(consts, init, xs);
    }
    let elements: Vec<ScannedArray<T>> =
        xs.iter().map(|x| ScannedArray::new(x, steps.length)).collect::<Result<_>>()?;
    steps.run_with(consts, init, |t| elements.iter().map(|x| x.at(t)).collect())
}
