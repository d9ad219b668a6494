//! Bisection: the draw, packet, register or instruction that makes a capture bad.
//!
//! A trial is the capture with only the first so many draws, packets or instructions, or with only the first so many registers stomped. The
//! caller judges trials: see [`BisectSearch`]. Never: executes, or keeps a record in a file.

mod search;

pub use search::{BisectEnd, BisectSearch, BisectStep, RecordError, TrialVerdict};

use crate::instrument::{Instrumentation, Instrumenter, Stomp};
use crate::rewrite::{
    AddressSpace, PacketChange, PacketEdit, RewriteError, SetEdit, StreamEditor, StreamPacket, rewrite,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use unwedge_base::Diagnostic;
use unwedge_hw::{Db, Gpu};
use unwedge_isa::ir3::{Ir3Listing, Ir3ListingOptions};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, AdrenoState};

/// Instructions of a shader that are looked at.
const MOST_INSTRUCTIONS: usize = 1 << 16;

/// What is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectSubject {
    /// Draws, dispatches, blits and working events: the others are CP_NOP.
    Draws,
    /// Packets in the order in which they are executed first: the others are CP_NOP.
    Packets,
    /// Registers that are stomped.
    Registers(Stomp),
    /// Instructions of the shaders at these addresses: the others are nop.
    Instructions(Vec<u64>),
}

/// One of what is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectItem {
    /// A packet that starts work, and the numbers of the works.
    Draw {
        /// Which set of the capture.
        set: u64,
        /// Its address.
        iova: u64,
        /// As listings count.
        works: Vec<u32>,
    },
    /// A packet.
    Packet {
        /// Which set of the capture.
        set: u64,
        /// Its address.
        iova: u64,
    },
    /// A register, in dwords.
    Register(u32),
    /// An instruction of a shader.
    Instruction {
        /// Address of the shader.
        shader: u64,
        /// Which one, from 0.
        index: usize,
        /// Its word.
        word: u64,
    },
}

/// The items of a capture.
#[derive(Clone, Debug)]
pub struct BisectPlan {
    subject: BisectSubject,
    items: Vec<BisectItem>,
    space: AddressSpace,
    /// By set and address of a packet, its item.
    packets: BTreeMap<(u64, u64), usize>,
}

/// Collects items.
struct Collector<'c> {
    subject: &'c BisectSubject,
    set: u64,
    items: Vec<BisectItem>,
    packets: BTreeMap<(u64, u64), usize>,
    /// Packets of the set in their order, and the works that they start.
    order: Vec<u64>,
    works: BTreeMap<u64, Vec<u32>>,
    seen: std::collections::BTreeSet<u64>,
    shaders: BTreeMap<u64, Vec<u64>>,
}

impl StreamEditor for Collector<'_> {
    fn watch(&mut self, gpu: Gpu<'_>, _: u32, _: &AdrenoState, event: &AdrenoEvent<'_>) {
        match event {
            AdrenoEvent::Packet(packet) => {
                if let Some(iova) = packet.place.iova
                    && packet.op != AdrenoOp::Nop
                    && self.seen.insert(iova)
                {
                    self.order.push(iova);
                }
            }
            AdrenoEvent::Draw(draw) => {
                if let Some(iova) = draw.packet.place.iova {
                    self.works.entry(iova).or_default().push(draw.number);
                }
            }
            _ => {}
        }
        if let BisectSubject::Registers(stomp) = self.subject
            && self.items.is_empty()
        {
            self.items = stomp.registers(gpu).into_iter().map(BisectItem::Register).collect();
        }
    }

    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        self.set = set.number();
        let number = self.set;
        if let BisectSubject::Instructions(shaders) = self.subject {
            for &shader in shaders {
                let words = code(set, shader);
                if !words.is_empty() {
                    self.shaders.entry(shader).or_insert(words);
                }
            }
        }
        let mut items = Vec::new();
        match self.subject {
            BisectSubject::Draws => {
                let mut works: Vec<(u64, Vec<u32>)> = std::mem::take(&mut self.works).into_iter().collect();
                works.sort_by_key(|(_, works)| works.iter().min().copied());
                items.extend(
                    works
                        .into_iter()
                        .map(|(iova, works)| (iova, BisectItem::Draw { set: number, iova, works })),
                );
            }
            BisectSubject::Packets => {
                let order = std::mem::take(&mut self.order).into_iter();
                items.extend(order.map(|iova| (iova, BisectItem::Packet { set: number, iova })));
            }
            BisectSubject::Registers(_) | BisectSubject::Instructions(_) => {}
        }
        for (iova, item) in items {
            self.packets.insert((number, iova), self.items.len());
            self.items.push(item);
        }
        self.order.clear();
        self.works.clear();
        self.seen.clear();
        Ok(())
    }
}

/// The instructions of a shader, up to what a listing takes for its end.
fn code(set: &SetEdit<'_>, shader: u64) -> Vec<u64> {
    let dwords = set.words(shader, 2 * MOST_INSTRUCTIONS);
    let gpu_id = crate::instrument::shader_gpu_id(set.gpu().generation());
    let mut listing =
        Ir3Listing::new(dwords.as_slice().into(), Ir3ListingOptions { gpu_id, raw: false, level: 0 });
    let mut text = Vec::new();
    while listing.instruction(&mut text) {
        text.clear();
    }
    let (pairs, _) = dwords.as_chunks::<2>();
    let words =
        pairs.iter().take(listing.listed()).map(|[low, high]| u64::from(*low) | u64::from(*high) << 32);
    let mut words: Vec<u64> = words.collect();
    // A nop after the end fills up, and is nothing to search.
    words.truncate(words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1));
    words
}

impl BisectPlan {
    /// The items of a capture. Returns with it what was lost of the capture.
    ///
    /// # Errors
    /// What is asked for cannot be found out.
    pub fn new(
        subject: BisectSubject,
        space: AddressSpace,
        capture: impl Read,
        db: &Db,
        max_alive: u64,
    ) -> Result<(BisectPlan, Vec<Diagnostic>), RewriteError> {
        let mut collector = Collector {
            subject: &subject,
            set: 0,
            items: Vec::new(),
            packets: BTreeMap::new(),
            order: Vec::new(),
            works: BTreeMap::new(),
            seen: Default::default(),
            shaders: BTreeMap::new(),
        };
        let result = rewrite(capture, space.clone(), &mut collector, db, max_alive, &mut std::io::sink())?;
        let Collector { mut items, packets, shaders, .. } = collector;
        if let BisectSubject::Instructions(of) = &subject {
            for shader in of {
                let words = shaders.get(shader).map(Vec::as_slice).unwrap_or_default();
                let item = |(index, &word)| BisectItem::Instruction { shader: *shader, index, word };
                items.extend(words.iter().enumerate().map(item));
            }
        }
        Ok((BisectPlan { subject, items, space, packets }, result.diagnostics))
    }

    /// The items, in their order.
    pub fn items(&self) -> &[BisectItem] {
        &self.items
    }

    /// Writes the trial with the first so many items.
    ///
    /// # Errors
    /// The capture cannot be rewritten, or the output fails.
    pub fn trial(
        &self,
        count: usize,
        capture: impl Read,
        db: &Db,
        max_alive: u64,
        out: &mut dyn Write,
    ) -> Result<(), RewriteError> {
        let space = self.space.clone();
        match &self.subject {
            BisectSubject::Registers(stomp) => {
                let stomp = (count > 0).then(|| Stomp { first: Some(count), ..stomp.clone() });
                let options = Instrumentation { stomp, ..Instrumentation::default() };
                rewrite(capture, space, &mut Instrumenter::new(&options), db, max_alive, out)?;
            }
            _ => {
                let mut prefix = Prefix { plan: self, count, set: 0 };
                rewrite(capture, space, &mut prefix, db, max_alive, out)?;
            }
        }
        Ok(())
    }
}

/// Keeps the first items.
struct Prefix<'p> {
    plan: &'p BisectPlan,
    count: usize,
    set: u64,
}

impl StreamEditor for Prefix<'_> {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        self.set = set.number();
        let mut ends: BTreeMap<u64, usize> = BTreeMap::new();
        for item in &self.plan.items {
            if let BisectItem::Instruction { shader, index, .. } = item {
                ends.entry(*shader).and_modify(|last| *last = (*last).max(*index)).or_insert(*index);
            }
        }
        for item in self.plan.items.iter().skip(self.count) {
            if let BisectItem::Instruction { shader, index, .. } = item
                && ends.get(shader) != Some(index)
            {
                // The last instruction ends the shader.
                set.patch(shader + 8 * *index as u64, &[0, 0]);
            }
        }
        Ok(())
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        match self.plan.packets.get(&(self.set, packet.iova)) {
            Some(item) if *item >= self.count => PacketEdit::change(PacketChange::Nop),
            _ => PacketEdit::default(),
        }
    }
}
