//! Serialisation of programs: keys, recordings and the structure of their results, without machine code.
//!
//! ```text
//! "t4ac" version checksum | backend | count | key, results, recording …
//! ```

use burn_backend::{Backend, BoolStore, DType, TensorData};
use burn_t4a::ext::tree::Structure;

use crate::error::{CompileError, Result};
use crate::key::Key;
use crate::methods::{NamedStep, make};
use crate::recording::Instruction;
use crate::tensor::{AnyPrimitive, TensorType};
use crate::trace::Source;
use crate::words::{StaticArgument, Word, Words, decode, encode};

const MAGIC: &[u8; 5] = b"t4ac\x02";
const KINDS: [&str; 3] = ["float", "int", "bool"];
const DTYPES: [DType; 16] = [
    DType::F64,
    DType::F32,
    DType::Flex32,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool(BoolStore::Native),
    DType::Bool(BoolStore::U8),
    DType::Bool(BoolStore::U32),
];

/// A program with its key and the structure of its results, as stored in an archive.
pub(crate) struct ArchivedProgram<B: Backend> {
    pub(crate) key: Key,
    pub(crate) results: Structure,
    pub(crate) source: Source<B>,
}

fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(CompileError::Save { what: what.into() })
}

/// Maximum nesting depth of a tree structure; bounds the recursion of the reader.
const DEEPEST: usize = 100;
/// Maximum number of elements of a tensor; larger shapes are rejected.
const LARGEST: usize = 1 << 48;

/// FNV-1a: detects accidental corruption; it is not a signature.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn text(x: &str, all: &mut Vec<Word>) {
    all.push(Word::Text(x.to_owned()));
}

fn structure(x: &Structure, all: &mut Vec<Word>) -> Result<()> {
    match x {
        Structure::Leaf => 0usize.write(all),
        Structure::Node(children) => {
            1usize.write(all);
            children.len().write(all);
            children.iter().try_for_each(|child| structure(child, all))?;
        }
        Structure::Struct { name, fields } => {
            2usize.write(all);
            text(name, all);
            fields.len().write(all);
            for (name, field) in fields {
                text(name, all);
                structure(field, all)?;
            }
        }
        Structure::Static(value) => return refused(format!("the static value {value:?}")),
    }
    Ok(())
}

fn meta(x: &TensorType, all: &mut Vec<Word>) -> Result<()> {
    let Some(dtype) = DTYPES.iter().position(|dtype| *dtype == x.dtype) else {
        return refused(format!("a tensor of dtype {:?}", x.dtype));
    };
    (dtype, x.shape.clone()).write(all);
    Ok(())
}

fn kind(name: &str, all: &mut Vec<Word>) -> Result<()> {
    match KINDS.iter().position(|kind| *kind == name) {
        Some(at) => at.write(all),
        None => return refused(format!("a {name} tensor")),
    }
    Ok(())
}

/// Packs bytes into words of eight, preceded by their number.
fn bytes(x: &[u8], all: &mut Vec<Word>) {
    x.len().write(all);
    for part in x.chunks(8) {
        let mut eight = [0; 8];
        eight[..part.len()].copy_from_slice(part);
        all.push(Word::Int(i64::from_le_bytes(eight)));
    }
}

fn program<B: Backend>(saved: &ArchivedProgram<B>, all: &mut Vec<Word>) -> Result<()> {
    let ArchivedProgram { key, results, source } = saved;
    structure(&key.structure, all)?;
    key.leaves.len().write(all);
    for (name, leaf) in &key.leaves {
        kind(name, all)?;
        meta(leaf, all)?;
    }
    key.settings.write(all);
    structure(results, all)?;
    source.metas.len().write(all);
    source.metas.iter().try_for_each(|x| meta(x, all))?;
    source.inputs.write(all);
    source.constants.len().write(all);
    for (id, x) in &source.constants {
        id.write(all);
        kind(x.kind(), all)?;
        let data = x.clone().data().map_err(|what| CompileError::Save { what })?;
        meta(&TensorType { shape: data.shape.to_vec(), dtype: data.dtype }, all)?;
        bytes(&data.bytes, all);
    }
    source.instructions.len().write(all);
    for one in &source.instructions {
        let Some(words) = one.step.words() else {
            return refused(format!("the operation {}", one.name));
        };
        text(one.name, all);
        (one.operands.clone(), one.first, one.results, one.pure).write(all);
        words.len().write(all);
        all.extend(words);
    }
    source.outputs.write(all);
    Ok(())
}

/// Serialises programs.
///
/// # Errors
/// [`CompileError::Save`].
pub(crate) fn save<B: Backend>(programs: &[ArchivedProgram<B>]) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    text(&B::name(&B::Device::default()), &mut all);
    programs.len().write(&mut all);
    programs.iter().try_for_each(|x| program(x, &mut all))?;
    let body = encode(&all);
    let mut out = MAGIC.to_vec();
    out.extend(checksum(&body).to_le_bytes());
    out.extend(body);
    Ok(out)
}

/// Reader of serialised programs; methods return `None` for malformed input.
struct Reader<'a>(Words<'a>);

impl Reader<'_> {
    fn get<T: StaticArgument>(&mut self) -> Option<T> {
        T::read(&mut self.0)
    }

    fn text(&mut self) -> Option<&str> {
        match self.0.0.next()? {
            Word::Text(x) => Some(x),
            _ => None,
        }
    }

    /// Reads an element count, which must not exceed the number of remaining words.
    fn count(&mut self) -> Option<usize> {
        self.get::<usize>().filter(|n| *n <= self.0.0.len())
    }

    fn structure(&mut self, depth: usize) -> Option<Structure> {
        match self.get::<usize>()? {
            0 => Some(Structure::Leaf),
            1 => {
                let n = self.count().filter(|_| depth < DEEPEST)?;
                let children = (0..n).map(|_| self.structure(depth + 1));
                children.collect::<Option<_>>().map(Structure::Node)
            }
            2 => {
                let name = self.text()?.to_owned().into();
                let n = self.count().filter(|_| depth < DEEPEST)?;
                let mut field =
                    || Some((self.text()?.to_owned().into(), self.structure(depth + 1)?));
                let fields = (0..n).map(|_| field()).collect::<Option<_>>()?;
                Some(Structure::Struct { name, fields })
            }
            _ => None,
        }
    }

    fn meta(&mut self) -> Option<TensorType> {
        let (dtype, shape): (usize, Vec<usize>) = self.get()?;
        let size = shape.iter().try_fold(1usize, |size, &n| size.checked_mul(n.max(1)));
        size.filter(|&size| size <= LARGEST)?;
        Some(TensorType { shape, dtype: *DTYPES.get(dtype)? })
    }

    fn kind(&mut self) -> Option<&'static str> {
        KINDS.get(self.get::<usize>()?).copied()
    }

    fn constant<B: Backend>(&mut self) -> Option<(usize, AnyPrimitive<B>)> {
        let (id, kind, meta) = (self.get()?, self.kind()?, self.meta()?);
        let n: usize = self.get()?;
        let size: usize = meta.shape.iter().product();
        // The byte count is bounded by the remaining words before memory is allocated.
        if n != size.checked_mul(meta.dtype.size())? || n.div_ceil(8) > self.0.0.len() {
            return None;
        }
        let of = match meta.dtype {
            DType::Bool(_) => "bool",
            dtype if dtype.is_float() => "float",
            _ => "int",
        };
        if kind != of {
            return None;
        }
        let mut all = Vec::with_capacity(n.next_multiple_of(8));
        for _ in 0..n.div_ceil(8) {
            all.extend(self.get::<i64>()?.to_le_bytes());
        }
        all.truncate(n);
        if meta.dtype == DType::Bool(BoolStore::Native) && all.iter().any(|&byte| byte > 1) {
            return None;
        }
        let data = TensorData::from_bytes_vec(all, meta.shape, meta.dtype);
        let device = B::Device::default();
        let x = match kind {
            "float" => AnyPrimitive::Float(B::float_from_data(data, &device)),
            "int" => AnyPrimitive::Int(B::int_from_data(data, &device)),
            _ => AnyPrimitive::Bool(B::bool_from_data(data, &device)),
        };
        Some((id, x))
    }

    fn instruction<B: Backend>(&mut self) -> Option<std::result::Result<Instruction<B>, String>> {
        let name = self.text()?.to_owned();
        let (operands, first, results, pure) = self.get()?;
        let n = self.count()?;
        let words: Vec<Word> = self.0.0.by_ref().take(n).cloned().collect();
        Some(match make::<B>(&name, &words) {
            None => Err(name),
            Some(NamedStep { name, class, made }) => Ok(Instruction {
                name,
                class,
                step: made.step,
                elementwise: made.elementwise,
                operands,
                first,
                results,
                pure,
            }),
        })
    }

    fn program<B: Backend>(&mut self) -> Option<std::result::Result<ArchivedProgram<B>, String>> {
        let of = self.structure(0)?;
        let n = self.count()?;
        let leaves = (0..n).map(|_| Some((self.kind()?, self.meta()?))).collect::<Option<_>>()?;
        let settings = self.get()?;
        let key = Key { structure: of, leaves, settings, named: false };
        let results = self.structure(0)?;
        let n = self.count()?;
        let metas: Vec<TensorType> = (0..n).map(|_| self.meta()).collect::<Option<_>>()?;
        let inputs = self.get()?;
        let n = self.count()?;
        let constants = (0..n).map(|_| self.constant()).collect::<Option<_>>()?;
        let n = self.count()?;
        let mut instructions = Vec::new();
        for _ in 0..n {
            match self.instruction()? {
                Ok(one) => instructions.push(one),
                Err(name) => return Some(Err(format!("{name} is not known here"))),
            }
        }
        let source = Source { metas, inputs, constants, instructions, outputs: self.get()? };
        Some(if is_sound(&key, &results, &source) {
            Ok(ArchivedProgram { key, results, source })
        } else {
            Err("a program uses values that it does not make".into())
        })
    }
}

/// True if every value is defined exactly once and before its first use, and inputs, constants and outputs agree with
/// the key.
fn is_sound<B: Backend>(key: &Key, results: &Structure, source: &Source<B>) -> bool {
    let mut made = vec![false; source.metas.len()];
    let mut give = |value: usize| made.get_mut(value).is_some_and(|x| !std::mem::replace(x, true));
    let mut known = (0..source.inputs).all(&mut give);
    let is = |value: usize, meta: &TensorType| source.metas.get(value) == Some(meta);
    known &= key.leaves.iter().enumerate().all(|(value, (_, meta))| is(value, meta));
    known &= source.constants.iter().all(|x| give(x.0) && is(x.0, &x.1.meta()));
    for one in &source.instructions {
        known &= one.operands.iter().all(|&v| made.get(v) == Some(&true));
        let mut give =
            |value: usize| made.get_mut(value).is_some_and(|x| !std::mem::replace(x, true));
        known &= (one.first..one.first.saturating_add(one.results)).all(&mut give);
    }
    known
        && source.outputs.iter().all(|&v| made.get(v) == Some(&true))
        && source.inputs == key.leaves.len()
        && source.outputs.len() == results.paths().len()
        && key.structure.paths().len() == key.leaves.len()
}

/// Deserialises the output of [`save`].
///
/// # Errors
/// [`CompileError::Load`].
pub(crate) fn load<B: Backend>(from: &[u8]) -> Result<Vec<ArchivedProgram<B>>> {
    let wrong = |what: &str| CompileError::Load { what: what.to_owned() };
    let body = from.strip_prefix(MAGIC).ok_or_else(|| wrong("they begin in another way"))?;
    let (sum, body) = body.split_first_chunk::<8>().ok_or_else(|| wrong("they end early"))?;
    if u64::from_le_bytes(*sum) != checksum(body) {
        return Err(wrong("their checksum is another one"));
    }
    let words = decode(body).ok_or_else(|| wrong("they are no words"))?;
    let mut from = Reader(Words(words.iter()));
    let of = B::name(&B::Device::default());
    match from.text() {
        Some(name) if name == of => {}
        other => return Err(wrong(&format!("they are for {other:?}, this is {of:?}"))),
    }
    let n = from.count().ok_or_else(|| wrong("they end early"))?;
    let one = |_| match from.program() {
        None => Err(wrong("a program is incomplete")),
        Some(program) => program.map_err(|what| wrong(&what)),
    };
    (0..n).map(one).collect()
}
