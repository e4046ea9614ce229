//! A plan on all devices: a thread each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_backend::{Backend, Shape, Slice};
use burn_t4a_compile::graph::Value;

use crate::error::{Result, ShardError};
use crate::exchange::{Exchange, Failure};
use crate::mesh::Mesh;
use crate::plan::{How, Operand, Plan};
use crate::rules::Reduce;
use crate::spec::{Move, Split};

/// Runs a method of each kind.
macro_rules! each_kind {
    ($x:expr, $y:ident => $float:expr, $int:expr, $bool:expr) => {
        match $x {
            Value::Float($y) => Value::Float($float),
            Value::Int($y) => Value::Int($int),
            Value::Bool($y) => Value::Bool($bool),
            // Quantized tensors are whole everywhere.
            other => other,
        }
    };
}

fn cat<B: Backend>(all: Vec<Value<B>>, axis: usize) -> Value<B> {
    macro_rules! of {
        ($kind:ident, $cat:path) => {{
            let own = |x| if let Value::$kind(x) = x { Some(x) } else { None };
            Value::$kind($cat(all.into_iter().filter_map(own).collect(), axis))
        }};
    }
    match all.first() {
        Some(Value::Int(_)) => of!(Int, B::int_cat),
        Some(Value::Bool(_)) => of!(Bool, B::bool_cat),
        _ => of!(Float, B::float_cat),
    }
}

/// Part `at` of as many equal ones.
fn part<B: Backend>(x: Value<B>, axis: usize, parts: usize, at: usize) -> Value<B> {
    let shape = x.meta().shape;
    let n = (shape[axis] / parts) as isize;
    let whole = |&size: &usize| Slice::new(0, Some(size as isize), 1);
    let mut slices: Vec<Slice> = shape.iter().map(whole).collect();
    slices[axis] = Slice::new(at as isize * n, Some((at as isize + 1) * n), 1);
    each_kind!(x, y => B::float_slice(y, &slices), B::int_slice(y, &slices), B::bool_slice(y, &slices))
}

fn zeros<B: Backend>(x: Value<B>) -> Value<B> {
    let (meta, device) = (x.meta(), x.device());
    match x {
        Value::Float(_) => {
            Value::Float(B::float_zeros(Shape::from(meta.shape), &device, meta.dtype.into()))
        }
        other => other,
    }
}

/// One of two, element by element.
fn extreme<B: Backend>(a: Value<B>, b: Value<B>, max: bool) -> Value<B> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            let dtype = burn_backend::get_device_settings::<B>(&B::float_device(&a)).bool_dtype;
            // Numbers that are none win, as they do in a reduction.
            let other = if max {
                B::float_greater(b.clone(), a.clone(), dtype)
            } else {
                B::float_lower(b.clone(), a.clone(), dtype)
            };
            let other = B::bool_or(other, B::float_is_nan(b.clone(), dtype));
            Value::Float(B::float_mask_where(a, other, b))
        }
        (Value::Int(a), Value::Int(b)) => {
            let dtype = burn_backend::get_device_settings::<B>(&B::int_device(&a)).bool_dtype;
            let other = if max {
                B::int_greater(b.clone(), a.clone(), dtype)
            } else {
                B::int_lower(b.clone(), a.clone(), dtype)
            };
            Value::Int(B::int_mask_where(a, other, b))
        }
        (a, _) => a,
    }
}

fn sum<B: Backend>(a: Value<B>, b: Value<B>) -> Value<B> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => Value::Float(B::float_add(a, b)),
        (Value::Int(a), Value::Int(b)) => Value::Int(B::int_add(a, b)),
        (a, _) => a,
    }
}

/// Of parts in the order of the mesh.
fn reduce<B: Backend>(all: Vec<Value<B>>, how: Reduce) -> Value<B> {
    let count = all.len();
    let total = all.into_iter().reduce(|a, b| match how {
        Reduce::Sum | Reduce::Mean => sum(a, b),
        Reduce::Max => extreme(a, b, true),
        Reduce::Min => extreme(a, b, false),
    });
    let total = total.unwrap_or_else(|| unreachable!("a mesh has devices"));
    match (how, total) {
        (Reduce::Mean, Value::Float(x)) => {
            Value::Float(B::float_div_scalar(x, (count as f64).into()))
        }
        (_, total) => total,
    }
}

/// One device of a call.
struct Device<'a, B: Backend> {
    plan: &'a Plan<B>,
    exchange: &'a Exchange<Vec<Value<B>>>,
    device: usize,
    /// How many meetings there were: all devices count the same.
    meetings: usize,
    values: Vec<Option<Value<B>>>,
}

impl<B: Backend> Device<'_, B> {
    /// All devices along an axis of the mesh bring a value.
    fn meet(
        &mut self,
        over: usize,
        x: Value<B>,
        make: impl FnOnce(Vec<Value<B>>) -> Value<B>,
    ) -> Result<Value<B>, Failure> {
        let mesh = &self.plan.mesh;
        let first = mesh.row(self.device, over).next().unwrap_or(0);
        let (members, rank) = (mesh.size(over), mesh.coordinate(self.device, over));
        let at = (self.meetings, first);
        self.meetings += 1;
        let make = |all: Vec<Vec<Value<B>>>| vec![make(all.concat())];
        let mut made = self.exchange.meet(at, members, rank, vec![x], make)?;
        Ok(made.swap_remove(0))
    }

    fn moved(&mut self, operand: &Operand) -> Result<Value<B>, Failure> {
        let x = self.values[operand.value].clone();
        let mut x = x.unwrap_or_else(|| unreachable!("values are made before use"));
        for one in &operand.moves {
            let mesh = &self.plan.mesh;
            x = match *one {
                Move::Gather { axis, over } => self.meet(over, x, |all| cat(all, axis))?,
                Move::Slice { axis, over } => {
                    part(x, axis, mesh.size(over), mesh.coordinate(self.device, over))
                }
                Move::First { over } if mesh.coordinate(self.device, over) > 0 => zeros(x),
                Move::First { .. } => x,
            };
        }
        Ok(x)
    }

    fn run(&mut self) -> Result<Vec<Value<B>>, Failure> {
        let plan = self.plan;
        for line in &plan.lines {
            let operands: Vec<Value<B>> =
                line.operands.iter().map(|x| self.moved(x)).collect::<Result<_, _>>()?;
            let failed = |message| Failure {
                device: self.device,
                operation: line.instruction.name().into(),
                message,
            };
            let run = |operands| {
                // A method of Burn panics where it fails.
                let run = AssertUnwindSafe(|| line.instruction.run(operands));
                catch_unwind(run).unwrap_or_else(|panic| Err(said(&*panic)))
            };
            let mut results = match line.how {
                How::Pass => operands,
                How::Parts | How::Everywhere => run(operands).map_err(failed)?,
                How::Once => {
                    let own =
                        if self.device == 0 { run(operands).map_err(failed)? } else { Vec::new() };
                    let at = (self.meetings, 0);
                    self.meetings += 1;
                    let (members, rank) = (plan.mesh.devices(), self.device);
                    self.exchange.meet(at, members, rank, own, |all| all.concat())?
                }
            };
            if let Some((how, over)) = &line.reduce {
                for &over in over {
                    for x in &mut results {
                        *x = self.meet(over, x.clone(), |all| reduce(all, *how))?;
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

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}

/// The part of a tensor that a device has.
fn own<B: Backend>(x: Value<B>, split: &Split, mesh: &Mesh, device: usize) -> Value<B> {
    let mut x = x;
    for (axis, over) in split.0.iter().enumerate() {
        for &over in over {
            x = part(x, axis, mesh.size(over), mesh.coordinate(device, over));
        }
    }
    x
}

/// The tensor of which all devices have parts.
fn joined<B: Backend>(parts: Vec<Value<B>>, split: &Split, mesh: &Mesh) -> Value<B> {
    let mut parts: Vec<Option<Value<B>>> = parts.into_iter().map(Some).collect();
    for (axis, over) in split.0.iter().enumerate() {
        for &over in over.iter().rev() {
            for device in 0..mesh.devices() {
                if mesh.coordinate(device, over) == 0 && parts[device].is_some() {
                    let row: Vec<usize> = mesh.row(device, over).collect();
                    let all = row.into_iter().filter_map(|i| parts[i].take()).collect();
                    parts[device] = Some(cat(all, axis));
                }
            }
        }
    }
    parts.swap_remove(0).unwrap_or_else(|| unreachable!("the first device has the first part"))
}

/// Runs the plan: whole tensors in, whole tensors out.
pub(crate) fn run<B: Backend>(plan: &Plan<B>, inputs: &[Value<B>]) -> Result<Vec<Value<B>>> {
    let mesh = &plan.mesh;
    let exchange = Exchange::new();
    let device = |device: usize| {
        let mut values = vec![None; plan.graph.metas().len()];
        for (value, (x, split)) in inputs.iter().zip(&plan.inputs).enumerate() {
            values[value] = Some(own(x.clone(), split, mesh, device));
        }
        for (value, x) in plan.graph.constants() {
            values[*value] = Some(x.clone());
        }
        let mut own = Device { plan, exchange: &exchange, device, meetings: 0, values };
        let run = catch_unwind(AssertUnwindSafe(|| own.run()));
        let outcome = run.unwrap_or_else(|panic| {
            Err(Failure { device, operation: "a collective".into(), message: said(&*panic) })
        });
        outcome.map_err(|failure| exchange.fail(failure)).ok()
    };
    let all: Vec<Option<Vec<Value<B>>>> = std::thread::scope(|scope| {
        let device = &device;
        let others: Vec<_> = (1..mesh.devices()).map(|i| scope.spawn(move || device(i))).collect();
        let first = device(0);
        std::iter::once(first).chain(others.into_iter().map(|x| x.join().ok().flatten())).collect()
    });
    if let Some(Failure { device, operation, message }) = exchange.failure() {
        return Err(ShardError::Device { device, operation, message });
    }
    let mut all: Vec<_> = all.into_iter().flatten().map(Vec::into_iter).collect();
    let outputs = plan.outputs.iter().map(|(_, split)| {
        let parts = all.iter_mut().filter_map(Iterator::next).collect();
        joined(parts, split, mesh)
    });
    Ok(outputs.collect())
}
