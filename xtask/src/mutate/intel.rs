//! Broken error states of i915, devcoredumps of xe, and images of Intel contexts.

use super::judge::Judge;
use super::{FILES_SHARE, REPETITIVE, WORKERS, pick};
use unwedge_campaigns::View;
use unwedge_hw::intel::platform::{Engine, Platform};
use unwedge_intel::lrc::{LrcLayout, LrcOwner};
use unwedge_testkit::contexts;
use unwedge_testkit::mutate::mutate;

/// Broken error states of i915, or devcoredumps of xe.
pub(super) struct Intel {
    pub(super) synthetic: Vec<Vec<u8>>,
    pub(super) files: Vec<Vec<u8>>,
    pub(super) what: &'static str,
}

impl Intel {
    pub(super) fn repetitions(worker: u64, judge: &mut Judge) {
        let texts = unwedge_testkit::intel::repetitive(REPETITIVE);
        for (i, text) in texts.iter().enumerate().skip(worker as usize).step_by(WORKERS as usize) {
            View::OF_INTEL
                .iter()
                .for_each(|&view| judge.dump(text, view, &format!("repetition {i} of Intel")));
        }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, whole) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", Some(file)),
            _ => ("synthetic", pick(&self.synthetic, share)),
        };
        let text = whole.map_or_else(Vec::new, |whole| mutate(whole, seed));
        for view in View::OF_INTEL {
            judge.dump(&text, view, &format!("seed {seed}, {what} {}", self.what));
        }
    }
}

/// Broken contexts.
pub(super) struct Contexts {
    layouts: Vec<LrcLayout>,
}

impl Contexts {
    /// Those of every engine.
    pub(super) fn new() -> Contexts {
        let targets = Platform::all().iter().flat_map(|platform| {
            let (version, drivers) = (platform.version(), platform.drivers());
            let engines = Engine::all(version);
            engines.flat_map(move |engine| {
                drivers.iter().map(move |&driver| LrcOwner { driver, version, engine })
            })
        });
        Contexts { layouts: targets.filter_map(|target| LrcLayout::of(target).ok()).collect() }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let at = (share as usize).checked_rem(self.layouts.len());
        let Some(layout) = at.and_then(|at| self.layouts.get(at)) else { return };
        let whole = contexts::context(&layout.expand(), seed);
        judge.context(&contexts::mutate(&whole, seed), &whole, layout, &format!("seed {seed}, context"));
    }
}
