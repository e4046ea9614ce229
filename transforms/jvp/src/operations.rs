//! Differentiation of operations outside of Burn's traits, with one implementation for all.
//!
//! ```text
//! run    B::jvp on duals if an operand has a tangent, else B::run
//! vjp    B::vjp if nothing has a tangent; else the rule on tensors with tangents
//! jvp    B::jvp if nothing has a tangent of this level; else the rule on duals of such tensors
//! ```

use burn_backend::Backend;
use burn_t4a::ext::operation::{
    Array, Cotangents, DerivativeOf, DerivativeOutcome, Dual, Operand, Operation, Operations,
    Outcome, Reverse, Value, rule_jvp, rule_vjp,
};
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use burn_t4a::ext::scan::{
    self, FixedPoint, Flat, Level, Options, Repeated, ScanBackend, Steps, fixed_point_at_level,
    iterate_at_level, scan_at_level, switch_at_level,
};

use crate::backend::Jvp;
use crate::primitive::JvpTensor;

type Upper<B> = Floats<Jvp<B>>;

impl<B: Operations> Operations for Jvp<B> {
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Upper<B>>, O::Error> {
        if !inputs.iter().any(moves) {
            let out = B::run(op, &below(inputs), tracked)?;
            return out.try_map(|x| Ok(constant_value(x)), |x| Ok(constant(x)));
        }
        let duals: Vec<_> = inputs.iter().map(dual).collect();
        let tracked: Vec<bool> = duals.iter().zip(tracked).map(|(x, t)| *t || x.moves()).collect();
        B::jvp(op, &duals, &tracked)?.try_map(|x| Ok(above(x)), |x| Ok(moving(x)))
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Upper<B>>,
    ) -> Result<Cotangents<Upper<B>>, O::Error> {
        let &Reverse { kept, cotangents, hidden, wanted } = reverse;
        // All residuals are examined, to find out if any of them has a tangent.
        let still = std::cell::Cell::new(true);
        let lower = |x: &Upper<B>| {
            still.set(still.get() && !x.0.moves());
            Floats(x.0.primal.clone())
        };
        let value =
            |x: &Operand<Self>| x.clone().map(|x| lower(&x), |x| Indices(x.0), |x| Bools(x.0));
        let all = |x: &[Option<Upper<B>>]| x.iter().map(|x| x.as_ref().map(lower)).collect();
        let kept = kept.try_map(|x| Ok::<_, O::Error>(value(x)), |x| Ok(lower(x)))?;
        let (cotangents, hidden): (Vec<_>, Vec<_>) = (all(cotangents), all(hidden));
        if !still.get() {
            op.check_second_order()?;
            return rule_vjp(op, reverse);
        }
        let lower = Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted };
        Ok(B::vjp(op, &lower)?.into_iter().map(|x| x.map(constant)).collect())
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Upper<B>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Upper<B>>>, O::Error> {
        let inner = |x: &Value<Dual<Upper<B>>>| match x {
            Value::Float(x) => x.value.0.moves() || x.tangent.as_ref().is_some_and(|t| t.0.moves()),
            _ => false,
        };
        if inputs.iter().any(inner) {
            op.check_second_order()?;
            return rule_jvp(op, inputs, tracked);
        }
        let lower = |x: &Upper<B>| Floats(x.0.primal.clone());
        let enter = |x: Dual<Upper<B>>| Dual {
            value: lower(&x.value),
            tangent: x.tangent.as_ref().map(lower),
        };
        let enter =
            |x: &Value<Dual<Upper<B>>>| x.clone().map(enter, |x| Indices(x.0), |x| Bools(x.0));
        let inputs: Vec<_> = inputs.iter().map(enter).collect();
        let leave = |x: Dual<Floats<B>>| Dual {
            value: constant(x.value),
            tangent: x.tangent.map(constant),
        };
        let value = |x: Value<Dual<Floats<B>>>| x.map(leave, |x| Indices(x.0), |x| Bools(x.0));
        B::jvp(op, &inputs, tracked)?.try_map(|x| Ok(value(x)), |x| Ok(leave(x)))
    }

    fn run_derivative<O: Operation, A: Operations>(
        of: DerivativeOf<'_, O>,
        inputs: &[Operand<A>],
        tracked: &[bool],
    ) -> DerivativeOutcome<O, A> {
        B::run_derivative(of, inputs, tracked)
    }
}

/// Tangents are additional carries, xs and ys of a scan on the inner backend.
impl<B: ScanBackend> ScanBackend for Jvp<B> {
    fn chooses_path() -> bool {
        B::chooses_path()
    }

    fn scan(
        steps: Steps<Upper<B>>,
        consts: Flat<Upper<B>>,
        init: Flat<Upper<B>>,
        xs: Flat<Upper<B>>,
        options: &Options,
    ) -> scan::Result<[Flat<Upper<B>>; 2]> {
        scan_at_level::<B, Self>(&steps, &consts, init, &xs, options)
    }

    fn fixed_point(
        steps: Steps<Upper<B>>,
        consts: Flat<Upper<B>>,
        init: Flat<Upper<B>>,
        settings: &FixedPoint,
    ) -> scan::Result<Flat<Upper<B>>> {
        fixed_point_at_level::<B, Self>(&steps, &consts, &init, settings)
    }

    fn iterate(
        repeated: Repeated<Upper<B>>,
        all: [Flat<Upper<B>>; 3],
        options: &Options,
    ) -> scan::Result<Flat<Upper<B>>> {
        iterate_at_level::<B, Self>(&repeated, all, options)
    }

    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Upper<B>>>,
        operands: Flat<Upper<B>>,
    ) -> scan::Result<Flat<Upper<B>>> {
        switch_at_level::<B, Self>(&index, &branches, &operands)
    }

    fn batches() -> bool {
        B::batches()
    }

    fn is_batched(x: &Operand<Self>) -> bool {
        B::is_batched(&dual(x).below())
    }
}

/// The form is true if there is a tangent.
impl<B: Operations> Level for Jvp<B> {
    type Above = Upper<B>;
    type Below = Floats<B>;
    type Form = bool;

    fn form(x: &Operand<Self>) -> bool {
        moves(x)
    }
    fn parts(moves: bool) -> usize {
        1 + usize::from(moves)
    }
    fn lower(x: Operand<Self>, moves: bool, _stacked: bool) -> Vec<Operand<B>> {
        let tangent = match &x {
            Value::Float(x) => x.0.tangent.clone().map(Floats),
            _ => None,
        };
        let primal: Operand<B> = x.map(|x| Floats(x.0.primal), |x| Indices(x.0), |x| Bools(x.0));
        let tangent = tangent.map(Value::Float);
        let tangent = tangent.or_else(|| moves.then(|| primal.zeros(&primal.shape())));
        [Some(primal), tangent].into_iter().flatten().collect()
    }
    fn raise(parts: Vec<Operand<B>>, _moves: bool, _stacked: bool) -> Operand<Self> {
        let mut parts = parts.into_iter();
        let primal = parts.next().unwrap_or_else(|| unreachable!("every form has a value"));
        let tangent = parts.next().and_then(Value::into_float);
        above(primal.dual(tangent))
    }
}

pub(crate) fn moves<B: Operations>(x: &Operand<Jvp<B>>) -> bool {
    matches!(x, Value::Float(x) if x.0.moves())
}

fn constant<B: Backend>(x: Floats<B>) -> Upper<B> {
    Floats(JvpTensor::constant(x.0))
}

pub(crate) fn constant_value<B: Operations>(x: Operand<B>) -> Operand<Jvp<B>> {
    x.map(constant, |x| Indices(x.0), |x| Bools(x.0))
}

pub(crate) fn below<B: Operations>(inputs: &[Operand<Jvp<B>>]) -> Vec<Operand<B>> {
    inputs.iter().map(|x| dual(x).below()).collect()
}

pub(crate) fn dual<B: Operations>(x: &Operand<Jvp<B>>) -> Value<Dual<Floats<B>>> {
    let float = |x: Upper<B>| Dual { value: Floats(x.0.primal), tangent: x.0.tangent.map(Floats) };
    x.clone().map(float, |x| Indices(x.0), |x| Bools(x.0))
}

fn moving<B: Operations>(x: Dual<Floats<B>>) -> Upper<B> {
    debug_assert!(x.tangent.as_ref().is_none_or(|t| t.shape() == x.value.shape()));
    Floats(JvpTensor { primal: x.value.0, tangent: x.tangent.map(|t| t.0) })
}

pub(crate) fn above<B: Operations>(x: Value<Dual<Floats<B>>>) -> Operand<Jvp<B>> {
    x.map(moving, |x| Indices(x.0), |x| Bools(x.0))
}
