//! Machine code of a program.

use std::collections::HashMap;
use std::fmt;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{AbiParam, BlockArg, InstBuilder, MemFlags, Signature, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};

use crate::program::{Function, MachineFloat, StepProgram, Stream, ValueDef, ValueId};

/// Error of the compilation of a program or of the execution of its code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JitError {
    /// Unsupported machine, or an error of Cranelift.
    #[error("jit: {0}")]
    Backend(String),
    /// Inconsistent program.
    #[error("jit: {0}")]
    Program(String),
    /// Array with too few elements.
    #[error("jit: {what} has {given} elements, {needed} are needed")]
    Length {
        /// Name of the array: the memory, an input or an output.
        what: String,
        /// Number of elements of the array.
        given: usize,
        /// Number of elements required by the steps.
        needed: usize,
    },
}

type Result<T> = std::result::Result<T, JitError>;

fn backend(error: impl fmt::Display) -> JitError {
    JitError::Backend(error.to_string())
}

/// Compiled function. Arguments: memory, pointers to the first elements of inputs and of outputs, number of steps.
type EntryPoint<T> = unsafe extern "C" fn(*mut T, *const *const T, *const *mut T, i64);

/// Machine code of the loop over the steps of a program.
pub struct MachineCode<T> {
    entry: EntryPoint<T>,
    /// Owner of the code; `None` while it is freed.
    module: Option<JITModule>,
    /// Minimum number of elements of the memory.
    memory: usize,
    inputs: Vec<Stream>,
    outputs: Vec<Stream>,
}

// SAFETY: finished code is not modified, and it is freed when its only owner is dropped.
unsafe impl<T> Send for MachineCode<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for MachineCode<T> {}

impl<T> fmt::Debug for MachineCode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, inputs, outputs, .. } = self;
        f.debug_struct("MachineCode")
            .field("memory", memory)
            .field("inputs", inputs)
            .field("outputs", outputs)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for MachineCode<T> {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: `entry` cannot be called after this.
            unsafe { module.free_memory() };
        }
    }
}

/// Instruction set of this machine.
fn machine() -> Result<OwnedTargetIsa> {
    let mut flags = settings::builder();
    for (name, value) in
        [("opt_level", "speed"), ("is_pic", "false"), ("use_colocated_libcalls", "false")]
    {
        flags.set(name, value).map_err(backend)?;
    }
    let isa = cranelift_native::builder().map_err(backend)?;
    isa.finish(settings::Flags::new(flags)).map_err(backend)
}

impl<T: MachineFloat> MachineCode<T> {
    /// Compiles a program.
    ///
    /// Cost: about 20 µs per value.
    ///
    /// # Errors
    /// [`JitError::Backend`] on machines that Cranelift does not support; [`JitError::Program`] for references to values,
    /// inputs and elements that do not exist.
    pub fn new(program: &StepProgram<T>) -> Result<Self> {
        let memory = check(program)?;
        let mut module = JITModule::new(JITBuilder::with_isa(machine()?, default_libcall_names()));
        let mut context = module.make_context();
        let pointer = module.target_config().pointer_type();
        let params = [pointer, pointer, pointer, types::I64].map(AbiParam::new);
        context.func.signature.params.extend(params);
        let mut builders = FunctionBuilderContext::new();
        let calls = module.target_config().default_call_conv;
        let mut signature = Signature::new(calls);
        signature.params.push(AbiParam::new(pointer));
        signature.params.extend([AbiParam::new(T::TYPE); 3]);
        signature.returns.push(AbiParam::new(T::TYPE));
        let mut b = FunctionBuilder::new(&mut context.func, &mut builders);
        let signature = b.import_signature(signature);
        Emit { b: &mut b, program, pointer, signature }.function();
        b.finalize();
        let name = module
            .declare_function("steps", Linkage::Export, &context.func.signature)
            .map_err(backend)?;
        module.define_function(name, &mut context).map_err(backend)?;
        module.finalize_definitions().map_err(backend)?;
        let address = module.get_finalized_function(name);
        // SAFETY: the code has this signature.
        let entry = unsafe { std::mem::transmute::<*const u8, EntryPoint<T>>(address) };
        let outputs = program.outputs.iter().map(|(stream, _)| *stream).collect();
        Ok(Self { entry, module: Some(module), memory, inputs: program.inputs.clone(), outputs })
    }

    /// Runs `steps` steps. Arrays may be longer than required.
    ///
    /// # Errors
    /// [`JitError::Length`].
    pub fn run(
        &self,
        memory: &mut [T],
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        steps: usize,
    ) -> Result<()> {
        let length = |what: String, given, needed| match given >= needed {
            true => Ok(()),
            false => Err(JitError::Length { what, given, needed }),
        };
        length("the list of inputs".into(), inputs.len(), self.inputs.len())?;
        length("the list of outputs".into(), outputs.len(), self.outputs.len())?;
        length("the memory".into(), memory.len(), self.memory)?;
        if steps == 0 {
            return Ok(());
        }
        let needed = |stream: &Stream| stream.elements.saturating_mul(steps);
        let first =
            |stream: &Stream| if stream.reverse { needed(stream) - stream.elements } else { 0 };
        let mut from = Vec::new();
        for (k, (x, stream)) in inputs.iter().zip(&self.inputs).enumerate() {
            length(format!("input {k}"), x.len(), needed(stream))?;
            from.push(x.as_ptr().wrapping_add(first(stream)));
        }
        let mut to = Vec::new();
        for (k, (y, stream)) in outputs.iter_mut().zip(&self.outputs).enumerate() {
            length(format!("output {k}"), y.len(), needed(stream))?;
            to.push(y.as_mut_ptr().wrapping_add(first(stream)));
        }
        // SAFETY: the lengths of all arrays were checked above.
        unsafe { (self.entry)(memory.as_mut_ptr(), from.as_ptr(), to.as_ptr(), steps as i64) };
        Ok(())
    }
}

/// Checks a program and returns the minimum number of elements of the memory.
fn check<T: MachineFloat>(program: &StepProgram<T>) -> Result<usize> {
    let StepProgram { numbers, inputs, carries, outputs } = program;
    let refuse = |what: String| Err(JitError::Program(what));
    let mut memory = carries.iter().map(|(at, _)| at + 1).max().unwrap_or(0);
    for (at, number) in numbers.iter().enumerate() {
        if let Some(id) = number.operands().iter().find(|id| id.0 as usize >= at) {
            return refuse(format!("number {at} is made of number {}, which comes later", id.0));
        }
        match *number {
            ValueDef::Memory(element) => memory = memory.max(element + 1),
            ValueDef::Carry(element) if carries.iter().all(|(at, _)| *at != element) => {
                return refuse(format!("element {element} of the memory is no carry"));
            }
            ValueDef::Input { stream, element }
                if inputs.get(stream).is_none_or(|stream| element >= stream.elements) =>
            {
                return refuse(format!("there is no element {element} of input {stream}"));
            }
            _ => {}
        }
        if let ValueDef::Memory(element) = *number
            && carries.iter().any(|(at, _)| *at == element)
        {
            return refuse(format!("element {element} of the memory is a carry"));
        }
    }
    let given = carries.iter().map(|(_, id)| id).chain(outputs.iter().flat_map(|(_, ids)| ids));
    if let Some(id) = given.into_iter().find(|id| id.0 as usize >= numbers.len()) {
        return refuse(format!("there is no number {}", id.0));
    }
    let mut places: Vec<usize> = carries.iter().map(|(at, _)| *at).collect();
    places.sort_unstable();
    if let Some(pair) = places.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(format!("element {} of the memory is two carries", pair[0]));
    }
    match outputs.iter().position(|(stream, ids)| stream.elements != ids.len()) {
        Some(k) => refuse(format!("output {k} has not one number for each element")),
        None => Ok(memory),
    }
}

/// Emits the function of a program.
struct Emit<'a, 'b, T> {
    b: &'a mut FunctionBuilder<'b>,
    program: &'a StepProgram<T>,
    pointer: types::Type,
    signature: cranelift_codegen::ir::SigRef,
}

impl<T: MachineFloat> Emit<'_, '_, T> {
    fn size(&self) -> i64 {
        i64::from(T::TYPE.bytes())
    }

    fn load(&mut self, from: Value, element: usize) -> Value {
        let at = self.address(from, element);
        self.b.ins().load(T::TYPE, MemFlags::trusted(), at, 0)
    }

    fn store(&mut self, x: Value, to: Value, element: usize) {
        let at = self.address(to, element);
        self.b.ins().store(MemFlags::trusted(), x, at, 0);
    }

    fn address(&mut self, base: Value, element: usize) -> Value {
        let bytes = element as i64 * self.size();
        if bytes == 0 { base } else { self.b.ins().iadd_imm(base, bytes) }
    }

    fn function(&mut self) {
        let (program, pointer) = (self.program, self.pointer);
        let entry = self.b.create_block();
        let (step, end) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        let params = self.b.block_params(entry).to_vec();
        let [memory, inputs, outputs, steps] = params[..] else {
            unreachable!("the signature has four parameters")
        };
        // Parameters of the loop block: remaining steps, positions in the streams, carries.
        let streams = program.inputs.len() + program.outputs.len();
        let mut state = vec![steps];
        for k in 0..streams {
            let (list, k) = match k.checked_sub(program.inputs.len()) {
                Some(k) => (outputs, k),
                None => (inputs, k),
            };
            let at = self.b.ins().iadd_imm(list, k as i64 * i64::from(pointer.bytes()));
            state.push(self.b.ins().load(pointer, MemFlags::trusted(), at, 0));
        }
        for &(at, _) in &program.carries {
            state.push(self.load(memory, at));
        }
        let mut values: Vec<Option<Value>> = vec![None; program.numbers.len()];
        for (at, number) in program.numbers.iter().enumerate() {
            values[at] = match *number {
                ValueDef::Constant(x) => Some(self.constant(x)),
                ValueDef::Memory(element) => Some(self.load(memory, element)),
                _ => None,
            };
        }
        let arguments =
            |state: &[Value]| state.iter().copied().map(BlockArg::Value).collect::<Vec<_>>();
        self.b.ins().jump(step, &arguments(&state));

        for &value in &state {
            let of = self.b.func.dfg.value_type(value);
            self.b.append_block_param(step, of);
        }
        self.b.switch_to_block(step);
        let state = self.b.block_params(step).to_vec();
        let (places, carries) = state[1..].split_at(streams);
        let (inputs, outputs) = places.split_at(program.inputs.len());
        let carry_of: HashMap<usize, Value> =
            program.carries.iter().map(|(at, _)| *at).zip(carries.iter().copied()).collect();
        for (at, number) in program.numbers.iter().enumerate() {
            if values[at].is_none() {
                values[at] = Some(self.number(number, &values, inputs, &carry_of));
            }
        }
        let of = |id: &ValueId| {
            values[id.0 as usize].unwrap_or_else(|| unreachable!("numbers are made in order"))
        };
        for (&place, (_, ids)) in outputs.iter().zip(&program.outputs) {
            for (element, id) in ids.iter().enumerate() {
                self.store(of(id), place, element);
            }
        }
        let mut next = vec![self.b.ins().iadd_imm(state[0], -1)];
        let all = program.inputs.iter().chain(program.outputs.iter().map(|(stream, _)| stream));
        for (&place, stream) in places.iter().zip(all) {
            let bytes = stream.elements as i64 * self.size();
            let bytes = if stream.reverse { -bytes } else { bytes };
            next.push(self.b.ins().iadd_imm(place, bytes));
        }
        next.extend(program.carries.iter().map(|(_, id)| of(id)));
        let more = self.b.ins().icmp_imm(IntCC::NotEqual, next[0], 0);
        self.b.ins().brif(more, step, &arguments(&next), end, &[]);
        self.b.seal_block(step);

        self.b.switch_to_block(end);
        for (&(at, _), x) in program.carries.iter().zip(&next[1 + streams..]) {
            self.store(*x, memory, at);
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
    }

    fn constant(&mut self, x: T) -> Value {
        match T::TYPE {
            types::F32 => self.b.ins().f32const(Ieee32::with_bits(x.bits() as u32)),
            _ => self.b.ins().f64const(Ieee64::with_bits(x.bits())),
        }
    }

    fn number(
        &mut self,
        number: &ValueDef<T>,
        values: &[Option<Value>],
        inputs: &[Value],
        carries: &HashMap<usize, Value>,
    ) -> Value {
        let of = |id: ValueId| {
            values[id.0 as usize].unwrap_or_else(|| unreachable!("numbers are made in order"))
        };
        match *number {
            ValueDef::Constant(_) | ValueDef::Memory(_) => unreachable!("made before the steps"),
            ValueDef::Carry(at) => carries[&at],
            ValueDef::Input { stream, element } => self.load(inputs[stream], element),
            ValueDef::Add([x, y]) => self.b.ins().fadd(of(x), of(y)),
            ValueDef::Sub([x, y]) => self.b.ins().fsub(of(x), of(y)),
            ValueDef::Mul([x, y]) => self.b.ins().fmul(of(x), of(y)),
            ValueDef::Div([x, y]) => self.b.ins().fdiv(of(x), of(y)),
            ValueDef::Neg(x) => self.b.ins().fneg(of(x)),
            ValueDef::Abs(x) => self.b.ins().fabs(of(x)),
            ValueDef::Sqrt(x) => self.b.ins().sqrt(of(x)),
            ValueDef::Call(Function { address, data }, xs) => {
                let address = self.b.ins().iconst(self.pointer, address as usize as i64);
                let data = self.b.ins().iconst(self.pointer, data as usize as i64);
                let arguments = [data, of(xs[0]), of(xs[1]), of(xs[2])];
                let call = self.b.ins().call_indirect(self.signature, address, &arguments);
                self.b.inst_results(call)[0]
            }
        }
    }
}
