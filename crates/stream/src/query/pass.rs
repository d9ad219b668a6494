//! Which pass of rendering a draw belongs to.
//!
//! From a6xx on CP_SET_MARKER says it, on a5xx CP_SET_RENDER_MODE, before that registers that drivers set for each pass.
//! Never: a guess. What neither packets nor registers say is unknown.

use crate::adreno::{AdrenoOp, Packet, Registers};
use unwedge_base::Generation;
use unwedge_hw::{Gpu, Selected};

/// A pass of rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Finds out which bins each draw touches.
    Binning,
    /// Draws one bin into tile memory.
    Gmem,
    /// Draws into system memory at once.
    Sysmem,
    /// Stores a bin from tile memory.
    Resolve,
    /// Runs compute shaders.
    Compute,
    /// Copies and clears.
    Blit,
}

impl Pass {
    /// Every pass.
    pub const ALL: [Pass; 6] =
        [Pass::Binning, Pass::Gmem, Pass::Sysmem, Pass::Resolve, Pass::Compute, Pass::Blit];

    /// `binning`
    pub fn name(self) -> &'static str {
        match self {
            Pass::Binning => "binning",
            Pass::Gmem => "gmem",
            Pass::Sysmem => "sysmem",
            Pass::Resolve => "resolve",
            Pass::Compute => "compute",
            Pass::Blit => "blit",
        }
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<Pass> {
        Pass::ALL.into_iter().find(|pass| pass.name() == name)
    }
}

/// The CP_SET_MARKER payload is about power, not about passes.
const IFPC_MODE: u32 = 1 << 8;

/// Follows the passes of a walk.
#[derive(Clone, Debug)]
pub struct PassTracker<'d> {
    /// What the last packet said.
    marked: Option<Pass>,
    /// Registers that tell, where packets do not.
    registers: Tell<'d>,
}

#[derive(Clone, Debug)]
enum Tell<'d> {
    Nothing,
    /// Where tile memory goes (a2xx).
    Edram(Selected<'d>),
    /// The mode, and a field that says whether rendering goes to tile memory (`true`) or past it.
    Mode(Selected<'d>, Selected<'d>, bool),
}

impl<'d> PassTracker<'d> {
    /// Nothing known yet.
    pub fn new(gpu: Gpu<'d>) -> PassTracker<'d> {
        let field = |name: &str| gpu.select_one(name);
        let mode = |mode, tiles, set| Some(Tell::Mode(field(mode)?, field(tiles)?, set));
        let registers = match gpu.generation() {
            Generation::A2xx => field("RB_MODECONTROL.EDRAM_MODE").map(Tell::Edram),
            Generation::A3xx => mode("RB_MODE_CONTROL.RENDER_MODE", "RB_MODE_CONTROL.GMEM_BYPASS", false),
            Generation::A4xx => mode("GRAS_SC_CONTROL.RENDER_MODE", "RB_MODE_CONTROL.ENABLE_GMEM", true),
            _ => None,
        };
        let registers = registers.unwrap_or(Tell::Nothing);
        PassTracker { marked: None, registers }
    }

    /// A packet that is executed.
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let Some(word) = packet.payload.get(0) else { return };
        match packet.op {
            AdrenoOp::SetMarker if word & IFPC_MODE == 0 => {
                self.marked = match word & 0xf {
                    1 => Some(Pass::Sysmem),
                    2 => Some(Pass::Binning),
                    3..=5 => Some(Pass::Gmem),
                    6 | 7 => Some(Pass::Resolve),
                    8 => Some(Pass::Compute),
                    0xc => Some(Pass::Blit),
                    // Begin and end of a list of IB1s: the pass goes on.
                    0xd | 0xe => return,
                    _ => None,
                }
            }
            AdrenoOp::SetRenderMode => {
                self.marked = match word & 0xf {
                    1 => Some(Pass::Sysmem),
                    2 => Some(Pass::Binning),
                    3 => Some(Pass::Gmem),
                    5 | 7 => Some(Pass::Blit),
                    _ => None,
                }
            }
            _ => {}
        }
    }

    /// The pass now.
    pub fn now(&self, regs: &Registers) -> Option<Pass> {
        let value = |field: &Selected<'_>| {
            let raw = field.read(|reg| regs.get(reg))?;
            Some(raw >> field.mask.trailing_zeros().min(63))
        };
        match &self.registers {
            Tell::Nothing => self.marked,
            // a2xx_rb_edram_mode
            Tell::Edram(field) => match value(field)? {
                4 | 5 => Some(Pass::Gmem),
                6 => Some(Pass::Resolve),
                _ => None,
            },
            // a3xx_render_mode
            Tell::Mode(field, tiles, set) => match value(field)? {
                0 if (value(tiles)? != 0) == *set => Some(Pass::Gmem),
                0 => Some(Pass::Sysmem),
                1 => Some(Pass::Binning),
                2 => Some(Pass::Resolve),
                3 => Some(Pass::Compute),
                _ => None,
            },
        }
    }
}
