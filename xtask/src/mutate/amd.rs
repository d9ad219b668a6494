//! What AMD GPUs leave, broken.

use super::judge::Judge;
use unwedge_campaigns::amd::{Given, View};
use unwedge_testkit::amdgpu::{self, Gfx, RadvBuilder};
use unwedge_testkit::mutate::mutate;

/// What AMD GPUs leave, broken: texts, and folders in which one file is.
pub(super) struct Amdgpu {
    texts: Vec<(String, Vec<u8>)>,
    folders: Vec<Vec<(String, Vec<u8>)>>,
}

impl Amdgpu {
    pub(super) fn new() -> Amdgpu {
        Amdgpu {
            texts: amdgpu::texts(),
            folders: Gfx::ALL.map(|gfx| RadvBuilder::complete(gfx).members()).into(),
        }
    }

    pub(super) fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let at = |len: usize| (share / 4) as usize % len.max(1);
        if share % 4 == 3 {
            let Some(mut files) = self.folders.get(at(self.folders.len())).cloned() else { return };
            let broken = share as usize / 64 % files.len().max(1);
            if let Some((_, bytes)) = files.get_mut(broken) {
                *bytes = mutate(bytes, seed);
            }
            let what = format!("seed {seed}, amdgpu folder");
            View::ALL.iter().for_each(|&view| judge.amdgpu(Given::Folder(&files), view, &what));
        } else if let Some((name, text)) = self.texts.get(at(self.texts.len())) {
            let (broken, what) = (mutate(text, seed), format!("seed {seed}, amdgpu {name}"));
            View::ALL.iter().for_each(|&view| judge.amdgpu(Given::File(&broken), view, &what));
        }
    }
}
