//! Linear chains against enumeration of all tag sequences, with and without a tape.

use burn_tensor::{DType, TensorData};

use super::{LinearChain, ScoredTags, Tensor, device, numbers};

pub(crate) const BATCH: usize = 3;
pub(crate) const LENGTH: usize = 4;
pub(crate) const TAGS: usize = 3;
pub(crate) const LENGTHS: [usize; BATCH] = [4, 1, 3];

pub(crate) fn tensor<const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&device(), DType::F64))
}

#[track_caller]
pub(crate) fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() < 1e-11 || a == b, "{got:?}\n{want:?}");
    }
}

/// Pseudo-random scores.
pub(crate) fn scores(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64)
        .map(|i| (((i + 1) * (seed + 7919)) as f64 * 0.618_034).fract() * 4.0 - 2.0)
        .collect()
}

pub(crate) struct Case {
    emissions: Vec<f64>,
    transitions: Vec<f64>,
    start: Vec<f64>,
    end: Vec<f64>,
    lengths: [usize; BATCH],
}

impl Case {
    pub(crate) fn new(lengths: [usize; BATCH]) -> Self {
        let mut transitions = scores(TAGS * TAGS, 2);
        transitions[TAGS + 2] = f64::NEG_INFINITY;
        let emissions = scores(BATCH * LENGTH * TAGS, 1);
        Self { emissions, transitions, start: scores(TAGS, 3), end: scores(TAGS, 4), lengths }
    }

    pub(crate) fn chain(&self, emissions: &Tensor<3>) -> LinearChain {
        let lengths = (self.lengths != [LENGTH; BATCH]).then_some(&self.lengths[..]);
        LinearChain::new(emissions.clone(), tensor(&self.transitions, [TAGS, TAGS]), lengths)
            .and_then(|chain| chain.start(tensor(&self.start, [TAGS])))
            .and_then(|chain| chain.end(tensor(&self.end, [TAGS])))
            .unwrap()
    }

    pub(crate) fn emissions(&self) -> Tensor<3> {
        tensor(&self.emissions, [BATCH, LENGTH, TAGS])
    }

    /// Every sequence of tags of chain `b`, best first.
    pub(crate) fn all(&self, b: usize) -> Vec<ScoredTags> {
        let n = self.lengths[b];
        let mut all: Vec<ScoredTags> = (0..TAGS.pow(n as u32))
            .map(|code| {
                let tags: Vec<usize> = (0..n).map(|t| code / TAGS.pow(t as u32) % TAGS).collect();
                let emitted: f64 =
                    (0..n).map(|t| self.emissions[(b * LENGTH + t) * TAGS + tags[t]]).sum();
                let moved: f64 =
                    (1..n).map(|t| self.transitions[tags[t - 1] * TAGS + tags[t]]).sum();
                let score = emitted + moved + self.start[tags[0]] + self.end[tags[n - 1]];
                ScoredTags { tags, score }
            })
            .filter(|x| x.score > f64::NEG_INFINITY)
            .collect();
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        all
    }
}

fn equals_enumeration(lengths: [usize; BATCH]) {
    let case = Case::new(lengths);
    let chain = case.chain(&case.emissions());
    let all: Vec<_> = (0..BATCH).map(|b| case.all(b)).collect();
    let log_z: Vec<f64> =
        all.iter().map(|paths| paths.iter().map(|x| x.score.exp()).sum::<f64>().ln()).collect();
    close(&numbers(chain.log_partition().unwrap()), &log_z);

    let mut marginals = vec![0.0; BATCH * LENGTH * TAGS];
    for (b, paths) in all.iter().enumerate() {
        for path in paths {
            for (t, tag) in path.tags.iter().enumerate() {
                marginals[(b * LENGTH + t) * TAGS + tag] += (path.score - log_z[b]).exp();
            }
        }
    }
    close(&numbers(chain.marginals().unwrap()), &marginals);

    let (tags, best) = chain.viterbi().unwrap();
    let want: Vec<i64> = all
        .iter()
        .flat_map(|paths| (0..LENGTH).map(|t| paths[0].tags.get(t).map_or(0, |&tag| tag as i64)))
        .collect();
    assert_eq!(tags.to_data().iter::<i64>().collect::<Vec<_>>(), want);
    close(&numbers(best), &all.iter().map(|paths| paths[0].score).collect::<Vec<_>>());

    for (got, want) in chain.k_best(5).unwrap().iter().zip(&all) {
        assert_eq!(got.len(), want.len().min(5));
        for (got, want) in got.iter().zip(want) {
            assert_eq!(got.tags, want.tags);
            close(&[got.score], &[want.score]);
        }
    }

    let some: Vec<Vec<usize>> =
        all.iter().map(|paths| paths[paths.len() / 2].tags.clone()).collect();
    let want: Vec<f64> =
        all.iter().zip(&log_z).map(|(paths, z)| paths[paths.len() / 2].score - z).collect();
    close(&numbers(chain.log_likelihood(&some).unwrap()), &want);
}

#[test]
fn chains_equal_enumeration() {
    equals_enumeration([LENGTH; BATCH]);
    equals_enumeration(LENGTHS);
}

#[test]
fn chains_reject_what_does_not_fit() {
    let case = Case::new([LENGTH; BATCH]);
    let x = case.emissions();
    let square = || tensor(&case.transitions, [TAGS, TAGS]);
    let message = |lengths: &[usize]| {
        LinearChain::new(x.clone(), square(), Some(lengths)).unwrap_err().to_string()
    };
    assert!(message(&[1, 2]).contains("lengths of 3 sequences are required, given 2"));
    for lengths in [[1, 0, 1], [1, 5, 1]] {
        let message = message(&lengths);
        assert!(message.contains("sequence 1: a length between 1 and 4"), "{message}");
    }
    let wide = tensor(&[0.0; 12], [TAGS, 4]);
    assert!(LinearChain::new(x.clone(), wide, None).unwrap_err().to_string().contains("[3, 4]"));
    let single = square().cast(DType::F32);
    assert!(LinearChain::new(x.clone(), single, None).unwrap_err().to_string().contains("f32"));
    let chain = || LinearChain::new(x.clone(), square(), None).unwrap();
    assert!(chain().start(tensor(&[0.0], [1])).is_err());
    // The first place, not all tags.
    for (last, place) in [
        (vec![0, 0, 3, 0], "sequence 2, step 2: tag 3, but the 3 tags are 0 to 2"),
        (vec![0; 3], "sequence 2 of length 4: 3 tags are given"),
    ] {
        let error = chain().score(&[vec![0; 4], vec![0; 4], last]).unwrap_err().to_string();
        assert!(error.ends_with(place), "{error}");
    }
    let error = chain().score(&[vec![0; 4]]).unwrap_err().to_string();
    assert!(error.ends_with("tags of 3 sequences are required, given 1"), "{error}");
    assert!(chain().k_best(0).is_err());
}
