//! One call of a backend method: collects operands, runs the method, records it.
//!
//! ```text
//! Call      operands collected from the arguments, with their values in the recording
//! Pending   a call that has run, before its step is recorded
//! Method    the step of a method, with its static arguments
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use burn_backend::Backend;

use crate::argument::{Argument, Returned};
use crate::backend::Traced;
use crate::error::CompileError;
use crate::fuse::{Elementwise, is_row_major};
use crate::methods::MethodClass;
use crate::recording::{Execute, Frame, Instruction, Made, Recording, innermost};
use crate::tensor::{AnyPrimitive, PrimitiveKind, TracedTensor, ValueNode};
use crate::trace::traced;
use crate::words::{StaticArgument, Word, read, words};

/// Results of a call, with their values in the recording.
pub(crate) struct Results<B: Backend> {
    all: std::vec::IntoIter<AnyPrimitive<B>>,
    node: Option<ValueNode<B>>,
}

impl<B: Backend> Results<B> {
    pub(crate) fn take<K: PrimitiveKind<B>>(&mut self) -> TracedTensor<B, K> {
        let x = self.all.next().unwrap_or_else(|| unreachable!("as many results as recorded"));
        let primitive = K::restore(x).unwrap_or_else(|| unreachable!("a result of another kind"));
        TracedTensor { primitive, node: self.next_node() }
    }

    /// The next result, of any tensor kind.
    pub(crate) fn any(&mut self) -> AnyPrimitive<Traced<B>> {
        let x = self.all.next().unwrap_or_else(|| unreachable!("as many results as recorded"));
        traced(x, self.next_node())
    }

    fn next_node(&mut self) -> Option<ValueNode<B>> {
        let node = self.node.clone();
        if let Some(node) = &mut self.node {
            node.id += 1;
        }
        node
    }
}

/// Form and tensors of the results, and the pending call.
type ReturnedCall<B, F> = (F, Vec<AnyPrimitive<B>>, Pending<B>);

/// A method call under construction.
pub(crate) struct Call<B: Backend> {
    name: &'static str,
    operands: Vec<AnyPrimitive<B>>,
    nodes: Vec<Option<ValueNode<B>>>,
    pure: bool,
    class: MethodClass,
    elementwise: Option<Elementwise>,
}

impl<B: Backend> Call<B> {
    pub(crate) fn new(name: &'static str) -> Self {
        let (operands, nodes) = (Vec::new(), Vec::new());
        Self { name, operands, nodes, pure: true, class: MethodClass::General, elementwise: None }
    }

    /// Marks the call as random: its results differ from call to call.
    pub(crate) fn random(mut self) -> Self {
        self.pure = false;
        self
    }

    /// Sets the class, which is [`MethodClass::General`] otherwise.
    pub(crate) fn class(mut self, class: MethodClass) -> Self {
        self.class = class;
        self
    }

    pub(crate) fn take<A: Argument<B>>(&mut self, argument: A) -> A::Slot {
        argument.store(self)
    }

    /// Appends an operand; returns its index.
    pub(crate) fn operand<K: PrimitiveKind<B>>(&mut self, x: TracedTensor<B, K>) -> usize {
        self.operands.push(K::erase(x.primitive));
        self.nodes.push(x.node);
        self.operands.len() - 1
    }

    /// Runs a method of the inner backend and records it. `what` returns its elementwise function, if any.
    pub(crate) fn run<
        R: Returned<B> + 'static,
        S: StaticArgument + Debug + Send + Sync + 'static,
    >(
        mut self,
        slots: S,
        run: fn(&S, &mut Frame<B>) -> R::Inner,
        what: fn(&S) -> Option<Elementwise>,
    ) -> R {
        self.elementwise = what(&slots);
        let method = MethodCall::<B, S, R> { slots, run, what };
        let record = |frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            Ok::<_, std::convert::Infallible>(method.call(frame, out))
        };
        let Ok((form, results, pending)) = self.record(record);
        R::join(form, &mut pending.finish(results, || Arc::new(method)))
    }

    /// Runs the call; its step is recorded by [`Pending::finish`].
    pub(crate) fn record<F, E>(
        self,
        run: impl FnOnce(&mut Frame<B>, &mut Vec<AnyPrimitive<B>>) -> Result<F, E>,
    ) -> Result<ReturnedCall<B, F>, E> {
        let Self { name, operands, nodes, pure, class, elementwise } = self;
        let recording = Self::recording(name, pure, &nodes);
        let mut layouts = None;
        let recorded = recording.map(|recording| {
            let open = recording.is_open();
            let mut ids = Vec::with_capacity(nodes.len());
            if open {
                layouts = ElementwiseLayouts::of(class, elementwise, &nodes, &operands);
                if nodes.iter().zip(&operands).any(|(node, x)| node.is_none() && x.is_tracked()) {
                    recording.fail(CompileError::CapturesTracked { operation: name });
                }
                for (node, x) in nodes.iter().zip(&operands) {
                    let known = node.as_ref().and_then(|node| recording.enter(node, x));
                    ids.push(known.unwrap_or_else(|| recording.constant(x.clone())));
                }
            }
            (recording, ids)
        });
        let mut frame = Frame(operands.into_iter().map(Some).collect());
        let mut results = Vec::new();
        let form = run(&mut frame, &mut results)?;
        Ok((form, results, Pending { name, pure, class, elementwise, layouts, recorded }))
    }

    /// The recording that the call belongs to: that of its operands, or for random numbers the innermost one.
    fn recording(
        name: &'static str,
        pure: bool,
        nodes: &[Option<ValueNode<B>>],
    ) -> Option<Arc<Recording<B>>> {
        let mut all = nodes.iter().flatten().map(|node| &node.recording);
        let Some(first) = all.next() else {
            return if pure { None } else { innermost() };
        };
        let others: Vec<_> = all.filter(|other| !Arc::ptr_eq(first, other)).collect();
        // For nested recordings, the innermost one has access to the values of all.
        let knows = |one: &&Arc<Recording<B>>| {
            one.is_within(first) && others.iter().all(|other| one.is_within(other))
        };
        if let Some(innermost) = others.iter().copied().chain([first]).find(knows) {
            return Some(innermost.clone());
        }
        // Recordings that are not nested have no access to the values of each other.
        for recording in others.iter().chain([&first]) {
            recording.fail(CompileError::Foreign { operation: name });
        }
        Some(first.clone())
    }
}

/// Layouts of the operands of an elementwise call.
///
/// A fused group writes row-major results, an identity is replaced by its operand, and a constant of one number by a
/// broadcast view. None of this changes the layout of a value, and with it the order of later sums, if the result of the
/// call is row-major and so is an operand of its shape that is a value of the recording.
#[derive(Clone, Copy)]
struct ElementwiseLayouts {
    /// Maximum number of elements of row-major operands that are values of the recording.
    elements: usize,
    /// True if there are several operands, and none is a constant.
    several: bool,
}

impl ElementwiseLayouts {
    fn of<B: Backend>(
        class: MethodClass,
        elementwise: Option<Elementwise>,
        nodes: &[Option<ValueNode<B>>],
        operands: &[AnyPrimitive<B>],
    ) -> Option<Self> {
        if elementwise.is_none() && class != MethodClass::Elementwise {
            return None;
        }
        let all = nodes.iter().zip(operands).filter(|(node, x)| node.is_some() && is_row_major(x));
        let elements = all.map(|(_, x)| x.elements()).max();
        let several = nodes.len() > 1 && nodes.iter().all(Option::is_some);
        Some(Self { elements: elements.unwrap_or(0), several })
    }

    fn is_exact<B: Backend>(self, results: &[AnyPrimitive<B>]) -> bool {
        results.iter().all(|x| is_row_major(x) && (self.several || self.elements >= x.elements()))
    }
}

/// A call that has run and is recorded once its step is given.
pub(crate) struct Pending<B: Backend> {
    name: &'static str,
    pure: bool,
    class: MethodClass,
    elementwise: Option<Elementwise>,
    layouts: Option<ElementwiseLayouts>,
    recorded: Option<(Arc<Recording<B>>, Vec<usize>)>,
}

impl<B: Backend> Pending<B> {
    /// Records the call; returns the results with their values.
    pub(crate) fn finish(
        self,
        results: Vec<AnyPrimitive<B>>,
        step: impl FnOnce() -> Arc<dyn Execute<B>>,
    ) -> Results<B> {
        let Self { name, pure, class, elementwise, layouts, recorded } = self;
        let node = recorded.map(|(recording, operands)| {
            let exact = layouts.is_none_or(|layouts| layouts.is_exact(&results));
            let id = recording.push(&results, exact, |first| {
                let (step, results) = (step(), results.len());
                Instruction { name, step, operands, first, results, pure, class, elementwise }
            });
            ValueNode { recording, id }
        });
        Results { all: results.into_iter(), node }
    }
}

/// A method of the inner backend with its static arguments.
struct MethodCall<B: Backend, S, R: Returned<B>> {
    slots: S,
    run: fn(&S, &mut Frame<B>) -> R::Inner,
    what: fn(&S) -> Option<Elementwise>,
}

/// Step of a method with its elementwise function, if any.
pub(crate) fn made<B, R, S>(
    slots: S,
    run: fn(&S, &mut Frame<B>) -> R::Inner,
    what: fn(&S) -> Option<Elementwise>,
) -> Made<B>
where
    B: Backend,
    R: Returned<B> + 'static,
    S: StaticArgument + Debug + Send + Sync + 'static,
{
    let elementwise = what(&slots);
    Made { step: Arc::new(MethodCall::<B, S, R> { slots, run, what }), elementwise }
}

impl<B: Backend, S, R: Returned<B>> MethodCall<B, S, R> {
    fn call(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> R::Form {
        R::split((self.run)(&self.slots, frame), out)
    }
}

impl<B, S, R> Execute<B> for MethodCall<B, S, R>
where
    B: Backend,
    S: StaticArgument + Debug + Send + Sync + 'static,
    R: Returned<B> + 'static,
{
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> Result<(), String> {
        self.call(frame, out);
        Ok(())
    }

    fn text(&self) -> Option<String> {
        Some(format!("{:?}", self.slots))
    }

    fn words(&self) -> Option<Vec<Word>> {
        Some(words(&self.slots))
    }

    fn with(&self, words: &[Word]) -> Option<Made<B>> {
        Some(made::<B, R, S>(read(words)?, self.run, self.what))
    }
}
