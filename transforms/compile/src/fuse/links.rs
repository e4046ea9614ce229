//! Chains of a plan, bound to memory addresses.

use super::bank::Bank;
use super::chain::{Chain, ChainStep, OperandLocation, Stage};
use super::kernel::{self, FusedFloat};
use super::machine::{self, ChainInst, Opcode};
use super::plan::{Arg, FusionPlan};
use super::run::OutputBuffer;
use super::source::OperandAccess;

/// Address of an operand as a function of the row.
#[derive(Clone, Copy)]
struct OperandAddress<T> {
    /// Address for row 0.
    base: *mut T,
    /// Stride per row from the start of the data to the start of a block, and stride per row within a block.
    block: usize,
    row: usize,
}

impl<T> OperandAddress<T> {
    /// Address for row `row` of the block that starts at row `at`.
    fn of(&self, at: usize, row: usize) -> *mut T {
        self.base.wrapping_add(at * self.block + row * self.row)
    }
}

/// Memory of one task (thread).
pub(super) struct ThreadMemory<'a, T> {
    pub(super) bank: &'a Bank<T>,
    pub(super) sources: &'a [Option<OperandAccess<'a, T>>],
    pub(super) outputs: &'a [OutputBuffer],
    pub(super) numbers: &'a [T],
    /// Partial sums of one row, for the maximum number of reductions in a chain.
    pub(super) sums: *mut T,
}

impl<T: FusedFloat> ThreadMemory<'_, T> {
    /// Address of an operand, and true if it is one scalar for all lanes.
    fn find(&self, place: OperandLocation, n: usize) -> (OperandAddress<T>, bool) {
        let site = |base, block, row| OperandAddress { base, block, row };
        let fixed = |x: &T| site(std::ptr::from_ref(x).cast_mut(), 0, 0);
        let input = |i: usize, n: usize| match &self.sources[i] {
            Some(OperandAccess::Each(x)) => (site(x.as_ptr().cast_mut(), n, n), false),
            Some(OperandAccess::Uniform(x)) => (fixed(x), true),
            Some(OperandAccess::Row(x)) => (site(x.as_ptr().cast_mut(), 0, 0), false),
            _ => {
                let at = self.bank.input(i);
                (site(at.unwrap_or_else(|| unreachable!("walks have registers")), 0, n), false)
            }
        };
        match place {
            OperandLocation::Nowhere => (site(std::ptr::null_mut(), 0, 0), true),
            OperandLocation::Number(k) => {
                // The pointer is derived from the whole slice, since an instruction may also read the next number.
                assert!(k < self.numbers.len(), "a number of the plan");
                (site(self.numbers.as_ptr().wrapping_add(k).cast_mut(), 0, 0), true)
            }
            OperandLocation::Vector(Arg::Register(r)) => (site(self.bank.at(r), 0, n), false),
            OperandLocation::Vector(Arg::Input(i)) => input(i, n),
            OperandLocation::Row(Arg::Register(r)) => (site(self.bank.at(r), 0, 1), true),
            OperandLocation::Row(Arg::Input(i)) => (input(i, 1).0, true),
            OperandLocation::Output(o) => (site(self.outputs[o].at(), n, n), false),
            OperandLocation::Sum(k) => {
                (site(self.sums.wrapping_add(k * machine::parts::<T>()), 0, 0), true)
            }
        }
    }
}

/// Instructions of all chains, with operand addresses.
pub(super) struct Links<T> {
    insts: Vec<ChainInst<T>>,
    sites: Vec<OperandAddress<T>>,
    /// Copies of the operand elements beyond the last full accumulator.
    copies: Vec<T>,
    lanes: usize,
    n: usize,
}

impl<T: FusedFloat> Links<T> {
    pub(super) fn new(plan: &FusionPlan, memory: &ThreadMemory<'_, T>) -> Self {
        let chains = plan.stages.iter().filter_map(|stage| match stage {
            Stage::Chain(chain) => Some(chain),
            _ => None,
        });
        let count = chains.clone().map(|chain| chain.steps.len()).sum();
        let (mut insts, mut sites) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for &ChainStep { code, at } in chains.flat_map(|chain| &chain.steps) {
            let (site, single) = memory.find(at, plan.n);
            let code = if single { code.of_number() } else { code };
            insts.push(ChainInst {
                code,
                moves: if single { 0 } else { usize::MAX },
                at: site.base,
            });
            sites.push(site);
        }
        let lanes = machine::lanes::<T>();
        Self { insts, sites, copies: Vec::new(), lanes, n: plan.n }
    }

    /// Executes a chain on rows `at..at + rows`.
    ///
    /// # Safety
    /// The chain belongs to the plan, and `memory` is the memory that the links were created with. Its operands have
    /// these rows, and no other thread accesses the elements that are written.
    pub(super) unsafe fn run(
        &mut self,
        chain: &Chain,
        at: usize,
        rows: usize,
        memory: &ThreadMemory<'_, T>,
    ) {
        let parts = machine::parts::<T>();
        let (times, len) = if chain.by_row { (rows, self.n) } else { (1, rows * self.n) };
        for row in 0..times {
            if !chain.totals.is_empty() {
                // SAFETY: `sums` has partial sums for every reduction of the chain.
                unsafe { memory.sums.write_bytes(0, chain.totals.len() * parts) };
            }
            let own = chain.range();
            for (one, site) in self.insts[own.clone()].iter_mut().zip(&self.sites[own.clone()]) {
                one.at = site.of(at, row);
            }
            let whole = len / self.lanes;
            if whole > 0 {
                // SAFETY: the operands have at least `whole` full accumulators.
                unsafe { machine::run(&self.insts[own], whole) };
            }
            if len > whole * self.lanes {
                // SAFETY: the operands have the remaining elements, fewer than an accumulator.
                unsafe { self.last(chain, [at, row], whole * self.lanes, len % self.lanes) };
            }
            for (k, total) in chain.totals.iter().enumerate() {
                // SAFETY: the partial sums, the per-row scalar in a register, and the one in an output are within their
                // buffers.
                unsafe {
                    let sums = std::slice::from_raw_parts(memory.sums.add(k * parts), parts);
                    let number = kernel::total(total.reduction, sums, self.n);
                    memory.bank.at(total.register).add(row).write(number);
                    if let Some(output) = total.output {
                        memory.outputs[output].at::<T>().add(at + row).write(number);
                    }
                }
            }
        }
    }

    /// Executes a chain on the elements of a row beyond the last full accumulator, on copies.
    ///
    /// # Safety
    /// The operands have `left` elements at this position, fewer than an accumulator.
    #[cold]
    unsafe fn last(&mut self, chain: &Chain, [at, row]: [usize; 2], done: usize, left: usize) {
        let Self { insts, sites, copies, lanes, .. } = self;
        let (insts, sites) = (&mut insts[chain.range()], &sites[chain.range()]);
        let need = chain.copies * *lanes;
        if copies.len() < need {
            copies.resize(need, T::ZERO);
        }
        let first = copies.as_mut_ptr();
        for ((one, site), &k) in insts.iter_mut().zip(sites).zip(&chain.copy_of) {
            if one.moves == 0 {
                continue;
            }
            one.at = first.wrapping_add(k * *lanes);
            if one.code != Opcode::Store {
                // Operands that the chain itself writes first are copied, too, which is redundant but harmless.
                // SAFETY: `left` elements of the operand, and a copy with the size of an accumulator.
                unsafe { one.at.copy_from_nonoverlapping(site.of(at, row).add(done), left) };
            }
        }
        // SAFETY: every operand that advances is a copy with the size of an accumulator.
        unsafe { machine::run(insts, 1) };
        for (one, site) in insts.iter().zip(sites) {
            if one.code == Opcode::Store {
                // SAFETY: as above.
                unsafe { site.of(at, row).add(done).copy_from_nonoverlapping(one.at, left) };
            }
        }
    }
}
