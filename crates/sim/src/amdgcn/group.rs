//! A workgroup: its waves, their shared memory, and one step of one of them.

use super::apply::{Access, Read, Shared};
use super::counters::Counter;
use super::export::Told;
use super::fault::{Fault, Kind, Missing};
use super::hazard::Hazards;
use super::operand::{SREGS, splat};
use super::pending::Pending;
use super::program::{Program, What};
use super::run::{Dispatch, Initial, Timing, Trace};
use super::sync::{Common, Waiting};
use super::watch::{Control, State, Watch};
use super::wave::{Unknown, Wave};
use crate::memory::View;
use std::collections::HashSet;
use unwedge_isa::amdgcn::effects;
use unwedge_isa::amdgcn::model::Format;
use unwedge_isa::amdgcn::semantics::LANES;
use unwedge_isa::amdgcn::{Gpu, Reg};

/// Faults of a workgroup that are kept.
const FAULTS: usize = 256;

/// A workgroup that runs.
pub(super) struct Group<'m> {
    pub(super) program: &'m Program,
    pub(super) gpu: Gpu,
    pub(super) view: View<'m>,
    pub(super) lds: Shared,
    pub(super) gds: Shared,
    pub(super) common: Common,
    pub(super) faults: Vec<Fault>,
    seen: HashSet<(u32, std::mem::Discriminant<Kind>)>,
    pub(super) told: Vec<Told>,
    number: u32,
    /// Offset of the instruction that is executed.
    at: u32,
    stopped: bool,
    random: u64,
    adversarial: bool,
    hazards: Vec<Hazards>,
    /// Instructions executed, and lanes that were enabled in them.
    pub(super) steps: u64,
    pub(super) lane_steps: u64,
}

impl<'m> Group<'m> {
    pub(super) fn new(program: &'m Program, dispatch: &Dispatch, view: View<'m>, number: u32) -> Group<'m> {
        let (adversarial, seed) = match dispatch.timing {
            Timing::Plain => (false, 0),
            Timing::Adversarial { seed } => (true, seed),
        };
        let mut lds = Shared::new(dispatch.lds as usize, adversarial);
        for (at, byte) in dispatch.lds_content.iter().enumerate().take(dispatch.lds as usize) {
            lds.write(at as u64, 1, (*byte).into(), 0);
        }
        Group {
            program,
            gpu: program.gpu,
            view,
            lds,
            gds: Shared::new(dispatch.gds as usize, false),
            common: Common::default(),
            faults: Vec::new(),
            seen: HashSet::new(),
            told: Vec::new(),
            number,
            at: 0,
            stopped: false,
            random: seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d,
            adversarial,
            hazards: Vec::new(),
            steps: 0,
            lane_steps: 0,
        }
    }

    /// Offset of the instruction that is executed.
    pub(super) fn offset(&self) -> u32 {
        self.at
    }

    /// Number of the workgroup.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whether it could not go on.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// A pseudo-random number.
    pub(super) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) ^ self.random >> 11
    }

    /// Reports something that went wrong. What cannot be gone on from ends the workgroup.
    pub(super) fn fault(&mut self, wave: &Wave, kind: Kind) {
        if matches!(
            kind,
            Kind::NotAnInstruction
                | Kind::NoSemantics
                | Kind::NotEmulated(_)
                | Kind::Unmapped { .. }
                | Kind::UnknownMemory(_)
                | Kind::NoRegister
                | Kind::Steps
        ) {
            self.stopped = true;
        }
        if self.faults.len() < FAULTS && self.seen.insert((self.at, std::mem::discriminant(&kind))) {
            self.faults.push(Fault { kind, at: self.at, workgroup: self.number, wave: wave.id });
        }
    }

    /// The waves of a workgroup as they begin.
    fn waves(&mut self, dispatch: &Dispatch, id: [u32; 3]) -> Vec<Wave> {
        let lanes = if self.gpu.wave64() { 64 } else { 32 };
        let [x, y, z] = dispatch.size.map(|size| size.max(1));
        let threads = x.saturating_mul(y).saturating_mul(z).min(1024);
        let count = threads.div_ceil(lanes);
        (0..count).map(|number| self.wave(dispatch, id, number, lanes, threads)).collect()
    }

    fn wave(&mut self, dispatch: &Dispatch, id: [u32; 3], number: u32, lanes: u32, threads: u32) -> Wave {
        let vgprs = usize::from(
            self.program
                .vgprs
                .max(dispatch.vectors.iter().map(|(n, _)| u16::from(*n) + 1).max().unwrap_or(0)),
        );
        let mut wave = Wave {
            id: number,
            wave64: lanes == 64,
            pc: dispatch.entry,
            s: [0; SREGS],
            v: vec![splat(0); vgprs],
            scc: false,
            mode: dispatch.mode,
            ended: false,
            at_barrier: false,
            steps: 0,
            scratch: Shared::new(dispatch.scratch as usize * lanes as usize, self.adversarial),
            unknown: None,
            pending: Pending::default(),
            gpr_idx: 0,
            waiting: Waiting::default(),
        };
        if self.adversarial {
            // What nobody wrote is anything.
            let random: Vec<u32> = (0..64).map(|_| self.random() as u32).collect();
            wave.s.iter_mut().zip(random.iter().cycle()).for_each(|(place, value)| *place = *value);
            for (at, lanes) in wave.v.iter_mut().enumerate() {
                lanes.iter_mut().enumerate().for_each(|(lane, place)| *place = random[(lane + at) % 64]);
            }
            wave.unknown = Some(Box::new(Unknown {
                s: [u32::MAX; SREGS],
                scc: 1,
                v: vec![splat(u32::MAX); vgprs],
                lanes: vec![u64::MAX; vgprs],
                why_s: [Missing::Uninitialised; SREGS],
                why_v: vec![Missing::Uninitialised; vgprs],
            }));
        }
        let first = number * lanes;
        let enabled = (threads - first).min(lanes);
        let exec = if enabled >= 64 { u64::MAX } else { (1 << enabled) - 1 };
        wave.set_value(Reg::EXEC, 2, exec, 0, Missing::Undefined);
        // The condition code, vcc and m0 have some value; nothing says which.
        for (reg, value) in &dispatch.scalars {
            wave.set(Reg(*reg), *value);
        }
        for (reg, value) in dispatch.group_id.iter().zip(id).filter_map(|(reg, value)| Some(((*reg)?, value)))
        {
            wave.set(Reg(reg), value);
        }
        if dispatch.group_id_in_ttmp {
            wave.set(Reg(Reg::TTMP0.0 + 9), id[0]);
            wave.set(Reg(Reg::TTMP0.0 + 7), id[1] & 0xffff | id[2] << 16);
        }
        let [x, y, _] = dispatch.size.map(|size| size.max(1));
        for (reg, initial) in &dispatch.vectors {
            let mut values = splat(0);
            for (lane, place) in (first..).zip(values.iter_mut()) {
                let local = [lane % x, lane / x % y, lane / x / y];
                *place = match initial {
                    Initial::Value(value) => *value,
                    Initial::LocalId(axis) => local[usize::from(*axis) % 3],
                    Initial::PackedLocalIds => local[0] | local[1] << 10 | local[2] << 20,
                };
            }
            wave.set_lanes(*reg, u64::MAX, &values);
            wave.set_unknown_lanes(*reg, exec, &splat(0), Missing::Undefined);
        }
        wave
    }

    /// Whether a wave does not go on by itself.
    fn rests(&self, wave: &Wave) -> bool {
        wave.ended || wave.at_barrier || self.common.blocks(wave)
    }

    /// Runs the workgroup to its end, or until it cannot go on.
    pub(super) fn run(&mut self, dispatch: &Dispatch, id: [u32; 3], watch: &mut Watch<'_>) {
        let mut waves = self.waves(dispatch, id);
        self.hazards = waves.iter().map(|_| Hazards::default()).collect();
        let mut left = dispatch.steps;
        while !self.stopped {
            let ready: Vec<usize> = (0..waves.len()).filter(|at| !self.rests(&waves[*at])).collect();
            if ready.is_empty() {
                if waves.iter().all(|wave| wave.ended) {
                    break;
                }
                if let Some(wave) = waves.iter().find(|wave| !wave.ended && !wave.at_barrier) {
                    self.at = wave.pc;
                    self.fault(wave, Kind::Undefined("waits for what no wave of its workgroup will do"));
                    self.stopped = true;
                    break;
                }
                waves.iter_mut().for_each(|wave| wave.at_barrier = false);
                continue;
            }
            let (which, quantum) = if self.adversarial {
                (ready[self.random() as usize % ready.len()], 1 + self.random() % 24)
            } else {
                (ready[0], 4096)
            };
            for _ in 0..quantum {
                let wave = &mut waves[which];
                if self.rests(wave) || self.stopped {
                    break;
                }
                if left == 0 {
                    self.at = wave.pc;
                    self.fault(wave, Kind::Steps);
                    break;
                }
                left -= 1;
                if let Watch::Step(ask) = watch
                    && ask(&mut State { group: self, waves: &waves, now: which }) == Control::Stop
                {
                    self.stopped = true;
                    break;
                }
                let wave = &mut waves[which];
                let at = wave.pc;
                self.step(wave);
                if let Watch::Trace(tell) = watch {
                    tell(&self.traced(wave, at));
                }
            }
            let wave = &mut waves[which];
            if wave.ended {
                self.finish(wave);
            } else if !self.adversarial && !self.rests(wave) && ready.len() > 1 {
                // Another has its turn.
                waves.rotate_left(1);
            }
        }
    }

    fn traced(&self, wave: &Wave, at: u32) -> Trace {
        let mut writes = Vec::new();
        if let Some(step) = self.program.step(at) {
            for reg in step.effects.writes.iter() {
                if reg.is_vgpr() {
                    let lanes = wave.v.get(usize::from(reg.index())).copied().unwrap_or([0; LANES]);
                    writes.push((reg, lanes.to_vec()));
                } else if reg.0 < SREGS as u16 || reg == Reg::SCC {
                    writes.push((reg, vec![wave.sreg(reg)]));
                }
            }
        }
        Trace { workgroup: self.number, wave: wave.id, at, exec: wave.exec(&self.gpu), writes }
    }

    /// Executes one instruction of a wave.
    fn step(&mut self, wave: &mut Wave) {
        let program = self.program;
        self.at = wave.pc;
        let Some(step) = program.step(wave.pc) else {
            return self.fault(wave, Kind::NotAnInstruction);
        };
        wave.pc = step.next;
        wave.steps += 1;
        self.steps += 1;
        if self.adversarial {
            self.pass_time(wave);
            for (counter, most) in &step.waits {
                self.wait(wave, *counter, *most);
            }
            self.check_locks(wave, &step.effects.writes);
            let found = match self.hazards.get_mut(wave.id as usize) {
                Some(hazards) => hazards.issue(step, &self.gpu),
                None => Vec::new(),
            };
            for (rule, first) in found {
                self.fault(wave, Kind::Hazard(rule, first));
            }
        }
        if effects::is_vector(step.inst.row().format) || step.inst.row().format == Format::Vopd {
            self.lane_steps += u64::from(wave.exec(&self.gpu).count_ones());
        }
        match &step.what {
            What::Vector(vector) => self.vector(wave, vector),
            What::Dual(halves) => self.dual(wave, halves),
            What::Scalar(scalar) => self.scalar(wave, scalar),
            What::Cross(cross) => self.cross(wave, cross),
            What::Matrix(matrix) => self.matrix(wave, matrix),
            What::Flow(flow) => self.flow(wave, step, *flow),
            What::Smem(smem) => self.smem(wave, step, smem),
            What::Buffer(buffer) => self.buffer(wave, step, buffer),
            What::Flat(flat) => self.flat(wave, step, flat),
            What::Ds(ds) => self.ds(wave, step, ds),
            What::Interp(interp) => self.interp(wave, step, interp),
            What::Export(export) => self.export(wave, step, export),
            What::Image(image) => self.image(wave, step, image),
            What::Rays(rays) => self.rays(wave, step, rays),
            What::Nothing => {}
            What::Unknown => self.fault(wave, Kind::NoSemantics),
        }
    }

    /// Delivers what was read already: at once, or when it has been waited for.
    pub(super) fn ready(&mut self, wave: &mut Wave, access: Access, read: Read, counters: &[(Counter, u8)]) {
        if wave.unknown.is_some() {
            return self.defer_ready(wave, access, read, counters, None);
        }
        self.deliver(wave, &access, &read);
    }
}
