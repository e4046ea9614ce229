//! Trees of tensors of any kind: what compiled functions take and give.

use std::any::Any as Dynamic;
use std::fmt;
use std::sync::Arc;

use burn_backend::{Backend, TensorMetadata};
use burn_t4a::ext::scan::Structure;
use burn_tensor::{Bool, Float, Int, Tensor, TensorPrimitive};

use crate::error::{CompileError, Result};
use crate::tensor::Any;

/// A value that is no tensor, as part of a key.
pub(crate) trait Kept: Dynamic + fmt::Debug + Send + Sync {
    fn same(&self, other: &dyn Kept) -> bool;
}

impl<T: PartialEq + fmt::Debug + Send + Sync + 'static> Kept for T {
    fn same(&self, other: &dyn Kept) -> bool {
        (other as &dyn Dynamic).downcast_ref::<T>() == Some(self)
    }
}

/// Values that are no tensors.
pub(crate) type Fixed = Vec<Arc<dyn Kept>>;

pub(crate) fn same(a: &Fixed, b: &Fixed) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(&**b))
}

/// The parts of a tree, in order.
pub struct Leaves<B: Backend> {
    tensors: std::vec::IntoIter<Any<B>>,
    fixed: std::vec::IntoIter<Arc<dyn Kept>>,
}

/// A tensor of any kind, or a value that is none.
pub struct Leaf<B: Backend>(Part<B>);

enum Part<B: Backend> {
    Tensor(Any<B>),
    Fixed(Arc<dyn Kept>),
}

impl<B: Backend> fmt::Debug for Leaf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Part::Tensor(x) => write!(f, "{}", x.meta()),
            Part::Fixed(x) => x.fmt(f),
        }
    }
}

impl<B: Backend> Leaves<B> {
    pub(crate) fn new(tensors: Vec<Any<B>>, fixed: Fixed) -> Self {
        Self { tensors: tensors.into_iter(), fixed: fixed.into_iter() }
    }

    fn take(&mut self) -> Any<B> {
        self.tensors.next().unwrap_or_else(|| unreachable!("as many leaves as the structure has"))
    }
}

/// A value in a tree that is no tensor. As an argument it is part of what a program is for: another value is
/// another program. As a result it is kept with the program and returned by each of its calls.
///
/// ```
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_compile::{Static, Traced, compile};
/// use burn_tensor::Tensor;
///
/// type B = BurnT4a;
/// let f = compile(|(x, Static(steps)): (Tensor<Traced<B>, 1>, Static<usize>)| {
///     let y = (0..steps).fold(x, |x, _| x.sin());
///     (y, Static(format!("after {steps} steps")))
/// });
/// let x = Tensor::<B, 1>::from_floats([0.5], &T4aDevice);
/// for _ in 0..2 {
///     let (_, Static(text)) = f.call((x.clone(), Static(3)))?;
///     assert_eq!(text, "after 3 steps");
/// }
/// f.call((x, Static(4)))?;
/// assert_eq!((f.counters().traces, f.counters().hits), (2, 1));
/// # Ok::<(), burn_t4a_compile::CompileError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Static<T>(pub T);

impl<B: Backend, T> Values<B> for Static<T>
where
    T: Clone + PartialEq + fmt::Debug + Send + Sync + 'static,
{
    type On<C: Backend> = Self;
    fn structure(&self) -> Structure {
        Structure::Node(Vec::new())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        all.push(Leaf(Part::Fixed(Arc::new(self.0))));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        let own = leaves.fixed.next();
        let own = own.as_deref().and_then(|x| (x as &dyn Dynamic).downcast_ref::<T>());
        match own {
            Some(x) if *structure == Structure::Node(Vec::new()) => Ok(Self(x.clone())),
            _ => mismatch(format!("() of a {}", std::any::type_name::<T>()), structure),
        }
    }
}

/// A tree of tensors: float, integer and boolean ones, [`Static`] values, `()`, tuples, arrays and vectors of
/// trees.
///
/// A struct of yours is one by listing its parts, as for `burn_t4a::ext::scan::Tree`; this trait differs
/// from that by leaves of all kinds and by [`Values::On`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tree of tensors of `{B}`",
    note = "trees are tensors, `Static` values, `()`, tuples, arrays and vectors of trees; a struct implements \
            `Values`"
)]
pub trait Values<B: Backend>: Sized {
    /// The same tree on another backend.
    type On<C: Backend>: Values<C>;
    /// How it branches.
    fn structure(&self) -> Structure;
    /// Appends its tensors, in order.
    fn leaves(self, all: &mut Vec<Leaf<B>>);
    /// The tree of these tensors.
    ///
    /// # Errors
    /// [`CompileError::Structure`], [`CompileError::Leaf`].
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self>;
}

/// The tensors of a tree and its other values.
pub(crate) fn flatten<B: Backend, T: Values<B>>(tree: T) -> (Vec<Any<B>>, Fixed) {
    let mut all = Vec::new();
    tree.leaves(&mut all);
    let (mut tensors, mut fixed) = (Vec::with_capacity(all.len()), Vec::new());
    for leaf in all {
        match leaf.0 {
            Part::Tensor(x) => tensors.push(x),
            Part::Fixed(x) => fixed.push(x),
        }
    }
    (tensors, fixed)
}

fn mismatch<T>(required: impl Into<String>, given: &Structure) -> Result<T> {
    Err(CompileError::Structure { required: required.into(), given: given.to_string() })
}

macro_rules! tensors {
    ($($kind:ident $any:ident $name:literal: |$x:ident| $into:expr, $from:expr;)*) => {$(
        impl<B: Backend, const D: usize> Values<B> for Tensor<B, D, $kind> {
            type On<C: Backend> = Tensor<C, D, $kind>;
            fn structure(&self) -> Structure {
                Structure::Leaf
            }
            fn leaves(self, all: &mut Vec<Leaf<B>>) {
                let $x = self.into_primitive();
                all.push(Leaf(Part::Tensor(Any::$any($into))));
            }
            fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
                if *structure != Structure::Leaf {
                    return mismatch("*", structure);
                }
                match leaves.take() {
                    Any::$any($x) if $x.rank() == D => Ok(Self::from_primitive($from)),
                    other => Err(CompileError::Leaf {
                        shape: other.meta().shape.into(),
                        required: format!(concat!($name, " of rank {}"), D),
                    }),
                }
            }
        }
    )*};
}

tensors! {
    Float Float "floats": |x| x.tensor(), TensorPrimitive::Float(x);
    Int Int "integers": |x| x, x;
    Bool Bool "truth values": |x| x, x;
}

impl<B: Backend, T: Values<B>> Values<B> for Vec<T> {
    type On<C: Backend> = Vec<T::On<C>>;
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        match structure {
            Structure::Node(children) => {
                children.iter().map(|child| T::build(child, leaves)).collect()
            }
            Structure::Leaf => mismatch("(…)", structure),
        }
    }
}

impl<B: Backend, T: Values<B>, const N: usize> Values<B> for [T; N] {
    type On<C: Backend> = [T::On<C>; N];
    fn structure(&self) -> Structure {
        Structure::Node(self.iter().map(T::structure).collect())
    }
    fn leaves(self, all: &mut Vec<Leaf<B>>) {
        self.into_iter().for_each(|tree| tree.leaves(all));
    }
    fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self> {
        match Vec::<T>::build(structure, leaves)?.try_into() {
            Ok(all) => Ok(all),
            Err(_) => mismatch(format!("({N} of them)"), structure),
        }
    }
}

macro_rules! tuples {
    ($($count:literal: $($t:ident $i:tt)*;)*) => {$(
        impl<Back: Backend, $($t: Values<Back>),*> Values<Back> for ($($t,)*) {
            type On<Other: Backend> = ($($t::On<Other>,)*);
            fn structure(&self) -> Structure {
                Structure::Node(vec![$(self.$i.structure()),*])
            }
            fn leaves(self, _all: &mut Vec<Leaf<Back>>) {
                $(self.$i.leaves(_all);)*
            }
            fn build(structure: &Structure, _leaves: &mut Leaves<Back>) -> Result<Self> {
                match structure {
                    Structure::Node(children) if children.len() == $count => {
                        Ok(($($t::build(&children[$i], _leaves)?,)*))
                    }
                    _ => mismatch(format!("({} of them)", $count), structure),
                }
            }
        }
    )*};
}

tuples! {
    0: ;
    1: A 0;
    2: A 0 C 1;
    3: A 0 C 1 D 2;
    4: A 0 C 1 D 2 E 3;
    5: A 0 C 1 D 2 E 3 F 4;
    6: A 0 C 1 D 2 E 3 F 4 G 5;
}
