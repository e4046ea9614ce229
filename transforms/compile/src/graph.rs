//! Recordings for other interpreters: the instructions of a traced function.
//!
//! Values are numbered: the inputs first, then constants and results in order of creation. An instruction is a backend
//! method with its static arguments as words, so an interpreter can run it unchanged, or with other sizes on a part of
//! its operands.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::compile::Traced;
//! use burn_t4a_transforms::compile::graph::{Arguments, Graph, MethodClass, mark};
//!
//! type B = BurnT4a;
//! let f = |x: Tensor<Traced<B>, 1>| mark(x.exp(), "annotation", vec![]).sum();
//! let arguments = Arguments::new(Tensor::<BurnT4a, 1>::from_floats([0.0, 0.0], &T4aDevice));
//! let graph = Graph::record(f, &arguments)?;
//! let names: Vec<_> = graph.instructions().iter().map(|one| one.name()).collect();
//! assert_eq!(names, ["float_exp", "annotation", "float_sum"]);
//! assert_eq!(graph.instructions()[0].class(), MethodClass::Elementwise);
//! assert!(graph.constants().is_empty());
//! // An interpreter: values by number.
//! let mut values = arguments.values().to_vec();
//! assert_eq!(values.len(), graph.inputs());
//! for one in graph.instructions() {
//!     let operands = one.operands().iter().map(|&k| values[k].clone()).collect();
//!     assert_eq!(one.results().start, values.len());
//!     values.extend(one.run(operands)?);
//! }
//! let results = graph.outputs().iter().map(|&k| values[k].clone()).collect();
//! let y: Tensor<B, 1> = graph.build(results)?;
//! y.into_data().assert_eq(&[2.0f32].into(), false);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::any::Any;
use std::ops::Range;

use burn_backend::Backend;
use burn_t4a::ext::tree::{Structure, Tree};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::backend::Traced;
use crate::call::Call;
use crate::error::Result;
pub use crate::key::Key;
pub use crate::methods::MethodClass;
use crate::pass::PassArrays;
pub use crate::pass::{OperationArray, OperationPass};
use crate::program::live;
pub use crate::recent::Recent;
use crate::recording::{Frame, NestedPrograms};
pub use crate::recording::{Instruction, LoopBody};
pub use crate::tensor::{AnyPrimitive as Value, TensorType};
use crate::tensor::{FloatKind, build, flatten};
use crate::trace::{Source, Trial, trace};
pub use crate::words::Word;
pub use t4a_operations::AnyOperation;

/// Arguments of a call: a flattened tree of tensors.
pub struct Arguments<B: Backend> {
    structure: Structure,
    values: Vec<Value<B>>,
}

impl<B: Backend> Arguments<B> {
    /// Flattens a tree.
    pub fn new<T: Tree<B>>(tree: T) -> Self {
        let (structure, values) = flatten(tree);
        Self { structure, values }
    }

    /// The tensors in tree order.
    pub fn values(&self) -> &[Value<B>] {
        &self.values
    }

    /// Path of each tensor in the tree.
    pub fn paths(&self) -> Vec<String> {
        self.structure.paths()
    }

    /// Builds the tree from other tensors.
    ///
    /// # Errors
    /// Those of [`Tree::build`].
    pub fn build<T: Tree<B>>(&self, values: Vec<Value<B>>) -> Result<T> {
        build(&self.structure, values)
    }

    /// Cache key of a recording with these arguments.
    pub fn key(&self) -> Key {
        Key::of(self.structure.clone(), &self.values)
    }
}

/// Operation outside of Burn's traits that an instruction runs.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::einsum::einsum;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::Traced;
/// use burn_t4a_transforms::compile::graph::{AnyOperation, Arguments, Graph, OperationArray};
///
/// type T = Tensor<Traced<BurnT4a>, 2>;
/// let f = |x: T| -> T { einsum("ij,kj->ik", [&x, &x]).unwrap() };
/// let arguments = Arguments::new(Tensor::<BurnT4a, 2>::ones([2, 3], &T4aDevice));
/// let graph = Graph::record(f, &arguments)?;
/// let one = &graph.instructions()[0];
/// let recorded = one.operation().unwrap();
/// assert_eq!(recorded.results, [OperationArray::Result(0)]);
/// let AnyOperation::Einsum(own) = recorded.operation else { panic!("it is an einsum") };
/// assert!(one.with_operation(&own).is_some());
/// # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RecordedOperation {
    /// The operation.
    pub operation: AnyOperation,
    /// The function of the operation that the instruction computes.
    pub pass: OperationPass,
    /// For each operand of the instruction, the array of the operation that it holds.
    pub operands: Vec<OperationArray>,
    /// The same for each result.
    pub results: Vec<OperationArray>,
}

/// Computation graph of a traced function, in execution order.
pub struct Graph<B: Backend> {
    source: Source<B>,
    structure: Structure,
}

impl<B: Backend> Graph<B> {
    /// Runs a function on these arguments and records it, without instructions that no output needs.
    ///
    /// # Errors
    /// The reason why the function cannot be recorded.
    pub fn record<I, O>(f: impl Fn(I) -> O, arguments: &Arguments<B>) -> Result<Self>
    where
        I: Tree<Traced<B>>,
        O: Tree<Traced<B>>,
    {
        let Arguments { structure, values } = arguments;
        let Trial { structure, source, .. } = trace::<B, I, O>(f, structure, values.clone())?;
        let mut source = source?;
        source.instructions = live(source.instructions, &source.outputs, source.metas.len());
        Ok(Self { source, structure })
    }

    pub(crate) fn source(&self) -> &Source<B> {
        &self.source
    }

    /// Shape and dtype of every value.
    pub fn metas(&self) -> &[TensorType] {
        &self.source.metas
    }

    /// Number of inputs; they are the first values.
    pub fn inputs(&self) -> usize {
        self.source.inputs
    }

    /// Values that do not depend on any input.
    pub fn constants(&self) -> &[(usize, Value<B>)] {
        &self.source.constants
    }

    /// Instructions in execution order.
    pub fn instructions(&self) -> &[Instruction<B>] {
        &self.source.instructions
    }

    /// Indices of the output values, in tree order.
    pub fn outputs(&self) -> &[usize] {
        &self.source.outputs
    }

    /// Path of each output in its tree.
    pub fn paths(&self) -> Vec<String> {
        self.structure.paths()
    }

    /// Builds the output tree from its tensors.
    ///
    /// # Errors
    /// Those of [`Tree::build`].
    pub fn build<O: Tree<B>>(&self, results: Vec<Value<B>>) -> Result<O> {
        build(&self.structure, results)
    }
}

impl<B: Backend> Instruction<B> {
    /// Name of the backend method or operation.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Indices of the operand values.
    pub fn operands(&self) -> &[usize] {
        &self.operands
    }

    /// Index range of the result values.
    pub fn results(&self) -> Range<usize> {
        self.first..self.first + self.results
    }

    /// True if the results differ from call to call.
    pub fn is_random(&self) -> bool {
        !self.pure
    }

    /// Dependence of the results on the operands; [`MethodClass::General`] for operations outside of Burn's traits.
    pub fn class(&self) -> MethodClass {
        self.class
    }

    /// Static arguments in the order of the method's parameters; a tensor is represented by its index among the
    /// operands. `None` for operations without an encoding.
    pub fn words(&self) -> Option<Vec<Word>> {
        self.step.words()
    }

    /// The instruction with other static arguments; `None` if they cannot be decoded.
    pub fn with(&self, words: &[Word]) -> Option<Self> {
        let made = self.step.with(words)?;
        Some(Self { step: made.step, elementwise: made.elementwise, ..self.clone() })
    }

    /// The operation outside of Burn's traits that the instruction runs; `None` for methods of backends, loops, and
    /// operations that [`AnyOperation`] does not have.
    pub fn operation(&self) -> Option<RecordedOperation> {
        let (operation, arrays) = self.step.operation()?;
        let PassArrays { pass, operands, results } = arrays.clone();
        Some(RecordedOperation { operation, pass, operands, results })
    }

    /// The instruction with another operation; `None` if the type differs from that of its own operation.
    pub fn with_operation(&self, operation: &dyn Any) -> Option<Self> {
        Some(Self { step: self.step.with_operation(operation)?, ..self.clone() })
    }

    /// The body, for a scan. The operands are consts, the initial carry, xs and the captured values; the results are the
    /// final carry and ys. xs and ys have a leading axis of steps.
    pub fn scan_body(&self) -> Option<&LoopBody<B>> {
        match self.step.nested()? {
            NestedPrograms::Scan(body) => Some(body),
            _ => None,
        }
    }

    /// The scan with another body.
    pub fn with_scan_body(&self, body: LoopBody<B>) -> Option<Self> {
        Some(Self { step: self.step.with_body(body)?, ..self.clone() })
    }

    /// Executes the instruction on these operands.
    ///
    /// # Errors
    /// Those of the operation.
    ///
    /// # Panics
    /// If the backend method panics.
    pub fn run(&self, operands: Vec<Value<B>>) -> Result<Vec<Value<B>>, String> {
        let mut out = Vec::with_capacity(self.results);
        self.step.run(&mut Frame(operands.into_iter().map(Some).collect()), &mut out)?;
        Ok(out)
    }
}

/// Values are numbered as in a [`Graph`]: the inputs, which are consts, carry, x and captured values, first.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::ext::scan::{Options, scan};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::compile::Traced;
/// use burn_t4a_transforms::compile::graph::{Arguments, Graph};
///
/// type T<const D: usize> = Tensor<Traced<BurnT4a>, D>;
/// let f = |x: T<2>| -> T<1> {
///     let add = |(): (), sum: T<1>, x: T<1>| (sum + x, ());
///     let (sum, ()) = scan(add, (), T::zeros([3], &T4aDevice), x, &Options::default()).unwrap();
///     sum
/// };
/// let arguments = Arguments::new(Tensor::<BurnT4a, 2>::ones([5, 3], &T4aDevice));
/// let graph = Graph::record(f, &arguments)?;
/// let one = &graph.instructions()[0];
/// let body = one.scan_body().unwrap();
/// assert_eq!((body.counts(), body.inputs(), body.outputs()), ([0, 1, 1], 2, &[2][..]));
/// let (constants, instructions) = (body.constants().to_vec(), body.instructions().to_vec());
/// let equal = body.with(body.metas().to_vec(), constants, instructions);
/// assert!(one.with_scan_body(equal).is_some());
/// # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
/// ```
impl<B: Backend> LoopBody<B> {
    /// Numbers of consts, carries and xs.
    pub fn counts(&self) -> [usize; 3] {
        self.counts
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.source.inputs
    }

    /// Shape and dtype of every value.
    pub fn metas(&self) -> &[TensorType] {
        &self.source.metas
    }

    /// Values that do not depend on any input.
    pub fn constants(&self) -> &[(usize, Value<B>)] {
        &self.source.constants
    }

    /// Instructions in execution order.
    pub fn instructions(&self) -> &[Instruction<B>] {
        &self.source.instructions
    }

    /// Indices of the next carry and of y.
    pub fn outputs(&self) -> &[usize] {
        &self.source.outputs
    }

    /// The body with other types, constants and instructions.
    #[must_use]
    pub fn with(
        &self,
        metas: Vec<TensorType>,
        constants: Vec<(usize, Value<B>)>,
        instructions: Vec<Instruction<B>>,
    ) -> Self {
        let (inputs, outputs) = (self.source.inputs, self.source.outputs.clone());
        Self { source: Source { metas, inputs, constants, instructions, outputs }, ..*self }
    }
}

/// Identity that is recorded as an instruction with this name and these words: an annotation for an interpreter.
pub fn mark<B: Backend, const D: usize>(
    x: Tensor<Traced<B>, D>,
    name: &'static str,
    words: Vec<Word>,
) -> Tensor<Traced<B>, D> {
    let mut call = Call::<B>::new(name);
    let at = call.operand(x.into_primitive().tensor());
    let x = call.run((at, words), |(at, _), frame| frame.take::<FloatKind>(*at), |_| None);
    Tensor::from_primitive(TensorPrimitive::Float(x))
}
