//! Static arguments of instructions as words: a form that can be compared, serialised, and modified for another size.
//!
//! ```text
//! Word    a number or a text
//! Plain   conversion of an argument to words and back
//! ```

use std::hash::{Hash, Hasher};

use burn_backend::ops::*;
use burn_backend::quantization::QuantScheme;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, DeviceOps, Distribution, FloatDType, IntDType, Scalar, Shape, Slice,
};

/// Component of a static argument.
#[derive(Clone, Debug)]
pub enum Word {
    /// A size, an index or an enum variant.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A value with no numeric form.
    Text(String),
}

impl PartialEq for Word {
    /// Floats are compared bitwise.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Word {}

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Int(x) => x.hash(state),
            Self::Float(x) => x.to_bits().hash(state),
            Self::Text(x) => x.hash(state),
        }
    }
}

/// Sequential reader of words.
pub(crate) struct Words<'a>(pub(crate) std::slice::Iter<'a, Word>);

impl Words<'_> {
    fn int(&mut self) -> Option<i64> {
        match self.0.next()? {
            Word::Int(x) => Some(*x),
            _ => None,
        }
    }
}

/// A static (non-tensor) argument.
pub(crate) trait StaticArgument: Sized {
    /// Appends the encoding.
    fn write(&self, all: &mut Vec<Word>);
    /// Decodes the output of [`write`](Self::write); `None` if it is malformed.
    fn read(from: &mut Words<'_>) -> Option<Self>;
}

/// Encodes an argument.
pub(crate) fn words(x: &impl StaticArgument) -> Vec<Word> {
    let mut all = Vec::new();
    x.write(&mut all);
    all
}

/// Decodes an argument; all words must be consumed.
pub(crate) fn read<S: StaticArgument>(words: &[Word]) -> Option<S> {
    let mut from = Words(words.iter());
    let x = S::read(&mut from)?;
    from.0.next().is_none().then_some(x)
}

impl StaticArgument for Word {
    fn write(&self, all: &mut Vec<Word>) {
        all.push(self.clone());
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        from.0.next().cloned()
    }
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl StaticArgument for $t {
            fn write(&self, all: &mut Vec<Word>) {
                all.push(Word::Int(*self as i64));
            }
            fn read(from: &mut Words<'_>) -> Option<Self> {
                from.int()?.try_into().ok()
            }
        }
    )*};
}

integers!(usize, isize, i64, u16);

impl StaticArgument for bool {
    fn write(&self, all: &mut Vec<Word>) {
        all.push(Word::Int(i64::from(*self)));
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        Some(from.int()? != 0)
    }
}

impl StaticArgument for f64 {
    fn write(&self, all: &mut Vec<Word>) {
        all.push(Word::Float(*self));
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        match from.0.next()? {
            Word::Float(x) => Some(*x),
            _ => None,
        }
    }
}

impl<S: StaticArgument> StaticArgument for Vec<S> {
    fn write(&self, all: &mut Vec<Word>) {
        self.len().write(all);
        self.iter().for_each(|x| x.write(all));
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        let n = usize::read(from)?;
        // The length is bounded by the number of remaining words: it may be untrusted input.
        (n <= from.0.len()).then(|| (0..n).map(|_| S::read(from)).collect())?
    }
}

impl<S: StaticArgument, const N: usize> StaticArgument for [S; N] {
    fn write(&self, all: &mut Vec<Word>) {
        self.iter().for_each(|x| x.write(all));
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        let all: Option<Vec<S>> = (0..N).map(|_| S::read(from)).collect();
        all?.try_into().ok()
    }
}

impl<S: StaticArgument> StaticArgument for Option<S> {
    fn write(&self, all: &mut Vec<Word>) {
        self.is_some().write(all);
        if let Some(x) = self {
            x.write(all);
        }
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        if bool::read(from)? { S::read(from).map(Some) } else { Some(None) }
    }
}

impl StaticArgument for Shape {
    fn write(&self, all: &mut Vec<Word>) {
        self.to_vec().write(all);
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        Vec::<usize>::read(from).map(Self::from)
    }
}

impl StaticArgument for Slice {
    fn write(&self, all: &mut Vec<Word>) {
        (self.start, self.end, self.step).write(all);
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        let (start, end, step) = StaticArgument::read(from)?;
        Some(Self { start, end, step })
    }
}

impl StaticArgument for Scalar {
    fn write(&self, all: &mut Vec<Word>) {
        match *self {
            Self::Float(x) => (0usize, x).write(all),
            Self::Int(x) => (1usize, x).write(all),
            Self::UInt(x) => (2usize, x as i64).write(all),
            Self::Bool(x) => (3usize, x).write(all),
        }
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        Some(match from.int()? {
            0 => Self::Float(f64::read(from)?),
            1 => Self::Int(from.int()?),
            2 => Self::UInt(from.int()? as u64),
            3 => Self::Bool(bool::read(from)?),
            _ => return None,
        })
    }
}

impl StaticArgument for Distribution {
    fn write(&self, all: &mut Vec<Word>) {
        match *self {
            Self::Default => 0usize.write(all),
            Self::Bernoulli(p) => (1usize, p).write(all),
            Self::Uniform(a, b) => (2usize, a, b).write(all),
            Self::Normal(a, b) => (3usize, a, b).write(all),
        }
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        Some(match from.int()? {
            0 => Self::Default,
            1 => Self::Bernoulli(f64::read(from)?),
            2 => Self::Uniform(f64::read(from)?, f64::read(from)?),
            3 => Self::Normal(f64::read(from)?, f64::read(from)?),
            _ => return None,
        })
    }
}

/// A device, encoded by its id.
#[derive(Clone, Debug)]
pub(crate) struct EncodedDevice<D>(pub(crate) D);

impl<D: DeviceOps> StaticArgument for EncodedDevice<D> {
    fn write(&self, all: &mut Vec<Word>) {
        let id = self.0.id();
        (id.type_id, id.index_id).write(all);
    }
    fn read(from: &mut Words<'_>) -> Option<Self> {
        let (type_id, index_id) = StaticArgument::read(from)?;
        let mut id = D::default().id();
        (id.type_id, id.index_id) = (type_id, index_id);
        Some(Self(D::from_id(id)))
    }
}

/// Enums, encoded by the index of the variant in a list.
macro_rules! choices {
    ($($t:ty: $($value:ident)*;)*) => {$(
        impl StaticArgument for $t {
            fn write(&self, all: &mut Vec<Word>) {
                let of = [$(stringify!($value)),*];
                let name = format!("{self:?}");
                let at = of.iter().position(|x| *x == name);
                // Variants added by later versions of Burn are encoded out of range and cannot be decoded.
                at.unwrap_or(of.len()).write(all);
            }
            fn read(from: &mut Words<'_>) -> Option<Self> {
                let of = [$(Self::$value),*];
                of.into_iter().nth(usize::read(from)?)
            }
        }
    )*};
}

choices! {
    FloatDType: F64 F32 Flex32 F16 BF16;
    IntDType: I64 I32 I16 I8 U64 U32 U16 U8;
    BoolDType: Native U8 U32;
    IndexingUpdateOp: Assign Add Mul Min Max;
    InterpolateMode: Nearest Bilinear Bicubic Lanczos3;
    GridSamplePaddingMode: Zeros Border Reflection;
}

/// Quantization schemes can be compared, but not decoded.
impl StaticArgument for QuantScheme {
    fn write(&self, all: &mut Vec<Word>) {
        all.push(Word::Text(format!("{self:?}")));
    }
    fn read(_: &mut Words<'_>) -> Option<Self> {
        None
    }
}

macro_rules! structs {
    ($($t:ty { $($field:ident),* })*) => {$(
        impl StaticArgument for $t {
            fn write(&self, all: &mut Vec<Word>) {
                $(self.$field.write(all);)*
            }
            fn read(from: &mut Words<'_>) -> Option<Self> {
                $(let $field = StaticArgument::read(from)?;)*
                Some(Self { $($field),* })
            }
        }
    )*};
}

structs! {
    ConvOptions<1> { stride, padding, dilation, groups }
    ConvOptions<2> { stride, padding, dilation, groups }
    ConvOptions<3> { stride, padding, dilation, groups }
    ConvTransposeOptions<1> { stride, padding, padding_out, dilation, groups }
    ConvTransposeOptions<2> { stride, padding, padding_out, dilation, groups }
    ConvTransposeOptions<3> { stride, padding, padding_out, dilation, groups }
    DeformConvOptions<2> { stride, padding, dilation, weight_groups, offset_groups }
    GridSampleOptions { mode, padding_mode, align_corners }
    InterpolateOptions { mode, align_corners }
    UnfoldOptions { stride, padding, dilation }
    AttentionModuleOptions { scale, softcap, is_causal }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => {$(
        impl<$($t: StaticArgument),*> StaticArgument for ($($t,)*) {
            fn write(&self, _all: &mut Vec<Word>) {
                $(self.$i.write(_all);)*
            }
            fn read(_from: &mut Words<'_>) -> Option<Self> {
                Some(($($t::read(_from)?,)*))
            }
        }
    )*};
}

tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
}

/// Serialises words: a tag, then eight bytes, or a text preceded by its length.
pub(crate) fn encode(words: &[Word]) -> Vec<u8> {
    let mut all = Vec::with_capacity(9 * words.len());
    for word in words {
        match word {
            Word::Int(x) => {
                all.push(0);
                all.extend(x.to_le_bytes());
            }
            Word::Float(x) => {
                all.push(1);
                all.extend(x.to_le_bytes());
            }
            Word::Text(x) => {
                all.push(2);
                all.extend((x.len() as u64).to_le_bytes());
                all.extend(x.as_bytes());
            }
        }
    }
    all
}

pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Word>> {
    let mut all = Vec::new();
    while let Some((&tag, rest)) = bytes.split_first() {
        let (eight, rest) = rest.split_first_chunk::<8>()?;
        bytes = rest;
        all.push(match tag {
            0 => Word::Int(i64::from_le_bytes(*eight)),
            1 => Word::Float(f64::from_le_bytes(*eight)),
            2 => {
                let len = usize::try_from(u64::from_le_bytes(*eight)).ok()?;
                let text = bytes.get(..len)?;
                bytes = &bytes[len..];
                Word::Text(String::from_utf8(text.to_vec()).ok()?)
            }
            _ => return None,
        });
    }
    Some(all)
}
