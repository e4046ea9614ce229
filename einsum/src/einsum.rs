//! The public entry point: subscripts and options, compiled into a plan, executed on data.

use std::sync::Arc;

use t4a_algebra::{Scalar, Semiring, Standard};
use t4a_tensor::config::einsum_memory;
use t4a_tensor::{AnyTensor, Tensor, TensorError, with_dtype};

use crate::cache::{self, PlanKey};
use crate::error::{EinsumError, Result};
use crate::label::Label;
use crate::network::Network;
use crate::order::in_rounds;
use crate::path::{self, Path};
use crate::plan::Plan;
use crate::search::{self, Optimizer};
use crate::subscripts::Subscripts;

/// Below this peak in bytes the free memory is not queried.
const UNCHECKED: f64 = (64 << 20) as f64;

/// An einsum with its options.
///
/// ```
/// use t4a_algebra::Standard;
/// use t4a_einsum::Einsum;
/// use t4a_tensor::Tensor;
/// let row = Tensor::from_vec(vec![1.0, 2.0], &[2])?;
/// let repeated = Einsum::new("i->ni")?.size('n', 3).contract::<Standard, f64>(&[&row])?;
/// assert_eq!(repeated.to_vec()?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), t4a_einsum::EinsumError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Einsum {
    subscripts: Subscripts,
    sizes: Vec<(Label, usize)>,
    path: Option<Path>,
    optimizer: Optimizer,
    memory: Option<usize>,
}

impl From<Subscripts> for Einsum {
    fn from(subscripts: Subscripts) -> Self {
        let optimizer = Optimizer::default();
        Self { subscripts, sizes: Vec::new(), path: None, optimizer, memory: None }
    }
}

impl Einsum {
    /// An einsum from text such as `"bij,bjk->bik"`.
    ///
    /// # Errors
    /// A parse error with the byte position.
    pub fn new(subscripts: &str) -> Result<Self> {
        Ok(subscripts.parse::<Subscripts>()?.into())
    }

    /// Labels of the operands and of the output.
    pub fn subscripts(&self) -> &Subscripts {
        &self.subscripts
    }

    /// Sets the size of an output label. The result is repeated along it if no operand has the label, or if all axes
    /// with it have size 1.
    ///
    /// Summed labels have the size of their axes and accept no other size: a sum over axes of size 1 has one term.
    #[must_use]
    pub fn size(mut self, label: impl Into<Label>, size: usize) -> Self {
        self.sizes.push((label.into(), size));
        self
    }

    /// Uses this path instead of a search.
    #[must_use]
    pub fn path(self, path: Path) -> Self {
        Self { path: Some(path), ..self }
    }

    /// Sets the path optimizer.
    #[must_use]
    pub fn optimizer(self, optimizer: Optimizer) -> Self {
        Self { optimizer, ..self }
    }

    /// Maximum bytes of intermediates and result; labels are sliced to fit. The default is the setting of
    /// [`BackendConfig`](t4a_tensor::config::BackendConfig), or half of the memory that is free when the plan is made.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// The plan for operands of these shapes and for elements of this size in bytes.
    ///
    /// # Errors
    /// Every error of subscripts, shapes, path or budget.
    pub fn plan(&self, shapes: &[&[usize]], element: usize) -> Result<Arc<Plan>> {
        let key = PlanKey {
            subscripts: &self.subscripts,
            shapes,
            sizes: &self.sizes,
            path: self.path.as_ref(),
            optimizer: self.optimizer,
            budget: None,
        };
        let whole = cache::plan(key, || self.compile(shapes))?;
        let needed = whole.cost().bytes(element);
        let memory = self.memory.or_else(einsum_memory);
        let budget = match memory {
            Some(bytes) => bytes,
            None if needed <= UNCHECKED => usize::MAX,
            // Rounded to a power of two, so that plans are found in the cache.
            None => prev_power_of_two(free_memory() / 2),
        };
        if needed <= budget as f64 {
            whole.check_sizes()?;
            return Ok(whole);
        }
        let given = memory.is_some();
        let key = PlanKey { budget: Some((budget, element, given)), ..key };
        cache::plan(key, || {
            let sliced = (*whole).clone().slice(budget, element, given)?;
            sliced.check_sizes()?;
            Ok(sliced)
        })
    }

    fn compile(&self, shapes: &[&[usize]]) -> Result<Plan> {
        let network = Network::new(&self.subscripts, shapes, &self.sizes)?;
        let (inputs, output) = (&network.inputs, &network.output);
        let found = match &self.path {
            Some(path) => path::resolve(path, inputs, output, &network.sizes)?,
            None if network.is_empty => in_rounds(inputs.len()),
            None => search::search(inputs, output, &network.sizes, self.optimizer)?,
        };
        Ok(Plan::new(network, found))
    }

    /// Plans and contracts over the semiring `S`.
    ///
    /// # Errors
    /// As [`Einsum::plan`] and [`Plan::contract`].
    pub fn contract<S: Semiring<T>, T: Scalar>(
        &self,
        operands: &[&Tensor<T>],
    ) -> Result<Tensor<T>> {
        let shapes: Vec<&[usize]> = operands.iter().map(|x| x.shape()).collect();
        self.plan(&shapes, size_of::<T>())?.contract::<S, T>(operands)
    }

    /// Plans and contracts over (+, ×) for any numeric dtype.
    ///
    /// # Errors
    /// As [`Einsum::contract`]; [`EinsumError::DTypeMismatch`], and an unsupported dtype for bool.
    pub fn contract_any(&self, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        let Some(first) = operands.first().map(|x| x.dtype()) else {
            let expected = self.subscripts.operands().max(1);
            return Err(EinsumError::OperandCount { expected, given: 0 });
        };
        if let Some(operand) = operands.iter().position(|x| x.dtype() != first) {
            let dtype = operands[operand].dtype();
            return Err(EinsumError::DTypeMismatch { first, operand, dtype });
        }
        with_dtype!(first, T in numeric => {
            let typed = operands.iter().map(|x| x.typed::<T>());
            let typed = typed.collect::<Result<Vec<_>, _>>()?;
            Ok(self.contract::<Standard, T>(&typed)?.into())
        }, else => {
            let expected = "a numeric dtype";
            Err(TensorError::DTypeUnsupported { op: "einsum", dtype: first, expected }.into())
        })
    }
}

/// `⊕` over all labels that are not in the output, of the `⊗` of the operands.
///
/// ```
/// use t4a_algebra::Standard;
/// use t4a_einsum::einsum;
/// use t4a_tensor::Tensor;
/// let m = Tensor::from_vec(vec![1, 2, 3, 4], &[2, 2])?;
/// let trace = einsum::<Standard, i32>("ii", &[&m])?;
/// assert_eq!(trace.to_vec()?, [5]);
/// # Ok::<(), t4a_einsum::EinsumError>(())
/// ```
///
/// # Errors
/// As [`Einsum::contract`].
pub fn einsum<S: Semiring<T>, T: Scalar>(
    subscripts: &str,
    operands: &[&Tensor<T>],
) -> Result<Tensor<T>> {
    Einsum::new(subscripts)?.contract::<S, T>(operands)
}

fn prev_power_of_two(x: usize) -> usize {
    if x == 0 { 0 } else { 1 << x.ilog2() }
}

/// Bytes that can be allocated without swapping; 1 GiB if the system does not report them.
fn free_memory() -> usize {
    let available = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    });
    available.unwrap_or(1 << 30)
}
