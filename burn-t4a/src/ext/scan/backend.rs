//! The trait [`ScanBackend`] and its implementation for Burn's tape, where a scan is one node.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use burn_tensor::{Tensor, TensorPrimitive};
use t4a_diff::Value;
use t4a_scan::body::{
    self, Cotangents, Repeated, Span, Tape, Told, fixed_point_below_tape, iterate_below_level,
    iterate_below_tape, iterate_on_tape, scan_below_level, scan_below_tape, scan_on_tape,
    switch_below_level, switch_below_tape,
};
use t4a_tensor::TensorError;

use super::records::{self, inside};
use super::{FixedPoint, Flat, Level, Options, Result, Steps};
use crate::boundary::accept;
use crate::ext::line::without_tape;
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::{Bools, Floats, Indices};
use crate::ext::tape::passes::Observer;
use crate::ext::tape::{is_tracked, record};

/// A backend on which scans run. The default is the plain loop, which is correct for every backend without a tape.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it runs scans",
    label = "not a `ScanBackend`",
    note = "code that is generic over its backend asks for it: `B: ScanBackend` in the place of `B: Backend`",
    note = "a backend of your own: `impl burn_t4a::ext::scan::ScanBackend for MyBackend {{}}`"
)]
pub trait ScanBackend: Operations {
    /// Returns true if [`ScanBackend::scan`] chooses an execution path and reports it by [`Options::take_path`]. By
    /// default bodies run step by step.
    fn chooses_path() -> bool {
        false
    }

    /// Runs a scan; returns the final carry and all ys.
    ///
    /// # Errors
    /// Errors of the steps.
    fn scan(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        xs: Flat<Floats<Self>>,
        options: &Options,
    ) -> Result<[Flat<Floats<Self>>; 2]> {
        let _ = options;
        steps.run(&consts, init, &xs)
    }

    /// Iterates from `init` until the carry changes by less than the tolerance.
    ///
    /// # Errors
    /// Errors of [`fixed_point`](super::fixed_point).
    fn fixed_point(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        settings: &FixedPoint,
    ) -> Result<Flat<Floats<Self>>> {
        body::fixed_point(&steps, &consts, init, settings)
    }

    /// Final carry of a loop, or the result of its reverse sweep, which starts from `given`.
    ///
    /// # Errors
    /// Errors of [`while_loop`](super::while_loop).
    fn iterate(
        repeated: Repeated<Floats<Self>>,
        [consts, init, given]: [Flat<Floats<Self>>; 3],
        options: &Options,
    ) -> Result<Flat<Floats<Self>>> {
        let _ = options;
        body::iterate(&repeated, &consts, init, given)
    }

    /// Results of the branch selected by an index.
    ///
    /// # Errors
    /// Errors of [`switch`](super::switch).
    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Floats<Self>>>,
        operands: Flat<Floats<Self>>,
    ) -> Result<Flat<Floats<Self>>> {
        body::switch(&index, &branches, &operands)
    }

    /// Returns true if tensors of this backend may have a hidden batch axis, so that a condition or an index may
    /// differ between examples.
    fn batches() -> bool {
        false
    }

    /// Returns true if this tensor has a hidden batch axis.
    fn is_batched(x: &Operand<Self>) -> bool {
        let _ = x;
        false
    }
}

/// [`ScanBackend::scan`] of a backend around `B`: a scan of `B` if that chooses a path, otherwise the plain loop.
///
/// # Errors
/// Errors of the steps and of the scan of `B`.
pub fn scan_at_level<B: ScanBackend, L: Level<Below = Floats<B>>>(
    steps: &Steps<L::Above>,
    consts: &[Value<L::Above>],
    init: Flat<L::Above>,
    xs: &[Value<L::Above>],
    options: &Options,
) -> Result<[Flat<L::Above>; 2]> {
    if !B::chooses_path() {
        return steps.run(consts, init, xs);
    }
    let below = |steps, [consts, init, xs]: [Flat<Floats<B>>; 3], options: &_| {
        B::scan(steps, consts, init, xs, options)
    };
    scan_below_level::<L>(steps, consts, &init, xs, options, below)
}

/// [`ScanBackend::fixed_point`] of a backend around `B`, by that of `B`.
///
/// # Errors
/// Errors of [`fixed_point`](super::fixed_point).
pub fn fixed_point_at_level<B: ScanBackend, L: Level<Below = Floats<B>>>(
    steps: &Steps<L::Above>,
    consts: &[Value<L::Above>],
    init: &[Value<L::Above>],
    settings: &FixedPoint,
) -> Result<Flat<L::Above>> {
    let below = |steps, [consts, init, _]: [Flat<Floats<B>>; 3], _: &_| {
        Ok([B::fixed_point(steps, consts, init, settings)?, Vec::new()])
    };
    let [x, _] = scan_below_level::<L>(steps, consts, init, &[], &Options::default(), below)?;
    Ok(x)
}

/// [`ScanBackend::iterate`] of a backend around `B`, by that of `B`. The condition must be the same for the whole
/// batch.
///
/// # Errors
/// Errors of the steps and of the loop of `B`.
pub fn iterate_at_level<B: ScanBackend, L: Level<Below = Floats<B>>>(
    repeated: &Repeated<L::Above>,
    [consts, init, given]: [Flat<L::Above>; 3],
    options: &Options,
) -> Result<Flat<L::Above>> {
    let below = |repeated, all: [Flat<Floats<B>>; 3]| B::iterate(repeated, all, options);
    iterate_below_level::<L>(repeated, &consts, &init, &given, below)
}

/// [`ScanBackend::switch`] of a backend around `B`, by that of `B`. The index must be the same for the whole batch.
///
/// # Errors
/// Errors of the branches and of `B`.
pub fn switch_at_level<B: ScanBackend, L: Level<Below = Floats<B>>>(
    index: &Value<L::Above>,
    branches: &[Steps<L::Above>],
    operands: &[Value<L::Above>],
) -> Result<Flat<L::Above>> {
    switch_below_level::<L>(index, branches, operands, B::switch)
}

without_tape!(ScanBackend);

impl<B: ScanBackend, C: CheckpointStrategy> ScanBackend for Autodiff<B, C> {
    /// Returns true if the inner backend chooses a path and is not a tape: both passes are scans there.
    fn chooses_path() -> bool {
        B::chooses_path() && !B::ad_enabled(&B::Device::default())
    }

    fn scan(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        xs: Flat<Floats<Self>>,
        options: &Options,
    ) -> Result<[Flat<Floats<Self>>; 2]> {
        if !Self::chooses_path() {
            return scan_on_tape(steps, consts, init, xs, options);
        }
        let below = |steps: Steps<Floats<B>>,
                     [consts, init, xs]: [Flat<Floats<B>>; 3],
                     options: &_| { B::scan(steps, consts, init, xs, options) };
        scan_below_tape(steps, consts, init, xs, options, below)
    }

    fn fixed_point(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        settings: &FixedPoint,
    ) -> Result<Flat<Floats<Self>>> {
        fixed_point_below_tape(steps, consts, init, *settings, B::fixed_point)
    }

    fn iterate(
        repeated: Repeated<Floats<Self>>,
        [consts, init, given]: [Flat<Floats<Self>>; 3],
        options: &Options,
    ) -> Result<Flat<Floats<Self>>> {
        if repeated.back.is_some() {
            return body::iterate(&repeated, &consts, init, given);
        }
        let own = options.clone();
        let below = move |repeated, all: [Flat<Floats<B>>; 3]| B::iterate(repeated, all, &own);
        if Self::chooses_path() {
            iterate_below_tape(repeated, consts, init, below)
        } else {
            iterate_on_tape(repeated, consts, init, options, below)
        }
    }

    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Floats<Self>>>,
        operands: Flat<Floats<Self>>,
    ) -> Result<Flat<Floats<Self>>> {
        if Self::chooses_path() {
            switch_below_tape(index, branches, operands, B::switch)
        } else {
            body::switch(&index, &branches, &operands)
        }
    }

    fn batches() -> bool {
        B::batches()
    }

    fn is_batched(x: &Operand<Self>) -> bool {
        let below = |x: Floats<Self>| Floats(Self::inner(x.0));
        B::is_batched(&x.clone().map(below, |x| Indices(x.0), |x| Bools(x.0)))
    }
}

impl<B: Operations, C: CheckpointStrategy> Tape for Floats<Autodiff<B, C>> {
    type Below = Floats<B>;
    type Kind = ();

    /// Each span occupies a thread until the pass ends.
    const SPANS: usize = 512;
    /// Each pass of a span copies a table of all nodes and locks all graphs: time is quadratic in their number.
    const ALL_SPANS: usize = 256;

    fn kind(&self) {}
    fn is_tracked(&self) -> bool {
        is_tracked::<B, C>(&self.0)
    }
    fn below(self) -> Floats<B> {
        Floats(Autodiff::<B, C>::inner(self.0))
    }
    fn above(x: Floats<B>, (): ()) -> Self {
        Self(Autodiff::<B, C>::from_inner(x.0))
    }
    fn leaf(x: Floats<B>, (): ()) -> Self {
        let x = Autodiff::<B, C>::from_inner(x.0);
        Self(<Autodiff<B, C> as FloatTensorOps<_>>::float_set_require_grad(x, true))
    }

    fn integers_below(x: Indices<Autodiff<B, C>>) -> Indices<B> {
        Indices(x.0)
    }
    fn integers_above(x: Indices<B>, (): ()) -> Indices<Autodiff<B, C>> {
        Indices(x.0)
    }
    fn flags_below(x: Bools<Autodiff<B, C>>) -> Bools<B> {
        Bools(x.0)
    }
    fn flags_above(x: Bools<B>, (): ()) -> Bools<Autodiff<B, C>> {
        Bools(x.0)
    }

    fn record<R: Send + 'static, const N: usize>(
        inputs: [Self; N],
        forward: impl FnOnce([Floats<B>; N]) -> Result<(Floats<B>, R)>,
        vjp: impl FnOnce(R, Floats<B>) -> Result<[Option<Floats<B>>; N]> + Send + 'static,
    ) -> Result<Self> {
        let node = record::<B, C, _, _, N>(
            inputs.map(|x| x.0),
            |inputs, _| forward(inputs.map(Floats::<B>)).map(|(output, kept)| (output.0, kept)),
            |kept, cotangent, _| {
                accept(inside(|| vjp(kept, Floats(cotangent)))).map(|x| x.map(|x| x.0))
            },
        );
        node.map(Self)
    }

    fn backward(root: Self) {
        drop(
            Tensor::<Autodiff<B, C>, 1>::from_primitive(TensorPrimitive::Float(root.0)).backward(),
        );
    }

    /// In Burn 0.21 `backward` ends by locking all graphs, including that of the surrounding pass. So it runs on a
    /// separate thread that ends with that pass; its cotangents are sent before.
    ///
    /// The thread holds the tables of its graph until then, which are as large as the graph was. So all spans of a
    /// pass share one graph: each span is recorded below an anchor, a leaf of that graph, after the previous span
    /// has been dropped, and is joined to the anchor of the next span. (One anchor for all spans is impossible,
    /// because a pass consumes it.) When Burn merges graphs, it inserts the first node of each into its tables
    /// again, and removes the entry only when it drops that node. First nodes are anchors, so all anchors are held
    /// until the last span is done.
    fn back(span: Span<Self>, anchors: &mut Vec<Self>) -> Result<Cotangents<Floats<B>>> {
        let mut found = span.known();
        if anchors.is_empty() {
            anchors.extend(span.leaf());
        }
        let before = anchors.last().cloned();
        anchors.extend(span.leaf());
        let Some((before, after)) = before.zip(anchors.last().cloned()) else { return Ok(found) };
        let anchors = Some([before, after]);
        let (sender, receiver) = channel();
        let run = move || {
            let tell = sender.clone();
            // Nodes that the pass does not reach hold senders too, so a panic must be reported explicitly.
            let back = AssertUnwindSafe(|| {
                match inside(|| span.record(anchors, move |told| drop(tell.send(Ok(told))))) {
                    Ok(Some(root)) => Self::backward(root),
                    Ok(None) => drop(sender.send(Ok(Told::Done))),
                    Err(error) => drop(sender.send(Err(error))),
                }
            });
            if catch_unwind(back).is_err() {
                let error = TensorError::value("scan", "a step panicked");
                drop(sender.send(Err(error.into())));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("scan span".into()).spawn(run) {
            let message = format!("no thread for the derivative of a span: {error}");
            return Err(TensorError::value("scan", message).into());
        }
        loop {
            match receiver.recv() {
                Ok(Ok(Told::Cotangent(slot, g))) => found.put(slot, g),
                Ok(Ok(Told::Done)) => return Ok(found),
                Ok(Err(error)) => return Err(error),
                Err(_) => unreachable!("the thread ends with a message"),
            }
        }
    }

    fn forget(steps: usize, done: usize, like: &Self) -> bool {
        records::forget::<B, C>(steps, done, &like.0)
    }

    /// A pass inside of another one deadlocks, see [`Tape::back`]. Within a reverse pass nothing can be observed.
    fn observe() -> impl FnOnce() -> Option<bool> {
        let observer = (!records::is_inside()).then(Observer::new);
        move || observer.map_or(Some(false), |observer| observer.ended_pass())
    }
}
