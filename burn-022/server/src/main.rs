//! `t4a-serve`: the engine for programs of Burn 0.22 in other processes.

use std::net::TcpListener;
use std::process::ExitCode;

use burn_t4a_022_server::{Limits, Server};

const HELP: &str = "\
t4a-serve: serves the engine of burn-t4a to programs of Burn 0.22 in other processes

    t4a-serve [--bind ADDRESS] [--threads N] [--memory GIB] [--connections N] [--message MIB] [--open]

    --bind ADDRESS     where to listen [127.0.0.1:3000]; port 0 takes a free one, which is printed
    --threads N        threads of the engine [one per core]
    --memory GIB       bound on the tensors of all clients; what exceeds it fails, and the reason is returned where
                       a result is read. Messages are no longer than it
    --connections N    connections at a time [64]
    --message MIB      bound on one message of a client [1024]; a longer one ends its session
    --open             opens sessions to everybody, instead of to those who know the token

The token is read from the environment variable T4A_TOKEN; clients present it by with_credential, with # and a name
behind it for another session of the same process. Before that, a connection may send 64 KiB within 10 s. The token
travels unencrypted, as do tensors: outside of a trusted network, use a tunnel. Ctrl+C or SIGTERM ends the
server and its sessions.
";

/// Parsed command line.
#[derive(Debug, PartialEq)]
struct Settings {
    bind: String,
    threads: Option<usize>,
    memory: Option<usize>,
    connections: usize,
    message: usize,
    open: bool,
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<Option<Settings>, String> {
    let Limits { connections, frame: message, .. } = Limits::default();
    let bind = "127.0.0.1:3000".into();
    let mut settings =
        Settings { bind, threads: None, memory: None, connections, message, open: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--bind" => settings.bind = value()?,
            "--threads" => settings.threads = Some(count(&word, &value()?)?),
            "--connections" => settings.connections = count(&word, &value()?)?,
            "--message" => {
                let bytes = count(&word, &value()?)?.checked_mul(1 << 20);
                settings.message = bytes.ok_or("--message exceeds the address space")?;
            }
            "--memory" => {
                let gib = value()?.parse::<f64>().ok().filter(|&gib| gib > 0.0);
                let bytes = gib.ok_or("--memory wants a number of GiB")? * f64::from(1 << 30);
                settings.memory = Some(bytes as usize);
            }
            "--open" => settings.open = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("{word} is not known; --help tells what is")),
        }
    }
    Ok(Some(settings))
}

fn count(word: &str, value: &str) -> Result<usize, String> {
    let count = value.parse().ok().filter(|&n| n > 0);
    count.ok_or(format!("{word} wants a number of at least 1"))
}

/// Ends the process with exit status 0 on Ctrl+C and SIGTERM from now on.
fn end_on_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    #[cfg(unix)]
    let mut signals = {
        use tokio::signal::unix::{SignalKind, signal};
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
    };
    #[cfg(windows)]
    let mut signals = [tokio::signal::windows::ctrl_c()?];
    drop(entered);
    let wait = move || {
        runtime.block_on(std::future::poll_fn(|context| {
            let come = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if come { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }));
        std::process::exit(0);
    };
    std::thread::Builder::new().name("t4a-signals".into()).spawn(wait).map(drop)
}

fn run(settings: &Settings, token: Option<String>) -> Result<(), String> {
    let server = match token {
        _ if settings.open => Server::open(),
        None => return Err("set T4A_TOKEN, or say --open".into()),
        Some(token) => Server::new(&token).map_err(|e| e.to_string())?,
    };
    let frame = settings.message.min(settings.memory.unwrap_or(usize::MAX));
    let counted = settings.memory.is_some();
    let server = server.with_limits(Limits { connections: settings.connections, frame, counted });
    if let Some(threads) = settings.threads {
        t4a_algebra::parallel::set_threads(threads);
    }
    if let Some(bytes) = settings.memory {
        t4a_tensor::pool::set_memory_limit(bytes);
    }
    let listener =
        TcpListener::bind(&settings.bind).map_err(|e| format!("{}: {e}", settings.bind))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    // The printed line signals that the server is ready, and can be stopped.
    end_on_signals().map_err(|e| e.to_string())?;
    println!("listening on {address}");
    server.serve(&listener).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let outcome = match settings(std::env::args().skip(1)) {
        Ok(Some(settings)) => run(&settings, std::env::var("T4A_TOKEN").ok()),
        Ok(None) => {
            print!("{HELP}");
            Ok(())
        }
        Err(text) => Err(text),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("t4a-serve: {text}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Settings>, String> {
        settings(line.split_whitespace().map(String::from))
    }

    #[test]
    fn the_command_line() {
        let line = "--bind 0.0.0.0:1 --threads 2 --memory 0.5 --connections 3 --message 2 --open";
        let all = of(line).unwrap().unwrap();
        let want = Settings {
            bind: "0.0.0.0:1".into(),
            threads: Some(2),
            memory: Some(1 << 29),
            connections: 3,
            message: 2 << 20,
            open: true,
        };
        assert_eq!(all, want);
        assert_eq!(of("--help"), Ok(None));
        for wrong in ["--threads 0", "--threads", "--memory -1", "--message 0", "--port 3"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let closed = of("").unwrap().unwrap();
        assert!(run(&closed, None).unwrap_err().contains("T4A_TOKEN"));
        assert!(run(&closed, Some(String::new())).is_err());
    }
}
