//! Allocation of ranges in an arena: first fit, in whole cache lines.

/// Elements of a slot are a multiple of this many, so that slots begin with a cache line.
const LINE: usize = 16;

/// Free ranges, by place.
#[derive(Debug, Default)]
pub(super) struct Arena {
    free: Vec<(usize, usize)>,
    len: usize,
}

fn whole(n: usize) -> usize {
    n.max(1).next_multiple_of(LINE)
}

impl Arena {
    /// A slot for `n` elements.
    pub(super) fn place(&mut self, n: usize) -> usize {
        let n = whole(n);
        if let Some(at) = self.free.iter().position(|(_, size)| *size >= n) {
            let (start, size) = self.free[at];
            if size == n {
                self.free.remove(at);
            } else {
                self.free[at] = (start + n, size - n);
            }
            return start;
        }
        // The last range may grow.
        if let Some(&(start, size)) = self.free.last()
            && start + size == self.len
        {
            self.free.pop();
            self.len = start + n;
            return start;
        }
        self.len += n;
        self.len - n
    }

    /// Gives a slot of `n` elements back.
    pub(super) fn release(&mut self, start: usize, n: usize) {
        let n = whole(n);
        let at = self.free.partition_point(|(other, _)| *other < start);
        self.free.insert(at, (start, n));
        // With what is free behind it, and before it.
        if let Some(&(next, size)) = self.free.get(at + 1)
            && start + n == next
        {
            self.free[at].1 += size;
            self.free.remove(at + 1);
        }
        if let Some(before) = at.checked_sub(1)
            && self.free[before].0 + self.free[before].1 == start
        {
            self.free[before].1 += self.free[at].1;
            self.free.remove(at);
        }
    }

    /// Elements of the whole arena.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots in use never overlap, and all of it is one range again in the end.
    #[test]
    fn slots_are_apart_and_come_back() {
        let (mut arena, mut used, mut state) = (Arena::default(), Vec::new(), 7usize);
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = (state >> 33) % 100;
            if state >> 60 & 1 == 0 || used.is_empty() {
                let at = arena.place(n);
                let apart =
                    |&(other, m): &(usize, usize)| at + whole(n) <= other || other + whole(m) <= at;
                assert!(used.iter().all(apart) && at + whole(n) <= arena.len());
                used.push((at, n));
            } else {
                let (at, n) = used.swap_remove((state >> 40) % used.len());
                arena.release(at, n);
            }
        }
        used.drain(..).for_each(|(at, n)| arena.release(at, n));
        assert_eq!(arena.free, [(0, arena.len())]);
    }
}
