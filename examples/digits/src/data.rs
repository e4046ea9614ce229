//! The images: loaded, shuffled by a fixed permutation, split four to one.

use std::io::Read;

use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};
use flate2::read::GzDecoder;

use crate::Result;

/// Images and their labels.
#[derive(Default)]
pub struct Set {
    pub pixels: Vec<[f32; 64]>,
    pub labels: Vec<i32>,
}

pub struct Digits {
    pub train: Set,
    pub test: Set,
}

impl Digits {
    pub fn load(seed: u64) -> Result<Self> {
        let mut text = String::new();
        GzDecoder::new(&include_bytes!("../../data/digits.csv.gz")[..])
            .read_to_string(&mut text)?;
        let mut all = Vec::new();
        for line in text.lines() {
            let values = line.split(',').map(str::parse).collect::<Result<Vec<f32>, _>>()?;
            let (label, pixels) = values.split_last().ok_or("an empty line")?;
            let pixels: [f32; 64] = pixels.try_into()?;
            all.push((pixels.map(|v| v / 8.0 - 1.0), *label as i32));
        }
        shuffle(&mut all, seed);
        let (mut train, mut test) = (Set::default(), Set::default());
        for (i, (pixels, label)) in all.into_iter().enumerate() {
            let set = if i % 5 == 0 { &mut test } else { &mut train };
            set.pixels.push(pixels);
            set.labels.push(label);
        }
        Ok(Self { train, test })
    }
}

impl Set {
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Images with the given indices as `[n, 1, 8, 8]`, and their labels.
    pub fn batch<B: Backend>(&self, at: &[usize]) -> (Tensor<B, 4>, Tensor<B, 1, Int>) {
        let device = B::Device::default();
        let pixels: Vec<f32> = at.iter().flat_map(|&i| self.pixels[i]).collect();
        let labels: Vec<i32> = at.iter().map(|&i| self.labels[i]).collect();
        let images = TensorData::new(pixels, [at.len(), 1, 8, 8]);
        let labels = TensorData::new(labels, [at.len()]);
        (Tensor::from_data(images, &device), Tensor::from_data(labels, &device))
    }
}

/// Fisher–Yates shuffle with Knuth's linear congruential generator: equal on every platform.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for i in (1..items.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        items.swap(i, ((state >> 33) as usize) % (i + 1));
    }
}
