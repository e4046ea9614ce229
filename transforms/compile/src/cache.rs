//! Cache of a compiled function: programs by key and sizes of named axes, with least-recently-used eviction, and call
//! counters.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::tree::Structure;

use crate::archive::{ArchivedProgram, load, save};
use crate::engine;
use crate::error::{CompileError, Result, caught};
use crate::key::{Key, Names};
use crate::program::Program;
use crate::recent::Recent;
use crate::trace::Source;

/// Call statistics of a compiled function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that ran a cached program.
    pub hits: usize,
    /// Calls that recorded a program.
    pub traces: usize,
    /// Programs evicted from the cache.
    pub evictions: usize,
    /// Calls that ran eagerly because the function cannot be recorded.
    pub fallbacks: usize,
}

/// A recording and the program compiled from it, at its first use.
pub(crate) struct Recorded<B: Backend> {
    program: OnceLock<Program<B>>,
    source: Source<B>,
    fused: bool,
    pub(crate) structure: Structure,
    /// True for a program loaded from bytes: its results are checked against the recording.
    pub(crate) loaded: bool,
}

impl<B: Backend> Recorded<B> {
    pub(crate) fn new(
        source: Source<B>,
        structure: Structure,
        fused: bool,
        loaded: bool,
    ) -> Arc<Self> {
        Arc::new(Self { program: OnceLock::new(), source, fused, structure, loaded })
    }

    /// The program.
    pub(crate) fn program(&self) -> &Program<B> {
        self.program.get_or_init(|| engine::program(&self.source, self.fused))
    }
}

/// Cache entry for a key and the sizes of its named axes.
pub(crate) enum CachedProgram<B: Backend> {
    Program(Arc<Recorded<B>>),
    /// The function cannot be recorded; the reason.
    Eager(Arc<str>),
}

impl<B: Backend> Clone for CachedProgram<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Program(x) => Self::Program(x.clone()),
            Self::Eager(why) => Self::Eager(why.clone()),
        }
    }
}

/// Entries by the sizes of named axes; without named axes there is one entry, with no sizes.
type EntriesBySizes<B> = Recent<Vec<usize>, CachedProgram<B>>;

/// Programs by key.
pub(crate) struct Cache<B: Backend> {
    entries: Recent<Key, EntriesBySizes<B>>,
    /// Maximum number of keys, and of sizes per key; at least 1.
    pub(crate) capacity: usize,
    pub(crate) counters: Counters,
    /// Outcome of the last call, for `explain`.
    last: Cow<'static, str>,
}

impl<B: Backend> Default for Cache<B> {
    fn default() -> Self {
        let (entries, counters) = (Recent::default(), Counters::default());
        Self { entries, capacity: 64, counters, last: "not called".into() }
    }
}

pub(crate) fn lock<T>(x: &Mutex<T>) -> MutexGuard<'_, T> {
    x.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend> Cache<B> {
    /// Looks up an entry and marks it as the most recently used.
    pub(crate) fn find(&mut self, key: &Key, sizes: &[usize]) -> Option<CachedProgram<B>> {
        let form = self.entries.find(key)?.find(sizes)?.clone();
        match form {
            CachedProgram::Program(_) => {
                self.counters.hits += 1;
                self.last = "hit".into();
            }
            CachedProgram::Eager(_) => {
                self.counters.fallbacks += 1;
                self.last = "eager: the function cannot be recorded".into();
            }
        }
        Some(form)
    }

    /// Stores the outcome of a trace: a program, or the reason why there is none.
    pub(crate) fn remember(
        &mut self,
        key: Key,
        sizes: Vec<usize>,
        form: CachedProgram<B>,
        names: &Names,
    ) {
        let others = self.entries.iter().filter(|(other, _)| other.named == key.named);
        let nearest = others.map(|(other, _)| key.differences(other)).min_by_key(Vec::len);
        let reason = match nearest {
            None => "the first call".to_owned(),
            Some(all) if all.is_empty() => format!("{} is new", names.describe(&sizes)),
            Some(all) => all.join("; "),
        };
        match &form {
            CachedProgram::Eager(why) => {
                self.counters.fallbacks += 1;
                self.last = format!("eager from now on: {why}").into();
            }
            CachedProgram::Program(_) => {
                self.counters.traces += 1;
                self.last = format!("recorded, since {reason}").into();
            }
        }
        self.put(key, sizes, form);
    }

    /// Inserts or replaces an entry; evicts the least recently used one if the cache is full.
    fn put(&mut self, key: Key, sizes: Vec<usize>, form: CachedProgram<B>) {
        let capacity = self.capacity;
        let dropped = match self.entries.find(&key) {
            Some(known) => known.put(sizes, form, capacity),
            None => {
                let mut all = Recent::default();
                all.put(sizes, form, capacity);
                self.entries.put(key, all, capacity)
            }
        };
        self.counters.evictions += usize::from(dropped);
    }

    /// Serialises all programs.
    pub(crate) fn save(&self, names: &Names) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut add = |key: Key, recorded: &Recorded<B>| {
            let (results, source) = (recorded.structure.clone(), recorded.source.clone());
            all.push(ArchivedProgram { key, results, source });
        };
        for (key, all_sizes) in self.entries.iter() {
            for (sizes, form) in all_sizes.iter() {
                if let CachedProgram::Program(recorded) = form {
                    let mut key = Key { named: false, ..key.clone() };
                    for axis in names.axes.iter().filter(|_| !sizes.is_empty()) {
                        key.leaves[axis.leaf].1.shape[axis.axis] = sizes[axis.name];
                    }
                    add(key, recorded);
                }
            }
        }
        save(&all)
    }

    /// Inserts serialised programs; returns their number.
    pub(crate) fn load(&mut self, bytes: &[u8], fused: bool) -> Result<usize> {
        let make = || -> Result<Vec<_>> {
            let make = |ArchivedProgram { key, results, source }| {
                let recorded = Recorded::new(source, results, fused, true);
                recorded.program();
                (key, recorded)
            };
            Ok(load::<B>(bytes)?.into_iter().map(make).collect())
        };
        let wrong = |error: CompileError| CompileError::Load { what: error.to_string() };
        let all = caught("a program", make).map_err(wrong)??;
        let count = all.len();
        for (key, recorded) in all {
            self.put(key, Vec::new(), CachedProgram::Program(recorded));
        }
        self.last = format!("{count} programs were loaded").into();
        Ok(count)
    }

    /// The most recently used program.
    pub(crate) fn latest(&self) -> Option<Arc<Recorded<B>>> {
        let last = self.entries.iter().last().and_then(|(_, sizes)| sizes.iter().last());
        match last {
            Some((_, CachedProgram::Program(recorded))) => Some(recorded.clone()),
            _ => None,
        }
    }

    /// Report of the call statistics and all cached programs.
    pub(crate) fn explain(&self, names: &Names) -> String {
        let mut text = format!("{:?}\nlast: {}\n", self.counters, self.last);
        for (key, all_sizes) in self.entries.iter() {
            for (sizes, form) in all_sizes.iter() {
                let _ = write!(text, "{key}");
                if !sizes.is_empty() {
                    let _ = write!(text, ", {}", names.describe(sizes));
                }
                let _ = match form {
                    CachedProgram::Program(recorded) => {
                        let program = recorded.program();
                        write!(text, ": {} instructions\n{program}", program.len())
                    }
                    CachedProgram::Eager(why) => writeln!(text, ": eager, since {why}"),
                };
            }
        }
        text
    }
}
