//! Argument types of the frontends: subscripts in any form, and operand lists of one type or of several.

use crate::einsum::Einsum;
use crate::error::Result;
use crate::subscripts::Subscripts;

/// Subscripts of an einsum: text, [`Subscripts`] with labels of any kind, or an [`Einsum`] with sizes, a path or a
/// memory budget.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what is summed over what",
    label = "expected text such as \"ij,jk->ik\", `Subscripts` or an `Einsum`"
)]
pub trait Expression {
    /// Conversion to an einsum.
    ///
    /// # Errors
    /// A parse error with the byte position.
    fn into_einsum(self) -> Result<Einsum>;
}

impl Expression for &str {
    fn into_einsum(self) -> Result<Einsum> {
        Einsum::new(self)
    }
}

impl Expression for Subscripts {
    fn into_einsum(self) -> Result<Einsum> {
        Ok(self.into())
    }
}

impl Expression for Einsum {
    fn into_einsum(self) -> Result<Einsum> {
        Ok(self)
    }
}

impl Expression for &Einsum {
    fn into_einsum(self) -> Result<Einsum> {
        Ok(self.clone())
    }
}

/// Operands of an einsum: an array, a slice or a vector of tensors of one rank, a tuple of up to eight tensors of any
/// ranks, or a list of `O`, the rank-erased tensor type of the frontend. Tensors are given by value or by reference.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of operands",
    label = "expected an array of tensors of one rank, or a tuple",
    note = "tensors of several ranks go into a tuple: `(&a, &b)` in the place of `[&a, &b]`",
    note = "operands are float tensors; integers and bools have functions of their own (`int_einsum`, …)"
)]
pub trait Operands<O> {
    /// Conversion to a list.
    fn into_operands(self) -> Vec<O>;
}

impl<O, T: Into<O>, const N: usize> Operands<O> for [T; N] {
    fn into_operands(self) -> Vec<O> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<O, T: Into<O>> Operands<O> for Vec<T> {
    fn into_operands(self) -> Vec<O> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<'a, O, T> Operands<O> for &'a [T]
where
    O: From<&'a T>,
{
    fn into_operands(self) -> Vec<O> {
        self.iter().map(O::from).collect()
    }
}

macro_rules! tuples {
    ($(($($t:ident $x:ident),+))*) => {$(
        impl<Any, $($t: Into<Any>),+> Operands<Any> for ($($t,)+) {
            fn into_operands(self) -> Vec<Any> {
                let ($($x,)+) = self;
                vec![$($x.into()),+]
            }
        }
    )*};
}
tuples! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
    (A a, B b, C c, D d, E e, F f, G g)
    (A a, B b, C c, D d, E e, F f, G g, H h)
}
