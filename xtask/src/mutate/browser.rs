//! Broken files of every kind, browsed.

use super::judge::Judge;
use super::pick;
use unwedge_testkit::{amdgpu, captures, devcore, hostile, i915, mutate, xe};

/// Files for the browser.
pub(super) struct Browser {
    texts: Vec<Vec<u8>>,
    captures: Vec<Vec<u8>>,
}

impl Browser {
    pub(super) fn new() -> Browser {
        let texts = [devcore::variety(), i915::variety(), xe::variety(), amdgpu::texts()].concat();
        Browser { texts: texts.into_iter().map(|(_, text)| text).collect(), captures: captures::variety() }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, broken) = match share % 8 {
            0 => ("hostile dump", hostile::hostile(seed)),
            1 => ("hostile capture", captures::hostile(seed)),
            2 | 3 => {
                let whole = pick(&self.captures, share / 8).map_or(&[][..], Vec::as_slice);
                ("capture", captures::mutate(whole, seed))
            }
            _ => {
                let whole = pick(&self.texts, share / 8).map_or(&[][..], Vec::as_slice);
                ("dump", mutate::mutate(whole, seed))
            }
        };
        judge.browser(&broken, seed, &format!("seed {seed}, {what} in the browser"));
    }
}
