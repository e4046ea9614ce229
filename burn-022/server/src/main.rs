//! `t4a-serve`: the engine for programs of Burn 0.22 in other processes.

use std::net::TcpListener;
use std::process::ExitCode;

use burn_remote::server::{TokenAuthorizer, WebSocketTransport};

const HELP: &str = "\
t4a-serve: serves the engine of burn-t4a to programs of Burn 0.22 in other processes

    t4a-serve [--bind ADDRESS] [--threads N] [--memory GIB] [--open]

    --bind ADDRESS   where to listen [127.0.0.1:3000]; port 0 takes a free one, which is printed
    --threads N      threads of the engine [one per core]
    --memory GIB     results take no more than this, beside what clients send; an operation that would
                     ends its session
    --open           opens sessions to everybody, instead of to those who know the token

The token is read from the environment variable T4A_TOKEN; clients present it by with_credential. It travels
unencrypted, as do tensors: outside of a trusted network, use a tunnel. Ctrl+C or SIGTERM ends the
server and its sessions.
";

/// What the command line says.
#[derive(Debug, PartialEq)]
struct Settings {
    bind: String,
    threads: Option<usize>,
    memory: Option<usize>,
    open: bool,
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<Option<Settings>, String> {
    let mut settings =
        Settings { bind: "127.0.0.1:3000".into(), threads: None, memory: None, open: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        match word.as_str() {
            "--bind" => settings.bind = value()?,
            "--threads" => {
                let threads = value()?.parse().ok().filter(|&n| n > 0);
                settings.threads = Some(threads.ok_or("--threads wants a number of at least 1")?);
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

fn run(settings: &Settings, token: Option<String>) -> Result<(), String> {
    let server = burn_t4a_022_server::server();
    let server = match token {
        _ if settings.open => server,
        None => return Err("set T4A_TOKEN, or say --open".into()),
        Some(token) => {
            server.with_authorizer(TokenAuthorizer::new(token).map_err(|e| e.to_string())?)
        }
    };
    if let Some(threads) = settings.threads {
        t4a_algebra::parallel::set_threads(threads);
    }
    if let Some(bytes) = settings.memory {
        t4a_tensor::pool::set_memory_limit(bytes);
    }
    let listener =
        TcpListener::bind(&settings.bind).map_err(|e| format!("{}: {e}", settings.bind))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    println!("listening on {address}");
    server.serve(WebSocketTransport::from_listener(listener)).map_err(|e| e.to_string())
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
        let all = of("--bind 0.0.0.0:1 --threads 2 --memory 0.5 --open").unwrap().unwrap();
        let want = Settings {
            bind: "0.0.0.0:1".into(),
            threads: Some(2),
            memory: Some(1 << 29),
            open: true,
        };
        assert_eq!(all, want);
        assert_eq!(of("--help"), Ok(None));
        for wrong in ["--threads 0", "--threads", "--memory -1", "--port 3"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let closed = of("").unwrap().unwrap();
        assert!(run(&closed, None).unwrap_err().contains("T4A_TOKEN"));
        assert!(run(&closed, Some(String::new())).is_err());
    }
}
