//! Connection setup of a process group: every process connects to process 0, which sends the addresses of all others;
//! then each process connects to all processes of lower rank.
//!
//! ```text
//! hello      "T4ASHRD1" in native byte order | job u64 | count u32 | rank u32 | port u32
//! reply      0, length, text: refused
//!            1, length, job and addresses: accepted
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::Processes;
use super::board::Board;
use super::frame::take;
use crate::error::{Result, ShardError};

/// Processes on machines of the other byte order, or of another protocol version, are rejected: they cannot exchange
/// tensors, or they record different programs.
const MAGIC: u64 = u64::from_be_bytes(*b"T4ASHRD1");
const HELLO: usize = 28;
/// Maximum number of processes; bounds the size of the address table.
const MOST: usize = 4096;
/// Polling interval of the listener.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum time from a connection to its complete hello message, and of a reply.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connection setup of a group of processes that call sharded functions together.
///
/// ```
/// use burn_t4a_transforms::shard::Rendezvous;
/// use std::net::TcpListener;
/// use std::time::Duration;
///
/// // Two processes, which are threads here. The first one listens; an address with a port of its own would do.
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let group = || Rendezvous::of(2).within(Duration::from_secs(10)).patience(Duration::from_secs(60));
/// let second = std::thread::spawn(move || group().join(address, 1));
/// let first = group().host(listener)?;
/// let second = second.join().unwrap()?;
/// assert_eq!((first.rank(), second.rank(), second.count()), (0, 1, 2));
/// assert_eq!(first.sent(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There is neither encryption nor authentication: use it on trusted networks only.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    count: usize,
    within: Duration,
    patience: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hello {
    job: u64,
    count: u32,
    rank: u32,
    port: u32,
}

impl Hello {
    fn encode(self) -> [u8; HELLO] {
        let mut all = [0; HELLO];
        all[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        all[8..16].copy_from_slice(&self.job.to_le_bytes());
        for (k, word) in [self.count, self.rank, self.port].into_iter().enumerate() {
            all[16 + 4 * k..][..4].copy_from_slice(&word.to_le_bytes());
        }
        all
    }

    fn read(mut from: impl Read) -> io::Result<Self> {
        let mut all = [0; HELLO];
        from.read_exact(&mut all)?;
        let decoded = || {
            let mut rest = &all[..];
            let magic = u64::from_ne_bytes(take(&mut rest)?);
            let job = u64::from_le_bytes(take(&mut rest)?);
            let mut word = || Some(u32::from_le_bytes(take(&mut rest)?));
            let hello = Self { job, count: word()?, rank: word()?, port: word()? };
            (magic == MAGIC).then_some(hello)
        };
        let wrong = || io::Error::other("it is another program, version or kind of machine");
        decoded().ok_or_else(wrong)
    }
}

fn answer(mut to: impl Write, welcome: bool, bytes: &[u8]) -> io::Result<()> {
    let head = [&[u8::from(welcome)], &(bytes.len() as u32).to_le_bytes()[..]].concat();
    to.write_all(&[&head, bytes].concat())
}

fn read_answer(mut from: impl Read) -> io::Result<Vec<u8>> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > MOST * 64 {
        return Err(io::Error::other("an answer that is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    match head[0] {
        1 => Ok(bytes),
        _ => Err(io::Error::other(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

/// Random job identifier; collisions are improbable.
fn job() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn joining(what: &str, error: &io::Error) -> ShardError {
    ShardError::Join { what: format!("{what}: {error}") }
}

impl Rendezvous {
    /// A rendezvous of `count` processes.
    pub fn of(count: usize) -> Self {
        Self { count, within: Duration::from_secs(30), patience: Duration::from_secs(300) }
    }

    /// Time limit for all processes to join. Default: 30 seconds.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Maximum time that a call waits for a process that is alive but has not sent its message. Default: 5 minutes. A
    /// process that has exited is detected at once; one that sends no heartbeats, because it was stopped or its machine
    /// failed, after a third of this time, at most 12 seconds.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn checked(&self, rank: usize) -> Result<Instant> {
        let count = self.count;
        if count == 0 || count > MOST || rank >= count {
            let what = format!("there is no process {rank} of {count}, there are 1 to {MOST}");
            return Err(ShardError::Join { what });
        }
        // The bound of 2³² seconds (136 years) keeps the sum within the range of `Instant`.
        Ok(Instant::now() + self.within.min(Duration::from_secs(1 << 32)))
    }

    /// Accepts the connections of all other processes, as process 0.
    ///
    /// # Errors
    /// [`ShardError::Join`] with the ranks that have not connected.
    pub fn host(&self, listener: TcpListener) -> Result<Processes> {
        let end = self.checked(0)?;
        let job = job();
        let mut arrivals = Arrivals::new(&listener)
            .map_err(|error| joining("the first process cannot listen", &error))?;
        let mut come: Vec<Option<(TcpStream, SocketAddr)>> =
            (0..self.count).map(|_| None).collect();
        let mut refused = Vec::new();
        while come.iter().skip(1).any(Option::is_none) {
            let missing = || {
                let ranks = (1..self.count).filter(|&rank| come[rank].is_none());
                let ranks: Vec<usize> = ranks.collect();
                let refused = refused.iter().map(|x| format!("; refused: {x}"));
                let refused: String = refused.collect();
                io::Error::other(format!("processes {ranks:?} have not come{refused}"))
            };
            let (stream, hello) = match arrivals.next(end) {
                Ok(one) => one,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(joining("the first process waits", &missing()));
                }
                Err(error) => return Err(joining("the first process cannot listen", &error)),
            };
            let rank = hello.rank as usize;
            let why = if hello.count as usize != self.count {
                format!("it is one of {}, not of {}", hello.count, self.count)
            } else if rank == 0 || rank >= self.count || come[rank].is_some() {
                format!("another one is process {rank} of {}", self.count)
            } else {
                let from = stream.peer_addr().map_err(|error| joining("who comes", &error))?;
                come[rank] = Some((stream, SocketAddr::new(from.ip(), hello.port as u16)));
                continue;
            };
            let _ = answer(&stream, false, why.as_bytes());
            if refused.len() < 8 {
                refused.push(format!("process {rank}: {why}"));
            }
        }
        let addresses = come.iter().flatten().map(|(_, address)| address.to_string());
        let table = format!("{job} {}", addresses.collect::<Vec<_>>().join(" "));
        for (rank, one) in come.iter().enumerate() {
            if let Some((stream, _)) = one {
                let told = answer(stream, true, table.as_bytes());
                told.map_err(|error| joining(&format!("process {rank} is gone"), &error))?;
            }
        }
        self.start(0, come.into_iter().map(|one| one.map(|(stream, _)| stream)).collect())
    }

    /// Connects to process 0 at this address as process `rank`; the connection is retried until the time limit.
    ///
    /// # Errors
    /// [`ShardError::Join`] with the process that cannot be reached, or the reason why this process was refused.
    pub fn join(&self, address: impl ToSocketAddrs, rank: usize) -> Result<Processes> {
        let end = self.checked(rank)?;
        if rank == 0 {
            let what = "process 0 hosts the others".to_owned();
            return Err(ShardError::Join { what });
        }
        let at = |what: &str| {
            let what = format!("process {rank}: {what}");
            move |error| joining(&what, &error)
        };
        let first = connect(address, end).map_err(at("the first process is not there"))?;
        let own = first.local_addr().and_then(|own| TcpListener::bind((own.ip(), 0)));
        let own = own.map_err(at("it cannot listen"))?;
        let port = own.local_addr().map_err(at("it cannot listen"))?.port();
        let hello = |job| {
            let [count, rank] = [self.count, rank].map(|x| x as u32);
            Hello { job, count, rank, port: u32::from(port) }
        };
        let table = ask(&first, hello(0), end).map_err(at("the first process"))?;
        let table = String::from_utf8_lossy(&table).into_owned();
        let mut table = table.split(' ');
        let job = table.next().and_then(|job| job.parse().ok()).unwrap_or(0);
        let mut all: Vec<Option<TcpStream>> = (0..self.count).map(|_| None).collect();
        all[0] = Some(first);
        for (other, address) in (1..rank).zip(table) {
            let what = format!("process {other}");
            let stream = connect(address, end).map_err(at(&what))?;
            ask(&stream, hello(job), end).map_err(at(&what))?;
            all[other] = Some(stream);
        }
        let mut arrivals = Arrivals::new(&own).map_err(at("it cannot listen"))?;
        while all.iter().enumerate().any(|(other, x)| other != rank && x.is_none()) {
            let come = arrivals.next(end);
            let (stream, hello) = come.map_err(at("not all that come later are there"))?;
            let from = hello.rank as usize;
            let expected = hello.job == job && from > rank && from < self.count;
            if !expected || all[from].is_some() {
                let why = format!("process {rank} does not wait for it");
                let _ = answer(&stream, false, why.as_bytes());
                continue;
            }
            answer(&stream, true, &[]).map_err(at("one that comes later is gone"))?;
            all[from] = Some(stream);
        }
        all[rank] = None;
        self.start(rank, all)
    }

    fn start(&self, rank: usize, all: Vec<Option<TcpStream>>) -> Result<Processes> {
        let ready = |stream: &TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(None)
        };
        let ready = all.iter().flatten().try_for_each(ready);
        let board = ready.and_then(|()| Board::start(rank, all, self.patience));
        Ok(Processes::new(board.map_err(|error| joining(&format!("process {rank}"), &error))?))
    }
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Sends a hello message and returns the reply.
fn ask(stream: &TcpStream, hello: Hello, end: Instant) -> io::Result<Vec<u8>> {
    let mut to = stream;
    to.set_write_timeout(Some(left(end)?))?;
    to.write_all(&hello.encode())?;
    read_answer(Until { stream, end })
}

/// A reader with a deadline for the whole message, so that a sender of single bytes cannot extend the wait.
struct Until<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.end)?))?;
        self.stream.read(to)
    }
}

/// A connection whose hello message is incomplete.
struct Arrival {
    stream: TcpStream,
    bytes: Vec<u8>,
    end: Instant,
}

impl Arrival {
    /// Reads the bytes that are there; the hello message if it is complete.
    ///
    /// # Errors
    /// `WouldBlock` if bytes are missing; another error if no valid message can follow.
    fn read(&mut self) -> io::Result<Hello> {
        let mut rest = [0; HELLO];
        while self.bytes.len() < HELLO {
            match self.stream.read(&mut rest[self.bytes.len()..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(&rest[from..from + count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Hello::read(&self.bytes[..])
    }
}

/// Connections of a listener. All hello messages are read at the same time, so that a silent peer delays no other.
struct Arrivals<'a> {
    listener: &'a TcpListener,
    waiting: Vec<Arrival>,
}

impl<'a> Arrivals<'a> {
    fn new(listener: &'a TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, waiting: Vec::new() })
    }

    /// The next connection with a valid hello message. Connections without one are closed after [`PATIENCE`].
    ///
    /// # Errors
    /// `TimedOut` at the deadline; errors of the listener.
    fn next(&mut self, end: Instant) -> io::Result<(TcpStream, Hello)> {
        loop {
            self.accept()?;
            let mut k = 0;
            while k < self.waiting.len() {
                match self.waiting[k].read() {
                    Ok(hello) => {
                        let Arrival { stream, .. } = self.waiting.swap_remove(k);
                        stream.set_nonblocking(false)?;
                        stream.set_write_timeout(Some(PATIENCE))?;
                        return Ok((stream, hello));
                    }
                    Err(error)
                        if error.kind() == io::ErrorKind::WouldBlock
                            && Instant::now() < self.waiting[k].end =>
                    {
                        k += 1;
                    }
                    Err(_) => drop(self.waiting.swap_remove(k)),
                }
            }
            std::thread::sleep(left(end)?.min(PAUSE));
        }
    }

    /// Accepts all pending connections.
    fn accept(&mut self) -> io::Result<()> {
        while self.waiting.len() < MOST {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    let end = Instant::now() + PATIENCE;
                    self.waiting.push(Arrival { stream, bytes: Vec::new(), end });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The peer closed the connection before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Connects to an address; retries until the deadline, since the listener may start later.
fn connect(address: impl ToSocketAddrs, end: Instant) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    loop {
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        for address in &addresses {
            match TcpStream::connect_timeout(address, left(end)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        if left(end).is_err() {
            return Err(last);
        }
        std::thread::sleep(PAUSE);
    }
}
