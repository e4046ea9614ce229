//! How the devices of a call meet. Every device comes to the same meetings in the same order, and what is made
//! there does not depend on who comes last.

use burn_backend::Backend;
use burn_t4a_compile::graph::Value;

use crate::error::{Result, ShardError};
use crate::exchange::Exchange;
use crate::mesh::Mesh;
use crate::parts::{cat, reduce};
use crate::rules::Reduce;
use crate::spec::Split;

/// A meeting of the devices that differ from this one along one axis of the mesh.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) device: usize,
    pub(crate) over: usize,
    /// Counted from the start of the call.
    pub(crate) meeting: usize,
}

impl Row<'_> {
    pub(crate) fn members(&self) -> usize {
        self.mesh.size(self.over)
    }

    pub(crate) fn rank(&self) -> usize {
        self.mesh.coordinate(self.device, self.over)
    }

    /// All of them, in order.
    pub(crate) fn devices(&self) -> Vec<usize> {
        self.mesh.row(self.device, self.over).collect()
    }
}

/// What devices do together.
///
/// All methods fail with the failure of another device.
pub(crate) trait Collectives<B: Backend>: Sync {
    /// The parts of a row one behind the other, for each of its devices.
    fn gather(&self, row: Row<'_>, x: Value<B>, axis: usize) -> Result<Value<B>>;
    /// The values of a row element by element, in its order, for each of its devices.
    fn reduce(&self, row: Row<'_>, x: Value<B>, how: Reduce) -> Result<Value<B>>;
    /// What the first device has, for all of them.
    fn share(&self, device: usize, meeting: usize, own: Vec<Value<B>>) -> Result<Vec<Value<B>>>;
    /// Fills in the parts of a result that this process has not, where they make a whole tensor.
    fn complete(&self, meeting: usize, split: &Split, parts: &mut [Option<Value<B>>])
    -> Result<()>;
    /// Ends the call for all: whoever waits, or comes later, gets this. The first failure counts.
    fn fail(&self, failure: ShardError);
    /// The first failure.
    fn failure(&self) -> Option<ShardError>;
}

impl<B: Backend> Exchange<Vec<Value<B>>> {
    fn row(
        &self,
        row: Row<'_>,
        x: Value<B>,
        make: impl FnOnce(Vec<Value<B>>) -> Value<B>,
    ) -> Result<Value<B>> {
        let at = (row.meeting, row.mesh.row(row.device, row.over).next().unwrap_or(0));
        let make = |all: Vec<Vec<Value<B>>>| vec![make(all.concat())];
        Ok(self.meet(at, row.members(), row.rank(), vec![x], make)?.swap_remove(0))
    }
}

/// Devices of one process: all that moves are handles.
pub(crate) struct Local<B: Backend> {
    pub(crate) exchange: Exchange<Vec<Value<B>>>,
    pub(crate) devices: usize,
}

impl<B: Backend> Local<B> {
    pub(crate) fn new(devices: usize) -> Self {
        Self { exchange: Exchange::new(), devices }
    }
}

impl<B: Backend> Collectives<B> for Local<B> {
    fn gather(&self, row: Row<'_>, x: Value<B>, axis: usize) -> Result<Value<B>> {
        self.exchange.row(row, x, |all| cat(all, axis))
    }
    fn reduce(&self, row: Row<'_>, x: Value<B>, how: Reduce) -> Result<Value<B>> {
        self.exchange.row(row, x, |all| reduce(all, how))
    }
    fn share(&self, device: usize, meeting: usize, own: Vec<Value<B>>) -> Result<Vec<Value<B>>> {
        self.exchange.meet((meeting, 0), self.devices, device, own, |all| all.concat())
    }
    fn complete(&self, _: usize, _: &Split, _: &mut [Option<Value<B>>]) -> Result<()> {
        Ok(())
    }
    fn fail(&self, failure: ShardError) {
        self.exchange.fail(failure);
    }
    fn failure(&self) -> Option<ShardError> {
        self.exchange.failure()
    }
}
