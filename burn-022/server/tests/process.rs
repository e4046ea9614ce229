//! A server in another process: training through it, and how it meets bad clients.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use burn_t4a_022_ext::einsum::{LogSumExp, einsum, semiring_einsum};
use burn_t4a_022_ext::linalg;
use burn_t4a_022_ext::scan::fused::{self, Running};
use burn_t4a_022_ext::scan::{Options, scan};
use burn_tensor::remote::RemoteHost;
use burn_tensor::{Device, Tensor, Tolerance};

struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_t4a-serve"))
            .args(["--bind", "127.0.0.1:0"])
            .args(arguments)
            .env("T4A_TOKEN", "a secret")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("an address");
        Self { url: format!("ws://{address}"), process }
    }

    fn device(&self) -> Device {
        self.session(&self.url)
    }

    /// A client has one session for one address.
    fn session(&self, url: &str) -> Device {
        let host = RemoteHost::websocket(url).with_credential("a secret");
        Device::remote_options(&host).init().expect("a session")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Gradient descent on scores through a contraction over (logsumexp, +), and on the singular values of a
/// matrix. What it ends with.
fn trained(device: &Device) -> Vec<f32> {
    let device = device.clone().autodiff();
    let mut a = Tensor::<2>::from_floats([[0.3, -0.2, 0.9], [0.1, 0.8, -0.5]], &device);
    let b = Tensor::<2>::from_floats([[1.0, 0.2], [0.4, -0.6], [0.0, 0.7]], &device);
    for _ in 0..20 {
        a = a.detach().require_grad();
        let scores: Tensor<2> = semiring_einsum::<LogSumExp, _>("ij,jk->ik", [&a, &b]).unwrap();
        let product: Tensor<2> = einsum("ij,jk->ik", (&a, &b)).unwrap();
        let values: Tensor<1> = linalg::svdvals(product).unwrap();
        let loss = scores.powf_scalar(2.0).sum() + (values - 1.0).powf_scalar(2.0).sum();
        let gradient = a.grad(&loss.backward()).expect("a gradient");
        a = Tensor::from_inner(a.inner() - gradient * 0.05);
    }
    a.into_data().try_to_vec::<f32>().unwrap()
}

#[test]
fn training_through_a_server_is_training_at_home() {
    let server = Server::start(&["--threads", "1"]);
    let far = trained(&server.device());
    let home = trained(&Device::flex());
    assert!(far.iter().all(|x| x.is_finite()));
    for (a, b) in far.iter().zip(home) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    // A second client of the same server.
    let x = Tensor::<1>::from_floats([1.0, 2.0], &server.device());
    (x * 2.0).into_data().assert_approx_eq::<f32>(&[2.0, 4.0].into(), Tolerance::default());
}

/// Factors with their permutations and a gradient, tangents, scans: what is read at the end.
fn composed(device: &Device) -> Vec<f32> {
    let a = [[0.5, 2.0, 1.0], [4.0, 1.0, 0.0], [1.0, 0.5, 3.0]];
    let plain = Tensor::<2>::from_floats(a, device);
    let leaf = Tensor::<2>::from_floats(a, &device.clone().autodiff()).require_grad();
    let linalg::Lu { l, u, rows } = linalg::lu(leaf.clone()).unwrap();
    let mut read: Vec<f32> = rows.into_data().iter().collect();
    let (linalg::Qr { q, r }, columns) = linalg::qr_pivoted(plain.clone()).unwrap();
    read.extend(columns.into_data().iter::<f32>());
    let running = fused::cumulative(Running::Product, leaf.clone(), 0, false).unwrap();
    let step = |(): (), c: Tensor<1>, x: Tensor<1>| ((c * 0.5 + x).tanh(), ());
    let start = Tensor::<1>::zeros([3], device);
    let (last, ()): (Tensor<1>, ()) =
        scan(step, (), start, leaf.clone(), &Options::default()).unwrap();
    let loss = l.sum() + u.powi_scalar(2).sum() + running.sum() + last.sum();
    let gradient = leaf.grad(&loss.backward()).expect("a gradient");
    let (inverse, moved) = linalg::inv_jvp(plain.clone(), plain).unwrap();
    for x in [q.matmul(r), gradient, inverse, moved] {
        read.extend(x.into_data().iter::<f32>());
    }
    read
}

#[test]
fn permutations_tangents_and_scans_through_a_server() {
    let server = Server::start(&[]);
    let (far, home) = (composed(&server.device()), composed(&Device::flex()));
    assert_eq!(far[..3], [1.0, 0.0, 2.0]);
    assert_eq!(far.len(), home.len());
    for (a, b) in far.iter().zip(home) {
        assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{a} {b}");
    }
}

#[test]
fn strangers_are_refused() {
    let server = Server::start(&[]);
    let host = RemoteHost::websocket(&server.url).with_credential("a guess");
    let error = Device::remote_options(&host).init().unwrap_err();
    assert!(format!("{error:?}").contains("Unauthorized"), "{error:?}");
    // Those who know the token still get in.
    let x = Tensor::<1>::from_floats([1.0], &server.device());
    assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [1.0]);
}

#[test]
fn an_operation_beyond_the_memory_ends_its_session_alone() {
    let server = Server::start(&["--memory", "0.01"]);
    let other = server.session(&server.url.replace("127.0.0.1", "localhost"));
    let greedy = server.device();
    let failed = std::panic::catch_unwind(|| {
        let x = Tensor::<2>::random([2048, 2048], burn_tensor::Distribution::Default, &greedy);
        ((x.clone() + 1.0) * x).sum().into_scalar::<f32>()
    });
    assert!(failed.is_err());
    let x = Tensor::<1>::from_floats([3.0], &other);
    assert_eq!((x + 1.0).into_data().try_to_vec::<f32>().unwrap(), [4.0]);
}

#[test]
#[cfg(unix)]
fn the_server_ends_when_asked() {
    let mut server = Server::start(&[]);
    drop(server.device());
    let id = server.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn a_wrong_command_line_is_explained() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_t4a-serve"))
            .args(arguments)
            .env_remove("T4A_TOKEN")
            .output()
    };
    let output = run(&["--threads", "none"]).unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--threads wants a number"));
    let output = run(&[]).unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("set T4A_TOKEN, or say --open"));
}
