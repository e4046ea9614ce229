//! Results of the operations in `vectors.json` by the Rust interface. They are those of the file within rounding, and
//! their bits are written to a file of the target directory, with which the tests in Python compare their own.

use std::error::Error;
use std::path::Path;

use serde_json::{Map, Value, json};
use t4a_diff::{Kind, Operation};
use t4a_operations::{AnyOperation, Vjp};
use t4a_tensor::{AnyTensor, DType, Tensor};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn list<'a>(row: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    row[name].as_array().ok_or_else(|| format!("no list {name} in {row}").into())
}

/// Arrays of the engine for an array of the file: a complex one is a pair.
fn arrays(x: &Value) -> Result<Vec<AnyTensor>> {
    let shape: Vec<usize> =
        list(x, "shape")?.iter().map(|n| n.as_u64().unwrap_or(0) as usize).collect();
    let data = list(x, "data")?;
    if x["dtype"] == "int64" {
        let data = data.iter().map(|x| x.as_i64().unwrap_or(i64::MIN)).collect();
        return Ok(vec![Tensor::from_vec(data, &shape)?.into()]);
    }
    let floats = |of: &dyn Fn(&Value) -> Option<f64>| -> Result<AnyTensor> {
        let data = data.iter().map(|x| of(x).unwrap_or(f64::NAN)).collect();
        Ok(Tensor::<f64>::from_vec(data, &shape)?.into())
    };
    match x["dtype"] == "complex128" {
        true => Ok(vec![floats(&|x| x[0].as_f64())?, floats(&|x| x[1].as_f64())?]),
        false => Ok(vec![floats(&Value::as_f64)?]),
    }
}

fn all_arrays(row: &Value, name: &str) -> Result<Vec<AnyTensor>> {
    let all = list(row, name)?.iter().filter(|x| !x.is_null()).map(arrays);
    Ok(all.collect::<Result<Vec<_>>>()?.concat())
}

/// The elements as 64-bit words.
fn bits(x: &AnyTensor) -> Result<Vec<u64>> {
    match x.dtype() {
        DType::I64 => Ok(x.typed::<i64>()?.to_vec()?.into_iter().map(|x| x as u64).collect()),
        _ => Ok(x.typed::<f64>()?.to_vec()?.into_iter().map(f64::to_bits).collect()),
    }
}

/// Checks arrays against those of the file; their bits.
fn compared(name: &str, found: &[AnyTensor], wanted: &[AnyTensor]) -> Result<Vec<Vec<u64>>> {
    assert_eq!(found.len(), wanted.len(), "{name}: number of arrays");
    let mut all = Vec::new();
    for (x, want) in found.iter().zip(wanted) {
        assert_eq!((x.shape(), x.dtype()), (want.shape(), want.dtype()), "{name}");
        if x.dtype() == DType::F64 {
            let pairs = x.typed::<f64>()?.to_vec()?.into_iter().zip(want.typed::<f64>()?.to_vec()?);
            for (x, want) in pairs {
                assert!((x - want).abs() <= 1e-10 * (1.0 + want.abs()), "{name}: {x}, not {want}");
            }
        }
        all.push(bits(x)?);
    }
    Ok(all)
}

#[test]
fn results_and_their_bits() -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors.json");
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut written = Map::new();
    for row in &rows {
        let name = row["name"].as_str().ok_or("a row without a name")?;
        let op = AnyOperation::from_text(&row["op"].to_string())?;
        let (operands, cotangents) = (all_arrays(row, "operands")?, all_arrays(row, "cotangents")?);
        let found = op.run(operands.clone())?;
        let results = compared(name, &found, &all_arrays(row, "results")?)?;
        let given = vec![true; cotangents.len()];
        let wanted = (0..operands.len()).map(|i| op.kind(i) == Kind::Float).collect();
        let vjp = AnyOperation::from(Vjp::new(op, given, wanted)?);
        let back = vjp.run([operands, cotangents].concat())?;
        let back = compared(name, &back, &all_arrays(row, "vjp")?)?;
        written.insert(name.into(), json!({ "results": results, "vjp": back }));
    }
    assert!(written.len() >= 30, "{} rows", written.len());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("t4a_results.json");
    std::fs::write(out, serde_json::to_string(&written)?)?;
    Ok(())
}
