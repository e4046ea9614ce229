//! A server in another process: training on it, and its reaction to invalid clients.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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

    /// A client has one session per address and credential.
    fn session(&self, url: &str) -> Device {
        let host = RemoteHost::websocket(url).with_credential("a secret");
        Device::remote_options(&host).init().expect("a session")
    }

    /// Another session of this process at the same address.
    fn named(&self, name: &str) -> Device {
        let host = RemoteHost::websocket(&self.url).with_credential(format!("a secret#{name}"));
        Device::remote_options(&host).init().expect("a session")
    }

    /// A connection without a session.
    fn connection(&self) -> TcpStream {
        let address = self.url.strip_prefix("ws://").expect("an address");
        let stream = TcpStream::connect(address).expect("a connection");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        stream.set_write_timeout(patience).expect("a timeout");
        stream
    }

    /// A WebSocket connection without a session.
    fn web_socket(&self) -> TcpStream {
        let mut stream = self.connection();
        let request = "GET /session HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer");
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"));
        stream
    }
}

/// Returns true after the peer has closed the connection.
fn has_ended(mut stream: &TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => {
                return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            }
        }
    }
}

/// Error text of reading a tensor.
fn reason<const D: usize>(x: Tensor<D>) -> String {
    x.try_into_data().expect_err("no elements").to_string()
}

fn read<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.into_data().try_to_vec().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Gradient descent on scores through a contraction over (logsumexp, +), and on the singular values of a matrix;
/// returns the final values.
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

/// Factorisations with permutations and a gradient, tangents, scans; returns the results.
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
    let (inverse, moved) = linalg::jvp(linalg::op::InvOp, plain.clone(), plain).unwrap();
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
    // Clients with the token are still accepted.
    let x = Tensor::<1>::from_floats([1.0], &server.device());
    assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [1.0]);
}

/// An SVD of NaN: the reason is reported, also for tensors computed from its result; other tensors are not
/// affected, in the same session and on a device with the same address.
#[test]
fn a_failed_operation_has_a_reason_and_the_session_goes_on() {
    let server = Server::start(&[]);
    let device = server.device();
    let before = Tensor::<1>::from_floats([1.0, 2.0], &device);
    let matrix = Tensor::<2>::from_floats([[f32::NAN, 1.0], [0.0, 1.0]], &device);
    let values: Tensor<1> = linalg::svdvals(matrix.clone()).unwrap();
    let sum = (values.clone() * 2.0 + before.clone()).sum();
    for text in [reason(values.clone()), reason(sum), reason(values)] {
        assert!(text.contains("svdvals"), "{text}");
    }
    assert!(read(matrix)[0].is_nan());
    assert_eq!(read(before.clone() + 1.0), [2.0, 3.0]);
    let after = Tensor::<1>::from_floats([5.0, 7.0], &server.device());
    assert_eq!(read(after * before), [5.0, 14.0]);
    // A gradient through a failed operation reports the reason.
    let leaf =
        Tensor::<2>::from_floats([[1.0, 1.0], [1.0, 1.0]], &device.autodiff()).require_grad();
    let inverse: Tensor<2> = linalg::inv(leaf.clone()).unwrap();
    let gradient = leaf.grad(&inverse.sum().backward()).expect("a gradient");
    assert!(reason(gradient).contains("inv"));
}

#[test]
fn a_result_beyond_the_memory_has_a_reason() {
    let server = Server::start(&["--memory", "0.01"]);
    let device = server.device();
    let x = Tensor::<2>::random([2048, 2048], burn_tensor::Distribution::Default, &device);
    let text = reason(((x.clone() + 1.0) * x).sum());
    assert!(text.contains("memory"), "{text}");
    let x = Tensor::<1>::from_floats([3.0], &device);
    assert_eq!(read(x + 1.0), [4.0]);
}

/// Elements sent by clients count: of five tensors of 4 MB, 10.7 MB hold two.
#[test]
fn uploads_beyond_the_memory_have_a_reason() {
    let server = Server::start(&["--memory", "0.01"]);
    let device = server.device();
    let one = || burn_tensor::TensorData::new(vec![1.0f32; 1 << 20], [1 << 20]);
    let all: Vec<Tensor<1>> = (0..5).map(|_| Tensor::from_data(one(), &device)).collect();
    let results: Vec<_> = all.into_iter().map(|x| x.slice(0..2).try_into_data()).collect();
    assert!(results[0].is_ok());
    let text = results[4].as_ref().expect_err("no memory").to_string();
    assert!(text.contains("memory"), "{text}");
    // All of them are dropped.
    let again = Tensor::<1>::from_data(one(), &device);
    assert_eq!(again.slice(0..1).into_data().try_to_vec::<f32>().unwrap(), [1.0]);
}

/// A message beyond the limit ends its session, which the client keeps for its address and credential; another name
/// after the token opens a new one.
#[test]
fn a_session_that_ended_and_a_new_one() {
    let server = Server::start(&["--message", "1"]);
    let device = server.device();
    let small = Tensor::<1>::from_floats([1.0], &device);
    assert_eq!(read(small), [1.0]);
    let large = burn_tensor::TensorData::new(vec![1.0f32; 1 << 20], [1 << 20]);
    assert!(Tensor::<1>::from_data(large, &device).try_into_data().is_err());
    let lost = std::panic::catch_unwind(|| {
        Tensor::<1>::from_floats([1.0], &server.device()).try_into_data().is_err()
    });
    assert!(lost.unwrap_or(true));
    let again = Tensor::<1>::from_floats([2.0], &server.named("again"));
    assert_eq!(read(again * 2.0), [4.0]);
}

#[test]
fn tensors_move_from_server_to_server() {
    let (here, there) = (Server::start(&[]), Server::start(&[]));
    let x = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &here.device());
    let moved = (x + 1.0).to_device(&there.device());
    assert_eq!(read(moved * 2.0), [4.0, 6.0, 8.0, 10.0]);
    // A tensor without elements has none on the other server either.
    let matrix = Tensor::<2>::from_floats([[f32::NAN, 1.0], [0.0, 1.0]], &here.device());
    let values: Tensor<1> = linalg::svdvals(matrix).unwrap();
    let text = reason(values.to_device(&there.device()));
    assert!(!text.is_empty());
    let x = Tensor::<1>::from_floats([1.0], &there.device());
    assert_eq!(read(x), [1.0]);
}

/// A frame that announces 1 GiB, and one of 64 KiB and one byte: the connection is closed before they are received.
#[test]
fn little_is_read_before_the_token() {
    let server = Server::start(&[]);
    for bytes in [1u64 << 30, (64 << 10) + 1] {
        let mut stream = server.web_socket();
        let head = [&[0x82, 0xff][..], &bytes.to_be_bytes(), &[0; 4]].concat();
        stream.write_all(&head).expect("a head");
        let mut sent = 0;
        while sent < bytes && stream.write_all(&[0; 1 << 12]).is_ok() {
            sent += 1 << 12;
        }
        assert!(has_ended(&stream));
        // At most as much as socket buffers hold.
        assert!(sent < 32 << 20, "{sent} bytes");
    }
    // An HTTP request without an end.
    let mut stream = server.connection();
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(&[b'a'; 1 << 12]).is_ok() {
        sent += 1 << 12;
    }
    assert!(sent < 32 << 20, "{sent} bytes");
    assert_eq!(read(Tensor::<1>::from_floats([1.0], &server.device())), [1.0]);
}

/// A connection that sends no token is closed after 10 s, even if it sends single bytes.
#[test]
fn no_connection_stays_without_a_token() {
    let server = Server::start(&[]);
    let (silent, slow) = (server.web_socket(), server.connection());
    let start = Instant::now();
    while (&slow).write_all(b"a").is_ok() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(has_ended(&silent));
}

#[test]
fn connections_are_bounded() {
    let server = Server::start(&["--connections", "3"]);
    let all: Vec<TcpStream> = (0..3).map(|_| server.web_socket()).collect();
    assert!(has_ended(&server.connection()));
    drop(all);
    // Their connections are released after a short time.
    let start = Instant::now();
    let host = RemoteHost::websocket(&server.url).with_credential("a secret");
    while Device::remote_options(&host).init().is_err() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Also immediately after the start.
#[test]
#[cfg(unix)]
fn the_server_ends_when_asked_at_once() {
    for _ in 0..20 {
        let mut server = Server::start(&[]);
        let id = server.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(server.process.wait().unwrap().code(), Some(0));
    }
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
