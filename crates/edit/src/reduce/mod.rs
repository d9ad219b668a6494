//! Reduction: the smallest capture found that still shows a fault.
//!
//! Delta debugging (Zeller and Hildebrandt, 2002) over parts of the capture, the largest first: sets of buffers, submits, buffers, packets,
//! bytes of buffers, instructions of shaders. Whether a candidate still shows the fault, a predicate says. What is left is a capture that can be
//! read and executed like any other. Never: executes.

mod ddmin;
mod model;

use crate::rewrite::{
    AddressSpace, PacketChange, PacketEdit, RewriteError, SetEdit, StreamEditor, StreamPacket, rewrite,
};
use ddmin::{Attempt, minimize};
use model::{PieceBuffer, PieceCapture, PieceSet};
use std::collections::BTreeSet;
use std::rc::Rc;
use unwedge_base::Diagnostic;
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoState};

/// Bytes of blocks of buffers that are taken away, the largest first.
const BLOCKS: [usize; 6] = [1 << 20, 1 << 16, 1 << 12, 1 << 8, 1 << 5, 1 << 3];
/// A buffer is not looked at in more blocks at once.
const MOST_BLOCKS: usize = 1 << 12;

/// A reduced capture.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The capture.
    pub capture: Vec<u8>,
    /// Bytes that it had.
    pub from: usize,
    /// Candidates that were tried.
    pub tries: usize,
    /// It stopped because of the most candidates.
    pub limited: bool,
    /// What was lost of the original.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a capture is not reduced.
#[derive(Debug, thiserror::Error)]
pub enum ReduceError<E> {
    /// The capture itself does not show the fault.
    #[error("the capture itself does not show the fault")]
    NotInteresting,
    /// The predicate failed.
    #[error(transparent)]
    Predicate(E),
}

/// Reduces a capture with at most so many candidates. The predicate says whether a candidate still shows the fault.
///
/// # Errors
/// [`ReduceError::NotInteresting`] if the predicate refuses the capture itself; errors of the predicate end the reduction.
pub fn reduce<E>(
    capture: &[u8],
    db: &Db,
    tries: usize,
    mut interesting: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<Reduction, ReduceError<E>> {
    let pieces = PieceCapture::read(capture);
    let mut reducer =
        Reducer { best: pieces, db, tries: 0, limit: tries, limited: false, interesting: &mut interesting };
    let mut diagnostics = Vec::new();
    if !reducer.is_interesting(capture).map_err(ReduceError::Predicate)? {
        return Err(ReduceError::NotInteresting);
    }
    if !reducer.is_interesting(&reducer.best.write()).map_err(ReduceError::Predicate)? {
        // Taken apart and put together again it is another capture: a broken one.
        let message =
            "the capture does not show the fault once its sections are put in order, and stays as it is";
        diagnostics.push(Diagnostic::loss(None, message));
        let tries = reducer.tries;
        return Ok(Reduction {
            capture: capture.to_vec(),
            from: capture.len(),
            tries,
            limited: false,
            diagnostics,
        });
    }
    reducer.run().map_err(ReduceError::Predicate)?;
    let Reducer { best, tries, limited, .. } = reducer;
    Ok(Reduction { capture: best.write(), from: capture.len(), tries, limited, diagnostics })
}

struct Reducer<'r, E> {
    best: PieceCapture,
    db: &'r Db,
    tries: usize,
    limit: usize,
    limited: bool,
    interesting: &'r mut dyn FnMut(&[u8]) -> Result<bool, E>,
}

impl<E> Reducer<'_, E> {
    fn is_interesting(&mut self, candidate: &[u8]) -> Result<bool, E> {
        self.tries += 1;
        (self.interesting)(candidate)
    }

    /// Takes parts away: `candidate` makes the capture that has only some of `count` parts.
    fn minimize(
        &mut self,
        count: usize,
        mut candidate: impl FnMut(&PieceCapture, &[usize]) -> Option<PieceCapture>,
    ) -> Result<(), E> {
        if count == 0 {
            return Ok(());
        }
        let base = self.best.clone();
        let mut failed = None;
        let mut best = None;
        minimize(count, &mut |keep| {
            if self.tries >= self.limit {
                self.limited = true;
                return Attempt::Stop;
            }
            let Some(made) = candidate(&base, keep) else { return Attempt::Refused };
            match self.is_interesting(&made.write()) {
                Ok(true) => {
                    best = Some(made);
                    Attempt::Taken
                }
                Ok(false) => Attempt::Refused,
                Err(error) => {
                    failed = Some(error);
                    Attempt::Stop
                }
            }
        });
        if let Some(best) = best {
            self.best = best;
        }
        failed.map_or(Ok(()), Err)
    }

    fn run(&mut self) -> Result<(), E> {
        self.minimize(self.best.sets.len(), |base, keep| Some(base.with_sets(keep)))?;
        for set in 0..self.best.sets.len() {
            self.submits(set)?;
            self.buffers(set)?;
            self.blocks(set, 1 << 12)?;
        }
        let mut size = usize::MAX;
        // Each pass makes room for the others; what moves streams adds a buffer for them.
        while !self.limited && self.best.write().len() < size {
            size = self.best.write().len();
            self.packets()?;
            for set in 0..self.best.sets.len() {
                self.buffers(set)?;
                self.blocks(set, 1)?;
            }
        }
        for set in 0..self.best.sets.len() {
            self.zeros(set)?;
            self.others(set)?;
        }
        Ok(())
    }

    fn submits(&mut self, set: usize) -> Result<(), E> {
        let count = self.best.sets.get(set).map_or(0, |set| set.submits.len());
        self.minimize(count, |base, keep| {
            changed(base, set, |set| {
                let submits = keep.iter().filter_map(|&index| set.submits.get(index).copied()).collect();
                PieceSet { submits, ..set.clone() }
            })
        })
    }

    fn buffers(&mut self, set: usize) -> Result<(), E> {
        let count = self.best.sets.get(set).map_or(0, |set| set.named.len());
        self.minimize(count, |base, keep| {
            changed(base, set, |set| {
                let named = keep.iter().filter_map(|&index| set.named.get(index).copied()).collect();
                PieceSet { named, ..set.clone() }
            })
        })?;
        let count = self.best.sets.get(set).map_or(0, |set| set.buffers.len());
        self.minimize(count, |base, keep| {
            changed(base, set, |set| {
                let buffers = keep.iter().filter_map(|&index| set.buffers.get(index).cloned()).collect();
                PieceSet { buffers, ..set.clone() }
            })
        })
    }

    /// Bytes of each buffer, in blocks down to a size.
    fn blocks(&mut self, set: usize, smallest: usize) -> Result<(), E> {
        for block in BLOCKS.into_iter().filter(|block| *block >= smallest) {
            let mut index = 0;
            while let Some(length) =
                self.best.sets.get(set).and_then(|s| s.buffers.get(index)).map(|b| b.bytes.len())
            {
                let before = self.best.sets.get(set).map_or(0, |set| set.buffers.len());
                let count = length.div_ceil(block);
                if (2..=MOST_BLOCKS).contains(&count) {
                    self.minimize(count, |base, keep| {
                        changed(base, set, |set| {
                            let mut buffers = set.buffers.clone();
                            let parts = buffers
                                .get(index)
                                .map(|buffer| parts(buffer, block, keep))
                                .unwrap_or_default();
                            buffers.splice(index..(index + 1).min(buffers.len()), parts);
                            PieceSet { buffers, ..set.clone() }
                        })
                    })?;
                }
                let after = self.best.sets.get(set).map_or(0, |set| set.buffers.len());
                index += (after + 1).saturating_sub(before).max(1);
            }
        }
        Ok(())
    }

    /// Dwords of what is left that can be zero: what the fault does not depend on is plain to see then, and compresses.
    fn zeros(&mut self, set: usize) -> Result<(), E> {
        let count = self.best.sets.get(set).map_or(0, |set| set.buffers.len());
        for index in 0..count {
            let dwords =
                self.best.sets.get(set).and_then(|s| s.buffers.get(index)).map_or(0, |b| b.bytes.len() / 4);
            if dwords > MOST_BLOCKS {
                continue;
            }
            self.minimize(dwords, |base, keep| {
                changed(base, set, |set| {
                    let mut set = set.clone();
                    if let Some(buffer) = set.buffers.get_mut(index) {
                        let keep: BTreeSet<usize> = keep.iter().copied().collect();
                        for (at, dword) in Rc::make_mut(&mut buffer.bytes).chunks_exact_mut(4).enumerate() {
                            if !keep.contains(&at) {
                                dword.fill(0);
                            }
                        }
                    }
                    set
                })
            })?;
        }
        Ok(())
    }

    fn others(&mut self, set: usize) -> Result<(), E> {
        let count = self.best.sets.get(set).map_or(0, |set| set.head.len());
        self.minimize(count, |base, keep| {
            changed(base, set, |set| {
                let head = keep.iter().filter_map(|&index| set.head.get(index).cloned()).collect();
                PieceSet { head, ..set.clone() }
            })
        })
    }

    /// Packets, in the order in which they are executed first. Streams become shorter.
    fn packets(&mut self) -> Result<(), E> {
        let base = self.best.write();
        let space = AddressSpace::scan(&base[..]);
        let mut collector = PacketCollector::default();
        let db = self.db;
        let run = |editor: &mut dyn StreamEditor, out: &mut Vec<u8>| {
            rewrite(&base[..], space.clone(), editor, db, u64::MAX, out).is_ok()
        };
        if !run(&mut collector, &mut Vec::new()) {
            return Ok(());
        }
        let order = collector.order;
        self.minimize(order.len(), |_, keep| {
            let keep: BTreeSet<usize> = keep.iter().copied().collect();
            let removed =
                order.iter().enumerate().filter(|(index, _)| !keep.contains(index)).map(|(_, place)| *place);
            let mut remover = PacketRemover { removed: removed.collect(), set: 0 };
            let mut out = Vec::new();
            run(&mut remover, &mut out).then(|| PieceCapture::read(&out))
        })
    }
}

/// The capture with one of its sets changed.
fn changed(base: &PieceCapture, set: usize, change: impl Fn(&PieceSet) -> PieceSet) -> Option<PieceCapture> {
    let mut made = base.clone();
    let slot = made.sets.get_mut(set)?;
    *slot = change(slot);
    Some(made)
}

/// Some blocks of a buffer, as buffers of their own where they do not follow one another.
fn parts(buffer: &PieceBuffer, block: usize, keep: &[usize]) -> Vec<PieceBuffer> {
    let runs = keep.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| {
        let start = run.first()? * block;
        let end = ((run.last()? + 1) * block).min(buffer.bytes.len());
        let bytes = Rc::new(buffer.bytes.get(start..end)?.to_vec());
        Some(PieceBuffer { iova: buffer.iova + start as u64, bytes })
    })
    .collect()
}

/// Lists packets by set and address.
#[derive(Default)]
struct PacketCollector {
    order: Vec<(u64, u64)>,
    of_set: Vec<u64>,
    seen: BTreeSet<u64>,
}

impl StreamEditor for PacketCollector {
    fn watch(&mut self, _: Gpu<'_>, _: u32, _: &AdrenoState, event: &AdrenoEvent<'_>) {
        if let AdrenoEvent::Packet(packet) = event
            && let Some(iova) = packet.place.iova
            && self.seen.insert(iova)
        {
            self.of_set.push(iova);
        }
    }

    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        let number = set.number();
        self.order.extend(self.of_set.drain(..).map(|iova| (number, iova)));
        self.seen.clear();
        Ok(())
    }
}

/// Removes packets.
struct PacketRemover {
    removed: BTreeSet<(u64, u64)>,
    set: u64,
}

impl StreamEditor for PacketRemover {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        self.set = set.number();
        Ok(())
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        match self.removed.contains(&(self.set, packet.iova)) {
            true => PacketEdit::change(PacketChange::Remove),
            false => PacketEdit::default(),
        }
    }
}
