//! Parameters of a Burn module as a tree: for `checkpoint`, scans, and custom derivative rules.
//!
//! ```
//! use burn::nn::LinearConfig;
//! use burn::tensor::{Device, Tensor};
//! use burn_t4a_022_ext::module::Parameters;
//! use burn_t4a_022_ext::scan::checkpoint;
//!
//! let device = Device::flex().autodiff();
//! let config = LinearConfig::new(3, 2);
//! let layer = config.init(&device);
//! let x = Tensor::<2>::ones([1, 3], &device);
//! // A layer whose activations are computed again in the reverse pass.
//! let template = config.init(&device);
//! let block = move |(parameters, x): (Parameters, Tensor<2>)| {
//!     let layer = parameters.onto(template.clone()).expect("the same configuration");
//!     layer.forward(x).tanh()
//! };
//! let y: Tensor<2> = checkpoint(block, (Parameters::of(&layer), x.clone()))?;
//! y.clone().into_data().assert_eq(&layer.forward(x).tanh().into_data(), true);
//! let gradient = layer.weight.val().grad(&y.sum().backward());
//! assert!(gradient.is_some());
//! // A copy with parameters of its own, which require gradients as those of its template do.
//! let parameters = Parameters::of(&layer);
//! let copy = config.init(&device);
//! assert!(parameters.check(&Parameters::of(&copy)).is_ok());
//! let copy = parameters.load_into(copy).expect("checked");
//! copy.weight.val().into_data().assert_eq(&layer.weight.val().into_data(), true);
//! # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
//! ```

mod parameters;

use std::vec::IntoIter;

use burn_core::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn_dispatch::Dispatch;
use burn_tensor::{Bool, Int, Tensor};

use crate::tree::Leaf;
use crate::user::primitive;
pub use parameters::{ModuleError, ParameterKind, Parameters};

/// Collects the parameters of a module in order.
struct Read(Vec<(ParamId, Leaf<Dispatch>)>);

impl ModuleVisitor for Read {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push((param.id, Leaf::Float(primitive(param.base()))));
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.push((param.id, Leaf::Int(param.base().into_dispatch())));
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.push((param.id, Leaf::Bool(param.base().into_dispatch())));
    }
}

/// Replaces the parameters of a module in order.
struct Write {
    parameters: IntoIter<(ParamId, Leaf<Dispatch>)>,
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

impl ModuleMapper for Write {
    write! {
        map_float Float Tensor<D>: |all, old, x| {
            let x: Tensor<D> = Tensor::from_dispatch(x);
            if all.trainable && old.is_require_grad() { x.require_grad() } else { x }
        };
        map_int Int Tensor<D, Int>: |all, _old, x| Tensor::from_dispatch(x);
        map_bool Bool Tensor<D, Bool>: |all, _old, x| Tensor::from_dispatch(x);
    }
}

impl Parameters {
    /// Parameters of a module. Nothing is copied.
    pub fn of<M: Module>(module: &M) -> Self {
        let mut all = Read(Vec::new());
        module.visit(&mut all);
        all.0.into_iter().collect()
    }

    /// The template, with these parameters and their ids; the parameters stay on their tape.
    ///
    /// # Errors
    /// [`ModuleError`], if the template has other parameters.
    pub fn onto<M: Module>(self, template: M) -> Result<M, ModuleError> {
        self.write(template, false)
    }

    /// The template, with these parameters and their ids. Float parameters require a gradient where those of the template
    /// do.
    ///
    /// # Errors
    /// [`ModuleError`], if the template has other parameters.
    pub fn load_into<M: Module>(self, template: M) -> Result<M, ModuleError> {
        self.write(template, true)
    }

    fn write<M: Module>(self, template: M, trainable: bool) -> Result<M, ModuleError> {
        self.check(&Self::of(&template))?;
        Ok(template.map(&mut Write { parameters: self.into_iter(), trainable }))
    }
}
