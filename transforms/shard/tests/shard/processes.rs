//! Devices in several processes, started by re-executing this test: results are bitwise those of one process, bytes are
//! those of the plan, and lost processes or mismatched calls are errors.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Int, Tensor};
use burn_t4a_shard::{Mesh, PartitionSpec, Processes, Rendezvous, ShardError, reshard, shard_map};

use crate::{B, Fails, Matrix, T, constant, equal, fails, noise};

const ADDRESS: &str = "T4A_SHARD_TEST_ADDRESS";
const RANK: &str = "T4A_SHARD_TEST_RANK";

/// Rank of this process if it was started by a test.
pub(crate) fn rank() -> Option<usize> {
    std::env::var(RANK).ok()?.parse().ok()
}

/// Process group of a test; dropping it terminates the child processes.
struct Group {
    processes: Option<Processes>,
    children: Vec<Child>,
}

impl Group {
    /// Starts this test, by name, in child processes; in a child process, joins the group.
    fn of(count: usize, test: &str) -> Self {
        let rendezvous = Rendezvous::of(count);
        if let (Ok(address), Some(rank)) = (std::env::var(ADDRESS), rank()) {
            let processes = rendezvous.join(address, rank).unwrap();
            return Self { processes: Some(processes), children: Vec::new() };
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let child = |rank: usize| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([&format!("processes::{test}"), "--exact", "--nocapture"]);
            command.env(ADDRESS, &address).env(RANK, rank.to_string());
            command.stdout(Stdio::null()).spawn().unwrap()
        };
        let children = (1..count).map(child).collect();
        let mut group = Self { processes: None, children };
        group.processes = Some(rendezvous.host(listener).unwrap());
        group
    }

    fn processes(&self) -> &Processes {
        self.processes.as_ref().unwrap()
    }

    fn rank(&self) -> usize {
        self.processes().rank()
    }

    /// Checks that the child processes have passed.
    fn end(mut self) {
        self.processes = None;
        for mut child in std::mem::take(&mut self.children) {
            let status = child.wait().unwrap();
            assert!(status.success(), "{status}");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the processes of a group as threads of this one: for errors that precede any computation.
pub(crate) fn together<R: Send>(count: usize, of: impl Fn(Processes) -> R + Sync) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (of, rendezvous) = (&of, &Rendezvous::of(count).patience(Duration::from_secs(20)));
    std::thread::scope(|scope| {
        let one = |rank| scope.spawn(move || of(rendezvous.join(address, rank).unwrap()));
        let others: Vec<_> = (1..count).map(one).collect();
        let first = of(rendezvous.host(listener).unwrap());
        std::iter::once(first).chain(others.into_iter().map(|x| x.join().unwrap())).collect()
    })
}

type Results = (Matrix, Matrix, Tensor<T, 1>, Tensor<T, 2, Int>, Tensor<T, 2, Bool>);

/// Sums, extrema and means over all axes; gathers of float, integer and boolean tensors.
fn program((x, y): (Matrix, Matrix)) -> Results {
    let xy = reshard(x.clone().matmul(y.clone()), &PartitionSpec::split(["a", "b"]));
    let row = x.clone().max_dim(0) + y.clone().min_dim(0).mean_dim(1) + x.mean_dim(0);
    let z = softmax(xy.clone(), 0) + softmax(xy.clone(), 1) * row.narrow(1, 0, 8);
    let (index, mask) = (y.clone().argmax(1), xy.clone().greater(y.transpose().narrow(1, 0, 8)));
    (xy.clone(), z, xy.sum(), index, mask)
}

#[test]
fn results_are_those_of_one_process() {
    let group = Group::of(4, "results_are_those_of_one_process");
    let inputs = || (noise([8, 16], 1), noise([16, 8], 2));
    for (a, b) in [(4, 1), (2, 2), (1, 4), (2, 4), (8, 1)] {
        let mesh = Mesh::new([("a", a), ("b", b)]).unwrap();
        let specs = || [PartitionSpec::split(["a", "b"]), PartitionSpec::split(["b", "a"])];
        let results = || {
            let (whole, rows) = (PartitionSpec::replicated(), PartitionSpec::split(["b", ""]));
            [
                PartitionSpec::split(["a", "b"]),
                PartitionSpec::split(["", "a"]),
                whole.clone(),
                whole,
                rows,
            ]
        };
        let one = shard_map(program, &mesh, specs(), results());
        let all = shard_map(program, &mesh, specs(), results()).across(group.processes()).unwrap();
        let want = one.call(inputs()).unwrap();
        let plan = all.plan(inputs()).unwrap();
        for _ in 0..2 {
            let before = group.processes().sent();
            let got = all.call(inputs()).unwrap();
            let sent = group.processes().sent() - before;
            assert_eq!(sent, plan.sent_by(group.rank()) as u64, "{plan}");
            equal(got.0.into_data(), want.0.to_data(), true);
            equal(got.1.into_data(), want.1.to_data(), true);
            equal(got.2.into_data(), want.2.to_data(), true);
            equal(got.3.into_data(), want.3.to_data(), true);
            equal(got.4.into_data(), want.4.to_data(), true);
        }
        let total: usize = (0..4).map(|process| plan.sent_by(process)).sum();
        let text = plan.to_string();
        assert!(text.contains(&format!("4 processes send {total} bytes")), "{text}");
        let one = one.plan(inputs()).unwrap();
        assert_eq!((one.bytes(), one.sent_by(0)), (plan.bytes(), 0));
    }
    random_numbers_are_shared(&group);
    group.end();
}

/// Every process receives the same random numbers; the shards of the copies have the same sum.
fn random_numbers_are_shared(group: &Group) {
    let mesh = Mesh::new([("d", 4)]).unwrap();
    let spec = || [PartitionSpec::split(["d"])];
    let draw = |x: Matrix| x.random_like(burn::tensor::Distribution::Default);
    let draw = shard_map(draw, &mesh, spec(), spec()).across(group.processes()).unwrap();
    let drawn = draw.call(noise([8, 4], 1)).unwrap();
    let sum = shard_map(|x: Matrix| x.sum_dim(1), &mesh, spec(), spec());
    let sum = sum.across(group.processes()).unwrap();
    equal(sum.call(drawn.clone()).unwrap().into_data(), drawn.sum_dim(1).into_data(), true);
}

fn loss<A: burn::tensor::backend::Backend>(
    w: Tensor<A, 2>,
    v: Tensor<A, 2>,
    x: Tensor<A, 2>,
) -> Tensor<A, 1> {
    burn::tensor::module::linear(x, w, None).tanh().matmul(v).powi_scalar(2).mean()
}

/// Gradient descent with sharded parameters and sharded batches.
#[test]
fn gradients_are_those_of_one_process() {
    let group = Group::of(2, "gradients_are_those_of_one_process");
    let mesh = Mesh::new([("data", 2), ("model", 2)]).unwrap();
    let step = |(w, v, x): (Matrix, Matrix, Matrix)| {
        let [p, q] =
            [w.clone(), v.clone()].map(|w| Tensor::<Autodiff<T>, 2>::from_inner(w).require_grad());
        let gradients = loss(p.clone(), q.clone(), Tensor::from_inner(x)).backward();
        let [p, q] = [p, q].map(|w| w.grad(&gradients).unwrap() * 0.1);
        (w - p, v - q)
    };
    let weights = || [PartitionSpec::split(["", "model"]), PartitionSpec::split(["model", ""])];
    let specs = || weights().into_iter().chain([PartitionSpec::split(["data", ""])]);
    let one = shard_map(step, &mesh, specs(), weights());
    let all = shard_map(step, &mesh, specs(), weights()).across(group.processes()).unwrap();
    let start = || (noise([4, 8], 1), noise([8, 6], 2));
    let ((mut w, mut v), (mut p, mut q), (mut r, mut s)) = (start(), start(), start());
    for round in 0..5 {
        let x = noise([16, 4], 3 + round);
        (w, v) = one.call((w, v, x.clone())).unwrap();
        (p, q) = all.call((p, q, x.clone())).unwrap();
        let [a, b] = [r, s].map(|w| Tensor::<Autodiff<B>, 2>::from_inner(w).require_grad());
        let gradients = loss(a.clone(), b.clone(), Tensor::from_inner(x)).backward();
        let [a, b] = [a, b].map(|w| w.clone().inner() - w.grad(&gradients).unwrap() * 0.1);
        (r, s) = (a, b);
    }
    for (got, one, whole) in [(p, w, r), (q, v, s)] {
        equal(got.to_data(), one.into_data(), true);
        equal(got.into_data(), whole.into_data(), false);
    }
    // A tape outside of the function is rejected.
    type Above = Tensor<burn_t4a_compile::Traced<Autodiff<B>>, 2>;
    let f = shard_map(
        |x: Above| x * 2.0,
        &mesh,
        [PartitionSpec::replicated()],
        [PartitionSpec::replicated()],
    );
    assert!(matches!(f.across(group.processes()), Err(ShardError::Tape)));
    group.end();
}

#[test]
fn a_device_that_fails_ends_the_call_everywhere() {
    let group = Group::of(3, "a_device_that_fails_ends_the_call_everywhere");
    let mesh = Mesh::new([("d", 6)]).unwrap();
    // Run 1 is the recording.
    let f = fails(Fails { rank: Some(1), run: 2, sleeps: false });
    let f = shard_map(f, &mesh, [PartitionSpec::split(["d"])], [PartitionSpec::split(["d"])]);
    let f = f.across(group.processes()).unwrap();
    let error = f.call(noise([12, 2], 1)).unwrap_err();
    let ShardError::Device { device: 2..=3, operation, message } = &error else {
        panic!("{error}")
    };
    assert_eq!((operation.as_str(), message.contains("out of order")), ("fails", true), "{error}");
    // The next call succeeds.
    let x = noise([12, 2], 1);
    let want = x.clone() + x.clone().sum_dim(0);
    equal(f.call(x).unwrap().into_data(), want.into_data(), false);
    group.end();
}

#[test]
fn a_process_that_dies_ends_the_call_elsewhere() {
    let mut group = Group::of(3, "a_process_that_dies_ends_the_call_elsewhere");
    let mesh = Mesh::new([("d", 3)]).unwrap();
    let f = fails(Fails { rank: Some(2), run: 2, sleeps: true });
    let f = shard_map(f, &mesh, [PartitionSpec::split(["d"])], [PartitionSpec::split(["d"])]);
    let f = f.across(group.processes()).unwrap();
    assert!(f.call(noise([6, 2], 1)).is_ok());
    // The process then sleeps in the middle of a call until it is killed.
    let killer = group.children.pop().map(|mut child| {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            child.kill().unwrap();
            child.wait().unwrap();
            Instant::now()
        })
    });
    let error = f.call(noise([6, 2], 1)).unwrap_err();
    let end = Instant::now();
    assert!(matches!(error, ShardError::Lost { process: 2, .. }), "{error}");
    if let Some(killed) = killer {
        let took = end.saturating_duration_since(killed.join().unwrap());
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    // The loss is permanent.
    let error = f.call(noise([6, 2], 1)).unwrap_err();
    assert!(matches!(error, ShardError::Lost { process: 2, .. }), "{error}");
    group.end();
}

#[test]
fn other_calls_are_refused_before_any_work() {
    let errors = together(3, |processes| {
        let odd = processes.rank() == 1;
        let call = |axes: [(&str, usize); 2], size: usize, spec: &str, factor: f64| {
            let f = move |x: Matrix| if size == 7 { x.exp() } else { x * factor };
            let mesh = Mesh::new(axes).unwrap();
            let f =
                shard_map(f, &mesh, [PartitionSpec::split([spec])], [PartitionSpec::replicated()]);
            let f = f.across(&processes).unwrap();
            let got = f.call(noise([if size == 7 { 6 } else { size }, 2], 1));
            got.map(|x| x.into_data())
        };
        let (line, grid) = ([("a", 3), ("b", 1)], [("a", 1), ("b", 3)]);
        let captured = {
            let mesh = Mesh::new(line).unwrap();
            let w = constant(noise([6, 2], if odd { 3 } else { 4 }));
            let f = shard_map(
                move |x: Matrix| x + w.clone(),
                &mesh,
                [PartitionSpec::replicated()],
                [PartitionSpec::replicated()],
            );
            f.across(&processes).unwrap().call(noise([6, 2], 1)).map(|x| x.into_data())
        };
        let all = [
            captured,
            call(if odd { grid } else { line }, 6, "", 2.0),
            call(line, if odd { 9 } else { 6 }, "", 2.0),
            call(line, if odd { 7 } else { 6 }, "", 2.0),
            call(line, 6, "", if odd { 2.0 } else { 3.0 }),
            call(line, 6, if odd { "a" } else { "" }, 2.0),
            // One process cannot make this call.
            call(line, 6, if odd { "c" } else { "a" }, 2.0),
            // A valid call, which succeeds.
            call(line, 6, "a", 2.0),
        ];
        (processes.sent(), all)
    });
    let want = ["captured tensors", "mesh", "shapes of arguments", "program", "program", "program"];
    for (rank, (_, all)) in errors.iter().enumerate() {
        for (result, want) in all.iter().zip(want) {
            let from = if rank == 1 { 0 } else { 1 };
            let error = result.as_ref().unwrap_err();
            let ShardError::Mismatch { process, what, .. } = error else { panic!("{error}") };
            assert_eq!((*process, *what), (from, want), "{error}");
        }
        match &all[6] {
            Err(ShardError::UnknownAxis { name, .. }) if rank == 1 => assert_eq!(name, "c"),
            Err(ShardError::Refused { process: 1, message }) if rank != 1 => {
                assert!(message.contains("`c`"), "{message}");
            }
            other => panic!("process {rank}: {other:?}"),
        }
        assert!(all[7].is_ok(), "{:?}", all[7]);
    }
    // Except for the last call, only hashes and error messages are sent.
    assert!(errors.iter().all(|(sent, _)| *sent < 8 * 2 * 3 * 100), "{errors:?}");
}

#[test]
fn processes_that_do_not_fit_do_not_join() {
    let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
    let soon = |count| Rendezvous::of(count).within(Duration::from_millis(300));
    // No process joins, and no process listens.
    let error = soon(2).host(listener()).unwrap_err();
    let ShardError::Join { what } = &error else { panic!("{error}") };
    assert!(what.contains("[1] have not come"), "{what}");
    let nobody = listener().local_addr().unwrap();
    assert!(matches!(soon(2).join(nobody, 1), Err(ShardError::Join { .. })));
    for rank in [0, 2] {
        assert!(matches!(soon(2).join(nobody, rank), Err(ShardError::Join { .. })));
    }
    // A client that sends single bytes does not extend the deadline.
    let own = listener();
    let address = own.local_addr().unwrap();
    let slow = std::thread::spawn(move || {
        use std::io::Write;
        let mut slow = std::net::TcpStream::connect(address).unwrap();
        while slow.write_all(b"T").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let begin = std::time::Instant::now();
    assert!(matches!(soon(2).host(own), Err(ShardError::Join { .. })));
    assert!(begin.elapsed() < Duration::from_secs(3));
    slow.join().unwrap();
    // A client of another program and one with another process count do not block the process that is expected.
    let own = listener();
    let address = own.local_addr().unwrap();
    std::thread::scope(|scope| {
        let host = scope.spawn(move || Rendezvous::of(2).within(Duration::MAX).host(own));
        use std::io::Write;
        std::net::TcpStream::connect(address).unwrap().write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let error = Rendezvous::of(3).join(address, 1).unwrap_err();
        let ShardError::Join { what } = &error else { panic!("{error}") };
        assert!(what.contains("it is one of 3, not of 2"), "{what}");
        let second = Rendezvous::of(2).join(address, 1).unwrap();
        let first = host.join().unwrap().unwrap();
        let mesh = Mesh::new([("a", 3)]).unwrap();
        let f = shard_map(
            |x: Matrix| x,
            &mesh,
            [PartitionSpec::replicated()],
            [PartitionSpec::replicated()],
        );
        let devices = f.across(&first).map(drop);
        assert!(matches!(devices, Err(ShardError::Devices { devices: 3, processes: 2 })));
        drop(second);
    });
}

/// Eight connections that send nothing, or only the beginning of a message, delay no process: one after the other they would take 16 s.
#[test]
fn silent_connections_delay_no_process() {
    use std::io::Write;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let silent: Vec<_> = (0..8).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    for mut stream in silent.iter().step_by(2) {
        stream.write_all(b"T4A").unwrap();
    }
    let started = Instant::now();
    let other = std::thread::spawn(move || Rendezvous::of(2).join(address, 1).map(|_| ()));
    let first = Rendezvous::of(2).host(listener).unwrap();
    assert_eq!(first.count(), 2);
    other.join().unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    drop(silent);
}
