//! Recordings for other interpreters: what a function did, instruction by instruction.
//!
//! Values are numbered: the inputs first, constants and results as they came. An instruction is a method of
//! the backend with its static arguments as words, so an interpreter can run it as it is, or with other
//! sizes on a part of its operands.

use std::ops::Range;

use burn_backend::Backend;
use burn_t4a::ext::tree::{Structure, Tree};
use burn_tensor::{Tensor, TensorPrimitive};

use crate::backend::Traced;
use crate::call::Call;
use crate::error::Result;
pub use crate::key::Key;
pub use crate::recent::Recent;
use crate::recording::Frame;
pub use crate::recording::Instruction;
pub use crate::tensor::{Any as Value, Meta};
use crate::tensor::{FloatKind, build, flatten};
use crate::trace::{Source, Trial, trace};
pub use crate::words::Word;

/// The arguments of a call.
pub struct Arguments<B: Backend> {
    structure: Structure,
    values: Vec<Value<B>>,
}

impl<B: Backend> Arguments<B> {
    /// Of a tree.
    pub fn new<T: Tree<B>>(tree: T) -> Self {
        let (structure, values) = flatten(tree);
        Self { structure, values }
    }

    /// The tensors, in order.
    pub fn values(&self) -> &[Value<B>] {
        &self.values
    }

    /// Where each tensor is in the tree.
    pub fn paths(&self) -> Vec<String> {
        self.structure.paths()
    }

    /// What a recording of these arguments is good for.
    pub fn key(&self) -> Key {
        Key::of(self.structure.clone(), &self.values)
    }
}

/// What a function did.
pub struct Graph<B: Backend> {
    source: Source<B>,
    structure: Structure,
}

impl<B: Backend> Graph<B> {
    /// Runs a function on these arguments and records it.
    ///
    /// # Errors
    /// Why it cannot be recorded.
    pub fn record<I, O>(f: impl Fn(I) -> O, arguments: &Arguments<B>) -> Result<Self>
    where
        I: Tree<Traced<B>>,
        O: Tree<Traced<B>>,
    {
        let Arguments { structure, values } = arguments;
        let Trial { structure, source, .. } = trace::<B, I, O>(f, structure, values.clone())?;
        Ok(Self { source: source?, structure })
    }

    /// Shape and dtype of every value.
    pub fn metas(&self) -> &[Meta] {
        &self.source.metas
    }

    /// How many inputs there are: the first values.
    pub fn inputs(&self) -> usize {
        self.source.inputs
    }

    /// Values that depend on no input.
    pub fn constants(&self) -> &[(usize, Value<B>)] {
        &self.source.constants
    }

    /// In the order in which they ran.
    pub fn instructions(&self) -> &[Instruction<B>] {
        &self.source.instructions
    }

    /// The values of the results, in order.
    pub fn outputs(&self) -> &[usize] {
        &self.source.outputs
    }

    /// Where each result is in its tree.
    pub fn paths(&self) -> Vec<String> {
        self.structure.paths()
    }

    /// The tree of these results.
    ///
    /// # Errors
    /// Those of [`Tree::build`].
    pub fn build<O: Tree<B>>(&self, results: Vec<Value<B>>) -> Result<O> {
        build(&self.structure, results)
    }
}

impl<B: Backend> Instruction<B> {
    /// The method, or the operation.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its operands, by number.
    pub fn operands(&self) -> &[usize] {
        &self.operands
    }

    /// Its results.
    pub fn results(&self) -> Range<usize> {
        self.first..self.first + self.results
    }

    /// Whether it gives other results each time.
    pub fn is_random(&self) -> bool {
        !self.pure
    }

    /// Whether each element of the result is a function of the elements of the operands in its place.
    pub fn is_elementwise(&self) -> bool {
        use crate::fuse::Elementwise;
        self.elementwise.is_some_and(|what| !matches!(what, Elementwise::Reduce(..)))
    }

    /// Its static arguments in the order of the method; a tensor stands there as its place among the
    /// operands. `None` for operations that are values.
    pub fn words(&self) -> Option<Vec<Word>> {
        self.step.words()
    }

    /// The same instruction with other static arguments.
    pub fn with(&self, words: &[Word]) -> Option<Self> {
        let made = self.step.with(words)?;
        Some(Self { step: made.step, elementwise: made.elementwise, ..self.clone() })
    }

    /// Its results for these operands.
    ///
    /// # Errors
    /// The operation's.
    ///
    /// # Panics
    /// Where the method does.
    pub fn run(&self, operands: Vec<Value<B>>) -> Result<Vec<Value<B>>, String> {
        let mut out = Vec::with_capacity(self.results);
        self.step.run(&mut Frame(operands.into_iter().map(Some).collect()), &mut out)?;
        Ok(out)
    }
}

/// The tensor itself, recorded as an instruction of this name with these words: what an interpreter is to
/// know.
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
