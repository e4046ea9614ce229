//! Executes a plan on the devices of this process, one thread per device.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_backend::Backend;
use burn_t4a_compile::graph::Value;

use crate::collectives::{Collectives, DeviceGroup};
use crate::error::{Result, ShardError};
use crate::parts::{joined, own, part, zeros};
use crate::plan::{ExecutionPlan, How, ShardedOperand};
use crate::spec::Move;

/// Parts of a tensor by device; those of devices in other processes are missing.
pub(crate) type DeviceParts<B> = Vec<Option<Value<B>>>;

/// Results of a call: the parts of those that stay on the devices, and the other ones in full.
pub(crate) struct CallResults<B: Backend> {
    pub(crate) kept: Vec<DeviceParts<B>>,
    pub(crate) full: Vec<Value<B>>,
}

/// An argument of a call.
pub(crate) enum CallInput<'a, B: Backend> {
    Full(&'a Value<B>),
    Parts(&'a DeviceParts<B>),
}

/// State of one device during a call.
struct DeviceState<'a, B: Backend> {
    plan: &'a ExecutionPlan<B>,
    collectives: &'a dyn Collectives<B>,
    device: usize,
    /// Number of collectives so far; equal on all devices and consistent with the plan.
    meetings: usize,
    values: Vec<Option<Value<B>>>,
}

impl<'a, B: Backend> DeviceState<'a, B> {
    fn meeting(&mut self) -> usize {
        self.meetings += 1;
        self.meetings - 1
    }

    fn row(&mut self, over: usize) -> DeviceGroup<'a> {
        let meeting = self.meeting();
        DeviceGroup { mesh: &self.plan.mesh, device: self.device, over, meeting }
    }

    fn moved(&mut self, operand: &ShardedOperand) -> Result<Value<B>> {
        let x = self.values[operand.value].clone();
        let mut x = x.unwrap_or_else(|| unreachable!("values are made before use"));
        let mesh = &self.plan.mesh;
        for one in &operand.moves {
            x = match *one {
                Move::Gather { axis, over } => self.collectives.gather(self.row(over), x, axis)?,
                Move::Slice { axis, over } => {
                    part(x, axis, mesh.size(over), mesh.coordinate(self.device, over))
                }
                Move::First { over } if mesh.coordinate(self.device, over) > 0 => zeros(x),
                Move::First { .. } => x,
            };
        }
        Ok(x)
    }

    fn run(&mut self) -> Result<Vec<Value<B>>> {
        let plan = self.plan;
        for line in &plan.lines {
            let operands: Vec<Value<B>> =
                line.operands.iter().map(|x| self.moved(x)).collect::<Result<_>>()?;
            let failed = |message| ShardError::Device {
                device: self.device,
                operation: line.instruction.name().into(),
                message,
            };
            let run = |operands| {
                // Burn backend methods report failure by a panic.
                let run = AssertUnwindSafe(|| line.instruction.run(operands));
                catch_unwind(run).unwrap_or_else(|panic| Err(said(&*panic)))
            };
            let mut results = match line.how {
                How::Pass => operands,
                How::Parts | How::Everywhere => run(operands).map_err(failed)?,
                How::Once => {
                    let own =
                        if self.device == 0 { run(operands).map_err(failed)? } else { Vec::new() };
                    let meeting = self.meeting();
                    self.collectives.share(self.device, meeting, own)?
                }
            };
            if let Some((how, over)) = &line.reduce {
                for (x, over) in results.iter_mut().zip(over) {
                    for &over in over {
                        *x = self.collectives.reduce(self.row(over), x.clone(), *how)?;
                    }
                }
            }
            for (value, x) in line.instruction.results().zip(results) {
                self.values[value] = Some(x);
            }
            line.ended.iter().for_each(|&value| self.values[value] = None);
        }
        plan.outputs.iter().map(|(operand, _)| self.moved(operand)).collect()
    }
}

/// Message of a panic payload.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

/// Executes the plan on the given devices.
pub(crate) fn run<B: Backend>(
    plan: &ExecutionPlan<B>,
    inputs: &[CallInput<'_, B>],
    collectives: &dyn Collectives<B>,
    devices: Range<usize>,
) -> Result<CallResults<B>> {
    let mesh = &plan.mesh;
    let device = |device: usize| {
        let run = || {
            let mut values = vec![None; plan.graph.metas().len()];
            for (value, (x, split)) in inputs.iter().zip(&plan.inputs).enumerate() {
                values[value] = match *x {
                    CallInput::Full(x) => Some(own(x.clone(), split, mesh, device)),
                    CallInput::Parts(parts) => parts[device].clone(),
                };
            }
            for (value, x) in plan.graph.constants() {
                values[*value] = Some(x.clone());
            }
            DeviceState { plan, collectives, device, meetings: 0, values }.run()
        };
        let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let (operation, message) = ("a collective".into(), said(&*panic));
            Err(ShardError::Device { device, operation, message })
        });
        outcome.map_err(|failure| collectives.fail(failure)).ok()
    };
    let all: Vec<Option<Vec<Value<B>>>> = std::thread::scope(|scope| {
        let device = &device;
        let others = devices.clone().skip(1).map(|i| scope.spawn(move || device(i)));
        let others: Vec<_> = others.collect();
        let first = device(devices.start);
        std::iter::once(first).chain(others.into_iter().map(|x| x.join().ok().flatten())).collect()
    });
    if let Some(failure) = collectives.failure() {
        return Err(failure);
    }
    let mut all: Vec<_> = all.into_iter().flatten().map(Vec::into_iter).collect();
    let mut next = || {
        let mut parts = vec![None; mesh.devices()];
        for (own, device) in all.iter_mut().zip(devices.clone()) {
            parts[device] = own.next();
        }
        parts
    };
    let kept = (0..plan.kept).map(|_| next()).collect();
    let outputs = plan.outputs[plan.kept..].iter().enumerate().map(|(k, (_, split))| {
        let mut parts = next();
        collectives.complete(plan.moving + k, split, &mut parts)?;
        Ok(joined(parts, split, mesh))
    });
    let full: Result<Vec<_>> = outputs.collect();
    let full = full.inspect_err(|failure| collectives.fail(failure.clone()))?;
    Ok(CallResults { kept, full })
}
