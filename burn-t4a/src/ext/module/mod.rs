//! Parameters of a Burn module as a tree: for `checkpoint`, scans, custom derivative rules, and the transformations of
//! `burn-t4a-transforms`.
//!
//! ```
//! use burn::nn::LinearConfig;
//! use burn::tensor::Tensor;
//! use burn::backend::Autodiff;
//! use burn_t4a::ext::module::Parameters;
//! use burn_t4a::ext::scan::checkpoint;
//! use burn_t4a::{BurnT4a, T4aDevice};
//!
//! type B = Autodiff<BurnT4a>;
//! let config = LinearConfig::new(3, 2);
//! let layer = config.init::<B>(&T4aDevice);
//! let x = Tensor::<B, 2>::ones([1, 3], &T4aDevice);
//! // A layer whose activations are computed again in the reverse pass.
//! let template = config.init::<B>(&T4aDevice);
//! let block = move |(parameters, x): (Parameters<B>, Tensor<B, 2>)| {
//!     let layer = parameters.onto(template.clone()).expect("the same configuration");
//!     layer.forward(x).tanh()
//! };
//! let y: Tensor<B, 2> = checkpoint(block, (Parameters::of(&layer), x.clone()))?;
//! y.clone().into_data().assert_eq(&layer.forward(x).tanh().into_data(), true);
//! let gradient = layer.weight.val().grad(&y.sum().backward());
//! assert!(gradient.is_some());
//! // A copy with parameters of its own, which require gradients as those of its template do.
//! let parameters = Parameters::of(&layer);
//! let copy = config.init::<B>(&T4aDevice);
//! assert!(parameters.check(&Parameters::of(&copy)).is_ok());
//! let copy = parameters.load_into(copy).expect("checked");
//! copy.weight.val().into_data().assert_eq(&layer.weight.val().into_data(), true);
//! # Ok::<(), burn_t4a::ext::scan::ScanError>(())
//! ```

mod parameters;

use std::vec::IntoIter;

use burn_backend::Backend;
use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn_tensor::{Bool, Int, Tensor, TensorPrimitive};

use super::tree::Leaf;
pub use parameters::{ModuleError, ParameterKind, Parameters};

/// Collects the parameters of a module in order.
struct Read<B: Backend>(Vec<(ParamId, Leaf<B>)>);

impl<B: Backend> ModuleVisitor<B> for Read<B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.0.push((param.id, Leaf::Float(param.val().into_primitive().tensor())));
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<B, D, Int>>) {
        self.0.push((param.id, Leaf::Int(param.val().into_primitive())));
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<B, D, Bool>>) {
        self.0.push((param.id, Leaf::Bool(param.val().into_primitive())));
    }
}

/// Replaces the parameters of a module in order.
struct Write<B: Backend> {
    parameters: IntoIter<(ParamId, Leaf<B>)>,
    /// True if floats require a gradient where those of the module do.
    trainable: bool,
}

macro_rules! write {
    ($($method:ident $kind:ident $t:ty: |$all:ident, $old:ident, $x:ident| $new:expr;)*) => {$(
        fn $method<const D: usize>(&mut self, param: Param<$t>) -> Param<$t> {
            let ($all, (_, $old, mapper)) = (self, param.consume());
            let Some((id, Leaf::$kind($x))) = $all.parameters.next() else {
                unreachable!("parameters have been compared")
            };
            Param::from_mapped_value(id, $new, mapper)
        }
    )*};
}

impl<B: Backend> ModuleMapper<B> for Write<B> {
    write! {
        map_float Float Tensor<B, D>: |all, old, x| {
            let x: Tensor<B, D> = Tensor::from_primitive(TensorPrimitive::Float(x));
            if all.trainable && old.is_require_grad() { x.require_grad() } else { x }
        };
        map_int Int Tensor<B, D, Int>: |all, _old, x| Tensor::from_primitive(x);
        map_bool Bool Tensor<B, D, Bool>: |all, _old, x| Tensor::from_primitive(x);
    }
}

impl<B: Backend> Parameters<B> {
    /// Parameters of a module. Nothing is copied.
    pub fn of<M: Module<B>>(module: &M) -> Self {
        let mut all = Read(Vec::new());
        module.visit(&mut all);
        all.0.into_iter().collect()
    }

    /// The template, with these parameters and their ids; the parameters stay on their tape.
    ///
    /// # Errors
    /// [`ModuleError`], if the template has other parameters.
    pub fn onto<M: Module<B>>(self, template: M) -> Result<M, ModuleError> {
        self.write(template, false)
    }

    /// The template, with these parameters and their ids. Float parameters require a gradient where those of the template
    /// do.
    ///
    /// # Errors
    /// [`ModuleError`], if the template has other parameters.
    pub fn load_into<M: Module<B>>(self, template: M) -> Result<M, ModuleError> {
        self.write(template, true)
    }

    fn write<M: Module<B>>(self, template: M, trainable: bool) -> Result<M, ModuleError> {
        self.check(&Self::of(&template))?;
        Ok(template.map(&mut Write { parameters: self.into_iter(), trainable }))
    }
}
