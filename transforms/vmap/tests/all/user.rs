//! Options of `vmap`: axes, chunks, random numbers, errors.

use burn_autodiff::Autodiff;
use burn_t4a::ext::tree::TreeError;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_vmap::{Axes, Mapped, Random, Vmap, VmapError, vmap};
use burn_tensor::{Distribution, Int, Shape, Tensor};

type B = BurnT4a;
type V = Vmap<B>;

fn counted<const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    let n: usize = shape.iter().product();
    Tensor::<B, 1, Int>::arange(0..n as i64, &T4aDevice).float().reshape(shape)
}

fn same<const D: usize>(given: Tensor<B, D>, expected: Tensor<B, D>) {
    given.into_data().assert_eq(&expected.into_data(), true);
}

#[test]
fn axes_are_anywhere() {
    let x = counted([2, 3, 4]);
    for axis in -3i32..3 {
        let at = axis.rem_euclid(3) as usize;
        let double = |x: Tensor<V, 2>| x * 2.0;
        let same_place: Tensor<B, 3> =
            vmap(double).in_axes(axis).out_axes(axis).call(x.clone()).unwrap();
        same(same_place, x.clone() * 2.0);
        let front: Tensor<B, 3> = vmap(double).in_axes(axis).call(x.clone()).unwrap();
        let mut order = vec![at];
        order.extend((0..3).filter(|k| *k != at));
        let order = <[isize; 3]>::try_from(order.iter().map(|k| *k as isize).collect::<Vec<_>>());
        same(front, x.clone().permute(order.unwrap()) * 2.0);
    }
}

#[test]
fn trees_have_axes_per_leaf() {
    type In = (Tensor<V, 1>, (Tensor<V, 1>, Tensor<V, 1>));
    let f = |(a, (b, c)): In| (a.clone() + b, vec![a * c]);
    let (a, b, c) = (counted([2, 3]), counted([3]), counted([3, 2]));
    let (sum, products): (Tensor<B, 2>, Vec<Tensor<B, 2>>) = vmap(f)
        .in_axes(Axes::from((0, Axes::from([Axes::None, Axes::At(-1)]))))
        .out_axes((1, 0))
        .call((a.clone(), (b.clone(), c.clone())))
        .unwrap();
    same(sum, (a.clone() + b.unsqueeze()).transpose());
    same(products[0].clone(), a * c.transpose());
}

#[test]
fn numbers_are_b_or_b_1() {
    let total = |x: Tensor<V, 1>| x.sum();
    let x = counted([3, 2]);
    let one: Tensor<B, 1> = vmap(total).call(x.clone()).unwrap();
    same(one, x.clone().sum_dim(1).squeeze_dim(1));
    let two: Tensor<B, 2> = vmap(total).call(x.clone()).unwrap();
    same(two, x.clone().sum_dim(1));
    let last: Tensor<B, 2> = vmap(total).out_axes(-1).chunk(2).call(x.clone()).unwrap();
    same(last, x.sum_dim(1).transpose());
    let square = |x: Tensor<V, 1>| x.clone() * x;
    let back: Tensor<B, 1> = vmap(square).call(counted([4])).unwrap();
    same(back, counted([4]) * counted([4]));
}

#[test]
fn integers_and_flags_go_in_and_out() {
    let indices = Tensor::<B, 2, Int>::from_data([[0, 1], [2, 0], [1, 1]], &T4aDevice);
    let f = |(x, i): (Tensor<V, 1>, Tensor<V, 1, Int>)| {
        let y = x.select(0, i.clone());
        (y.clone().greater_elem(0.5), i + 1, y)
    };
    let x = counted([3]);
    let (flags, next, y): (Tensor<B, 2, burn_tensor::Bool>, Tensor<B, 2, Int>, Tensor<B, 2>) =
        vmap(f).in_axes((None, 0)).call((x.clone(), indices.clone())).unwrap();
    let expected = x.select(0, indices.clone().reshape([6])).reshape([3, 2]);
    flags.into_data().assert_eq(&expected.clone().greater_elem(0.5).into_data(), true);
    next.into_data().assert_eq(&(indices + 1).into_data(), true);
    same(y, expected);
}

#[test]
fn shared_results_are_repeated_or_stay() {
    let f = |(x, w): (Tensor<V, 1>, Tensor<V, 1>)| (x, w.clone() * 2.0, w);
    let (x, w) = (counted([3, 2]), counted([2]));
    let (_, twice, same_w): (Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 1>) = vmap(f)
        .in_axes((0, None))
        .out_axes(Axes::from((0, 1, Axes::None)))
        .call((x.clone(), w.clone()))
        .unwrap();
    same(twice, (w.clone() * 2.0).unsqueeze_dim::<2>(1).expand([2, 3]));
    same(same_w, w.clone());
    let error = vmap(f)
        .in_axes((0, None))
        .out_axes(Axes::from((Axes::None, 0, 0)))
        .call::<B, _, _, _, (Tensor<B, 1>, Tensor<B, 2>, Tensor<B, 2>)>((x, w))
        .unwrap_err();
    assert_eq!(error, VmapError::Batched { leaf: ".0".into() });
}

#[test]
fn chunks_are_the_whole() {
    use std::cell::RefCell;
    let sizes = RefCell::new(Vec::new());
    let (x, w) = (counted([7, 2]), counted([2]));
    let f = |(x, w): (Tensor<V, 1>, Tensor<V, 1>)| {
        let (inner, _) = x.clone().into_primitive().tensor().into_inner();
        sizes.borrow_mut().push(burn_backend::TensorMetadata::shape(&inner)[0]);
        x * w
    };
    let y: Tensor<B, 2> =
        vmap(&f).in_axes((0, None)).chunk(3).call((x.clone(), w.clone())).unwrap();
    same(y, x.clone() * w.clone().unsqueeze());
    assert_eq!(*sizes.borrow(), [3, 3, 1]);
    let empty: Tensor<B, 2> = vmap(&f).in_axes((0, None)).call((x.slice_dim(0, 0..0), w)).unwrap();
    assert_eq!(empty.dims(), [0, 2]);
}

#[test]
fn levels_nest() {
    type VV = Vmap<V>;
    let (x, y) = (counted([3, 2]), counted([4, 2]));
    // Table of all inner products.
    let table: Tensor<B, 2> = vmap(|(x, y): (Tensor<V, 1>, Tensor<V, 2>)| -> Tensor<V, 1> {
        vmap(|(x, y): (Tensor<VV, 1>, Tensor<VV, 1>)| (x * y).sum())
            .in_axes((None, 0))
            .call((x, y))
            .unwrap()
    })
    .in_axes((0, None))
    .call((x.clone(), y.clone()))
    .unwrap();
    same(table, x.matmul(y.transpose()));
}

#[test]
fn gradients_per_example_inside_and_outside() {
    type A = Autodiff<V>;
    let (x, w) = (counted([3, 2]), counted([2]) + 1.0);
    let f = |(x, w): (Tensor<V, 1>, Tensor<V, 1>)| {
        let w = Tensor::<A, 1>::from_inner(w).require_grad();
        let loss = (Tensor::from_inner(x) * w.clone()).powi_scalar(2).sum();
        w.grad(&loss.backward()).unwrap()
    };
    let per_example: Tensor<B, 2> =
        vmap(f).in_axes((0, None)).call((x.clone(), w.clone())).unwrap();
    same(per_example, x.clone().powi_scalar(2) * 2.0 * w.clone().unsqueeze());
    // Gradient of a mapped function: Vmap<Autodiff<B>>.
    type O = Vmap<Autodiff<B>>;
    let w = Tensor::<Autodiff<B>, 1>::from_inner(w).require_grad();
    let x = Tensor::<Autodiff<B>, 2>::from_inner(x);
    let g = |(x, w): (Tensor<O, 1>, Tensor<O, 1>)| (x * w).powi_scalar(2).sum();
    let losses: Tensor<Autodiff<B>, 1> =
        vmap(g).in_axes((0, None)).call((x.clone(), w.clone())).unwrap();
    let summed = w.grad(&losses.sum().backward()).unwrap();
    let expected = x.inner().powi_scalar(2).sum_dim(0).squeeze_dim::<1>(0) * 2.0 * w.inner();
    same(summed, expected);
}

#[test]
fn random_numbers_are_shared_or_not() {
    let noise =
        |x: Tensor<V, 1>| x.zeros_like() + Tensor::random([3], Distribution::Default, &T4aDevice);
    let x = counted([4, 3]);
    for chunk in [1, 3, 4] {
        let same_for_all: Tensor<B, 2> =
            vmap(noise).random(Random::Same).chunk(chunk).call(x.clone()).unwrap();
        let first = same_for_all.clone().slice_dim(0, 0..1).expand([4, 3]);
        same(same_for_all, first);
        let own: Tensor<B, 2> =
            vmap(noise).random(Random::Different).chunk(chunk).call(x.clone()).unwrap();
        let values = own.into_data().to_vec::<f32>().unwrap();
        let distinct: std::collections::HashSet<u32> = values.iter().map(|x| x.to_bits()).collect();
        assert!(distinct.len() > 9, "{values:?}");
    }
    // A batched draw is one draw of the inner backend.
    <B as burn_backend::Backend>::seed(&T4aDevice, 7);
    let own: Tensor<B, 2> = vmap(noise).random(Random::Different).call(x).unwrap();
    <B as burn_backend::Backend>::seed(&T4aDevice, 7);
    same(own, Tensor::random([4, 3], Distribution::Default, &T4aDevice));
}

#[test]
#[should_panic(expected = "vmap: float_random: random numbers inside of a mapped function")]
fn random_numbers_are_an_error() {
    let noise = |x: Tensor<V, 1>| x.random_like(Distribution::Default);
    let _: Tensor<B, 2> = vmap(noise).call(counted([4, 3])).unwrap();
}

#[test]
fn a_panic_leaves_no_call_behind() {
    let failing = |_: Tensor<V, 1>| -> Tensor<V, 1> { panic!("on purpose") };
    let result = std::panic::catch_unwind(|| {
        vmap(failing).call::<B, _, _, _, Tensor<B, 2>>(counted([4, 3]))
    });
    assert!(result.is_err());
    // Outside of a call, draws are shared by all examples.
    let x = Tensor::<V, 1>::random([3], Distribution::Default, &T4aDevice);
    assert_eq!(x.into_data().shape[..], [3]);
}

#[test]
#[should_panic(expected = "vmap: float_into_data: elements of a batch cannot be read")]
fn elements_of_a_batch_are_an_error() {
    let read = |x: Tensor<V, 1>| x.clone() * x.sum().into_scalar();
    let _: Tensor<B, 2> = vmap(read).call(counted([4, 3])).unwrap();
}

#[test]
fn elements_of_what_is_shared_are_read() {
    let read = |(x, w): (Tensor<V, 1>, Tensor<V, 1>)| x * w.sum().into_scalar();
    let y: Tensor<B, 2> =
        vmap(read).in_axes((0, None)).call((counted([4, 3]), counted([3]))).unwrap();
    same(y, counted([4, 3]) * 3.0);
}

#[test]
#[should_panic(expected = "vmap: bool_argwhere: the number of results differs")]
fn places_are_an_error() {
    let f = |x: Tensor<V, 1>| x.greater_elem(2.0).argwhere();
    let _: Tensor<B, 3, Int> = vmap(f).call(counted([4, 3])).unwrap();
}

#[test]
#[should_panic(expected = "operands of batches of 4 and 3 examples")]
fn tensors_of_other_calls_are_an_error() {
    use std::cell::RefCell;
    let kept = RefCell::new(None);
    let keep = |x: Tensor<V, 1>| {
        *kept.borrow_mut() = Some(x.clone());
        x
    };
    let _: Tensor<B, 2> = vmap(keep).keeping().call(counted([3, 2])).unwrap();
    let add = |x: Tensor<V, 1>| x + kept.borrow().clone().unwrap();
    let _: Tensor<B, 2> = vmap(add).call(counted([4, 2])).unwrap();
}

#[test]
fn what_is_wrong_is_said_before() {
    let never = |_: (Tensor<V, 1>, Tensor<V, 1>)| -> Tensor<V, 1> { unreachable!("not called") };
    type Both = (Tensor<B, 2>, Tensor<B, 2>);
    let call = |map: burn_t4a_vmap::Vectorized<_>, inputs: Both| {
        let _ = &never;
        map.call::<B, Both, _, _, Tensor<B, 2>>(inputs).unwrap_err()
    };
    let inputs = || (counted([3, 2]), counted([4, 3]));
    let leaf = |path: &str, shape: [usize; 2], axis| Mapped {
        leaf: path.into(),
        shape: Shape::from(shape),
        axis,
    };
    let error = call(vmap(never), inputs());
    let leaves = vec![leaf(".0", [3, 2], 0), leaf(".1", [4, 3], 0)];
    assert_eq!(error, VmapError::Sizes { given: None, leaves });
    let text = error.to_string();
    assert!(text.contains(".0: 3 along axis 0 of"), "{text}");
    assert!(text.contains(".1: 4 along axis 0 of"), "{text}");
    let error = call(vmap(never).size(5), (counted([3, 2]), counted([3, 2])));
    assert!(matches!(error, VmapError::Sizes { given: Some(5), .. }), "{error}");
    let error = call(vmap(never).in_axes(2), inputs());
    let shape = Shape::from([3, 2]);
    assert_eq!(error, VmapError::Axis { what: "in_axes", leaf: ".0".into(), axis: 2, shape });
    assert_eq!(call(vmap(never).in_axes(None), inputs()), VmapError::Nothing);
    let error = call(vmap(never).in_axes((0, 0, 0)), inputs());
    assert!(matches!(error, VmapError::Axes { what: "in_axes", .. }), "{error}");
    let error = call(vmap(never).in_axes((0, 1)).chunk(0), inputs());
    assert_eq!(error, VmapError::Chunk);
}

#[test]
fn types_that_do_not_fit_are_errors() {
    let f = |x: Tensor<V, 2>| x;
    let error = vmap(f).call::<B, _, _, _, Tensor<B, 3>>(counted([3, 2])).unwrap_err();
    assert!(matches!(error, VmapError::Tree(TreeError::Leaf { rank: 2, .. })), "{error}");
    let g = |x: Tensor<V, 1>| x;
    let error = vmap(g).call::<B, _, _, _, Tensor<B, 3>>(counted([3, 2])).unwrap_err();
    assert!(matches!(error, VmapError::Tree(TreeError::Leaf { rank: 3, .. })), "{error}");
    let h = |x: [Tensor<V, 1>; 2]| x[0].clone();
    let error = vmap(h).call::<B, _, _, _, Tensor<B, 2>>(vec![counted([3, 2]); 3]).unwrap_err();
    assert!(matches!(error, VmapError::Tree(TreeError::Structure { .. })), "{error}");
    let error = vmap(g).out_axes(2).call::<B, _, _, _, Tensor<B, 2>>(counted([3, 2])).unwrap_err();
    assert!(matches!(error, VmapError::Axis { what: "out_axes", axis: 2, .. }), "{error}");
}

#[test]
fn an_ensemble_has_a_size() {
    use burn_t4a_vmap::VmapTensor;
    use burn_tensor::TensorPrimitive;
    let weights = counted([2, 3]);
    let batch = VmapTensor::batched(weights.clone().into_primitive().tensor());
    let captured = Tensor::<V, 1>::from_primitive(TensorPrimitive::Float(batch));
    let f = |x: Tensor<V, 1>| (x * captured.clone()).sum();
    let y: Tensor<B, 1> = vmap(f).in_axes(None).size(2).call(counted([3])).unwrap();
    same(y, (weights * counted([3]).unsqueeze()).sum_dim(1).squeeze_dim(1));
}

/// Exchanges of three examples, one of them of a tensor that they share.
#[test]
fn examples_exchange_values() {
    use burn_t4a_vmap::collective::{
        Own, all_gather, axis_index, axis_size, pmax, pmean, pmin, pshuffle, psum,
    };
    let x = || Tensor::<B, 2>::from_floats([[1.0, 20.0], [3.0, 10.0], [2.0, 60.0]], &T4aDevice);
    let run = |f: fn(Tensor<V, 1>) -> Tensor<V, 1>| -> Vec<f32> {
        let y: Tensor<B, 2> = vmap(f).call(x()).unwrap();
        y.into_data().to_vec().unwrap()
    };
    let twice = |x: [f32; 2]| [x, x, x].concat();
    assert_eq!(run(|x| psum::<Own, _, _>(x).unwrap()), twice([6.0, 90.0]));
    assert_eq!(run(|x| pmean::<Own, _, _>(x).unwrap()), twice([2.0, 30.0]));
    assert_eq!(run(|x| pmax::<Own, _, _>(x).unwrap()), twice([3.0, 60.0]));
    assert_eq!(run(|x| pmin::<Own, _, _>(x).unwrap()), twice([1.0, 10.0]));
    assert_eq!(
        run(|x| pshuffle::<Own, _, 1>(x, &[2, 0, 1]).unwrap()),
        [2.0, 60.0, 1.0, 20.0, 3.0, 10.0]
    );
    let place = |x: Tensor<V, 1>| {
        let at = axis_index::<Own, B>(&x.device()).unwrap();
        x * at.float() + axis_size::<Own, B>().unwrap() as f32
    };
    assert_eq!(run(place), [3.0, 3.0, 6.0, 13.0, 7.0, 123.0]);
    let all = |x: Tensor<V, 1>| {
        let all: Tensor<V, 2> = all_gather::<Own, _, 1, 2>(x.clone()).unwrap();
        all.narrow(0, 1, 1).reshape([2]) - x
    };
    assert_eq!(run(all), [2.0, -10.0, 0.0, 0.0, 1.0, -50.0]);
    // A shared tensor counts once for each example; integers too.
    let shared = |x: Tensor<V, 1>| {
        let ones = Tensor::<V, 1, Int>::ones([2], &x.device());
        let (a, b) = psum::<Own, _, _>((x.ones_like(), ones)).unwrap();
        x * 0.0 + a + b.float()
    };
    assert_eq!(run(shared), [6.0; 6]);
    assert!(matches!(axis_size::<Own, B>(), Err(VmapError::Collective { .. })));
    let in_chunks = |x: Tensor<V, 1>| {
        assert!(matches!(psum::<Own, _, _>(x.clone()), Err(VmapError::Collective { .. })));
        x
    };
    let _: Tensor<B, 2> = vmap(in_chunks).chunk(2).call(x()).unwrap();
    let wrong = |x: Tensor<V, 1>| {
        let error = pshuffle::<Own, _, 1>(x.clone(), &[0, 3, 1]).unwrap_err();
        assert_eq!(error, VmapError::Sources { sources: vec![0, 3, 1], size: 3 });
        assert!(matches!(all_gather::<Own, _, 1, 1>(x.clone()), Err(VmapError::Rank { .. })));
        x
    };
    let _: Tensor<B, 2> = vmap(wrong).call(x()).unwrap();
}

/// The inner and the outer axis of nested maps, and gradients of a sum over examples.
#[test]
fn examples_of_nested_maps_exchange_values() {
    use burn_t4a_vmap::collective::{Outer, Own, all_gather, axis_index, psum};
    type W = Vmap<V>;
    let x = || Tensor::<B, 2>::from_floats([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]], &T4aDevice);
    let run = |f: fn(Tensor<W, 1>) -> Tensor<W, 1>| -> Vec<f32> {
        let rows = move |x: Tensor<V, 1>| -> Tensor<V, 1> { vmap(f).call(x).unwrap() };
        let y: Tensor<B, 2> = vmap(rows).call(x()).unwrap();
        y.into_data().to_vec().unwrap()
    };
    assert_eq!(run(|x| psum::<Own, _, _>(x).unwrap()), [6.0, 6.0, 6.0, 60.0, 60.0, 60.0]);
    assert_eq!(run(|x| psum::<Outer<Own>, _, _>(x).unwrap()), [11.0, 22.0, 33.0, 11.0, 22.0, 33.0]);
    let places = |x: Tensor<W, 1>| {
        let device = x.device();
        let [row, column] =
            [axis_index::<Outer<Own>, V>(&device).unwrap(), axis_index::<Own, V>(&device).unwrap()];
        x * 0.0 + row.float() * 10.0 + column.float()
    };
    assert_eq!(run(places), [0.0, 1.0, 2.0, 10.0, 11.0, 12.0]);
    let other = |x: Tensor<W, 1>| {
        let all: Tensor<W, 2> = all_gather::<Outer<Own>, _, 1, 2>(x).unwrap();
        all.narrow(0, 1, 1).reshape([1])
    };
    assert_eq!(run(other), [10.0, 20.0, 30.0, 10.0, 20.0, 30.0]);
}
