//! A conditional random field on top of a network: the tag of a word depends on the neighbouring tags.
//!
//! ```text
//! cargo run --release --example crf
//! ```
//!
//! Sentences are drawn from a hidden Markov model with ambiguous words: "light" is an adjective, a noun or a verb. A
//! network scores every word separately; [`Crf`] learns transition scores, and both are trained by the likelihood of
//! whole sentences. The accuracy is asserted to be far above that of the best classifier of single words. The picture has
//! the loss.

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::{Embedding, EmbeddingConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};
use burn_t4a::ext::Result;
use burn_t4a::ext::operation::Operations;
use burn_t4a::models::{Crf, LinearChain};
use burn_t4a::{BurnT4a, T4aDevice};

#[path = "picture/lines.rs"]
mod picture;

const TAGS: [&str; 4] = ["article", "adjective", "noun", "verb"];
const WORDS: [&str; 6] = ["the", "light", "green", "fish", "walk", "run"];
/// Transition probabilities of tags, and emission probabilities of words.
const NEXT: [[f64; 4]; 4] =
    [[0.0, 0.4, 0.6, 0.0], [0.0, 0.2, 0.8, 0.0], [0.2, 0.0, 0.0, 0.8], [0.9, 0.0, 0.1, 0.0]];
const SHOWS: [[f64; 6]; 4] = [
    [0.6, 0.1, 0.1, 0.1, 0.05, 0.05],
    [0.05, 0.45, 0.4, 0.05, 0.0, 0.05],
    [0.0, 0.25, 0.15, 0.3, 0.15, 0.15],
    [0.0, 0.2, 0.05, 0.25, 0.25, 0.25],
];
const LONGEST: usize = 12;

struct Sentence {
    words: Vec<usize>,
    tags: Vec<usize>,
}

/// SplitMix64: G. Steele et al. 2014.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 * 0.5f64.powi(53)
    }

    fn choose(&mut self, p: &[f64]) -> usize {
        let mut left = self.unit();
        p.iter()
            .position(|p| {
                left -= p;
                left < 0.0
            })
            .unwrap_or(p.len() - 1)
    }

    fn sentence(&mut self) -> Sentence {
        let n = 4 + (self.unit() * (LONGEST - 3) as f64) as usize;
        let mut tags = vec![0];
        for t in 1..n {
            tags.push(self.choose(&NEXT[tags[t - 1]]));
        }
        Sentence { words: tags.iter().map(|&tag| self.choose(&SHOWS[tag])).collect(), tags }
    }
}

#[derive(Module, Debug)]
struct Tagger<B: Backend> {
    /// Scores of the tags of each word; any network is possible here.
    net: Embedding<B>,
    crf: Crf<B>,
}

impl<B: Operations> Tagger<B> {
    fn new(device: &B::Device) -> Self {
        let net = EmbeddingConfig::new(WORDS.len(), TAGS.len()).init(device);
        Self { net, crf: Crf::new(TAGS.len(), device) }
    }

    fn chain(&self, sentences: &[Sentence]) -> Result<LinearChain<B>> {
        let padded = sentences.iter().flat_map(|s| {
            s.words.iter().map(|&word| word as i64).chain(std::iter::repeat(0)).take(LONGEST)
        });
        let data = TensorData::new(padded.collect(), [sentences.len(), LONGEST]);
        let words = Tensor::<B, 2, Int>::from_data(data, &B::Device::default());
        let lengths: Vec<usize> = sentences.iter().map(|s| s.words.len()).collect();
        self.crf.chain(self.net.forward(words), Some(&lengths))
    }
}

/// Fraction of correct tags.
fn accuracy(sentences: &[Sentence], guess: impl Fn(usize, usize) -> usize) -> f64 {
    let (mut right, mut all) = (0, 0);
    for (b, sentence) in sentences.iter().enumerate() {
        all += sentence.tags.len();
        right += sentence.tags.iter().enumerate().filter(|&(t, &tag)| guess(b, t) == tag).count();
    }
    right as f64 / all as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    type B = Autodiff<BurnT4a>;
    B::seed(&T4aDevice, 1);
    let mut random = Random(1);
    let train: Vec<Sentence> = (0..200).map(|_| random.sentence()).collect();
    let test: Vec<Sentence> = (0..200).map(|_| random.sentence()).collect();
    let tags: Vec<Vec<usize>> = train.iter().map(|s| s.tags.clone()).collect();

    let mut model = Tagger::<B>::new(&T4aDevice);
    let (mut optimizer, mut losses) = (AdamConfig::new().init(), Vec::new());
    println!("step   −ln p per sentence");
    for step in 0..=60 {
        let loss = model.chain(&train)?.log_likelihood(&tags)?.mean().neg();
        let value = f64::from(loss.clone().into_scalar());
        losses.push((f64::from(step), value));
        if step % 20 == 0 {
            println!("{step:>4} {value:>10.4}");
        }
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.1, model, gradients);
    }

    let chain = model.valid().chain(&test)?;
    let best: Vec<i64> = chain.viterbi()?.0.into_data().iter::<i64>().collect();
    let of_sentences = accuracy(&test, |b, t| best[b * LONGEST + t] as usize);
    // The most frequent tag of each word in the training data.
    let mut seen = [[0; 4]; 6];
    let words = train.iter().flat_map(|s| s.words.iter().zip(&s.tags));
    words.for_each(|(&word, &tag)| seen[word][tag] += 1);
    let most = seen.map(|tags| (0..4).max_by_key(|&tag| tags[tag]).unwrap_or(0));
    let of_words = accuracy(&test, |b, t| most[test[b].words[t]]);
    println!("\ntags right, by words alone {:>5.1} %", 100.0 * of_words);
    println!("            by sentences   {:>5.1} %\n", 100.0 * of_sentences);

    let marginals: Vec<f64> = chain.marginals()?.into_data().iter::<f64>().collect();
    let next = &chain.k_best(2)?[0][1];
    println!("{:<7} {:<10} {:<10} {:>5}   next best", "word", "tag", "predicted", "p");
    for (t, (&word, &tag)) in test[0].words.iter().zip(&test[0].tags).enumerate() {
        let guess = best[t] as usize;
        let (p, other) = (marginals[t * TAGS.len() + guess], TAGS[next.tags[t]]);
        println!("{:<7} {:<10} {:<10} {p:>5.2}   {other}", WORDS[word], TAGS[tag], TAGS[guess]);
    }
    assert!(of_sentences > of_words + 0.1, "{of_sentences} {of_words}");
    picture::lines("crf", "step", &[losses])
}
