//! A recorded body as kernels over an arena.

mod lines;
mod whole;

use std::collections::HashMap;
use std::sync::Arc;

use burn_backend::{Backend, DType};
use burn_t4a::ext::operation::Operations;
use t4a_tensor::Element;

use super::Body;
use super::arena::Arena;
use super::kernel::{Inst, Kind, copy};
use super::products::Sizes;
use crate::fuse::kernel::Lane;
use crate::program::{live, unique};
use crate::recording::Execute;
use crate::tensor::{Any, Meta};
use whole::Search;

/// A line of the program.
pub(super) enum Line<T, B: Backend> {
    Kernel(Inst<T>),
    /// An operation that has no kernel here, on tensors made for it.
    Routine(Routine<B>),
}

pub(super) struct Routine<B: Backend> {
    pub(super) step: Arc<dyn Execute<B>>,
    pub(super) operands: Vec<Operand<B>>,
    pub(super) results: Vec<Put>,
}

pub(super) enum Operand<B: Backend> {
    Arena(usize, Vec<usize>),
    Constant(Any<B>),
    /// A result of another routine.
    Kept(usize),
}

/// The destination of a result of a routine.
pub(super) enum Put {
    /// Offset and elements.
    Arena(usize, usize),
    /// As it is, for other routines: integers and truth values.
    Kept(usize),
    /// It has no elements.
    Nowhere,
}

/// A range of the arena, and the shape of the tensor that it is.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) at: usize,
    pub(super) n: usize,
    pub(super) shape: Vec<usize>,
}

/// A product of every step with a matrix at an offset of the arena.
pub(super) struct WithMatrix {
    pub(super) matrix: usize,
    pub(super) sizes: Sizes,
}

/// A result of every step.
pub(super) struct Y {
    pub(super) range: Range,
    /// The y is this product of what is in the arena.
    pub(super) product: Option<WithMatrix>,
}

/// `Aᵀ · B` of every step, with A `[k, m]` and B `[k, n]`, is added to the matrix at `to`.
pub(super) struct Added {
    pub(super) to: usize,
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// A scan as a program.
pub(super) struct Loop<T, B: Backend> {
    pub(super) arena: usize,
    /// The number of tensors that routines pass to each other.
    pub(super) kept: usize,
    pub(super) constants: Vec<(usize, Vec<T>)>,
    /// Consts, carries, xs, captured values.
    pub(super) inputs: Vec<Range>,
    pub(super) counts: [usize; 3],
    /// Lines whose results do not change from step to step.
    pub(super) before: Vec<Line<T, B>>,
    pub(super) step: Vec<Line<T, B>>,
    /// From where to where carries go after a step, and how many elements.
    pub(super) moves: Vec<(usize, usize, usize)>,
    pub(super) ys: Vec<Y>,
    /// Products of an x of xs, by its number, that are at an offset of the arena when a step begins.
    pub(super) given: Vec<(usize, usize, WithMatrix)>,
    pub(super) sums: Vec<Added>,
    pub(super) length: usize,
    pub(super) reverse: bool,
    #[cfg(feature = "jit")]
    pub(super) machine: Option<super::machine::Machine<T>>,
}

/// The place of a value.
#[derive(Clone)]
enum Place<B: Backend> {
    /// Nowhere yet.
    None,
    /// Numbers, or truth values as 1 and 0.
    Arena { at: usize, flag: bool },
    /// A constant of another dtype.
    Outside(Any<B>),
    /// A tensor of another dtype, from a routine for routines.
    Kept(usize),
}

struct Builder<'a, T, B: Backend> {
    metas: &'a [Meta],
    dtype: DType,
    arena: Arena,
    place: Vec<Place<B>>,
    /// The value whose slot a value shares.
    root: Vec<usize>,
    lines: Vec<Line<T, B>>,
    kept: usize,
    /// Slots of the current instruction only.
    scratch: Vec<(usize, usize)>,
    /// True for values that change from step to step.
    moving: Vec<bool>,
    /// Offsets of the transposes of values.
    turned: HashMap<usize, usize>,
    /// The slot of a carry that a result may have at once, since nothing reads the carry any more.
    home: Vec<Option<usize>>,
    device: B::Device,
}

type Outcome<T> = Result<T, &'static str>;

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

impl<T, B: Backend> Loop<T, B> {
    /// True if steps run as machine code.
    pub(super) fn is_coded(&self) -> bool {
        #[cfg(feature = "jit")]
        return self.machine.is_some();
        #[cfg(not(feature = "jit"))]
        false
    }
}

impl<T: Lane + Element, B: Operations> Loop<T, B> {
    pub(super) fn new(body: &Body<B>, dtype: DType) -> Outcome<Self> {
        let source = &body.source;
        let values = source.metas.len();
        let mut outputs = source.outputs.clone();
        let instructions = live(source.instructions.clone(), &outputs, values);
        let instructions = unique(instructions, &mut outputs, values);
        let instructions = live(instructions, &outputs, values);
        let mut b = Builder::<T, B> {
            metas: &source.metas,
            dtype,
            arena: Arena::default(),
            place: vec![Place::None; values],
            root: (0..values).collect(),
            lines: Vec::new(),
            kept: 0,
            scratch: Vec::new(),
            moving: vec![false; values],
            turned: HashMap::new(),
            home: vec![None; values],
            device: B::Device::default(),
        };
        let mut inputs = Vec::new();
        for id in 0..source.inputs {
            let shape = source.metas[id].shape.clone();
            let at = b.slot(id, false)?;
            inputs.push(Range { at, n: count(&shape), shape });
        }
        let mut constants = Vec::new();
        for (id, x) in &source.constants {
            match x {
                Any::Float(_) if source.metas[*id].dtype == dtype => {
                    let data = x.clone().data().map_err(|_| "unreadable_constant")?;
                    let elements: Vec<T> = data.iter::<f64>().map(T::from_f64).collect();
                    constants.push((b.slot(*id, false)?, elements));
                }
                x => b.place[*id] = Place::Outside(x.clone()),
            }
        }
        // Values that depend on nothing that changes are computed once.
        let [consts, carries, xs] = body.counts;
        let changes = consts..consts + carries + xs;
        b.moving[changes].fill(true);
        let mut steps = Vec::new();
        for one in instructions {
            if one.operands.iter().any(|&v| b.moving[v]) {
                b.moving[one.first..one.first + one.results].fill(true);
                steps.push(one);
            } else {
                b.instruction(&one)?;
            }
        }
        let mut search = Search {
            metas: &source.metas,
            steps,
            outputs,
            carries: consts..consts + carries,
            xs: consts + carries..consts + carries + xs,
            moving: &b.moving,
        };
        let whole = search.run();
        let (steps, mut outputs) = (search.steps, search.outputs);
        let ends = carries..outputs.len();
        outputs.extend(whole.sums.iter().flat_map(|sum| [sum.a, sum.b]));
        let mut given = Vec::new();
        for whole::Product { x, matrix, out, sizes } in &whole.given {
            let with = WithMatrix { matrix: b.arena_of(*matrix)?, sizes: *sizes };
            given.push((x - consts - carries, b.slot(*out, false)?, with));
        }
        for one in &steps {
            b.turn(one)?;
        }
        let before = std::mem::take(&mut b.lines);
        // The last step line that uses a value, or one that shares its slot.
        let end = steps.len();
        let mut last = vec![0; values];
        for (at, one) in steps.iter().enumerate() {
            b.share(one);
            one.operands.iter().for_each(|&v| last[b.root[v]] = at);
            for v in one.first..one.first + one.results {
                last[b.root[v]] = last[b.root[v]].max(at);
            }
        }
        outputs.iter().for_each(|&v| last[b.root[v]] = end);
        let slots: Vec<usize> = inputs[consts..consts + carries].iter().map(|x| x.at).collect();
        let mut waiting: Vec<usize> = (0..carries).collect();
        for (at, one) in steps.iter().enumerate() {
            let made = one.first..one.first + one.results;
            waiting.retain(|&k| {
                let v = b.root[outputs[k]];
                let free = made.contains(&v) && last[consts + k] < at && b.home[v].is_none();
                if free {
                    b.home[v] = Some(slots[k]);
                }
                !free
            });
            b.instruction(one)?;
            let mut ended: Vec<usize> =
                one.operands.iter().copied().chain(one.first..one.first + one.results).collect();
            ended.iter_mut().for_each(|v| *v = b.root[*v]);
            ended.sort_unstable();
            ended.dedup();
            // Inputs and what was computed before stay where they are.
            let is_step = |v: &usize| *v >= source.inputs && b.moving[*v];
            let ended: Vec<usize> =
                ended.into_iter().filter(is_step).filter(|v| last[*v] == at).collect();
            for v in ended {
                if let Place::Arena { at, .. } = b.place[v] {
                    b.arena.release(at, count(&source.metas[v].shape));
                }
            }
        }
        // Carries that come from slots of other carries wait elsewhere.
        let mut moves = Vec::new();
        for (k, &v) in outputs[..carries].iter().enumerate() {
            let (mut from, n) = (b.arena_of(v)?, count(&source.metas[v].shape));
            if from != slots[k] && slots.contains(&from) {
                let to = b.arena.place(n);
                b.lines.push(Line::Kernel(Inst::new((copy, Kind::Copy), [from, 0, 0], to, n)));
                from = to;
            }
            if from != slots[k] {
                moves.push((from, slots[k], n));
            }
        }
        let mut ys = Vec::new();
        for (k, &v) in outputs[ends].iter().enumerate() {
            let product = whole.results.iter().find(|(y, _)| *y == k).map(|(_, product)| product);
            let shape = source.metas[product.map_or(v, |product| product.out)].shape.clone();
            let range = Range { at: b.arena_of(v)?, n: count(&source.metas[v].shape), shape };
            let product = match product {
                Some(one) => Some(WithMatrix { matrix: b.arena_of(one.matrix)?, sizes: one.sizes }),
                None => None,
            };
            ys.push(Y { range, product });
        }
        let mut sums = Vec::new();
        for &whole::Sum { carry, a, b: right, m, k, n } in &whole.sums {
            sums.push(Added {
                to: slots[carry],
                a: b.arena_of(a)?,
                b: b.arena_of(right)?,
                m,
                k,
                n,
            });
        }
        let (step, kept) = (b.lines, b.kept);
        // Kernels may look at as many elements as they write.
        let kernels = || {
            before.iter().chain(&step).filter_map(|line| match line {
                Line::Kernel(inst) => Some(inst),
                Line::Routine(_) => None,
            })
        };
        let arena = b.arena.len() + kernels().map(|i| i.n).max().unwrap_or(0);
        if !kernels().all(|i| i.fits(arena)) {
            return Err("out_of_arena");
        }
        let (counts, length, reverse) = (body.counts, body.length, body.reverse);
        let made = Self {
            arena,
            kept,
            constants,
            inputs,
            counts,
            before,
            step,
            moves,
            ys,
            given,
            sums,
            length,
            reverse,
            #[cfg(feature = "jit")]
            machine: None,
        };
        #[cfg(feature = "jit")]
        let made = Self { machine: super::machine::Machine::new(&made), ..made };
        Ok(made)
    }
}

impl<T: Lane + Element, B: Backend> Builder<'_, T, B> {
    fn slot(&mut self, value: usize, flag: bool) -> Outcome<usize> {
        let Meta { shape, dtype } = &self.metas[value];
        if !flag && *dtype != self.dtype {
            return Err("dtype_unsupported");
        }
        if count(shape) == 0 {
            return Err("no_elements");
        }
        let at = self.home[value].unwrap_or_else(|| self.arena.place(count(shape)));
        self.place[value] = Place::Arena { at, flag };
        Ok(at)
    }

    fn arena_of(&self, value: usize) -> Outcome<usize> {
        match &self.place[value] {
            Place::Arena { at, flag: false } => Ok(*at),
            _ => Err("dtype_unsupported"),
        }
    }

    fn numel(&self, value: usize) -> usize {
        count(&self.metas[value].shape)
    }

    fn temporary(&mut self, n: usize) -> usize {
        let at = self.arena.place(n);
        self.scratch.push((at, n));
        at
    }
}
