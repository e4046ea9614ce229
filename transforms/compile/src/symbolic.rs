//! A program for every size of named axes.
//!
//! The function is recorded at small sizes of each name and at those of the call. What differs between the
//! recordings has to be linear in the sizes, if it is an integer or a part of a shape, or a product of powers
//! of them, if it is a float (the 1/n of means); the sizes of the call are the check. Then the program for
//! any other sizes is made of the recording without running the function.

use burn_backend::{Backend, DType, FloatDType, IntDType, Scalar, TensorData};

use crate::key::{Axis, Names};
use crate::recording::Instruction;
use crate::tensor::{Any, Meta};
use crate::trace::Source;
use crate::words::Word;

/// `base + Σ slopeᵢ nᵢ`.
#[derive(Clone, Debug)]
struct Affine {
    base: i64,
    slopes: Vec<i64>,
}

impl Affine {
    fn at(&self, sizes: &[usize]) -> i64 {
        let terms = self.slopes.iter().zip(sizes).map(|(slope, &n)| slope * n as i64);
        self.base + terms.sum::<i64>()
    }
}

/// `factor · Π nᵢ^powerᵢ`.
#[derive(Clone, Debug)]
struct Monomial {
    factor: f64,
    powers: Vec<f64>,
}

impl Monomial {
    fn at(&self, sizes: &[usize]) -> f64 {
        let terms = self.powers.iter().zip(sizes).filter(|(power, _)| **power != 0.0);
        terms.fold(self.factor, |x, (&power, &n)| match power {
            1.0 => x * n as f64,
            -1.0 => x / n as f64,
            power => x * (n as f64).powf(power),
        })
    }
}

#[derive(Clone, Debug)]
enum Term {
    Same(Word),
    Int(Affine),
    Float(Monomial),
}

/// A constant of a recording.
enum Constant<B: Backend> {
    Same(Any<B>),
    /// One number everywhere.
    Full {
        kind: &'static str,
        shape: Vec<Affine>,
        dtype: DType,
        value: Monomial,
        device: B::Device,
    },
}

/// A recording with sizes left open.
pub(crate) struct Symbolic<B: Backend> {
    metas: Vec<(Vec<Affine>, DType)>,
    inputs: usize,
    constants: Vec<(usize, Constant<B>)>,
    instructions: Vec<(Instruction<B>, Option<Vec<Term>>)>,
    outputs: Vec<usize>,
}

/// Sizes at which a function of named axes is recorded: small ones, then small ones but for one name each.
/// Different names have different sizes, none of them 1 or that of the call.
pub(crate) fn probes(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut free = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41].into_iter().chain(43..);
    let mut next = || free.find(|n| !sizes.contains(n)).unwrap_or(2);
    let base: Vec<usize> = sizes.iter().map(|_| next()).collect();
    let mut all = vec![base.clone()];
    for i in 0..sizes.len() {
        let mut other = base.clone();
        other[i] = next();
        all.push(other);
    }
    all
}

/// A leaf with other sizes along named axes: its elements again and again.
pub(crate) fn resized<B: Backend>(
    x: Any<B>,
    leaf: usize,
    names: &Names,
    sizes: &[usize],
) -> Result<Any<B>, String> {
    let mut x = x;
    for &Axis { axis, name, .. } in names.axes.iter().filter(|axis| axis.leaf == leaf) {
        let (meta, device) = (x.meta(), x.device());
        let n = meta.shape[axis];
        if n == 0 {
            return Err(format!("axis {axis} of leaf {leaf} has no elements"));
        }
        let order: Vec<i64> = (0..sizes[name]).map(|i| (i % n) as i64).collect();
        let data = TensorData::new(order, [sizes[name]]).convert::<B::IntElem>();
        let order = B::int_from_data(data, &device);
        x = match x {
            Any::Float(x) => Any::Float(B::float_select(x, axis, order)),
            Any::Int(x) => Any::Int(B::int_select(x, axis, order)),
            Any::Bool(x) => Any::Bool(B::bool_select(x, axis, order)),
            Any::Quantized(_) => return Err("a leaf is quantized".into()),
        };
    }
    Ok(x)
}

/// Values at the probes and at the sizes of the call.
struct Fit<'a> {
    probes: &'a [Vec<usize>],
    sizes: &'a [usize],
}

impl Fit<'_> {
    /// Along each name: the sizes of two probes that differ in it.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.sizes.len()).map(|i| (self.probes[0][i], self.probes[i + 1][i]))
    }

    /// `values`: at the probes, last at the sizes of the call.
    fn affine(&self, values: &[i64]) -> Option<Affine> {
        let slope = |((p, q), value): ((usize, usize), &i64)| {
            let (rise, run) = (value - values[0], q as i64 - p as i64);
            (rise % run == 0).then(|| rise / run)
        };
        let slopes: Vec<i64> = self.pairs().zip(&values[1..]).map(slope).collect::<Option<_>>()?;
        let linear = slopes.iter().zip(&self.probes[0]).map(|(slope, &p)| slope * p as i64);
        let fit = Affine { base: values[0] - linear.sum::<i64>(), slopes };
        (fit.at(self.sizes) == *values.last()?).then_some(fit)
    }

    fn monomial(&self, values: &[f64]) -> Option<Monomial> {
        if values.iter().all(|x| x.to_bits() == values[0].to_bits()) {
            return Some(Monomial { factor: values[0], powers: vec![0.0; self.sizes.len()] });
        }
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
        let power = |((p, q), &value): ((usize, usize), &f64)| {
            [0.0, -1.0, 1.0, -0.5, 0.5, -2.0, 2.0]
                .into_iter()
                .find(|&power| near(value, values[0] * (q as f64 / p as f64).powf(power)))
        };
        let powers: Vec<f64> = self.pairs().zip(&values[1..]).map(power).collect::<Option<_>>()?;
        let one = Monomial { factor: 1.0, powers: powers.clone() };
        let fit = Monomial { factor: values[0] / one.at(&self.probes[0]), powers };
        near(fit.at(self.sizes), *values.last()?).then_some(fit)
    }

    fn shape(&self, shapes: &[&[usize]]) -> Option<Vec<Affine>> {
        let rank = shapes[0].len();
        if shapes.iter().any(|shape| shape.len() != rank) {
            return None;
        }
        let size = |axis: usize| {
            let values: Vec<i64> = shapes.iter().map(|shape| shape[axis] as i64).collect();
            self.affine(&values)
        };
        (0..rank).map(size).collect()
    }

    fn word(&self, words: &[&Word]) -> Option<Term> {
        if words.iter().all(|word| *word == words[0]) {
            return Some(Term::Same(words[0].clone()));
        }
        let ints: Option<Vec<i64>> =
            words.iter().map(|x| if let Word::Int(x) = x { Some(*x) } else { None }).collect();
        if let Some(ints) = ints {
            return self.affine(&ints).map(Term::Int);
        }
        let floats: Option<Vec<f64>> =
            words.iter().map(|x| if let Word::Float(x) = x { Some(*x) } else { None }).collect();
        self.monomial(&floats?).map(Term::Float)
    }
}

/// The number that all elements are.
fn uniform(data: &TensorData) -> Option<f64> {
    let mut all = data.iter::<f64>();
    let first = all.next()?;
    all.all(|x| x.to_bits() == first.to_bits()).then_some(first)
}

impl<B: Backend> Symbolic<B> {
    /// Of recordings at the probes, and last at the sizes of the call.
    ///
    /// # Errors
    /// What differs between them in another way.
    pub(crate) fn new(
        sources: &[Source<B>],
        probes: &[Vec<usize>],
        sizes: &[usize],
    ) -> Result<Self, String> {
        let fit = Fit { probes, sizes };
        let Some((own, others)) = sources.split_last() else {
            return Err("nothing was recorded".into());
        };
        let different = others.iter().any(|other| {
            other.metas.len() != own.metas.len()
                || other.outputs != own.outputs
                || other.instructions.len() != own.instructions.len()
                || other.constants.len() != own.constants.len()
        });
        if different {
            return Err("the function does other operations for other sizes".into());
        }
        let meta = |v: usize| {
            let shapes: Vec<&[usize]> = sources.iter().map(|x| &x.metas[v].shape[..]).collect();
            let shape = fit.shape(&shapes);
            let shape = shape.ok_or_else(|| format!("shapes {shapes:?} are not linear in it"))?;
            Ok((shape, own.metas[v].dtype))
        };
        let metas = (0..own.metas.len()).map(meta).collect::<Result<_, String>>()?;
        let constant = |k: usize| {
            let all: Vec<&Any<B>> = sources.iter().map(|x| &x.constants[k].1).collect();
            Ok((own.constants[k].0, Self::constant(&fit, &all)?))
        };
        let constants = (0..own.constants.len()).map(constant).collect::<Result<_, String>>()?;
        let instruction = |k: usize| {
            let all: Vec<_> = sources.iter().map(|x| &x.instructions[k]).collect();
            Ok((own.instructions[k].clone(), Self::terms(&fit, &all)?))
        };
        let instructions =
            (0..own.instructions.len()).map(instruction).collect::<Result<_, String>>()?;
        let outputs = own.outputs.clone();
        Ok(Self { metas, inputs: own.inputs, constants, instructions, outputs })
    }

    fn constant(fit: &Fit<'_>, all: &[&Any<B>]) -> Result<Constant<B>, String> {
        let metas: Vec<Meta> = all.iter().map(|x| x.meta()).collect();
        let data: Vec<TensorData> =
            all.iter().map(|x| (*x).clone().data()).collect::<Result<_, _>>()?;
        let own = all[all.len() - 1];
        if data.iter().all(|x| *x == data[0]) {
            return Ok(Constant::Same(own.clone()));
        }
        let shapes: Vec<&[usize]> = metas.iter().map(|meta| &meta.shape[..]).collect();
        let values: Option<Vec<f64>> = data.iter().map(uniform).collect();
        let fits = values.and_then(|values| fit.monomial(&values)).zip(fit.shape(&shapes));
        let (value, shape) = fits.ok_or_else(|| {
            format!("a constant of shape {:?} depends on it", metas[metas.len() - 1].shape)
        })?;
        let (kind, dtype) = (own.kind(), metas[metas.len() - 1].dtype);
        if matches!(dtype, DType::QFloat(_)) {
            return Err("a quantized constant depends on it".into());
        }
        Ok(Constant::Full { kind, shape, dtype, value, device: own.device() })
    }

    /// The static arguments of an instruction, if they differ.
    fn terms(fit: &Fit<'_>, all: &[&Instruction<B>]) -> Result<Option<Vec<Term>>, String> {
        let own = all[all.len() - 1];
        let other = |one: &&Instruction<B>| {
            one.name != own.name || one.operands != own.operands || one.results != own.results
        };
        if all.iter().any(other) {
            return Err(format!("{} is another operation for other sizes", own.name));
        }
        let words: Option<Vec<Vec<Word>>> = all.iter().map(|one| one.step.words()).collect();
        let Some(words) = words else {
            return Err(format!("{} does not tell whether it depends on it", own.name));
        };
        if words.iter().all(|x| *x == words[0]) {
            return Ok(None);
        }
        let count = words[0].len();
        if words.iter().any(|x| x.len() != count) {
            return Err(format!("{} has other arguments for other sizes", own.name));
        }
        let term = |k: usize| {
            let column: Vec<&Word> = words.iter().map(|x| &x[k]).collect();
            let fit = fit.word(&column);
            fit.ok_or_else(|| format!("an argument of {} is {column:?}: not linear", own.name))
        };
        (0..count).map(term).collect::<Result<_, _>>().map(Some)
    }

    /// The recording at these sizes.
    ///
    /// # Errors
    /// An instruction that cannot be made.
    pub(crate) fn at(&self, sizes: &[usize]) -> Result<Source<B>, String> {
        let shape = |shape: &[Affine]| -> Result<Vec<usize>, String> {
            let one = |x: &Affine| usize::try_from(x.at(sizes));
            shape.iter().map(one).collect::<Result<_, _>>().map_err(|_| "a negative size".into())
        };
        let meta = |(sizes, dtype): &(Vec<Affine>, DType)| {
            Ok(Meta { shape: shape(sizes)?, dtype: *dtype })
        };
        let metas = self.metas.iter().map(meta).collect::<Result<_, String>>()?;
        let mut constants = Vec::new();
        for (id, constant) in &self.constants {
            constants.push((
                *id,
                match constant {
                    Constant::Same(x) => x.clone(),
                    Constant::Full { kind, shape: sizes_of, dtype, value, device } => {
                        full(kind, shape(sizes_of)?, *dtype, value.at(sizes), device)
                    }
                },
            ));
        }
        let mut instructions = Vec::new();
        for (one, terms) in &self.instructions {
            let mut one = one.clone();
            if let Some(terms) = terms {
                let word = |term: &Term| match term {
                    Term::Same(word) => word.clone(),
                    Term::Int(x) => Word::Int(x.at(sizes)),
                    Term::Float(x) => Word::Float(x.at(sizes)),
                };
                let words: Vec<Word> = terms.iter().map(word).collect();
                let made = one.step.with(&words);
                let made = made.ok_or_else(|| format!("{} cannot be made", one.name))?;
                (one.step, one.elementwise) = (made.step, made.elementwise);
            }
            instructions.push(one);
        }
        let (inputs, outputs) = (self.inputs, self.outputs.clone());
        Ok(Source { metas, inputs, constants, instructions, outputs })
    }
}

fn full<B: Backend>(
    kind: &str,
    shape: Vec<usize>,
    dtype: DType,
    value: f64,
    device: &B::Device,
) -> Any<B> {
    let shape = shape.into();
    match (kind, dtype) {
        ("float", dtype) => {
            Any::Float(B::float_full(shape, Scalar::Float(value), device, FloatDType::from(dtype)))
        }
        ("bool", DType::Bool(store)) if value != 0.0 => {
            Any::Bool(B::bool_ones(shape, device, store))
        }
        ("bool", DType::Bool(store)) => Any::Bool(B::bool_zeros(shape, device, store)),
        (_, dtype) => {
            let value = Scalar::Int(value as i64);
            Any::Int(B::int_full(shape, value, device, IntDType::from(dtype)))
        }
    }
}
