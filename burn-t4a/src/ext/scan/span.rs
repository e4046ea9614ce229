//! The derivative of a span of steps, inside of the reverse pass of a tape.
//!
//! ```text
//! anchors ── link
//!             │     ┌── input 0 ──┐                    ┌── root 0
//!           base ───┼── input 1 ──┤ steps of the span ─┤
//!                   └── …         ┘                    └── … ── root
//! ```
//!
//! A root passes the cotangent of one output on, an input hands its own over to whoever waits. In Burn 0.21
//! `backward` ends by locking all graphs, that of the pass around it among them, so it runs on a thread of its
//! own that ends with that pass; what it has found out is known before.
//!
//! Such a thread holds the tables of its graph until then, which are as large as the graph was. So all spans
//! of a pass have one, and tables that move from graph to graph: `link` joins the graph of a span to that of
//! the span before by a leaf of that, and to a leaf for the span after. (Not by one leaf for all: Burn forgets
//! where a leaf is when its graph is merged for the second time.) When Burn has forgotten the steps of a span
//! it drops `link`, whose parent is gone, and that is what whoever waits is told by: then the next span may
//! join.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Shape, TensorMetadata};
use burn_tensor::{Tensor, TensorPrimitive};

use super::records::{inside, leaf};
use super::steps::{Flat, Steps};
use crate::ext::tape::{Tracked, is_tracked, record};

/// What a span begins and ends with.
pub(super) struct Span<B: Backend, C: CheckpointStrategy> {
    pub(super) steps: Steps<Autodiff<B, C>>,
    pub(super) consts: Flat<B>,
    pub(super) carry: Flat<B>,
    /// Of every step, in the order of steps.
    pub(super) xs: Vec<Flat<B>>,
    /// Cotangents of the last carry, of the ys of every step, and of the consts from later steps.
    pub(super) of_carry: Vec<Option<FloatTensor<B>>>,
    pub(super) of_ys: Vec<Vec<Option<FloatTensor<B>>>>,
    pub(super) of_consts: Vec<Option<FloatTensor<B>>>,
    /// Of which xs cotangents are of use.
    pub(super) wanted_xs: Vec<bool>,
}

/// Cotangents of the first carry, of the xs of every step, and of the consts with those from later steps.
pub(super) struct Cotangents<B: Backend> {
    pub(super) carry: Vec<Option<FloatTensor<B>>>,
    pub(super) xs: Vec<Vec<Option<FloatTensor<B>>>>,
    pub(super) consts: Vec<Option<FloatTensor<B>>>,
}

/// Which input.
#[derive(Clone, Copy)]
enum Slot {
    Carry(usize),
    X(usize, usize),
    Const(usize),
}

enum Message<B: Backend> {
    Cotangent(Slot, FloatTensor<B>),
    /// There are no more, and Burn is about to have forgotten the span.
    Done,
    /// A step failed, though it did not when it was made first.
    Failed(String),
}

/// Says that the span is done when it is dropped.
struct Last<B: Backend>(Sender<Message<B>>);

impl<B: Backend> Drop for Last<B> {
    fn drop(&mut self) {
        // Whoever waited is gone if it panicked.
        drop(self.0.send(Message::Done));
    }
}

/// An operation that cannot fail.
fn certain<T>(result: Result<T, Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

impl<B: Backend, C: CheckpointStrategy> Span<B, C> {
    /// The cotangents of what it begins with. Every span has an anchor in common with the one before and
    /// with the one after.
    ///
    /// # Panics
    /// If a step panics or fails.
    pub(super) fn back(self, anchors: [Tracked<B, C>; 2]) -> Cotangents<B> {
        let nothing = |x: &Flat<B>| vec![None; x.len()];
        let mut found = Cotangents {
            carry: nothing(&self.carry),
            xs: self.xs.iter().map(nothing).collect(),
            consts: self.of_consts.clone(),
        };
        let (sender, receiver) = channel();
        let helper = std::thread::Builder::new().name("scan span".into());
        let run = move || {
            // Nodes that the pass does not reach hold senders as well: a panic has to be told.
            let back = AssertUnwindSafe(|| match inside(|| self.record(anchors, &sender)) {
                Ok(Some(root)) => {
                    let root = TensorPrimitive::Float(root);
                    drop(Tensor::<Autodiff<B, C>, 1>::from_primitive(root).backward());
                }
                Ok(None) => drop(sender.send(Message::Done)),
                Err(message) => drop(sender.send(Message::Failed(message))),
            });
            if catch_unwind(back).is_err() {
                drop(sender.send(Message::Failed("scan: a step panicked".into())));
            }
        };
        if let Err(error) = helper.spawn(run) {
            panic!("scan: no thread for the derivative of a span: {error}");
        }
        loop {
            match receiver.recv() {
                Ok(Message::Cotangent(Slot::Carry(i), g)) => found.carry[i] = Some(g),
                Ok(Message::Cotangent(Slot::X(t, i), g)) => found.xs[t][i] = Some(g),
                Ok(Message::Cotangent(Slot::Const(i), g)) => found.consts[i] = Some(g),
                Ok(Message::Done) => return found,
                Ok(Message::Failed(message)) => panic!("{message}"),
                Err(_) => unreachable!("the thread ends with a message"),
            }
        }
    }

    /// The steps on a tape of their own: its root, if there are inputs.
    fn record(
        self,
        anchors: [Tracked<B, C>; 2],
        sender: &Sender<Message<B>>,
    ) -> Result<Option<Tracked<B, C>>, String> {
        let Self { steps, consts, carry, xs, of_carry, of_ys, of_consts, wanted_xs } = self;
        let Some(any) = consts.iter().chain(&carry).chain(xs.iter().flatten()).next() else {
            return Ok(None);
        };
        let (device, dtype) = (B::float_device(any), any.dtype());
        let base = leaf::<B, C>(&device, dtype);
        let nothing = move || B::float_zeros(Shape::from([1]), &device, dtype.into());
        let [before, after] = anchors;
        drop(certain(record::<B, C, _, Infallible, 3>(
            [base.clone(), before, after],
            |[x, ..], _| Ok((x, Last(sender.clone()))),
            |_, _, _| [None, None, None],
        )));
        let input = |slot: Slot, value: FloatTensor<B>| {
            let sender = sender.clone();
            let wanted = !matches!(slot, Slot::X(_, i) if !wanted_xs[i]);
            certain(record::<B, C, _, Infallible, 1>(
                [base.clone()],
                |_, _| Ok((value, ())),
                move |(), g, _| {
                    if wanted {
                        drop(sender.send(Message::Cotangent(slot, g)));
                    }
                    [None]
                },
            ))
        };
        let consts: Vec<_> =
            consts.into_iter().enumerate().map(|(i, x)| input(Slot::Const(i), x)).collect();
        let mut carry: Vec<_> =
            carry.into_iter().enumerate().map(|(i, x)| input(Slot::Carry(i), x)).collect();
        let mut outputs: Vec<(Tracked<B, C>, FloatTensor<B>)> = Vec::new();
        // Cotangents of consts from later steps come first, so that sums are in the order of one tape.
        for (x, g) in consts.iter().zip(of_consts) {
            outputs.extend(g.map(|g| (x.clone(), g)));
        }
        for (t, (x, of_y)) in xs.into_iter().zip(of_ys).enumerate() {
            let x = x.into_iter().enumerate().map(|(i, x)| input(Slot::X(t, i), x)).collect();
            let (next, y) = steps.step(&consts, carry, x).map_err(|error| error.to_string())?;
            carry = next;
            outputs.extend(y.into_iter().zip(of_y).filter_map(|(y, g)| Some((y, g?))));
        }
        outputs.extend(carry.into_iter().zip(of_carry).filter_map(|(x, g)| Some((x, g?))));
        let mut root = base;
        for (output, g) in outputs.into_iter().rev() {
            if !is_tracked::<B, C>(&output) {
                continue;
            }
            let nothing = nothing.clone();
            root = certain(record::<B, C, _, Infallible, 2>(
                [output, root],
                |_, _| Ok((nothing(), g)),
                |g, _, _| [Some(g), None],
            ));
        }
        Ok(Some(root))
    }
}
