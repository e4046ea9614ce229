//! Trees of tensors: structure, round trips, errors, and structs as carries of scans.

use std::collections::BTreeMap;

use burn_tensor::{Bool, Int};

#[cfg(burn_line = "0.21")]
use super::Tape;
use super::ext::scan::{Options, scan};
use super::ext::tree::{Leaf, Static, Structure, Tree, TreeError, build, flatten, flatten_floats};
use super::{Tensor, device};

#[derive(Clone, Tree)]
#[cfg_attr(burn_line = "0.21", tree(backend = Tape))]
struct Cell {
    hidden: Tensor<2>,
    memory: [Tensor<1>; 2],
    #[tree(fixed)]
    gain: f64,
    r#mod: Option<Tensor<1>>,
}

/// A tuple struct over any tree, with a type parameter that is not a tree.
#[derive(Clone, Debug, PartialEq, Tree)]
#[cfg_attr(burn_line = "0.21", tree(backend = Tape))]
struct Pair<T, K: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static, const N: usize>(
    T,
    #[tree(fixed)] [K; N],
);

#[derive(Debug, PartialEq, Tree)]
#[cfg_attr(burn_line = "0.21", tree(backend = Tape))]
struct Empty;

fn floats(values: &[f32]) -> Tensor<1> {
    Tensor::from_floats(values, &device())
}

fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

fn cell(with: bool) -> Cell {
    Cell {
        hidden: floats(&[1.0, 2.0]).reshape([1, 2]),
        memory: [floats(&[3.0]), floats(&[4.0])],
        gain: 0.5,
        r#mod: with.then(|| floats(&[5.0])),
    }
}

#[test]
fn structures_name_fields_and_hold_values() {
    let (structure, leaves) = flatten(cell(true));
    let want = "Cell { hidden: *, memory: (*, *), gain: 0.5, mod: (*) }";
    assert_eq!(structure.to_string(), want);
    assert_eq!(structure.paths(), [".hidden", ".memory.0", ".memory.1", ".mod.0"]);
    assert_eq!(leaves.len(), 4);
    let (structure, leaves) = flatten(cell(false));
    assert!(structure.to_string().ends_with("mod: () }"));
    assert_eq!(leaves.len(), 3);
}

#[test]
fn every_tree_comes_back_as_it_was() {
    let ints = Tensor::<1, Int>::from_ints([7, 8], &device());
    let bools = ints.clone().greater_elem(7);
    let map: BTreeMap<String, _> =
        [("b".to_owned(), floats(&[1.0])), ("a".to_owned(), floats(&[2.0]))].into();
    let tree = (cell(true), Pair(vec![(ints, bools)], ["x"]), (map, Empty, Static(3u8), ()));
    let (structure, leaves) = flatten(tree);
    assert_eq!(structure.paths()[6..], [".2.0.a", ".2.0.b"]);
    type Back = (
        Cell,
        Pair<Vec<(Tensor<1, Int>, Tensor<1, Bool>)>, &'static str, 1>,
        (BTreeMap<String, Tensor<1>>, Empty, Static<u8>, ()),
    );
    let (cell, Pair(pairs, names), (map, empty, Static(n), ())): Back =
        build(&structure, leaves).unwrap();
    assert_eq!((names, empty, n, cell.gain), (["x"], Empty, 3, 0.5));
    assert_eq!(numbers(cell.hidden), [1.0, 2.0]);
    assert_eq!(cell.memory.map(numbers), [[3.0], [4.0]]);
    assert_eq!(cell.r#mod.map(numbers), Some(vec![5.0]));
    let [(ints, bools)] = <[_; 1]>::try_from(pairs).unwrap();
    assert_eq!(ints.into_data().iter::<i64>().collect::<Vec<_>>(), [7, 8]);
    assert_eq!(bools.into_data().iter::<bool>().collect::<Vec<_>>(), [false, true]);
    assert_eq!(
        map.into_iter().map(|(name, x)| (name, numbers(x)[0])).collect::<Vec<_>>(),
        [("a".to_owned(), 2.0), ("b".to_owned(), 1.0)]
    );
}

#[test]
fn another_type_is_refused() {
    fn refused<T>(result: Result<T, TreeError>) -> TreeError {
        result.err().expect("an error")
    }
    let (structure, leaves) = flatten((floats(&[1.0]), Static(2i32)));
    let error = refused(build::<_, (Tensor<2>, Static<i32>)>(&structure, leaves.clone()));
    let want = TreeError::Leaf { kind: "floats", rank: 2, given: "floats", shape: vec![1] };
    assert_eq!(error, want);
    let error = refused(build::<_, (Tensor<1, Int>, Static<i32>)>(&structure, leaves.clone()));
    let want = TreeError::Leaf { kind: "integers", rank: 1, given: "floats", shape: vec![1] };
    assert_eq!(error, want);
    let error = refused(build::<_, (Tensor<1>, Static<i64>)>(&structure, leaves.clone()));
    assert_eq!(error, TreeError::Structure { required: "a static i64".into(), given: "2".into() });
    let error = refused(build::<_, [Tensor<1>; 2]>(&structure, leaves.clone()));
    assert_eq!(error, TreeError::Structure { required: "*".into(), given: "2".into() });
    let error = refused(build::<_, (Tensor<1>,)>(&structure, leaves));
    let want = TreeError::Structure { required: "a node of 1".into(), given: "(*, 2)".into() };
    assert_eq!(error, want);
    // A tuple does not match the structure of the struct, and leaves may be missing.
    let (structure, leaves) = flatten((floats(&[1.0]), ()));
    let error = refused(build::<_, Cell>(&structure, leaves));
    let required = "Cell { hidden, memory, gain, mod }".into();
    assert_eq!(error, TreeError::Structure { required, given: "(*, ())".into() });
    let error = refused(build::<_, (Tensor<1>, ())>(&structure, Vec::<Leaf<_>>::new()));
    assert_eq!(error, TreeError::Structure { required: "*".into(), given: "*".into() });
    let ints = Tensor::<1, Int>::from_ints([1], &device());
    let error = refused(flatten_floats((floats(&[1.0]), [ints])));
    assert_eq!(error, TreeError::NotFloats { path: ".1.0".into(), kind: "integers" });
}

#[test]
fn static_values_are_a_part_of_the_structure() {
    let of = |gain: f64| Cell { gain, ..cell(false) }.structure();
    assert_eq!(of(1.0), of(1.0));
    assert_ne!(of(1.0), of(2.0));
    assert_ne!(Structure::fixed(1u8), Structure::fixed(1u16));
}

#[test]
fn a_struct_is_the_carry_of_a_scan() {
    let x = floats(&[2.0, 3.0]).require_grad();
    let step = |(): (), c: Cell, x: Tensor<1>| {
        let [a, b] = c.memory.clone();
        let memory = [a * x.clone().mul_scalar(c.gain), b + x];
        (Cell { memory: memory.clone(), ..c }, memory)
    };
    let (last, ys): (Cell, [Tensor<2>; 2]) =
        scan(step, (), cell(true), x.clone(), &Options::default()).unwrap();
    // 3 · (2 / 2) · (3 / 2), and 4 + 2 + 3.
    assert_eq!(last.memory.clone().map(numbers), [[4.5], [9.0]]);
    assert_eq!(numbers(ys[0].clone()), [3.0, 4.5]);
    let [a, b] = last.memory;
    let gradient = x.grad(&(a + b).sum().backward()).unwrap();
    // 4.5 / x + 1.
    assert_eq!(gradient.into_data().iter::<f32>().collect::<Vec<_>>(), [3.25, 2.5]);
}

#[test]
fn a_scan_refuses_a_static_value_that_changes() {
    let step = |(): (), c: Cell, _: Tensor<1>| (Cell { gain: c.gain + 1.0, ..c }, ());
    let result: Result<(Cell, ()), _> =
        scan(step, (), cell(false), floats(&[1.0]), &Options::default());
    let error = result.err().map(|error| error.to_string()).unwrap();
    assert!(error.contains("gain: 1.5"), "{error}");
}
