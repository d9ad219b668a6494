//! The state of one wave.

use super::common::Waiting;
use super::fault::Missing;
use super::lanes::{PRIVATE_APERTURE, SHARED_APERTURE, merge, set_lanes};
use super::local::LocalMemory;
use super::operand::{From, LaneSource, SREGS, vector};
use super::pending::Pending;
use super::scalar::XorOf;
use unwedge_isa::amdgcn::model::Type;
use unwedge_isa::amdgcn::semantics::{LANES, Lanes, Mode};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// What is not known of a wave's registers: a set bit is an unknown one.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub(super) s: [u32; SREGS],
    pub(super) scc: u32,
    pub(super) v: Vec<Lanes>,
    /// Lanes of each vector register that have unknown bits.
    pub(super) lanes: Vec<u64>,
    pub(super) why_s: [Missing; SREGS],
    pub(super) why_v: Vec<Missing>,
    /// The last exclusive or of scalar registers.
    pub(super) xor: Option<XorOf>,
}

/// One wave.
#[derive(Debug)]
pub(super) struct Wave {
    /// Number in its workgroup.
    pub(super) id: u32,
    /// Has 64 lanes; else the upper halves of `vcc` and `exec` are no lanes.
    pub(super) wave64: bool,
    /// Offset of the next instruction in bytes.
    pub(super) pc: u32,
    /// Scalar registers, by number.
    pub(super) s: [u32; SREGS],
    /// Vector registers.
    pub(super) v: Vec<Lanes>,
    pub(super) scc: bool,
    /// The MODE register.
    pub(super) mode: u32,
    pub(super) ended: bool,
    pub(super) at_barrier: bool,
    /// Instructions executed.
    pub(super) steps: u64,
    pub(super) scratch: LocalMemory,
    pub(super) unknown: Option<Box<Unknown>>,
    pub(super) pending: Pending,
    /// Indexed access of vector registers on gfx8 and gfx9: which operands, as `gpr_idx`.
    pub(super) gpr_idx: u32,
    /// What of other waves it waits for, if not at a barrier.
    pub(super) waiting: Waiting,
}

impl Wave {
    /// A wave at the begin of the code, with so many vector registers: all is zero, and known.
    pub(super) fn new(id: u32, wave64: bool, vgprs: usize, scratch: LocalMemory) -> Wave {
        Wave {
            id,
            wave64,
            pc: 0,
            s: [0; SREGS],
            v: vec![[0; LANES]; vgprs],
            scc: false,
            mode: 0,
            ended: false,
            at_barrier: false,
            steps: 0,
            scratch,
            unknown: None,
            pending: Pending::default(),
            gpr_idx: 0,
            waiting: Waiting::default(),
        }
    }

    /// A mask of all lanes.
    pub(super) fn all(gpu: &Gpu) -> u64 {
        if gpu.wave64() { u64::MAX } else { u32::MAX.into() }
    }

    pub(super) fn exec(&self, gpu: &Gpu) -> u64 {
        self.pair(Reg::EXEC) & Wave::all(gpu)
    }

    /// Two scalar registers.
    pub(super) fn pair(&self, reg: Reg) -> u64 {
        u64::from(self.sreg(reg)) | u64::from(self.sreg(Reg(reg.0 + 1))) << 32
    }

    /// A lane mask.
    pub(super) fn mask(&self, reg: Reg, gpu: &Gpu) -> u64 {
        if gpu.wave64() { self.value(reg, 2) } else { self.sreg(reg).into() }
    }

    /// A scalar register, or a special one.
    pub(super) fn sreg(&self, reg: Reg) -> u32 {
        match reg {
            Reg::NULL => 0,
            Reg::SCC => self.scc.into(),
            Reg::VCCZ => u32::from(self.value(Reg::VCC, 1 + u8::from(self.wave64)) == 0),
            Reg::EXECZ => u32::from(self.value(Reg::EXEC, 1 + u8::from(self.wave64)) == 0),
            Reg::SHARED_BASE => SHARED_APERTURE as u32,
            Reg::PRIVATE_BASE => PRIVATE_APERTURE as u32,
            Reg::SHARED_LIMIT | Reg::PRIVATE_LIMIT => u32::MAX,
            _ => self.s.get(usize::from(reg.0)).copied().unwrap_or(0),
        }
    }

    /// A scalar value of one or two dwords.
    pub(super) fn value(&self, reg: Reg, dwords: u8) -> u64 {
        match (reg, dwords) {
            (Reg::SHARED_BASE, 2..) => SHARED_APERTURE,
            (Reg::PRIVATE_BASE, 2..) => PRIVATE_APERTURE,
            (Reg::NULL, _) => 0,
            (Reg::SCC | Reg::VCCZ | Reg::EXECZ, _) | (_, 0 | 1) => self.sreg(reg).into(),
            _ => self.pair(reg),
        }
    }

    /// Writes a scalar register whose value is known.
    pub(super) fn set(&mut self, reg: Reg, value: u32) {
        self.set_unknown(reg, value, 0, Missing::Undefined);
    }

    /// Writes a scalar register of which some bits are not known.
    pub(super) fn set_unknown(&mut self, reg: Reg, value: u32, unknown: u32, why: Missing) {
        if reg == Reg::NULL {
            return;
        }
        let at = usize::from(reg.0);
        if let Some(place) = self.s.get_mut(at) {
            *place = value;
        }
        if let Some(state) = self.unknown.as_mut().filter(|_| at < SREGS) {
            state.s[at] = unknown;
            if unknown != 0 {
                state.why_s[at] = why;
            }
            if let Some(at) = self.pending.overwrite(reg, u64::MAX) {
                state.s[reg.0 as usize] = u32::MAX;
                state.why_s[reg.0 as usize] = Missing::OverwrittenLoad { at };
            }
        }
    }

    /// Writes one or two scalar registers.
    pub(super) fn set_value(&mut self, reg: Reg, dwords: u8, value: u64, unknown: u64, why: Missing) {
        self.set_unknown(reg, value as u32, unknown as u32, why);
        if dwords > 1 && reg != Reg::NULL {
            self.set_unknown(Reg(reg.0 + 1), (value >> 32) as u32, (unknown >> 32) as u32, why);
        }
    }

    /// Writes a lane mask.
    pub(super) fn set_mask(&mut self, reg: Reg, gpu: &Gpu, value: u64, unknown: u64, why: Missing) {
        let all = Wave::all(gpu);
        self.set_value(reg, if gpu.wave64() { 2 } else { 1 }, value & all, unknown & all, why);
    }

    /// Writes lanes of a vector register.
    pub(super) fn set_lanes(&mut self, n: u16, lanes: u64, values: &Lanes) {
        let Some(place) = self.v.get_mut(usize::from(n)) else { return };
        merge(place, lanes, values);
    }

    /// Says what of lanes of a vector register is not known.
    pub(super) fn set_unknown_lanes(&mut self, n: u16, lanes: u64, unknown: &Lanes, why: Missing) {
        let Some(state) = self.unknown.as_mut() else { return };
        let overwritten = self.pending.overwrite(vector(n), lanes);
        let Some(place) = state.v.get_mut(usize::from(n)) else { return };
        let has = &mut state.lanes[usize::from(n)];
        if let Some(at) = overwritten {
            merge(place, lanes, &[u32::MAX; LANES]);
            *has |= lanes;
            state.why_v[usize::from(n)] = Missing::OverwrittenLoad { at };
            return;
        }
        merge(place, lanes, unknown);
        let found = set_lanes(unknown) & lanes;
        *has = *has & !lanes | found;
        if found != 0 {
            state.why_v[usize::from(n)] = why;
        }
    }

    /// Says that lanes of a vector register are not known until a load is waited for, which writes them after all others that are
    /// under way.
    pub(super) fn set_awaited_lanes(&mut self, n: u16, lanes: u64, why: Missing) {
        let Some(state) = self.unknown.as_mut() else { return };
        let Some(place) = state.v.get_mut(usize::from(n)) else { return };
        merge(place, lanes, &[u32::MAX; LANES]);
        state.lanes[usize::from(n)] |= lanes;
        state.why_v[usize::from(n)] = why;
    }

    /// Says that lanes of a vector register are known.
    pub(super) fn set_known_lanes(&mut self, n: u16, lanes: u64) {
        let at = usize::from(n);
        let unknown =
            self.unknown.as_ref().and_then(|state| state.lanes.get(at)).is_some_and(|has| has & lanes != 0);
        if unknown || self.pending.writes(vector(n), lanes) {
            self.set_unknown_lanes(n, lanes, &[0; LANES], Missing::Undefined);
        }
    }

    /// Lanes in which a vector register has unknown bits.
    pub(super) fn unknown_in(&self, n: u16, dword: u8) -> u64 {
        let at = usize::from(n) + usize::from(dword);
        self.unknown.as_ref().and_then(|state| state.lanes.get(at)).copied().unwrap_or(0)
    }

    /// Which bits of a scalar register are not known.
    pub(super) fn unknown_sreg(&self, reg: Reg) -> u32 {
        let Some(state) = &self.unknown else { return 0 };
        match reg {
            Reg::SCC => state.scc,
            Reg::VCCZ => u32::from(self.unknown_value(Reg::VCC, 1 + u8::from(self.wave64)) != 0),
            Reg::EXECZ => u32::from(self.unknown_value(Reg::EXEC, 1 + u8::from(self.wave64)) != 0),
            Reg::NULL => 0,
            _ => state.s.get(usize::from(reg.0)).copied().unwrap_or(0),
        }
    }

    /// Which bits of a scalar value are not known.
    pub(super) fn unknown_value(&self, reg: Reg, dwords: u8) -> u64 {
        let low = self.unknown_sreg(reg).into();
        if dwords < 2 || reg.0 >= Reg::SHARED_BASE.0 || reg == Reg::NULL {
            return low;
        }
        low | u64::from(self.unknown_sreg(Reg(reg.0 + 1))) << 32
    }

    /// Why a register is not known.
    pub(super) fn why(&self, reg: Reg) -> Missing {
        let Some(state) = &self.unknown else { return Missing::Undefined };
        if let Some(n) = reg.lane_number() {
            return state.why_v.get(usize::from(n)).copied().unwrap_or(Missing::Undefined);
        }
        let at = match reg {
            Reg::SCC => return Missing::Undefined,
            Reg::VCCZ => 106,
            Reg::EXECZ => 126,
            _ => usize::from(reg.0),
        };
        let first = state.why_s.get(at).copied().unwrap_or(Missing::Undefined);
        // Of a pair the half that is not known says why.
        match (state.s.get(at), state.s.get(at + 1)) {
            (Some(0), Some(other)) if *other != 0 => state.why_s[at + 1],
            _ => first,
        }
    }

    /// Why a source is not known.
    pub(super) fn why_source(&self, source: &LaneSource) -> (Reg, Missing) {
        let reg = match source.from {
            From::Vgpr(n) => vector(n),
            From::Scalar(reg) => reg,
            From::Const(_) => Reg::NULL,
        };
        (reg, self.why(reg))
    }

    /// The value of a scalar operand, and which bits of it are not known.
    pub(super) fn scalar_value(&self, from: From, ty: Type) -> (u64, u64) {
        match from {
            From::Const(value) => (value, 0),
            From::Scalar(reg) => {
                let dwords = if ty.bits() > 32 { 2 } else { 1 };
                (self.value(reg, dwords), self.unknown_value(reg, dwords))
            }
            From::Vgpr(_) => (0, 0),
        }
    }

    /// The floating-point mode.
    pub(super) fn float_mode(&self, generation: Gfx) -> Mode {
        Mode::from_bits(self.mode, generation)
    }
}
