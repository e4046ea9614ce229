//! How processes find each other: all go to the first one, which tells them where the others are; then each
//! connects to those before it.
//!
//! ```text
//! who comes    "T4ASHRD1" in the order of the machine | job u64 | count u32 | rank u32 | port u32
//! the answer   0 and the length, and a text: refused
//!              1 and the length, and job and addresses: welcome
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::Processes;
use super::board::Board;
use super::frame::take;
use crate::error::{Result, ShardError};

/// Machines that count bytes the other way round cannot exchange tensors, and other versions record otherwise.
const MAGIC: u64 = u64::from_be_bytes(*b"T4ASHRD1");
const HELLO: usize = 28;
/// The most processes; the table of their addresses stays small.
const MOST: usize = 4096;
/// How long nobody looks whether somebody has come.
const PAUSE: Duration = Duration::from_millis(5);

/// Where processes meet, before they call functions together.
///
/// ```
/// use std::net::TcpListener;
/// use burn_t4a_shard::Rendezvous;
///
/// // Two processes, which are threads here. The first one listens; an address with a port of its own would do.
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let second = std::thread::spawn(move || Rendezvous::of(2).join(address, 1));
/// let first = Rendezvous::of(2).host(listener)?;
/// let second = second.join().unwrap()?;
/// assert_eq!((first.rank(), second.rank(), second.count()), (0, 1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Nothing is encrypted and nobody has to prove who they are: it is for networks that one trusts.
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

/// A number that no other job has, most likely.
fn job() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn joining(what: &str, error: &io::Error) -> ShardError {
    ShardError::Join { what: format!("{what}: {error}") }
}

impl Rendezvous {
    /// Of so many processes.
    pub fn of(count: usize) -> Self {
        Self { count, within: Duration::from_secs(30), patience: Duration::from_secs(300) }
    }

    /// How long they wait for each other to join: 30 seconds if nothing is said.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// How long a process that waits for another one in a call believes that it will come: 5 minutes if nothing
    /// is said. One that has ended is noticed at once, and one of which nothing is heard, as its machine is gone
    /// or it was stopped, after a third of this, at most 12 seconds.
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
        // A clock has an end; nobody waits for a hundred years.
        Ok(Instant::now() + self.within.min(Duration::from_secs(1 << 32)))
    }

    /// Waits for the others; this process is the first, to whose address they come.
    ///
    /// # Errors
    /// [`ShardError::Join`]: who has not come.
    pub fn host(&self, listener: TcpListener) -> Result<Processes> {
        let end = self.checked(0)?;
        let job = job();
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
            let (stream, hello) = match accept(&listener, end) {
                Ok(Some(one)) => one,
                Ok(None) => continue,
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

    /// Joins the process that waits at this address; it may begin to do so a little later.
    ///
    /// # Errors
    /// [`ShardError::Join`]: who cannot be reached, or why this process is refused.
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
        while all.iter().enumerate().any(|(other, x)| other != rank && x.is_none()) {
            let come = accept(&own, end).map_err(at("not all that come later are there"))?;
            let Some((stream, hello)) = come else { continue };
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

/// Says hello; what the other one answers.
fn ask(stream: &TcpStream, hello: Hello, end: Instant) -> io::Result<Vec<u8>> {
    let mut to = stream;
    to.set_write_timeout(Some(left(end)?))?;
    to.write_all(&hello.encode())?;
    read_answer(Until { stream, end })
}

/// What comes until then: bytes one by one do not hold anybody up for longer.
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

/// Somebody who says hello; nobody, if it was somebody else.
fn accept(listener: &TcpListener, end: Instant) -> io::Result<Option<(TcpStream, Hello)>> {
    listener.set_nonblocking(true)?;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(left(end)?.min(PAUSE));
            }
            // Who has come has left before that was seen.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    // Who says nothing does not hold up the others for long.
    let hello = Duration::from_secs(2);
    stream.set_write_timeout(Some(hello))?;
    let end = end.min(Instant::now() + hello);
    Ok(Hello::read(Until { stream: &stream, end }).ok().map(|hello| (stream, hello)))
}

/// Connects to an address, where somebody may begin to listen a little later.
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
