//! Settings of the process and of its environment. A test that needs its own settings runs itself in a new process.

use std::process::{Command, Output};

use t4a_algebra::Standard;
use t4a_einsum::{Einsum, Path};
use t4a_tensor::config::{BackendConfig, ConfigError};
use t4a_tensor::pool;
use t4a_tensor::route::Policy;
use t4a_tensor::{Tensor, TensorError};

const CHILD: &str = "T4A_TEST_CHILD";
const VARIABLES: [&str; 6] = [
    "T4A_NUM_THREADS",
    "T4A_PARTS",
    "T4A_CACHE_LIMIT",
    "T4A_MEMORY_LIMIT",
    "T4A_EINSUM_MEMORY",
    "T4A_FALLBACK",
];

/// Runs the test of this name with these variables in a child process; `None` in the child.
fn child(test: &str, variables: &[(&str, &str)]) -> Option<Output> {
    if std::env::var_os(CHILD).is_some() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("settings::{test}");
    command.args(["--exact", &name, "--nocapture"]).env(CHILD, "1");
    for name in VARIABLES {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "no test {name}");
    Some(output)
}

#[test]
fn settings_hold_from_then_on() {
    if child("settings_hold_from_then_on", &[]).is_some() {
        return;
    }
    let before = BackendConfig::current();
    assert_eq!((before.get_cache_limit(), before.get_memory_limit()), (None, None));
    assert_eq!(before.get_einsum_memory(), None);
    assert_eq!(before.get_fallback(), Some(Policy::Allow));

    let wrong = BackendConfig::new().threads(0).cache_limit(1);
    assert_eq!(wrong.set(), Err(ConfigError::NoThreads));
    let wrong = BackendConfig::new().threads(3).parts(0);
    assert_eq!(wrong.set(), Err(ConfigError::NoParts));
    assert_eq!(BackendConfig::current(), before);

    let config = BackendConfig::new()
        .threads(3)
        .parts(6)
        .cache_limit(0)
        .memory_limit(8 << 20)
        .einsum_memory(20000)
        .fallback(Policy::RejectFallback);
    config.set().unwrap();
    assert_eq!(BackendConfig::current(), config);
    // Unset options keep their values.
    BackendConfig::new().threads(2).set().unwrap();
    assert_eq!(BackendConfig::current(), config.threads(2));

    drop(Tensor::<f64>::zeros(&[1000, 100]).unwrap());
    assert_eq!(pool::cached_bytes(), 0);
    assert!(matches!(
        Tensor::from_fn(&[2 << 20], |i| i as f64),
        Err(TensorError::OutOfMemory { .. })
    ));

    // 10 × 1000 intermediate numbers: 80000 bytes under a budget of 20000.
    let shapes: [&[usize]; 3] = [&[10, 20], &[20, 1000], &[1000]];
    let einsum = Einsum::new("ij,jk,k->i").unwrap().path(Path::from([[0, 1], [1, 0]]));
    let plan = einsum.plan(&shapes, 8).unwrap();
    assert!(!plan.sliced().is_empty() && plan.cost().bytes(8) <= 20000.0, "{}", plan.report(8));
    assert_eq!(plan.budget(), Some(20000));
    // A budget set on the einsum takes precedence.
    let own = einsum.clone().memory(1 << 20).plan(&shapes, 8).unwrap();
    assert!(own.sliced().is_empty());
    let operands = shapes.map(|shape| Tensor::from_fn(shape, |i| (i % 7) as f64).unwrap());
    let operands: Vec<&Tensor<f64>> = operands.iter().collect();
    let [small, large] = [plan, own].map(|x| x.contract::<Standard, f64>(&operands).unwrap());
    assert_eq!(small.to_vec().unwrap(), large.to_vec().unwrap());
}

#[test]
fn the_environment_is_read() {
    let variables = [
        ("T4A_NUM_THREADS", "5"),
        ("T4A_PARTS", "2"),
        ("T4A_CACHE_LIMIT", "3MiB"),
        ("T4A_MEMORY_LIMIT", " 2 GiB "),
        ("T4A_EINSUM_MEMORY", "4096"),
        ("T4A_FALLBACK", "reject"),
    ];
    if child("the_environment_is_read", &variables).is_some() {
        return;
    }
    let want = BackendConfig::new()
        .threads(5)
        .parts(2)
        .cache_limit(3 << 20)
        .memory_limit(2 << 30)
        .einsum_memory(4096)
        .fallback(Policy::RejectFallback);
    assert_eq!(BackendConfig::from_environment(), Ok(want.clone()));
    assert_eq!(BackendConfig::current(), want);
}

#[test]
fn what_means_nothing_is_said() {
    let variables = [("T4A_NUM_THREADS", "0"), ("T4A_CACHE_LIMIT", "lots")];
    let Some(output) = child("what_means_nothing_is_said", &variables) else {
        let error = BackendConfig::from_environment().unwrap_err().to_string();
        assert_eq!(error, "T4A_NUM_THREADS: expected a number of threads, at least 1, given \"0\"");
        assert_eq!(BackendConfig::current().get_cache_limit(), None);
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in [
        "T4A_NUM_THREADS: expected a number of threads, at least 1, given \"0\": ignored",
        "T4A_CACHE_LIMIT: expected a number of bytes, given \"lots\": ignored",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
}
