//! Which contents of buffers a verdict needs, found by leaving them out.
//!
//! Nothing is assumed about what the post-mortem reads: contents are cut only if verdict and packets around the stop are the same
//! text without them. Groups are halved until they can be cut or are a single buffer.

use super::verdict;
use unwedge_capture::private::PrivateDump;
use unwedge_capture::{Dump, FileKind};
use unwedge_hw::Db;

/// Verdicts that are made at most, and bytes of dumps that are read for them. What is undecided then is kept.
const TRIALS: usize = 256;
const TRIED_BYTES: u64 = 8 << 30;

/// The result.
pub(super) struct Search {
    /// For each of the contents, whether it can be cut.
    pub(super) cut: Vec<bool>,
    /// Not all was tried.
    pub(super) unfinished: bool,
}

struct Trial<'s, 'a> {
    private: &'s PrivateDump<'a>,
    kind: FileKind,
    db: &'s Db,
    max_size: u64,
    wanted: Option<Vec<u8>>,
    search: Search,
    left: usize,
}

pub(super) fn search(private: &PrivateDump<'_>, kind: FileKind, db: &Db, max_size: u64) -> Search {
    let count = private.contents.len();
    let search = Search { cut: vec![false; count], unfinished: false };
    let trials = TRIED_BYTES / private.len().max(1) as u64;
    let left = usize::try_from(trials).unwrap_or(TRIALS).clamp(1, TRIALS);
    let mut trial = Trial { private, kind, db, max_size, wanted: None, search, left };
    trial.wanted = trial.verdict();
    if trial.wanted.is_some() {
        let all: Vec<usize> = (0..count).collect();
        trial.cut(&all);
    }
    trial.search
}

impl Trial<'_, '_> {
    fn verdict(&self) -> Option<Vec<u8>> {
        let bytes =
            self.private.rewrite(None, &|number| self.search.cut.get(number).copied().unwrap_or(false));
        let dump = Dump::read_file(self.kind, &bytes).ok()?;
        verdict(&dump, self.db, self.max_size)
    }

    fn set(&mut self, group: &[usize], cut: bool) {
        for &number in group {
            if let Some(entry) = self.search.cut.get_mut(number) {
                *entry = cut;
            }
        }
    }

    fn cut(&mut self, group: &[usize]) {
        if group.is_empty() {
            return;
        }
        if self.left == 0 {
            self.search.unfinished = true;
            return;
        }
        self.left -= 1;
        self.set(group, true);
        if self.verdict() == self.wanted {
            return;
        }
        self.set(group, false);
        if group.len() > 1 {
            let (first, second) = group.split_at(group.len() / 2);
            self.cut(first);
            self.cut(second);
        }
    }
}
