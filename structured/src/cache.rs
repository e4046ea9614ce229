//! Cache of structures and plans by their construction arguments: equal arguments return the same shared value.
//!
//! There is one table per pair of key and value type. A table that exceeds its size limit drops the least recently
//! used half of its entries; values that are in use elsewhere stay alive through their `Arc`.

use std::any::{Any, TypeId};
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, LazyLock, Mutex};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::error::Result;

/// Maximum size of the entries of one table, in bytes.
const MOST_BYTES: usize = 64 << 20;

struct Table<K, V> {
    of: HashTable<CacheEntry<K, V>>,
    clock: u64,
    bytes: usize,
}

struct CacheEntry<K, V> {
    key: K,
    hash: u64,
    value: Arc<V>,
    used: u64,
    bytes: usize,
}

impl<K: Eq, V> Table<K, V> {
    fn get(&mut self, hash: u64, key: &K) -> Option<Arc<V>> {
        self.clock += 1;
        let entry = self.of.find_mut(hash, |entry| entry.key == *key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Inserts the value, or returns the one that another thread inserted in the meantime.
    fn put(&mut self, hash: u64, key: K, value: Arc<V>, bytes: usize) -> Arc<V> {
        if self.bytes + bytes > MOST_BYTES {
            let mut used: Vec<u64> = self.of.iter().map(|entry| entry.used).collect();
            used.sort_unstable();
            let middle = used.get(used.len() / 2).copied().unwrap_or(0);
            self.of.retain(|entry| entry.used > middle);
            self.bytes = self.of.iter().map(|entry| entry.bytes).sum();
        }
        self.clock += 1;
        match self.of.entry(hash, |entry| entry.key == key, |entry| entry.hash) {
            Entry::Occupied(mut found) => {
                found.get_mut().used = self.clock;
                found.get().value.clone()
            }
            Entry::Vacant(free) => {
                self.bytes += bytes;
                let entry = CacheEntry { key, hash, value: value.clone(), used: self.clock, bytes };
                free.insert(entry);
                value
            }
        }
    }
}

static TABLES: LazyLock<Mutex<HashMap<TypeId, Box<dyn Any + Send>>>> =
    LazyLock::new(Mutex::default);

static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// Runs `f` with the table of these key and value types.
fn with<K: Eq + Send + 'static, V: Send + Sync + 'static, R>(
    f: impl FnOnce(&mut Table<K, V>) -> R,
) -> R {
    // A poisoned lock protects complete entries only: insertion is the last step.
    let mut tables = TABLES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let new = || Box::new(Table::<K, V> { of: HashTable::new(), clock: 0, bytes: 0 });
    let table = tables.entry(TypeId::of::<Table<K, V>>()).or_insert_with(|| new());
    match table.downcast_mut() {
        Some(table) => f(table),
        None => unreachable!("tables are found by their types"),
    }
}

/// Cached value of a key, built by `make` on a miss; `weight` is its size in bytes.
pub(crate) fn cached<K, V>(
    key: K,
    weight: impl FnOnce(&V) -> usize,
    make: impl FnOnce(&K) -> Result<V>,
) -> Result<Arc<V>>
where
    K: Hash + Eq + Send + 'static,
    V: Send + Sync + 'static,
{
    // Keys are long, and hashed once, outside of the lock.
    let hash = HASHER.hash_one(&key);
    if let Some(value) = with(|table: &mut Table<K, V>| table.get(hash, &key)) {
        return Ok(value);
    }
    // Built outside of the lock: `make` may use the cache itself.
    let value = make(&key)?;
    let bytes = weight(&value);
    Ok(with(|table: &mut Table<K, V>| table.put(hash, key, Arc::new(value), bytes)))
}

/// Drops all cached structures and plans; values in use stay valid.
pub fn clear_plans() {
    TABLES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
}
