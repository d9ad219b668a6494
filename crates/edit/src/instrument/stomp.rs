//! Registers filled with ones where a driver must not rely on what they held: at the start of command buffers and of render passes.
//!
//! The meaning is that of Turnip's TU_DEBUG_STALE_REGS_RANGE and TU_DEBUG_STALE_REGS_FLAGS. Which registers a driver sets once for a command
//! buffer (`cmd`) and which for each pass or blit (`rp_blit`) the register database says. Never: registers that it says nothing
//! about, which are the kernel's, protected, or read by nothing.

use super::packets::fill_registers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use unwedge_base::Generation;
use unwedge_hw::{Gpu, RegSpace};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, AdrenoState};

/// What registers are filled with, as by Turnip.
const STOMPED: u32 = u32::MAX;
/// So many registers of `cmd` written before the first work of a stream: it begins a command buffer, and does not go on with one.
const SETUP_REGISTERS: usize = 16;
/// Modes of CP_SET_MARKER that matter here (a6xx_marker).
const DIRECT_RENDER: u32 = 1;
const BIN_VISIBILITY: u32 = 2;
const BIN_RENDER_START: u32 = 4;
const BIN_RENDER_END: u32 = 7;

/// A register, or several in a row, that must not be stomped.
#[derive(Clone, Copy, Debug)]
pub struct UnsafeRegister {
    /// The generations that it is about.
    pub generations: &'static [Generation],
    /// Name of the first.
    pub first: &'static str,
    /// Name of the last.
    pub last: &'static str,
    /// What happens.
    pub why: &'static str,
}

const BOTH: &[Generation] = &[Generation::A6xx, Generation::A7xx];
const A6XX: &[Generation] = &[Generation::A6xx];
const A7XX: &[Generation] = &[Generation::A7xx];

/// Facts: Mesa, `src/freedreno/common/freedreno_stompable_regs.h`, which names the tests of the Vulkan conformance suite that fail otherwise.
pub const UNSAFE_REGISTERS: [UnsafeRegister; 6] = [
    UnsafeRegister {
        generations: BOTH,
        first: "RB_DEPTH_PLANE_CNTL",
        last: "RB_DEPTH_PLANE_CNTL",
        why: "clears of colour fault: flushing the colour CCU seems to read it",
    },
    UnsafeRegister {
        generations: BOTH,
        first: "HLSQ_VS_CNTL",
        last: "HLSQ_GS_CNTL",
        why: "draws under conditional rendering fault",
    },
    UnsafeRegister {
        generations: BOTH,
        first: "HLSQ_FS_CNTL",
        last: "HLSQ_FS_CNTL",
        why: "draws under conditional rendering fault",
    },
    UnsafeRegister {
        generations: BOTH,
        first: "SP_FS_OBJ_START",
        last: "SP_FS_OBJ_START_HI",
        why: "dispatches fault, although they have no fragment shader",
    },
    UnsafeRegister {
        generations: A6XX,
        first: "TPL1_DBG_ECO_CNTL1",
        last: "TPL1_DBG_ECO_CNTL1",
        why: "not used on a6xx, but tests fail",
    },
    UnsafeRegister {
        generations: A7XX,
        first: "SP_UNKNOWN_AE73",
        last: "SP_UNKNOWN_AE73",
        why: "hangs; maybe BR and BV may not have different values of it",
    },
];

/// Where registers are stomped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompPoint {
    /// At the start of each command buffer: registers that are set once for it.
    CommandBuffer,
    /// Before each render pass: registers that are set for each pass or blit.
    RenderPass,
}

/// Which registers are stomped, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stomp {
    /// Registers, in dwords.
    pub range: RangeInclusive<u32>,
    /// All others are stomped instead.
    pub inverse: bool,
    /// Where.
    pub points: Vec<StompPoint>,
    /// Of the registers that are stomped at any of the points only so many, by number: for bisection.
    pub first: Option<usize>,
}

impl Stomp {
    fn wants(&self, reg: u32) -> bool {
        self.range.contains(&reg) != self.inverse
    }

    fn usage(point: StompPoint) -> &'static str {
        match point {
            StompPoint::CommandBuffer => "cmd",
            StompPoint::RenderPass => "rp_blit",
        }
    }

    /// The registers that are stomped on a GPU, by number.
    pub fn registers(&self, gpu: Gpu<'_>) -> Vec<u32> {
        let usages: Vec<&str> = self.points.iter().copied().map(Stomp::usage).collect();
        let left_out = unsafe_registers(gpu);
        let mut regs: Vec<u32> = gpu
            .space(RegSpace::Gpu)
            .iter()
            .filter(|reg| reg.usage().is_some_and(|usage| usages.contains(&usage)))
            .map(|reg| reg.offset())
            .filter(|reg| self.wants(*reg) && !left_out.contains(reg))
            .collect();
        regs.sort_unstable();
        regs.dedup();
        regs.truncate(self.first.unwrap_or(usize::MAX));
        regs
    }
}

/// The registers of [`UNSAFE_REGISTERS`] on a GPU.
pub fn unsafe_registers(gpu: Gpu<'_>) -> BTreeSet<u32> {
    let rows = UNSAFE_REGISTERS.iter().filter(|row| row.generations.contains(&gpu.generation()));
    rows.filter_map(|row| {
        let first = gpu.reg_offset(row.first)?;
        // The high half of an address has no name of its own.
        let last = gpu.reg_offset(row.last).unwrap_or(first + 1);
        Some(first..=last)
    })
    .flatten()
    .collect()
}

/// The place in a submitted stream that is being walked.
#[derive(Debug, Default)]
struct StreamPlace {
    submit: Option<u32>,
    /// Its first packet.
    start: u64,
    /// Registers written before its first work.
    setup: BTreeSet<u32>,
    setup_cmd: usize,
    begins_buffer: bool,
    works: bool,
    /// The packet after which the next pass begins at the earliest.
    anchor: Option<u64>,
    /// Works before the packet at level 0.
    draws_before: u32,
    in_tiles: bool,
}

/// Where registers are stomped in a set, found out while it is walked.
#[derive(Debug, Default)]
pub(super) struct StompPlan {
    generation: Option<Generation>,
    cmd: BTreeSet<u32>,
    pass: BTreeSet<u32>,
    place: StreamPlace,
    /// Before which packets.
    before: BTreeMap<u64, Vec<u32>>,
    /// After which packets.
    after: BTreeMap<u64, Vec<u32>>,
}

impl StompPlan {
    /// Chooses the registers, once the GPU is known.
    pub(super) fn choose(&mut self, stomp: &Stomp, gpu: Gpu<'_>) {
        if self.generation == Some(gpu.generation()) {
            return;
        }
        self.generation = Some(gpu.generation());
        let usage = |reg: u32| gpu.reg(reg).and_then(|reg| reg.usage());
        let regs = stomp.registers(gpu);
        self.cmd = regs.iter().copied().filter(|reg| usage(*reg) == Some("cmd")).collect();
        self.pass = regs.iter().copied().filter(|reg| usage(*reg) == Some("rp_blit")).collect();
    }

    pub(super) fn clear(&mut self) {
        self.before.clear();
        self.after.clear();
        self.place = StreamPlace::default();
    }

    pub(super) fn before(&self, iova: u64) -> &[u32] {
        self.before.get(&iova).map_or(&[], Vec::as_slice)
    }

    pub(super) fn after(&self, iova: u64) -> &[u32] {
        self.after.get(&iova).map_or(&[], Vec::as_slice)
    }

    /// Takes in what a walk meets.
    pub(super) fn watch(&mut self, gpu: Gpu<'_>, submit: u32, state: &AdrenoState, event: &AdrenoEvent<'_>) {
        match event {
            AdrenoEvent::Packet(packet) if packet.place.level == 0 => {
                let Some(iova) = packet.place.iova else { return };
                if self.place.submit != Some(submit) {
                    self.place = StreamPlace { submit: Some(submit), start: iova, ..StreamPlace::default() };
                }
                self.place.draws_before = state.draws;
                if packet.op == AdrenoOp::SetMarker
                    && let Some(word) = packet.payload.get(0).filter(|word| word & 1 << 8 == 0)
                {
                    self.marker(gpu, word & 0xf);
                }
            }
            AdrenoEvent::PacketEnd(packet) if packet.place.level == 0 => {
                let Some(iova) = packet.place.iova else { return };
                if state.draws != self.place.draws_before {
                    self.place.works = true;
                    self.place.anchor = Some(iova);
                } else if packet.op == AdrenoOp::SetAmble && !self.place.works {
                    self.place.anchor = Some(iova);
                }
            }
            AdrenoEvent::RegWrite(write) if write.place.level == 0 && !self.place.works => {
                self.setup(gpu, write.reg)
            }
            _ => {}
        }
    }

    /// A register is written before the first work of a stream.
    fn setup(&mut self, gpu: Gpu<'_>, reg: u32) {
        let place = &mut self.place;
        if !place.setup.insert(reg) || gpu.reg(reg).and_then(|reg| reg.usage()) != Some("cmd") {
            return;
        }
        place.setup_cmd += 1;
        if place.setup_cmd == SETUP_REGISTERS && !place.begins_buffer {
            place.begins_buffer = true;
            let regs: Vec<u32> = self.cmd.iter().copied().collect();
            let words = fill_registers(gpu.generation(), &regs, STOMPED);
            if !words.is_empty() {
                self.before.entry(place.start).or_insert(words);
            }
        }
    }

    /// A mode begins. A pass in tiles has one for each tile.
    fn marker(&mut self, gpu: Gpu<'_>, mode: u32) {
        let begins = match mode {
            DIRECT_RENDER => true,
            BIN_VISIBILITY | BIN_RENDER_START => !self.place.in_tiles,
            _ => false,
        };
        match mode {
            BIN_VISIBILITY | BIN_RENDER_START => self.place.in_tiles = true,
            DIRECT_RENDER | BIN_RENDER_END => self.place.in_tiles = false,
            _ => {}
        }
        // A stream that goes on with a command buffer, and has had no work yet, has no place that is known to be outside of a pass.
        let Some(anchor) = self.place.anchor.filter(|_| begins) else { return };
        // What the command buffer has set up holds for all of it.
        let regs: Vec<u32> = self.pass.difference(&self.place.setup).copied().collect();
        let words = fill_registers(gpu.generation(), &regs, STOMPED);
        if !words.is_empty() {
            self.after.entry(anchor).or_insert(words);
        }
    }
}
