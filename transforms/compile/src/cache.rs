//! What a compiled function remembers: programs by their keys, the least recently used first, and how calls went.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn_backend::Backend;
use burn_t4a::ext::scan::Structure;

use crate::archive::{Saved, load, save};
use crate::error::{CompileError, Result};
use crate::key::{Key, Names};
use crate::program::Program;
use crate::recent::Recent;
use crate::symbolic::Symbolic;
use crate::trace::Source;
use crate::values::Fixed;

/// How calls of a compiled function went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that a program served.
    pub hits: usize,
    /// Calls that were recorded.
    pub traces: usize,
    /// Programs made for other sizes of named axes, without a recording.
    pub instances: usize,
    /// Programs that were dropped for newer ones.
    pub evictions: usize,
    /// Calls that ran eagerly because they cannot be recorded.
    pub fallbacks: usize,
}

/// A recording and its program.
pub(crate) struct Recorded<B: Backend> {
    pub(crate) program: Program<B>,
    source: Source<B>,
    pub(crate) structure: Structure,
    pub(crate) fixed: Fixed,
}

impl<B: Backend> Recorded<B> {
    pub(crate) fn new(
        source: Source<B>,
        structure: Structure,
        fixed: Fixed,
        fused: bool,
    ) -> Arc<Self> {
        Arc::new(Self { program: Program::new(&source, fused), source, structure, fixed })
    }
}

/// Programs for some sizes.
type Instances<B> = Recent<Vec<usize>, Arc<Recorded<B>>>;

/// A recording for all sizes of named axes, and programs for some.
pub(crate) struct Open<B: Backend> {
    symbolic: Symbolic<B>,
    structure: Structure,
    fixed: Fixed,
    instances: Mutex<Instances<B>>,
}

/// What there is for a key.
pub(crate) enum Form<B: Backend> {
    Program(Arc<Recorded<B>>),
    Open(Arc<Open<B>>),
    /// Named axes do not help: each size has an entry of its own.
    EachSize(String),
    /// The function cannot be recorded.
    Eager,
}

impl<B: Backend> Clone for Form<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Program(x) => Self::Program(x.clone()),
            Self::Open(x) => Self::Open(x.clone()),
            Self::EachSize(x) => Self::EachSize(x.clone()),
            Self::Eager => Self::Eager,
        }
    }
}

impl<B: Backend> Open<B> {
    pub(crate) fn new(symbolic: Symbolic<B>, structure: Structure, fixed: Fixed) -> Self {
        Self { symbolic, structure, fixed, instances: Mutex::default() }
    }

    /// The program for these sizes, and whether it is made now.
    pub(crate) fn instance(
        &self,
        sizes: &[usize],
        capacity: usize,
        fused: bool,
    ) -> Result<(Arc<Recorded<B>>, bool)> {
        if let Some(recorded) = lock(&self.instances).find(sizes) {
            return Ok((recorded.clone(), false));
        }
        // Without the lock: calls of other sizes go on meanwhile.
        let source = self.symbolic.at(sizes).map_err(|message| CompileError::Operation {
            operation: "a program for other sizes",
            message,
        })?;
        let recorded = Recorded::new(source, self.structure.clone(), self.fixed.clone(), fused);
        let mut all = lock(&self.instances);
        if let Some(recorded) = all.find(sizes) {
            return Ok((recorded.clone(), false));
        }
        all.put(sizes.to_vec(), recorded.clone(), capacity);
        Ok((recorded, true))
    }
}

/// Programs by their keys.
pub(crate) struct Cache<B: Backend> {
    entries: Recent<Key, Form<B>>,
    /// At most this many entries, at least 1.
    pub(crate) capacity: usize,
    pub(crate) counters: Counters,
    /// How the last call went.
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
    /// What is known of a key, which becomes the most recently used.
    pub(crate) fn find(&mut self, key: &Key) -> Option<Form<B>> {
        let form = self.entries.find(key)?.clone();
        match form {
            Form::Program(_) | Form::Open(_) => {
                self.counters.hits += 1;
                self.last = "hit".into();
            }
            Form::Eager => {
                self.counters.fallbacks += 1;
                self.last = "eager: the function cannot be recorded".into();
            }
            Form::EachSize(_) => {}
        }
        Some(form)
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.entries.iter().any(|(known, _)| known == key)
    }

    /// Notes that a recording of all sizes served these for the first time.
    pub(crate) fn instance(&mut self, sizes: &str) {
        self.counters.instances += 1;
        self.last = format!("a program for {sizes}").into();
    }

    /// Keeps what a call was recorded as, or `why` it could not be.
    pub(crate) fn remember(&mut self, key: Key, form: Form<B>, why: &str) {
        let others = self.entries.iter().filter(|(other, _)| other.named == key.named);
        let nearest = others.map(|(other, _)| key.differences(other)).min_by_key(Vec::len);
        let reason = nearest.map_or_else(|| "the first call".into(), |all| all.join("; "));
        self.last = match form {
            Form::Eager => format!("eager from now on: {why}"),
            Form::EachSize(_) => format!("a recording for each size from now on: {why}"),
            _ => format!("recorded, since {reason}"),
        }
        .into();
        match form {
            Form::Program(_) | Form::Open(_) => self.counters.traces += 1,
            Form::Eager => self.counters.fallbacks += 1,
            Form::EachSize(_) => {}
        }
        self.put(key, form);
    }

    /// Adds an entry or exchanges it, and drops the oldest one where there is no room.
    fn put(&mut self, key: Key, form: Form<B>) {
        if self.entries.put(key, form, self.capacity) {
            self.counters.evictions += 1;
        }
    }

    /// All programs as bytes.
    pub(crate) fn save(&self, names: &Names) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        let mut add = |key: Key, recorded: &Recorded<B>| -> Result<()> {
            if !recorded.fixed.is_empty() {
                return Err(CompileError::Save { what: "results that are no tensors".into() });
            }
            let (results, source) = (recorded.structure.clone(), recorded.source.clone());
            all.push(Saved { key, results, source });
            Ok(())
        };
        for (key, form) in self.entries.iter() {
            match form {
                Form::Program(recorded) => add(key.clone(), recorded)?,
                Form::Open(form) => {
                    for (sizes, recorded) in lock(&form.instances).iter() {
                        let mut key = Key { named: false, ..key.clone() };
                        for axis in &names.axes {
                            key.leaves[axis.leaf].1.shape[axis.axis] = sizes[axis.name];
                        }
                        add(key, recorded)?;
                    }
                }
                Form::EachSize(_) | Form::Eager => {}
            }
        }
        save(&all)
    }

    /// Takes saved programs, and returns how many.
    pub(crate) fn load(&mut self, bytes: &[u8], fused: bool) -> Result<usize> {
        let all = load::<B>(bytes)?;
        let count = all.len();
        for Saved { key, results, source } in all {
            self.put(key, Form::Program(Recorded::new(source, results, Vec::new(), fused)));
        }
        self.last = format!("{count} programs were loaded").into();
        Ok(count)
    }

    /// How calls went, and the programs that there are.
    pub(crate) fn explain(&self, names: &Names) -> String {
        let mut text = format!("{:?}\nlast: {}\n", self.counters, self.last);
        for (key, form) in self.entries.iter() {
            let _ = write!(text, "{key}");
            let programs = |text: &mut String, recorded: &Recorded<B>| {
                let program = &recorded.program;
                let _ = write!(text, ": {} instructions\n{program}", program.len());
            };
            match form {
                Form::Program(recorded) => programs(&mut text, recorded),
                Form::Open(form) => {
                    let _ = writeln!(text, ", 0 for {}", names.names.join(", "));
                    for (sizes, recorded) in lock(&form.instances).iter() {
                        let _ = write!(text, "{}", names.describe(sizes));
                        programs(&mut text, recorded);
                    }
                }
                Form::EachSize(why) => {
                    let _ = writeln!(text, ": a recording for each size: {why}");
                }
                Form::Eager => {
                    let _ = writeln!(text, ": eager");
                }
            }
        }
        text
    }
}
