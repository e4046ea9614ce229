//! Rules on flat lists of tensors, the form in which backends run them.

use std::any::type_name;
use std::sync::{Arc, Mutex, PoisonError};

use super::signature::{TreeSignature, built};
use super::{CustomBackend, CustomJvp, CustomVjp, Result};
use crate::ext::operation::Operand;
use crate::ext::primitive::Floats;
use crate::ext::tree::{Structure, Tree};

/// The tensors of a tree.
pub type OperandList<B> = Vec<Operand<B>>;

/// Results and residuals.
pub type Pulled<B> = [OperandList<B>; 2];

/// Results and their tangents.
pub type Paired<B> = [OperandList<B>; 2];

/// Results, and their tangents, of which `None` is zero.
pub type WithTangents<B> = (OperandList<B>, Vec<Option<Floats<B>>>);

/// A [`CustomVjp`] on lists.
pub trait VjpRule: Clone + Send + Sync + 'static {
    /// Type of the rule, for messages.
    fn name(&self) -> &'static str;

    /// Results and residuals.
    ///
    /// # Errors
    /// If the method of the rule returns trees that do not fit.
    fn forward<B: CustomBackend>(&self, x: OperandList<B>) -> Result<Pulled<B>>;

    /// Cotangents of the arguments, from residuals and cotangents of the results.
    ///
    /// # Errors
    /// If the method of the rule returns a tree that does not fit.
    fn backward<B: CustomBackend>(&self, given: [OperandList<B>; 2]) -> Result<OperandList<B>>;

    /// The results alone.
    ///
    /// # Errors
    /// Those of [`VjpRule::forward`].
    fn value<B: CustomBackend>(&self, x: OperandList<B>) -> Result<OperandList<B>> {
        let [results, _] = self.forward(x)?;
        Ok(results)
    }
}

/// A [`CustomJvp`] on lists.
pub trait JvpRule: Clone + Send + Sync + 'static {
    /// Results and their tangents, from arguments and tangents.
    ///
    /// # Errors
    /// If the method of the rule returns trees that do not fit.
    fn jvp<B: CustomBackend>(&self, given: [OperandList<B>; 2]) -> Result<Paired<B>>;

    /// The results alone, with tangents of zeros.
    ///
    /// # Errors
    /// Those of [`JvpRule::jvp`].
    fn value<B: CustomBackend>(&self, x: OperandList<B>) -> Result<OperandList<B>> {
        let tangents = x.iter().map(|x| x.zeros(&x.shape())).collect();
        let [results, _] = self.jvp([x, tangents])?;
        Ok(results)
    }
}

/// A rule with the trees that its lists belong to.
#[derive(Clone)]
pub(super) struct TypedRule<R> {
    rule: R,
    arguments: TreeSignature,
    /// Signature of the results and structure of the residuals, once they have been computed.
    seen: Arc<Mutex<(Option<TreeSignature>, Option<Structure>)>>,
}

impl<R: 'static> TypedRule<R> {
    pub(super) fn new<B: CustomBackend, T: Tree<B>>(rule: R, x: T) -> (Self, OperandList<B>) {
        let (arguments, x) = TreeSignature::of(x);
        (Self { rule, arguments, seen: Arc::default() }, x)
    }

    /// The tree of a list, in this role.
    fn build<B: CustomBackend, T: Tree<B>>(
        &self,
        what: &'static str,
        structure: &Structure,
        all: OperandList<B>,
    ) -> Result<T> {
        built::<R, B, T>(what, structure, all)
    }

    fn with_seen<T>(
        &self,
        f: impl FnOnce(&mut (Option<TreeSignature>, Option<Structure>)) -> T,
    ) -> T {
        f(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Signature of the results.
    fn results_seen(&self) -> TreeSignature {
        self.with_seen(|(results, _)| results.clone())
            .unwrap_or_else(|| unreachable!("results have been computed"))
    }

    /// The tree of the results.
    ///
    /// # Errors
    /// `Tree` unless it is of type `T`.
    pub(super) fn results<B: CustomBackend, T: Tree<B>>(&self, all: OperandList<B>) -> Result<T> {
        self.build("the results", &self.results_seen().structure, all)
    }
}

impl<R: CustomVjp> VjpRule for TypedRule<R> {
    fn name(&self) -> &'static str {
        type_name::<R>()
    }

    fn forward<B: CustomBackend>(&self, x: OperandList<B>) -> Result<Pulled<B>> {
        let x = self.build("the arguments", &self.arguments.structure, x)?;
        let (results, residuals) = self.rule.forward::<B>(x);
        let (of_results, results) = TreeSignature::of(results);
        let (of_residuals, residuals) = TreeSignature::of(residuals);
        self.with_seen(|seen| *seen = (Some(of_results), Some(of_residuals.structure)));
        Ok([results, residuals])
    }

    fn backward<B: CustomBackend>(
        &self,
        [residuals, cotangents]: [OperandList<B>; 2],
    ) -> Result<OperandList<B>> {
        let of_residuals = self
            .with_seen(|(_, residuals)| residuals.clone())
            .unwrap_or_else(|| unreachable!("residuals have been computed"));
        let residuals = self.build("the residuals", &of_residuals, residuals)?;
        let structure = self.results_seen().structure;
        let cotangents = self.build("the cotangents of the results", &structure, cotangents)?;
        let (given, all) = TreeSignature::of(self.rule.backward::<B>(residuals, cotangents));
        given.check::<R>("the cotangents of the arguments", &self.arguments)?;
        Ok(all)
    }
}

impl<R: CustomJvp> JvpRule for TypedRule<R> {
    fn jvp<B: CustomBackend>(&self, [x, tangents]: [OperandList<B>; 2]) -> Result<Paired<B>> {
        let x = self.build("the arguments", &self.arguments.structure, x)?;
        let tangents = self.build("the tangents", &self.arguments.structure, tangents)?;
        let (results, tangents) = self.rule.jvp::<B>(x, tangents);
        let (of_results, results) = TreeSignature::of(results);
        let (of_tangents, tangents) = TreeSignature::of(tangents);
        of_tangents.check::<R>("the tangents of the results", &of_results)?;
        self.with_seen(|seen| seen.0 = Some(of_results));
        Ok([results, tangents])
    }
}
