//! Parts of tensors: slicing, concatenation, reduction over devices, and serialisation as bytes.

use burn_backend::{Backend, BoolStore, DType, Shape, Slice, TensorData};
use burn_t4a_compile::graph::{TensorType, Value};

use crate::mesh::Mesh;
use crate::rules::Reduce;
use crate::spec::Split;

/// Applies one expression per tensor kind (float, int, bool) and rewraps the result.
macro_rules! each_kind {
    ($x:expr, $y:ident => $float:expr, $int:expr, $bool:expr) => {
        match $x {
            Value::Float($y) => Value::Float($float),
            Value::Int($y) => Value::Int($int),
            Value::Bool($y) => Value::Bool($bool),
            // Quantized tensors are always replicated.
            other => other,
        }
    };
}

pub(crate) fn cat<B: Backend>(all: Vec<Value<B>>, axis: usize) -> Value<B> {
    macro_rules! of {
        ($kind:ident, $cat:path) => {{
            let own = |x| if let Value::$kind(x) = x { Some(x) } else { None };
            Value::$kind($cat(all.into_iter().filter_map(own).collect(), axis))
        }};
    }
    match all.first() {
        Some(Value::Int(_)) => of!(Int, B::int_cat),
        Some(Value::Bool(_)) => of!(Bool, B::bool_cat),
        _ => of!(Float, B::float_cat),
    }
}

/// Slice `at` of `parts` equal slices along `axis`.
pub(crate) fn part<B: Backend>(x: Value<B>, axis: usize, parts: usize, at: usize) -> Value<B> {
    let shape = x.meta().shape;
    let n = (shape[axis] / parts) as isize;
    let whole = |&size: &usize| Slice::new(0, Some(size as isize), 1);
    let mut slices: Vec<Slice> = shape.iter().map(whole).collect();
    slices[axis] = Slice::new(at as isize * n, Some((at as isize + 1) * n), 1);
    each_kind!(x, y => B::float_slice(y, &slices), B::int_slice(y, &slices), B::bool_slice(y, &slices))
}

pub(crate) fn zeros<B: Backend>(x: Value<B>) -> Value<B> {
    let (meta, device) = (x.meta(), x.device());
    match x {
        Value::Float(_) => {
            Value::Float(B::float_zeros(Shape::from(meta.shape), &device, meta.dtype.into()))
        }
        other => other,
    }
}

/// A tensor that stores one element at most.
pub(crate) fn without_elements<B: Backend>(
    meta: &TensorType,
    device: &B::Device,
) -> Result<Value<B>, String> {
    let least: Vec<usize> = meta.shape.iter().map(|&n| n.min(1)).collect();
    let bytes = vec![0; least.iter().product::<usize>() * meta.dtype.size()];
    let x = decode::<B>(device, &TensorType { shape: least, dtype: meta.dtype }, bytes)?;
    let shape = Shape::from(meta.shape.clone());
    Ok(
        each_kind!(x, y => B::float_expand(y, shape), B::int_expand(y, shape), B::bool_expand(y, shape)),
    )
}

/// Elementwise maximum (`max`) or minimum of two tensors.
fn extreme<B: Backend>(a: Value<B>, b: Value<B>, max: bool) -> Value<B> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            let dtype = burn_backend::get_device_settings::<B>(&B::float_device(&a)).bool_dtype;
            // NaN propagates, as in a reduction.
            let other = if max {
                B::float_greater(b.clone(), a.clone(), dtype)
            } else {
                B::float_lower(b.clone(), a.clone(), dtype)
            };
            let other = B::bool_or(other, B::float_is_nan(b.clone(), dtype));
            Value::Float(B::float_mask_where(a, other, b))
        }
        (Value::Int(a), Value::Int(b)) => {
            let dtype = burn_backend::get_device_settings::<B>(&B::int_device(&a)).bool_dtype;
            let other = if max {
                B::int_greater(b.clone(), a.clone(), dtype)
            } else {
                B::int_lower(b.clone(), a.clone(), dtype)
            };
            Value::Int(B::int_mask_where(a, other, b))
        }
        (a, _) => a,
    }
}

fn sum<B: Backend>(a: Value<B>, b: Value<B>) -> Value<B> {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => Value::Float(B::float_add(a, b)),
        (Value::Int(a), Value::Int(b)) => Value::Int(B::int_add(a, b)),
        (a, _) => a,
    }
}

/// Elementwise reduction of the values in the given order, which is that of the mesh.
pub(crate) fn reduce<B: Backend>(all: Vec<Value<B>>, how: Reduce) -> Value<B> {
    let count = all.len();
    let total = all.into_iter().reduce(|a, b| match how {
        Reduce::Sum | Reduce::Mean => sum(a, b),
        Reduce::Max => extreme(a, b, true),
        Reduce::Min => extreme(a, b, false),
    });
    let total = total.unwrap_or_else(|| unreachable!("a mesh has devices"));
    match (how, total) {
        (Reduce::Mean, Value::Float(x)) => {
            Value::Float(B::float_div_scalar(x, (count as f64).into()))
        }
        (_, total) => total,
    }
}

/// Local shard of a full tensor on one device.
pub(crate) fn own<B: Backend>(x: Value<B>, split: &Split, mesh: &Mesh, device: usize) -> Value<B> {
    let mut x = x;
    for (axis, over) in split.0.iter().enumerate() {
        for &over in over {
            x = part(x, axis, mesh.size(over), mesh.coordinate(device, over));
        }
    }
    x
}

/// Assembles the full tensor from its shards; of replicated shards, the one on the first device is used.
pub(crate) fn joined<B: Backend>(
    mut parts: Vec<Option<Value<B>>>,
    split: &Split,
    mesh: &Mesh,
) -> Value<B> {
    for (device, part) in parts.iter_mut().enumerate() {
        if mesh.first(device, split) != device {
            *part = None;
        }
    }
    for (axis, over) in split.0.iter().enumerate() {
        for &over in over.iter().rev() {
            for device in 0..mesh.devices() {
                if mesh.coordinate(device, over) == 0 && parts[device].is_some() {
                    let row: Vec<usize> = mesh.row(device, over).collect();
                    let all = row.into_iter().filter_map(|i| parts[i].take()).collect();
                    parts[device] = Some(cat(all, axis));
                }
            }
        }
    }
    let first = parts.swap_remove(0);
    first.unwrap_or_else(|| unreachable!("the first device has the first part"))
}

/// Serialises the elements of a tensor in memory order.
pub(crate) fn encode<B: Backend>(x: Value<B>) -> Result<Vec<u8>, String> {
    Ok(x.data()?.bytes.to_vec())
}

/// Deserialises a tensor of the given shape and dtype.
pub(crate) fn decode<B: Backend>(
    device: &B::Device,
    meta: &TensorType,
    bytes: Vec<u8>,
) -> Result<Value<B>, String> {
    let sound = match meta.dtype {
        DType::Bool(BoolStore::U32) => bytes.chunks(4).all(|word| {
            let word: Result<[u8; 4], _> = word.try_into();
            word.is_ok_and(|word| u32::from_ne_bytes(word) <= 1)
        }),
        DType::Bool(_) => bytes.iter().all(|&byte| byte <= 1),
        _ => true,
    };
    if !sound {
        return Err("bytes that are no truth values".to_owned());
    }
    let dtype = meta.dtype;
    let data = TensorData::from_bytes_vec(bytes, meta.shape.clone(), dtype);
    if dtype.is_float() {
        Ok(Value::Float(B::float_from_data(data, device)))
    } else if dtype.is_bool() {
        Ok(Value::Bool(B::bool_from_data(data, device)))
    } else if dtype.is_int() || dtype.is_uint() {
        Ok(Value::Int(B::int_from_data(data, device)))
    } else {
        Err(format!("tensors of dtype {dtype:?} do not move between processes"))
    }
}
