//! Broken devcoredumps of msm.

use super::judge::Judge;
use super::{FILES_SHARE, REPETITIVE, pick};
use unwedge_base::Generation;
use unwedge_campaigns::View;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::hostile::{hostile, repetitive};
use unwedge_testkit::mutate::mutate;

/// Each dump is shown by every so many-th view, the next one by others.
const VIEWS_SHARE: usize = 4;

/// Broken dumps.
pub(super) struct Dumps {
    synthetic: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
    views: Vec<View>,
}

impl Dumps {
    pub(super) fn new(files: Vec<Vec<u8>>) -> Dumps {
        let mut synthetic: Vec<Vec<u8>> = variety().into_iter().map(|(_, text)| text).collect();
        synthetic.extend(Generation::ALL.map(|g| DevcoreBuilder::complete(g).text()));
        Dumps { synthetic, files, views: View::all() }
    }

    pub(super) fn repetitions(&mut self, worker: u64, judge: &mut Judge) {
        for (i, text) in repetitive(REPETITIVE).iter().enumerate().skip(worker as usize).step_by(2) {
            self.views.iter().for_each(|&view| judge.dump(text, view, &format!("repetition {i}")));
        }
    }

    pub(super) fn one(&mut self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, text) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", mutate(file, seed)),
            _ if share % 4 == 1 => ("hostile", hostile(seed)),
            _ if share % 4 == 2 => ("hostile", mutate(&hostile(seed), seed)),
            _ => ("synthetic", pick(&self.synthetic, share).map_or_else(Vec::new, |s| mutate(s, seed))),
        };
        let shown = self.views.iter().skip((share / 16) as usize % VIEWS_SHARE).step_by(VIEWS_SHARE);
        shown.for_each(|&view| judge.dump(&text, view, &format!("seed {seed}, {what} dump")));
    }
}
