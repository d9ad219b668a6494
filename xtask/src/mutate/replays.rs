//! Captures that are executed, with what is executed broken.

use super::judge::Judge;
use super::{captures::without_needless_zeros, pick};
use unwedge_testkit::{captures, executed};

/// Captures for the virtual Adreno.
pub(super) struct Replays {
    /// Single submits.
    whole: Vec<Vec<u8>>,
}

impl Replays {
    pub(super) fn new(files: &[Vec<u8>]) -> Replays {
        let synthetic = captures::variety().into_iter();
        let of_files = files.iter().flat_map(|file| executed::submits(&without_needless_zeros(file)));
        Replays { whole: synthetic.chain(of_files).collect() }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let whole = pick(&self.whole, share).cloned().unwrap_or_default();
        let broken = match share % 8 {
            0 => captures::hostile(seed),
            1 => captures::mutate(&executed::mutate(&whole, seed), seed),
            _ => executed::mutate(&whole, seed),
        };
        let what = format!("seed {seed}, executed capture");
        judge.replay(&broken, share % 4 == 3, &what);
        if share % 4 == 1 {
            judge.lint(&broken, &what);
        }
    }
}
