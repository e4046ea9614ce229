//! Results of an operation, and the arguments of its reverse rule.

use super::Value;
use crate::array::Array;

/// Selection of the operands and results that a rule needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    inputs: u64,
    results: u64,
}

impl Keep {
    /// Adds these operands; indices are below 64.
    pub fn inputs(mut self, which: &[usize]) -> Self {
        self.inputs |= which.iter().fold(0, |set, i| set | 1 << i);
        self
    }

    /// Adds all operands.
    pub fn all_inputs(mut self) -> Self {
        self.inputs = u64::MAX;
        self
    }

    /// Adds all results.
    pub fn all_results(mut self) -> Self {
        self.results = u64::MAX;
        self
    }

    /// Adds these results; indices are below 64.
    pub fn results(mut self, which: &[usize]) -> Self {
        self.results |= which.iter().fold(0, |set, i| set | 1 << i);
        self
    }

    /// True if a result is named.
    pub fn reads_results(&self) -> bool {
        self.results != 0
    }

    fn holds(set: u64, i: usize) -> bool {
        set == u64::MAX || (i < 64 && set >> i & 1 == 1)
    }
}

/// The results of an operation, and further residuals of its rule.
#[derive(Clone, Debug)]
pub struct Outcome<A: Array> {
    /// The results.
    pub results: Vec<A>,
    /// Differentiable intermediate values that the rule needs, such as the factors with which a system was solved; only
    /// if an operand is tracked.
    pub hidden: Vec<A>,
    /// Non-differentiable residuals: indices of maxima, permutations.
    pub extra: Vec<Value<A>>,
}

impl<A: Array> Outcome<A> {
    /// Results without further residuals.
    pub fn new(results: Vec<A>) -> Self {
        Self { results, hidden: Vec::new(), extra: Vec::new() }
    }

    /// The same values in another array type.
    ///
    /// # Errors
    /// Those of the maps.
    pub fn try_map<C: Array, E>(
        self,
        value: impl Fn(Value<A>) -> Result<Value<C>, E>,
        float: impl Fn(A) -> Result<C, E>,
    ) -> Result<Outcome<C>, E> {
        Ok(Outcome {
            results: self.results.into_iter().map(&float).collect::<Result<_, E>>()?,
            hidden: self.hidden.into_iter().map(&float).collect::<Result<_, E>>()?,
            extra: self.extra.into_iter().map(value).collect::<Result<_, E>>()?,
        })
    }
}

impl<A: Array> From<A> for Outcome<A> {
    fn from(result: A) -> Self {
        Self::new(vec![result])
    }
}

/// Residuals for the rule of an operation.
#[derive(Clone, Debug)]
pub struct Kept<A: Array> {
    inputs: Vec<Option<Value<A>>>,
    results: Vec<Option<A>>,
    /// [`Outcome::hidden`].
    pub hidden: Vec<A>,
    /// [`Outcome::extra`].
    pub extra: Vec<Value<A>>,
}

impl<A: Array> Kept<A> {
    /// Selects the residuals that `keep` names.
    pub fn new(keep: Keep, inputs: &[Value<A>], out: &Outcome<A>) -> Self {
        let inputs = inputs.iter().enumerate();
        let results = out.results.iter().enumerate();
        let input = |(i, x): (usize, &Value<A>)| Keep::holds(keep.inputs, i).then(|| x.clone());
        let result = |(i, y): (usize, &A)| Keep::holds(keep.results, i).then(|| y.clone());
        Self {
            inputs: inputs.map(input).collect(),
            results: results.map(result).collect(),
            hidden: out.hidden.clone(),
            extra: out.extra.clone(),
        }
    }

    /// Residuals from operands and results by index; `None` for those not kept.
    pub fn from_parts(
        inputs: Vec<Option<Value<A>>>,
        results: Vec<Option<A>>,
        hidden: Vec<A>,
        extra: Vec<Value<A>>,
    ) -> Self {
        Self { inputs, results, hidden, extra }
    }

    /// All operands by index.
    pub fn inputs(&self) -> &[Option<Value<A>>] {
        &self.inputs
    }

    /// All results by index.
    pub fn results(&self) -> &[Option<A>] {
        &self.results
    }

    /// Operand `i`.
    ///
    /// # Panics
    /// If [`Operation::keep`](super::Operation::keep) does not name it.
    #[track_caller]
    pub fn input(&self, i: usize) -> &Value<A> {
        self.given(i).unwrap_or_else(|| unreachable!("operand {i} is not kept"))
    }

    /// The floats of operand `i`. Panics as [`Kept::input`].
    #[track_caller]
    pub fn float(&self, i: usize) -> &A {
        self.input(i).float()
    }

    /// Operand `i`, if it exists and was kept.
    pub fn given(&self, i: usize) -> Option<&Value<A>> {
        self.inputs.get(i)?.as_ref()
    }

    /// Result `i`.
    ///
    /// # Panics
    /// If [`Operation::keep`](super::Operation::keep) does not name it.
    #[track_caller]
    pub fn result(&self, i: usize) -> &A {
        let kept = self.results.get(i).and_then(Option::as_ref);
        kept.unwrap_or_else(|| unreachable!("result {i} is not kept"))
    }

    /// The same values in another array type.
    ///
    /// # Errors
    /// Those of the maps.
    pub fn try_map<C: Array, E>(
        &self,
        value: impl Fn(&Value<A>) -> Result<Value<C>, E>,
        float: impl Fn(&A) -> Result<C, E>,
    ) -> Result<Kept<C>, E> {
        let inputs = self.inputs.iter().map(|x| x.as_ref().map(&value).transpose());
        let results = self.results.iter().map(|y| y.as_ref().map(&float).transpose());
        Ok(Kept {
            inputs: inputs.collect::<Result<_, E>>()?,
            results: results.collect::<Result<_, E>>()?,
            hidden: self.hidden.iter().map(&float).collect::<Result<_, E>>()?,
            extra: self.extra.iter().map(&value).collect::<Result<_, E>>()?,
        })
    }
}

/// The input of a reverse rule: residuals, cotangents of the results, at least one of which is given, and the set of
/// operands that need a cotangent.
#[derive(Clone, Copy, Debug)]
pub struct Reverse<'a, A: Array> {
    /// The values that [`Operation::keep`](super::Operation::keep) names.
    pub kept: &'a Kept<A>,
    /// Cotangents of the results; `None` is zero.
    pub cotangents: &'a [Option<A>],
    /// Cotangents of the hidden results, if there are any; only in higher derivatives.
    pub hidden: &'a [Option<A>],
    /// True for operands that need a cotangent; cotangents of others are ignored.
    pub wanted: &'a [bool],
}

impl<A: Array> Reverse<'_, A> {
    /// The cotangent of a single result.
    pub fn cotangent(&self) -> &A {
        let only = self.cotangents.first().and_then(Option::as_ref);
        only.unwrap_or_else(|| unreachable!("one cotangent is given"))
    }
}

/// Cotangents of the operands; `None` is zero.
pub type Cotangents<A> = Vec<Option<A>>;
