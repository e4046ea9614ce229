//! burn-remote: a client runs training steps on a server that hosts BurnT4a on the loopback interface.

use std::net::TcpListener;
use std::time::Duration;

use burn::backend::Autodiff;
use burn::nn::loss::{MseLoss, Reduction};
use burn::optim::{GradientsParams, Optimizer, SgdConfig};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use burn_backend::{BoolStore, DType};
use burn_remote::{RemoteBackend, RemoteDevice};
use burn_t4a::BurnT4a;

use crate::material::{Ulps, difference};
use crate::training::{Mlp, batch, load, start};

/// Two steps of gradient descent; returns the final weights and the losses.
fn train<B: AutodiffBackend>(start: &[u8], device: &B::Device) -> Vec<TensorData> {
    let mut model: Mlp<B> = load::<B>(start).fork_to(device);
    let mut optimizer = SgdConfig::new().init();
    let mut losses = Vec::new();
    for step in 0..2 {
        let (x, y) = batch::<B>(step);
        let (x, y) = (x.to_device(device), y.to_device(device));
        let loss = MseLoss::new().forward(model.forward(x), y, Reduction::Mean);
        losses.push(loss.clone().into_data());
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.05, model, grads);
    }
    losses.extend(model.weights());
    losses
}

trait ForkTo<B: Backend> {
    fn fork_to(self, device: &B::Device) -> Self;
}

impl<B: AutodiffBackend> ForkTo<B> for Mlp<B> {
    fn fork_to(self, device: &B::Device) -> Self {
        burn::module::Module::fork(self, device)
    }
}

#[test]
fn a_client_trains_on_a_server_that_hosts_the_backend() {
    // A free port: bound, released, and then used by the server.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::thread::spawn(move || {
        burn_remote::server::start_websocket::<BurnT4a>(Default::default(), port);
    });
    let address = format!("127.0.0.1:{port}");
    let up = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        std::net::TcpStream::connect(&address).is_ok()
    });
    assert!(up, "the server did not start");
    // `RemoteDevice::default` reads its address from the environment.
    // SAFETY: no other thread of this process reads the environment at the same time.
    unsafe { std::env::set_var("BURN_REMOTE_ADDRESS", format!("ws://{address}")) };
    let device = RemoteDevice::new(&format!("ws://{address}"));
    let start = start();
    let here = train::<Autodiff<BurnT4a>>(&start, &Default::default());
    let there = train::<Autodiff<RemoteBackend>>(&start, &device);
    assert_eq!(difference(&there, &here, Ulps(16.0)), None);
    // Index and bool operations are executed remotely as well.
    let x = Tensor::<RemoteBackend, 2>::from_data([[3.0f32, 1.0], [2.0, 5.0]], &device);
    assert_eq!(x.clone().argmax(1).into_data().iter::<i64>().collect::<Vec<_>>(), [0, 1]);
    let greater = x.greater_elem(2.5).into_data().convert_dtype(DType::Bool(BoolStore::Native));
    assert_eq!(greater, TensorData::from([[true, false], [false, true]]));
}
