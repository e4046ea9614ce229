//! Collective communication between the devices of a call. All devices execute the same collectives in the same
//! order, and the result does not depend on the order of arrival.

use burn_backend::Backend;
use burn_t4a_compile::graph::Value;

use crate::error::{Result, ShardError};
use crate::exchange::CollectiveTable;
use crate::mesh::Mesh;
use crate::parts::{cat, reduce};
use crate::rules::Reduce;
use crate::spec::Split;

/// The group of a collective: the devices that differ from `device` along mesh axis `over` only.
#[derive(Clone, Copy)]
pub(crate) struct DeviceGroup<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) device: usize,
    pub(crate) over: usize,
    /// Index of the collective, counted from the start of the call.
    pub(crate) meeting: usize,
}

impl DeviceGroup<'_> {
    pub(crate) fn members(&self) -> usize {
        self.mesh.size(self.over)
    }

    pub(crate) fn rank(&self) -> usize {
        self.mesh.coordinate(self.device, self.over)
    }

    /// Devices of the group in mesh order.
    pub(crate) fn devices(&self) -> Vec<usize> {
        self.mesh.row(self.device, self.over).collect()
    }
}

/// Collective operations of one call.
///
/// Every method returns the first failure of any device.
pub(crate) trait Collectives<B: Backend>: Sync {
    /// All-gather: concatenates the parts of the group along `axis`; every member receives the result.
    fn gather(&self, row: DeviceGroup<'_>, x: Value<B>, axis: usize) -> Result<Value<B>>;
    /// All-reduce: elementwise reduction over the group in mesh order; every member receives the result.
    fn reduce(&self, row: DeviceGroup<'_>, x: Value<B>, how: Reduce) -> Result<Value<B>>;
    /// Broadcast of the values of device 0 to all devices.
    fn share(&self, device: usize, meeting: usize, own: Vec<Value<B>>) -> Result<Vec<Value<B>>>;
    /// Fills the entries of `parts` that are held only by other processes, so that the full tensor can be assembled.
    fn complete(&self, meeting: usize, split: &Split, parts: &mut [Option<Value<B>>])
    -> Result<()>;
    /// Aborts the call on all devices: pending and later collectives return this error. Only the first failure is kept.
    fn fail(&self, failure: ShardError);
    /// The first failure.
    fn failure(&self) -> Option<ShardError>;
}

impl<B: Backend> CollectiveTable<Vec<Value<B>>> {
    fn row(
        &self,
        row: DeviceGroup<'_>,
        x: Value<B>,
        make: impl FnOnce(Vec<Value<B>>) -> Value<B>,
    ) -> Result<Value<B>> {
        let at = (row.meeting, row.mesh.row(row.device, row.over).next().unwrap_or(0));
        let make = |all: Vec<Vec<Value<B>>>| vec![make(all.concat())];
        Ok(self.meet(at, row.members(), row.rank(), vec![x], make)?.swap_remove(0))
    }
}

/// Collectives of devices in one process: only tensor handles are exchanged.
pub(crate) struct Local<B: Backend> {
    pub(crate) exchange: CollectiveTable<Vec<Value<B>>>,
    pub(crate) devices: usize,
}

impl<B: Backend> Local<B> {
    pub(crate) fn new(devices: usize) -> Self {
        Self { exchange: CollectiveTable::new(), devices }
    }
}

impl<B: Backend> Collectives<B> for Local<B> {
    fn gather(&self, row: DeviceGroup<'_>, x: Value<B>, axis: usize) -> Result<Value<B>> {
        self.exchange.row(row, x, |all| cat(all, axis))
    }
    fn reduce(&self, row: DeviceGroup<'_>, x: Value<B>, how: Reduce) -> Result<Value<B>> {
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
