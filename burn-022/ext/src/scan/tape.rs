//! Implementation of the tape of scans for Burn's autodiff, over any backend.

use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use burn_dispatch::{Dispatch, DispatchAutodiffContext, DispatchTensor};
use burn_tensor::Tensor;
use t4a_scan::body::Tape;

use super::Result;
use crate::boundary::accept;
use crate::dispatch;
use crate::primitive::{Bools, Floats, Indices};

impl Tape for Floats<Dispatch> {
    type Below = Self;
    /// Checkpointing strategy.
    type Kind = DispatchAutodiffContext;

    fn kind(&self) -> DispatchAutodiffContext {
        self.0.autodiff
    }
    fn is_tracked(&self) -> bool {
        Tensor::<1>::from_dispatch(self.0.clone()).is_tracked()
    }
    fn below(self) -> Self {
        match self.0.autodiff {
            DispatchAutodiffContext::Disabled => self,
            DispatchAutodiffContext::Enabled(_) => Floats(Dispatch::inner(self.0)),
        }
    }
    fn above(x: Self, kind: DispatchAutodiffContext) -> Self {
        Floats(DispatchTensor { autodiff: kind, ..Dispatch::from_inner(x.0) })
    }
    fn leaf(x: Self, kind: DispatchAutodiffContext) -> Self {
        Floats(Dispatch::float_set_require_grad(Self::above(x, kind).0, true))
    }

    fn integers_below(x: Indices<Dispatch>) -> Indices<Dispatch> {
        match x.0.autodiff {
            DispatchAutodiffContext::Disabled => x,
            DispatchAutodiffContext::Enabled(_) => Indices(Dispatch::int_inner(x.0)),
        }
    }
    fn integers_above(x: Indices<Dispatch>, kind: DispatchAutodiffContext) -> Indices<Dispatch> {
        Indices(DispatchTensor { autodiff: kind, ..Dispatch::int_from_inner(x.0) })
    }
    fn flags_below(x: Bools<Dispatch>) -> Bools<Dispatch> {
        match x.0.autodiff {
            DispatchAutodiffContext::Disabled => x,
            DispatchAutodiffContext::Enabled(_) => Bools(Dispatch::bool_inner(x.0)),
        }
    }
    fn flags_above(x: Bools<Dispatch>, kind: DispatchAutodiffContext) -> Bools<Dispatch> {
        Bools(DispatchTensor { autodiff: kind, ..Dispatch::bool_from_inner(x.0) })
    }

    fn record<R: Send + 'static, const N: usize>(
        inputs: [Self; N],
        forward: impl FnOnce([Self; N]) -> Result<(Self, R)>,
        vjp: impl FnOnce(R, Self) -> Result<[Option<Self>; N]> + Send + 'static,
    ) -> Result<Self> {
        let node = dispatch::record(
            inputs.map(|x| x.0),
            |inputs| forward(inputs.map(Floats::<Dispatch>)).map(|(output, kept)| (output.0, kept)),
            |kept, cotangent| accept(vjp(kept, Floats(cotangent))).map(|x| x.map(|x| x.0)),
        );
        node.map(Floats::<Dispatch>)
    }

    fn backward(root: Self) {
        drop(Tensor::<1>::from_dispatch(root.0).backward());
    }
}
