//! Archives of random compiled functions, valid, modified and arbitrary: loading is an error, or a call returns values
//! or an error, and memory is bounded. A separate program, because the memory limit of tensors is process-wide.

#[path = "conformance/matrix_programs.rs"]
mod matrix_programs;

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::DType;
use burn_t4a::BurnT4a;
use burn_t4a_transforms::compile::{CompileError, Traced, compile};

use matrix_programs::{Matrix, Mode, bits, function, noise};
use t4a_fuzz::input::Input;
use t4a_fuzz::memory::{Counting, measured};
use t4a_tensor::pool::set_memory_limit;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type B = BurnT4a;

/// Length in bytes of magic, version and checksum, which precede the words.
const HEAD: usize = 13;

/// The archive with these words and the right checksum (FNV-1a).
fn signed(words: &[u8], like: &[u8]) -> Vec<u8> {
    let sum = words.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    [&like[..HEAD - 8], &sum.to_le_bytes(), words].concat()
}

/// Positions of words: a tag and eight bytes, which for a text are its length.
fn positions(words: &[u8]) -> Vec<usize> {
    let mut all = Vec::new();
    let mut at = 0usize;
    while at.saturating_add(9) <= words.len() {
        all.push(at);
        let eight = words[at + 1..at + 9].try_into().expect("eight bytes");
        let text = if words[at] == 2 { u64::from_le_bytes(eight) as usize } else { 0 };
        at = text.saturating_add(at + 9);
    }
    all
}

/// An archive with a few changed, missing or repeated words, or of arbitrary ones.
fn changed(input: &mut Input<'_>, archive: &[u8]) -> Vec<u8> {
    let mut words = archive[HEAD..].to_vec();
    match input.below(8) {
        0 => return archive.to_vec(),
        1 => {
            let name = positions(&words)[1];
            words.truncate(name);
            while !input.is_over() {
                words.push(input.pick(&[0, 0, 0, 1]));
                words.extend((input.size() as u64).to_le_bytes());
            }
        }
        2 => {
            let mut bytes = archive.to_vec();
            let at = (input.word() % bytes.len() as u64) as usize;
            match input.once_in(2) {
                true => bytes.truncate(at),
                false => bytes[at] ^= 1 << input.below(8),
            }
            return bytes;
        }
        _ => {
            for _ in 0..=input.below(3) {
                let all = positions(&words);
                let at = all[(input.word() % all.len() as u64) as usize];
                match input.below(8) {
                    0 => words[at] = input.below(4) as u8,
                    1 => drop(words.drain(at..at + 9)),
                    2 => drop(words.splice(at..at, words[at..at + 9].to_vec())),
                    3 => words[at + 1 + input.below(8)] ^= 1 << input.below(8),
                    _ => {
                        let number =
                            if input.once_in(3) { input.step() } else { input.below(6) as isize };
                        words[at + 1..at + 9].copy_from_slice(&(number as i64).to_le_bytes());
                    }
                }
            }
        }
    }
    signed(&words, archive)
}

/// Runs one case.
fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mode = input.pick(&[Mode::RowMajor, Mode::Any, Mode::Reverse]);
    let dtype = input.pick(&[DType::F32, DType::F64]);
    let fused = !input.once_in(4);
    let [n, m] = [(); 2].map(|()| input.pick(&[1, 3, 4, 8]));
    let middle = bytes.len().min(40);
    let text = bytes[5.min(middle)..middle].to_vec();
    let record = |(x, y): (Matrix<Traced<B>>, Matrix<Traced<B>>)| function(&text, mode, [x, y]);
    let inputs = || (noise([n, m], 1, dtype), noise([n, m], 2, dtype));
    let saved = compile(record).fullgraph().fused(fused);
    let wanted = saved.call(inputs()).expect("programs can be recorded");
    let archive = saved.save().expect("programs have a portable form");

    let bytes = changed(&mut Input::new(&bytes[middle..]), &archive);
    let same = bytes == archive;
    let loaded = compile(record).fullgraph().fused(fused);
    let outcome = catch_unwind(AssertUnwindSafe(|| measured(|| loaded.load(&bytes))));
    let (count, most) = outcome.expect("loading does not panic");
    assert!(most < (1 << 20) + 64 * bytes.len(), "{most} bytes for an archive of {}", bytes.len());
    match count {
        Ok(_) => {}
        Err(CompileError::Load { .. }) => return assert!(!same),
        Err(other) => panic!("{other}"),
    }
    let found =
        catch_unwind(AssertUnwindSafe(|| loaded.call(inputs()))).expect("calls do not panic");
    if same {
        let found = found.expect("a valid archive");
        assert_eq!(loaded.counters().traces, 0);
        assert!(found.iter().map(bits).eq(wanted.iter().map(bits)));
    }
}

#[test]
fn archives_are_errors_or_programs() {
    set_memory_limit(256 << 20);
    bolero::check!().with_max_len(160).for_each(|bytes: &[u8]| run(bytes));
    set_memory_limit(usize::MAX);
}
