//! `TensorData` of any dtype, shape and content: converted to a tensor, used in an operation, and converted back.

use burn_backend::{BoolDType, Bytes, DType, TensorData, TensorMetadata};
use burn_t4a::T4aTensor;

use t4a_fuzz::input::Input;

const DTYPES: [DType; 15] = [
    DType::F64,
    DType::F32,
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
    DType::Bool(BoolDType::Native),
    DType::Bool(BoolDType::U8),
    DType::Bool(BoolDType::U32),
];

/// Runs one case.
fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let dtype = input.pick(&DTYPES);
    let shape: Vec<usize> = match input.once_in(3) {
        true => (0..input.below(5)).map(|_| input.size()).collect(),
        false => input.small_shape(4),
    };
    let size = dtype.size();
    let fits = shape.iter().try_fold(size, |n, &s| n.checked_mul(s)).filter(|&n| n < 4096);
    let mut len = fits.unwrap_or_else(|| input.below(64));
    if input.once_in(6) {
        len = input.below(64);
    }
    let content: Vec<u8> = (0..len).map(|_| input.byte()).collect();
    let data = TensorData {
        bytes: Bytes::from_bytes_vec(content.clone()),
        shape: shape.clone().into(),
        dtype,
    };
    let tensor = match T4aTensor::try_from_data(data) {
        Ok(tensor) => tensor,
        Err(_) => {
            let countable = t4a_tensor::layout::checked_numel(&shape);
            assert!(countable.is_none_or(|n| n * size != len), "{shape:?} {dtype:?} {len}");
            return;
        }
    };
    assert_eq!(fits, Some(len), "{shape:?} {dtype:?}");
    assert_eq!((tensor.dtype(), tensor.shape().to_vec()), (dtype, shape.clone()));
    if let DType::Bool(_) = dtype {
        // Nonzero bytes are read as `true`; a boolean then has one of two values.
        let truths: Vec<bool> =
            content.chunks(size).map(|word| word.iter().any(|&byte| byte != 0)).collect();
        let any = tensor.any().typed::<bool>().expect("a boolean");
        assert_eq!(any.to_vec().expect("few elements"), truths);
        let not = tensor.any().clone().logical_not().expect("a boolean");
        let count = not.cast(t4a_tensor::DType::I64).and_then(|x| x.sum(&axes(shape.len())));
        let count = count.expect("few elements");
        let falses = truths.iter().filter(|&&t| !t).count() as i64;
        assert_eq!(count.typed::<i64>().expect("cast").to_vec().expect("one"), [falses]);
    }
    // Elements are exported in row-major order for any order of axes.
    let turned = tensor.any().permute(&axes(shape.len()).into_iter().rev().collect::<Vec<_>>());
    let turned = turned.and_then(|x| x.to_contiguous()).expect("a permutation");
    let back = turned.permute(&axes(shape.len()).into_iter().rev().collect::<Vec<_>>());
    let back = T4aTensor::from_any(back.expect("a permutation")).expect("a dtype of Burn");
    let again = back.try_into_data().expect("few elements");
    let out = tensor.try_into_data().expect("few elements");
    if !matches!(dtype, DType::Bool(_)) {
        assert_eq!(&out.bytes[..], &content[..]);
        assert_eq!(&again.bytes[..], &content[..]);
    }
    assert_eq!((out.shape.to_vec(), out.bytes.len()), (shape, len));
}

fn axes(rank: usize) -> Vec<usize> {
    (0..rank).collect()
}

#[test]
fn data_of_any_content() {
    bolero::check!().with_max_len(600).for_each(|bytes: &[u8]| run(bytes));
}
