//! Functions of local shards: collectives between devices against values by hand, which are those of `jax.shard_map`.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData};
use burn_t4a_shard::{LocalMap, Mesh, PartitionSpec, Result, ShardError, local_map, shard_map};
use burn_t4a_vmap::collective::{
    Outer, Own, all_gather, axis_index, axis_size, pmax, pmean, pmin, pshuffle, psum,
};
use burn_t4a_vmap::{Vmap, VmapError, vmap};

use super::{B, T, T4aDevice, equal, line, noise};

type V = Vmap<T>;

fn rows() -> [PartitionSpec; 1] {
    [PartitionSpec::split(["d"])]
}

fn whole() -> [PartitionSpec; 1] {
    [PartitionSpec::replicated()]
}

/// A function of the shards of 1, 2, … 8, with these specs of the result; the text of the plan.
fn of_eight(
    devices: usize,
    f: fn(Tensor<V, 1>) -> Tensor<V, 1>,
    out: [PartitionSpec; 1],
) -> (Vec<f64>, String) {
    let local = local_map(f, &line(devices), "d", rows(), out.clone()).unwrap();
    let f = |x: Tensor<T, 1>| -> Tensor<T, 1> { local.call(x).unwrap() };
    let f = shard_map(f, &line(devices), rows(), out);
    let x = || Tensor::<B, 1>::from_floats([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &T4aDevice);
    let y: Vec<f64> = f.call(x()).unwrap().into_data().iter().collect();
    (y, f.plan(x()).unwrap().to_string())
}

#[test]
fn collectives_between_devices() {
    let of_four = |f: fn(Tensor<V, 1>) -> Tensor<V, 1>| of_eight(4, f, rows());
    let four = |shard: [f64; 2]| shard.repeat(4);
    // Shards (1, 2), (3, 4), (5, 6), (7, 8).
    let (y, plan) = of_four(|x| psum::<Own, _, _>(x).unwrap());
    assert_eq!(y, four([16.0, 20.0]));
    // Twice (d − 1)/d of a shard of two f32.
    assert!(plan.contains("all-reduce (sum)") && plan.contains("over d: 12 bytes"), "{plan}");
    assert!(!plan.contains("all-gather"), "{plan}");
    assert_eq!(of_four(|x| pmean::<Own, _, _>(x).unwrap()).0, four([4.0, 5.0]));
    assert_eq!(of_four(|x| pmax::<Own, _, _>(x).unwrap()).0, four([7.0, 8.0]));
    assert_eq!(of_four(|x| pmin::<Own, _, _>(x).unwrap()).0, four([1.0, 2.0]));
    let ring = |x: Tensor<V, 1>| pshuffle::<Own, _, 1>(x, &[3, 0, 1, 2]).unwrap();
    assert_eq!(of_four(ring).0, [7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let numbered = |x: Tensor<V, 1>| {
        let at = axis_index::<Own, T>(&x.device()).unwrap().float();
        x * at + axis_size::<Own, T>().unwrap() as f32
    };
    let (y, plan) = of_four(numbered);
    assert_eq!(y, [4.0, 4.0, 7.0, 8.0, 14.0, 16.0, 25.0, 28.0]);
    assert!(plan.contains("each device sends 0 bytes"), "{plan}");
    // The shards of all devices as one tensor `[4, 2]`; the next one of each device.
    let gathered = |x: Tensor<V, 1>| {
        let all: Tensor<V, 2> = all_gather::<Own, _, 1, 2>(x.clone()).unwrap();
        all.sum_dim(1).reshape([4]).narrow(0, 1, 2) - x
    };
    let (y, plan) = of_four(gathered);
    assert_eq!(y, [6.0, 9.0, 4.0, 7.0, 2.0, 5.0, 0.0, 3.0]);
    assert!(plan.contains("all-"), "{plan}");
    // A replicated result; one device has the whole tensor.
    let total = |x: Tensor<V, 1>| psum::<Own, _, _>(x.sum()).unwrap();
    for devices in [1, 2, 4, 8] {
        assert_eq!(of_eight(devices, total, whole()).0, [36.0]);
    }
}

/// Shards of rows and columns, with sums along each mesh axis and along both.
#[test]
fn axes_of_a_grid() {
    type W = Vmap<V>;
    let mesh = Mesh::new([("a", 2), ("b", 2)]).unwrap();
    let sums = |x: Tensor<W, 2>| -> Tensor<W, 2> {
        let x = x.sum();
        let all = psum::<Outer<Own>, _, _>(psum::<Own, _, _>(x.clone()).unwrap()).unwrap();
        let [own, outer] =
            [psum::<Own, _, _>(x.clone()).unwrap(), psum::<Outer<Own>, _, _>(x).unwrap()];
        let device = own.device();
        let row = axis_index::<Outer<Own>, V>(&device).unwrap().float();
        let column = axis_index::<Own, V>(&device).unwrap().float();
        (all * 1e6 + own * 1e4 + outer * 100.0 + row * 10.0 + column).unsqueeze()
    };
    let columns = [PartitionSpec::split(["", "b"])];
    let of_columns = local_map(sums, &mesh, "b", columns.clone(), columns).unwrap();
    let of_columns = move |x: Tensor<V, 2>| -> Tensor<V, 2> { of_columns.call(x).unwrap() };
    let of_rows = [PartitionSpec::split(["a"])];
    let of_rows = local_map(of_columns, &mesh, "a", of_rows.clone(), of_rows).unwrap();
    let f = |x: Tensor<T, 2>| -> Tensor<T, 2> { of_rows.call(x).unwrap() };
    let both = [PartitionSpec::split(["a", "b"])];
    let f = shard_map(f, &mesh, both.clone(), both);
    let x = Tensor::<B, 2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &T4aDevice);
    let y: Vec<f64> = f.call(x).unwrap().into_data().iter().collect();
    assert_eq!(y, [10_030_400.0, 10_030_601.0, 10_070_410.0, 10_070_611.0]);
}

/// Examples of a `vmap` inside of a sharded function, whose batch is split over devices, and a map over devices for each
/// example of a `vmap`.
#[test]
fn maps_over_examples_and_devices() {
    let centred = |x: Tensor<V, 1>| x.clone() - pmean::<Own, _, _>(x).unwrap();
    let f = move |x: Tensor<T, 2>| -> Tensor<T, 2> { vmap(centred).call(x).unwrap() };
    let f = shard_map(f, &line(4), rows(), rows());
    let x = || noise([8, 3], 1);
    let want = x() - x().mean_dim(0);
    equal(f.call(x()).unwrap().into_data(), want.clone().into_data(), false);
    assert!(f.plan(x()).unwrap().to_string().contains("all-reduce (mean)"));

    let share = |x: Tensor<Vmap<V>, 1>| x.clone() / psum::<Own, _, _>(x.sum()).unwrap();
    let share = local_map(share, &line(4), "d", rows(), rows()).unwrap();
    let row = move |x: Tensor<V, 1>| -> Tensor<V, 1> { share.call(x).unwrap() };
    let f = move |x: Tensor<T, 2>| -> Tensor<T, 2> { vmap(&row).call(x).unwrap() };
    let columns = [PartitionSpec::split(["", "d"])];
    let f = shard_map(f, &line(4), columns.clone(), columns);
    let x = || noise([3, 8], 1) + 2.0;
    equal(f.call(x()).unwrap().into_data(), (x() / x().sum_dim(1)).into_data(), false);
}

/// The mean over all devices of the squared error of their shards.
fn loss<C: Backend>((w, x): (Tensor<Vmap<C>, 2>, Tensor<Vmap<C>, 2>)) -> Tensor<Vmap<C>, 1> {
    pmean::<Own, C, _>(x.matmul(w).tanh().powi_scalar(2).mean()).unwrap()
}

fn specs() -> [PartitionSpec; 2] {
    [PartitionSpec::replicated(), PartitionSpec::split(["d"])]
}

/// A gradient step with the tape around the map over devices, inside of it, and outside of `shard_map`.
#[test]
fn gradients_of_collectives() {
    type Tape<C> = Autodiff<C>;
    type ShardLoss<C> = fn((Tensor<Vmap<C>, 2>, Tensor<Vmap<C>, 2>)) -> Tensor<Vmap<C>, 1>;
    fn mapped<C: Backend>(devices: usize) -> LocalMap<ShardLoss<C>> {
        local_map(loss::<C> as _, &line(devices), "d", specs(), whole()).unwrap()
    }
    let inputs = || (noise([3, 2], 1), noise([8, 3], 2));
    let plain = {
        let (w, x) = inputs();
        let w = Tensor::<Tape<B>, 2>::from_inner(w).require_grad();
        let y = Tensor::from_inner(x).matmul(w.clone()).tanh().powi_scalar(2).mean();
        w.grad(&y.backward()).unwrap().into_data()
    };
    for devices in [1, 2, 4] {
        let around = |(w, x): (Tensor<T, 2>, Tensor<T, 2>)| -> Tensor<T, 2> {
            let w = Tensor::<Tape<T>, 2>::from_inner(w).require_grad();
            let y: Tensor<Tape<T>, 1> =
                mapped::<Tape<T>>(devices).call((w.clone(), Tensor::from_inner(x))).unwrap();
            w.grad(&y.backward()).unwrap()
        };
        let f = shard_map(around, &line(devices), specs(), whole());
        equal(f.call(inputs()).unwrap().into_data(), plain.clone(), false);
        let plan = f.plan(inputs()).unwrap().to_string();
        assert!(devices == 1 || plan.contains("all-reduce (sum)"), "{plan}");

        // The gradient of each device, and their mean.
        let inside = |(w, x): (Tensor<V, 2>, Tensor<V, 2>)| -> Tensor<V, 2> {
            let w = Tensor::<Tape<V>, 2>::from_inner(w).require_grad();
            let x = Tensor::<Tape<V>, 2>::from_inner(x);
            let y = x.matmul(w.clone()).tanh().powi_scalar(2).mean();
            pmean::<Own, _, _>(w.grad(&y.backward()).unwrap()).unwrap()
        };
        let inside = local_map(inside, &line(devices), "d", specs(), whole()).unwrap();
        let f = |x: (Tensor<T, 2>, Tensor<T, 2>)| -> Tensor<T, 2> { inside.call(x).unwrap() };
        let f = shard_map(f, &line(devices), specs(), whole());
        equal(f.call(inputs()).unwrap().into_data(), plain.clone(), false);

        type Above = burn_t4a_compile::Traced<Tape<B>>;
        let outside = |x: (Tensor<Above, 2>, Tensor<Above, 2>)| -> Tensor<Above, 1> {
            mapped::<Above>(devices).call(x).unwrap()
        };
        let f = shard_map(outside, &line(devices), specs(), whole());
        let (w, x) = inputs();
        let w = Tensor::<Tape<B>, 2>::from_inner(w).require_grad();
        let y = f.call((w.clone(), Tensor::from_inner(x))).unwrap();
        equal(w.grad(&y.backward()).unwrap().into_data(), plain.clone(), false);
    }
}

/// Without a mesh the shards are one batch, also for other axes than the first.
#[test]
fn results_are_joined_along_their_axes() {
    let columns = [PartitionSpec::split(["", "d"])];
    let transposed = |x: Tensor<Vmap<B>, 2>| {
        (x.clone().transpose(), pmax::<Own, _, _>(x.clone().max()).unwrap(), x)
    };
    let out = [rows(), whole(), columns.clone()].map(|[x]| x);
    let f = local_map(transposed, &line(2), "d", columns, out).unwrap();
    let x = || noise([3, 4], 1);
    let (y, most, same): (Tensor<B, 2>, Tensor<B, 1>, Tensor<B, 2>) = f.call(x()).unwrap();
    equal(y.into_data(), x().transpose().into_data(), true);
    equal(most.into_data(), x().max().into_data(), true);
    equal(same.into_data(), x().into_data(), true);
}

#[test]
fn specs_that_do_not_fit_local_functions() {
    let f = |x: Tensor<Vmap<B>, 2>| x * 2.0;
    let call = |input: PartitionSpec, output: PartitionSpec| -> Result<TensorData> {
        let f = local_map(f, &line(4), "d", [input], [output])?;
        Ok(f.call(noise([8, 6], 1))?.into_data())
    };
    let split = |axes: [&'static str; 2]| PartitionSpec::split(axes);
    let [d, none] = [rows(), whole()].map(|[x]| x);
    let unknown = local_map(f, &line(4), "e", rows(), rows()).err().unwrap();
    assert_eq!(
        unknown.to_string(),
        "shard_map: the function of local_map is split over `e`; the mesh has [\"d\"]"
    );
    let error = call(split(["", "d"]), d.clone()).unwrap_err();
    assert!(matches!(error, ShardError::Divide { axis: 1, size: 6, parts: 4, .. }), "{error}");
    let error = call(split(["", "e"]), d.clone()).unwrap_err();
    assert!(matches!(&error, ShardError::UnknownAxis { name, .. } if name == "e"), "{error}");
    let error = call(d.clone(), PartitionSpec::split(["", "", "d"])).unwrap_err();
    assert!(matches!(error, ShardError::Rank { rank: 2, axes: 3, .. }), "{error}");
    // A result that differs between devices cannot be replicated.
    let error = call(d.clone(), none.clone()).unwrap_err();
    assert!(matches!(&error, ShardError::Varies { axis, .. } if axis == "d"), "{error}");
    assert!(call(none, d.clone()).is_ok());
    let two = local_map(f, &line(4), "d", [d.clone(), d.clone()], [d.clone()]).unwrap();
    let error = two.call(noise([8, 6], 1)).unwrap_err();
    assert!(matches!(error, ShardError::Specs { required: 1, given: 2, .. }), "{error}");
    // Names that no map has.
    let error = axis_size::<Own, T>().unwrap_err();
    assert!(matches!(error, VmapError::Collective { .. }), "{error}");
}
