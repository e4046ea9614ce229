//! Sets of partial multi-indices in a fixed order.

/// Multi-indices of `width` sites, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Indices {
    width: usize,
    len: usize,
    data: Vec<usize>,
}

impl Indices {
    pub(super) fn new(width: usize) -> Self {
        Self { width, len: 0, data: Vec::new() }
    }

    /// The one index of no sites.
    pub(super) fn empty_index() -> Self {
        Self { width: 0, len: 1, data: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, i: usize) -> &[usize] {
        &self.data[i * self.width..][..self.width]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.len).map(|i| self.get(i))
    }

    pub(super) fn push(&mut self, head: &[usize], tail: &[usize]) {
        self.data.extend_from_slice(head);
        self.data.extend_from_slice(tail);
        self.len += 1;
    }

    pub(super) fn position(&self, index: &[usize]) -> Option<usize> {
        self.iter().position(|other| other == index)
    }

    pub(super) fn push_new(&mut self, index: &[usize]) -> bool {
        let new = self.position(index).is_none();
        if new {
            self.push(index, &[]);
        }
        new
    }

    pub(super) fn pick(&self, positions: &[usize]) -> Self {
        let mut out = Self::new(self.width);
        positions.iter().for_each(|&i| out.push(self.get(i), &[]));
        out
    }

    /// `self × {0, …, d − 1}`, the new index last.
    pub(super) fn times_site(&self, d: usize) -> Self {
        let mut out = Self::new(self.width + 1);
        self.iter().for_each(|head| (0..d).for_each(|s| out.push(head, &[s])));
        out
    }

    /// `{0, …, d − 1} × self`, the new index first.
    pub(super) fn site_times(&self, d: usize) -> Self {
        let mut out = Self::new(self.width + 1);
        (0..d).for_each(|s| self.iter().for_each(|tail| out.push(&[s], tail)));
        out
    }
}
