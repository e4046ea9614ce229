//! Values, types and operations as text.

use std::fmt::Write as _;

use burn_backend::{BoolStore, DType, TensorData};

use super::ExportError;
use crate::tensor::TensorType;

/// An element type of StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type(DType);

impl Type {
    pub(super) const INDEX: Self = Self(DType::I64);
    pub(super) const DOUBLE: Self = Self(DType::F64);
    /// Index of a branch.
    pub(super) const BRANCH: Self = Self(DType::I32);
    pub(super) const BOOL: Self = Self(DType::Bool(BoolStore::Native));

    pub(super) fn of(meta: &TensorType) -> Result<Self, ExportError> {
        let of = match meta.dtype {
            DType::Bool(_) => return Ok(Self::BOOL),
            DType::Flex32 => Self(DType::F32),
            other => Self(other),
        };
        match of.known() {
            Some(_) => Ok(of),
            None => Err(ExportError::Type { value: meta.to_string() }),
        }
    }

    fn known(self) -> Option<&'static str> {
        Some(match self.0 {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U64 => "ui64",
            DType::U32 => "ui32",
            DType::U16 => "ui16",
            DType::U8 => "ui8",
            DType::Bool(_) => "i1",
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        self.known().unwrap_or_else(|| unreachable!("the type was checked when it was made"))
    }

    pub(super) fn is_float(self) -> bool {
        self.0.is_float()
    }

    pub(super) fn is_signed(self) -> bool {
        self.0.is_int()
    }

    /// The least number, or the largest one.
    pub(super) fn bound(self, least: bool) -> f64 {
        if self == Self::BOOL {
            return f64::from(u8::from(!least));
        }
        if self.is_float() {
            return if least { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        let (low, high) = self.limits();
        (if least { low } else { high }) as f64
    }

    /// The least and the largest integer.
    fn limits(self) -> (i128, i128) {
        let bits = 8 * self.0.size();
        if self.is_signed() {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    }

    /// Bytes of a number, the most significant first, as hexadecimal digits.
    fn bits(self, x: f64) -> String {
        let data = TensorData::new(vec![x], [1]).convert_dtype(self.0);
        data.as_bytes().iter().rev().map(|byte| format!("{byte:02X}")).collect()
    }
}

/// A value of the module.
#[derive(Clone, Debug)]
pub(super) struct Ssa {
    name: String,
    pub(super) shape: Vec<usize>,
    pub(super) of: Type,
}

impl Ssa {
    fn typed(&self) -> String {
        tensor(&self.shape, self.of)
    }

    pub(super) fn rank(&self) -> usize {
        self.shape.len()
    }
}

/// Type of a tensor.
pub(super) fn tensor(shape: &[usize], of: Type) -> String {
    let mut text = String::from("tensor<");
    shape.iter().for_each(|size| write!(text, "{size}x").unwrap_or_default());
    text + of.name() + ">"
}

/// A list separated by commas.
pub(super) fn list(all: impl IntoIterator<Item = impl ToString>) -> String {
    all.into_iter().map(|x| x.to_string()).collect::<Vec<_>>().join(", ")
}

/// An attribute that is an array of 64-bit integers.
pub(super) fn array(all: impl IntoIterator<Item = impl ToString>) -> String {
    let all = list(all);
    if all.is_empty() { "array<i64>".into() } else { format!("array<i64: {all}>") }
}

/// A module under construction.
pub(super) struct ModuleText {
    arguments: Vec<Ssa>,
    body: String,
    next: usize,
}

impl ModuleText {
    pub(super) fn new(inputs: &[TensorType]) -> Result<Self, ExportError> {
        let one = |(number, meta): (usize, &TensorType)| {
            let name = format!("%{number}");
            Type::of(meta).map(|of| Ssa { name, shape: meta.shape.clone(), of })
        };
        let arguments = inputs.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { next: arguments.len(), arguments, body: String::new() })
    }

    pub(super) fn argument(&self, number: usize) -> Ssa {
        self.arguments[number].clone()
    }

    /// Writes an operation with one result. `more` follows the operands: a region, then attributes.
    pub(super) fn op(
        &mut self,
        name: &str,
        operands: &[&Ssa],
        more: &str,
        shape: &[usize],
        of: Type,
    ) -> Ssa {
        self.ops(name, operands, more, vec![(shape.to_vec(), of)]).swap_remove(0)
    }

    /// An operation with several results.
    pub(super) fn ops(
        &mut self,
        name: &str,
        operands: &[&Ssa],
        more: &str,
        results: Vec<(Vec<usize>, Type)>,
    ) -> Vec<Ssa> {
        let (first, several) = (self.next, results.len() > 1);
        self.next += 1;
        let one = |(k, (shape, of))| {
            let name = if several { format!("%{first}#{k}") } else { format!("%{first}") };
            Ssa { name, shape, of }
        };
        let results: Vec<Ssa> = results.into_iter().enumerate().map(one).collect();
        let count = if several { format!(":{}", results.len()) } else { String::new() };
        let names = list(operands.iter().map(|x| &x.name));
        let given = list(operands.iter().map(|x| x.typed()));
        let made = list(results.iter().map(Ssa::typed));
        let made = if several { format!("({made})") } else { made };
        let space = if more.is_empty() { "" } else { " " };
        let line = format!(
            "    %{first}{count} = \"{name}\"({names}){space}{more} : ({given}) -> {made}\n"
        );
        self.body += &line;
        results
    }

    /// An elementwise operation of values of one type.
    pub(super) fn map(&mut self, name: &str, operands: &[&Ssa]) -> Ssa {
        let (shape, of) = (operands[0].shape.clone(), operands[0].of);
        self.op(&format!("stablehlo.{name}"), operands, "", &shape, of)
    }

    /// A constant with all bits of its elements.
    pub(super) fn constant(
        &mut self,
        data: &TensorData,
        meta: &TensorType,
    ) -> Result<Ssa, ExportError> {
        let of = Type::of(meta)?;
        let hexadecimal = |bytes: &[u8]| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            if digits.is_empty() { digits } else { format!("\"0x{digits}\"") }
        };
        if of != Type::BOOL {
            return Ok(self.dense(&hexadecimal(data.as_bytes()), &meta.shape, of));
        }
        let bytes: Vec<u8> = data.iter::<bool>().map(u8::from).collect();
        let bytes = self.dense(&hexadecimal(&bytes), &meta.shape, Type(DType::I8));
        Ok(self.convert(&bytes, of))
    }

    /// A constant with equal elements.
    pub(super) fn full(&mut self, x: f64, shape: &[usize], of: Type) -> Ssa {
        let text = match of {
            Type::BOOL => (x != 0.0).to_string(),
            _ if of.is_float() => format!("0x{}", of.bits(x)),
            _ => {
                let (low, high) = of.limits();
                (x as i128).clamp(low, high).to_string()
            }
        };
        self.dense(&text, shape, of)
    }

    fn dense(&mut self, elements: &str, shape: &[usize], of: Type) -> Ssa {
        let value = format!("{{value = dense<{elements}> : {}}}", tensor(shape, of));
        self.op("stablehlo.constant", &[], &value, shape, of)
    }

    pub(super) fn convert(&mut self, x: &Ssa, of: Type) -> Ssa {
        if x.of == of {
            return x.clone();
        }
        self.op("stablehlo.convert", &[x], "", &x.shape, of)
    }

    pub(super) fn reshape(&mut self, x: &Ssa, shape: &[usize]) -> Ssa {
        if x.shape == shape {
            return x.clone();
        }
        self.op("stablehlo.reshape", &[x], "", shape, x.of)
    }

    /// The value in a shape into which it is broadcast, with axes counted from the last one.
    pub(super) fn broadcast(&mut self, x: &Ssa, shape: &[usize]) -> Ssa {
        if x.shape == shape {
            return x.clone();
        }
        let first = shape.len() - x.rank();
        let axes = array(first..shape.len());
        let axes = format!("{{broadcast_dimensions = {axes}}}");
        self.op("stablehlo.broadcast_in_dim", &[x], &axes, shape, x.of)
    }

    /// A region that combines two numbers by an operation.
    pub(super) fn region(name: &str, of: Type) -> String {
        let t = tensor(&[], of);
        format!(
            "({{\n    ^bb0(%a: {t}, %b: {t}):\n      %c = \"stablehlo.{name}\"(%a, %b) : ({t}, {t}) -> {t}\n      \
             \"stablehlo.return\"(%c) : ({t}) -> ()\n    }})"
        )
    }

    /// A region with arguments of the types of `like`, which ends with the values of `write`.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn region_of(
        &mut self,
        like: &[Ssa],
        write: impl FnOnce(&mut Self, &[Ssa]) -> Result<Vec<Ssa>, ExportError>,
    ) -> Result<String, ExportError> {
        let first = self.next;
        self.next += like.len();
        let one = |(k, x): (usize, &Ssa)| Ssa { name: format!("%{}", first + k), ..x.clone() };
        let arguments: Vec<Ssa> = like.iter().enumerate().map(one).collect();
        let around = std::mem::take(&mut self.body);
        let results = write(self, &arguments)?;
        let body = std::mem::replace(&mut self.body, around);
        let given = list(arguments.iter().map(|x| format!("{}: {}", x.name, x.typed())));
        let (names, types) =
            (list(results.iter().map(|x| &x.name)), list(results.iter().map(Ssa::typed)));
        Ok(format!(
            "{{\n    ^bb0({given}):\n{body}    \"stablehlo.return\"({names}) : ({types}) -> ()\n    }}"
        ))
    }

    /// The module, with these results of its function.
    pub(super) fn finish(self, outputs: &[Ssa]) -> String {
        let arguments = list(self.arguments.iter().map(|x| format!("{}: {}", x.name, x.typed())));
        let (types, names) =
            (list(outputs.iter().map(Ssa::typed)), list(outputs.iter().map(|x| &x.name)));
        format!(
            "module {{\n  func.func public @main({arguments}) -> ({types}) {{\n{}    \"func.return\"({names}) : \
             ({types}) -> ()\n  }}\n}}\n",
            self.body
        )
    }
}
