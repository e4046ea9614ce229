//! A small map with least-recently-used eviction.

use std::borrow::Borrow;

/// Map with linear search, ordered by last use: the most recently used entry is found first and evicted last.
pub struct Recent<K, V>(Vec<(K, V)>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, V> Recent<K, V> {
    /// Looks up a value and marks it as the most recently used.
    pub fn find<Q: PartialEq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.0.iter().rposition(|(known, _)| known.borrow() == key)?;
        self.0[at..].rotate_left(1);
        self.0.last_mut().map(|last| &mut last.1)
    }

    /// Inserts or replaces a value; evicts the least recently used one if there are more than `capacity`. Returns true
    /// if one was evicted.
    pub fn put(&mut self, key: K, value: V, capacity: usize) -> bool {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, value));
        let full = self.0.len() > capacity;
        if full {
            self.0.remove(0);
        }
        full
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_dropped() {
        let mut all = Recent::default();
        assert!(!all.put(1, 'a', 2) && !all.put(2, 'b', 2));
        assert_eq!(all.find(&1), Some(&mut 'a'));
        assert!(all.put(3, 'c', 2));
        assert_eq!(all.find(&2), None);
        assert_eq!(all.find(&1), Some(&mut 'a'));
        assert!(!all.put(3, 'd', 2));
        assert_eq!(all.find(&3), Some(&mut 'd'));
    }
}
