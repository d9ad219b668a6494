//! A workgroup: its waves, their shared memory, and one step of one of them.

use super::dispatch::{Dispatch, Initial, MAX_THREADS, Timing};
use super::fault::{FaultKind, Missing};
use super::hazard::Hazards;
use super::issue;
use super::lanes::splat;
use super::local::LocalMemory;
use super::machine::Machine;
use super::operand::SREGS;
use super::program::{Program, UnitOp};
use super::watch::{Control, GroupState, Trace, Watch};
use super::wave::{Unknown, Wave};
use super::{
    buffer, cross, ds, export, flat, flow, image, interp, matrix, mfma, rays, scalar, scaled, smem, vector,
};
use crate::memory::GroupView;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::effects;
use unwedge_isa::amdgcn::model::Format;
use unwedge_isa::amdgcn::semantics::LANES;

/// A workgroup that runs.
pub(super) struct Workgroup<'m> {
    pub(super) program: &'m Program,
    pub(super) machine: Machine<'m>,
    adversarial: bool,
    hazards: Vec<Hazards>,
    /// Instructions executed, and lanes that were enabled in them.
    pub(super) steps: u64,
    pub(super) lane_steps: u64,
}

impl<'m> Workgroup<'m> {
    pub(super) fn new(
        program: &'m Program,
        dispatch: &Dispatch,
        view: GroupView<'m>,
        number: u32,
    ) -> Workgroup<'m> {
        let (adversarial, seed) = match dispatch.timing {
            Timing::Plain => (false, 0),
            Timing::Adversarial { seed } => (true, seed),
        };
        let mut machine = Machine::new(program.gpu, program.base, view, number, seed, dispatch.steps);
        machine.gds = LocalMemory::new(dispatch.gds as usize, false);
        machine.lds = LocalMemory::new(dispatch.lds as usize, adversarial);
        machine.common.ordered = dispatch.ordered;
        for (at, byte) in dispatch.lds_content.iter().enumerate().take(dispatch.lds as usize) {
            machine.lds.write(at as u64, 1, (*byte).into(), 0);
        }
        Workgroup { program, machine, adversarial, hazards: Vec::new(), steps: 0, lane_steps: 0 }
    }

    /// The waves of a workgroup as they begin.
    fn waves(&mut self, dispatch: &Dispatch, id: [u32; 3]) -> Vec<Wave> {
        let lanes = self.machine.gpu.lanes();
        let [x, y, z] = dispatch.size.map(|size| size.max(1));
        let threads = x.saturating_mul(y).saturating_mul(z);
        if threads > MAX_THREADS {
            let wave = self.wave(dispatch, id, 0, lanes, lanes);
            self.machine.at = wave.pc;
            self.machine.fault(&wave, FaultKind::Threads);
            return Vec::new();
        }
        let count = threads.div_ceil(lanes);
        (0..count).map(|number| self.wave(dispatch, id, number, lanes, threads)).collect()
    }

    fn wave(&mut self, dispatch: &Dispatch, id: [u32; 3], number: u32, lanes: u32, threads: u32) -> Wave {
        let vgprs = usize::from(
            self.program
                .vgprs
                .max(dispatch.vectors.iter().map(|(n, _)| u16::from(*n) + 1).max().unwrap_or(0))
                .max(dispatch.threads_hold.iter().map(|(n, _)| u16::from(*n) + 1).max().unwrap_or(0)),
        );
        let scratch = LocalMemory::new(dispatch.scratch as usize * lanes as usize, self.adversarial);
        let mut wave = Wave::new(number, lanes == 64, vgprs, scratch);
        (wave.pc, wave.mode) = (dispatch.entry, dispatch.mode);
        if self.adversarial {
            // What nobody wrote is anything.
            let random: Vec<u32> = (0..64).map(|_| self.machine.random() as u32).collect();
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
                xor: None,
            }));
        }
        let first = number * lanes;
        let enabled = (threads - first).min(lanes);
        let all = if enabled >= 64 { u64::MAX } else { (1 << enabled) - 1 };
        let exec = dispatch.exec.map_or(all, |exec| exec & all);
        wave.set_value(Reg::EXEC, 2, exec, 0, Missing::Undefined);
        // The condition code, vcc and m0 have some value; nothing says which.
        for (reg, value) in &dispatch.scalars {
            wave.set(Reg(*reg), *value);
        }
        for (reg, held) in &dispatch.waves_hold {
            if let Some(value) = held.get(number as usize) {
                wave.set(Reg(*reg), *value);
            }
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
            wave.set_lanes((*reg).into(), u64::MAX, &values);
            wave.set_unknown_lanes((*reg).into(), all, &splat(0), Missing::Undefined);
        }
        for (reg, held) in &dispatch.threads_hold {
            let mut values = splat(0);
            for (place, value) in values.iter_mut().zip(held.iter().skip(first as usize)) {
                *place = *value;
            }
            wave.set_lanes((*reg).into(), u64::MAX, &values);
            wave.set_unknown_lanes((*reg).into(), all, &splat(0), Missing::Undefined);
        }
        wave
    }

    /// Whether a wave does not go on by itself.
    fn rests(&self, wave: &Wave) -> bool {
        wave.ended || wave.at_barrier || self.machine.common.blocks(&wave.waiting)
    }

    /// Runs the workgroup to its end, or until it cannot go on.
    pub(super) fn run(&mut self, dispatch: &Dispatch, id: [u32; 3], watch: &mut Watch<'_>) {
        let mut waves = self.waves(dispatch, id);
        self.hazards = waves.iter().map(|_| Hazards::default()).collect();
        while !self.machine.stopped {
            let ready: Vec<usize> = (0..waves.len()).filter(|at| !self.rests(&waves[*at])).collect();
            if ready.is_empty() {
                if waves.iter().all(|wave| wave.ended) {
                    break;
                }
                if let Some(wave) = waves.iter().find(|wave| !wave.ended && !wave.at_barrier) {
                    self.machine.at = wave.pc;
                    self.machine
                        .fault(wave, FaultKind::Undefined("waits for what no wave of its workgroup will do"));
                    self.machine.stopped = true;
                    break;
                }
                waves.iter_mut().for_each(|wave| wave.at_barrier = false);
                continue;
            }
            let (which, quantum) = if self.adversarial {
                (ready[self.machine.random() as usize % ready.len()], 1 + self.machine.random() % 24)
            } else {
                (ready[0], 4096)
            };
            for _ in 0..quantum {
                let wave = &mut waves[which];
                if self.rests(wave) || self.machine.stopped {
                    break;
                }
                if self.machine.budget == 0 {
                    self.machine.at = wave.pc;
                    self.machine.fault(wave, FaultKind::Steps);
                    break;
                }
                self.machine.budget -= 1;
                if let Watch::Step(ask) = watch
                    && ask(&mut GroupState { machine: &mut self.machine, waves: &waves, now: which })
                        == Control::Stop
                {
                    self.machine.stopped = true;
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
                issue::finish(&mut self.machine, wave);
            } else if !self.adversarial && !self.rests(wave) && ready.len() > 1 {
                // Another has its turn.
                waves.rotate_left(1);
            }
        }
    }

    fn traced(&self, wave: &Wave, at: u32) -> Trace {
        let mut writes = Vec::new();
        if let Some(step) = self.program.step(at) {
            for reg in step.decoded.effects.writes.iter() {
                if let Some(n) = reg.lane_number() {
                    let lanes = wave.v.get(usize::from(n)).copied().unwrap_or([0; LANES]);
                    writes.push((reg, lanes.to_vec()));
                } else if reg.0 < SREGS as u16 || reg == Reg::SCC {
                    writes.push((reg, vec![wave.sreg(reg)]));
                }
            }
        }
        Trace {
            workgroup: self.machine.number(),
            wave: wave.id,
            at,
            exec: wave.exec(&self.machine.gpu),
            writes,
        }
    }

    /// Executes one instruction of a wave.
    fn step(&mut self, wave: &mut Wave) {
        let (program, machine) = (self.program, &mut self.machine);
        machine.at = wave.pc;
        let Some(step) = program.step(wave.pc) else {
            return machine.fault(wave, FaultKind::NotAnInstruction);
        };
        let decoded = &step.decoded;
        wave.pc = decoded.next;
        wave.steps += 1;
        self.steps += 1;
        if self.adversarial {
            issue::pass_time(machine, wave);
            for (counter, most) in &decoded.waits {
                issue::wait(machine, wave, *counter, *most);
            }
            issue::check_locks(machine, wave, &decoded.effects.writes);
            let broken = match self.hazards.get_mut(wave.id as usize) {
                Some(hazards) => hazards.issue(decoded, step.hazard, &machine.gpu),
                None => Vec::new(),
            };
            for (rule, first) in broken {
                machine.fault(wave, FaultKind::Hazard(rule, first));
            }
        }
        let format = decoded.inst.row().format;
        if effects::is_vector(format) || format == Format::Vopd {
            self.lane_steps += u64::from(wave.exec(&machine.gpu).count_ones());
        }
        match &step.op {
            UnitOp::Vector(op) => vector::exec(machine, wave, op),
            UnitOp::Dual(halves) => vector::exec_dual(machine, wave, halves),
            UnitOp::Scalar(op) => scalar::exec(machine, wave, op),
            UnitOp::Cross(op) => cross::exec(machine, wave, op),
            UnitOp::Matrix(op) => matrix::exec(machine, wave, op),
            UnitOp::Mfma(op) => mfma::exec(machine, wave, op),
            UnitOp::Scaled(op) => scaled::exec(machine, wave, op),
            UnitOp::Flow(op) => flow::exec(machine, wave, decoded, *op),
            UnitOp::Smem(op) => smem::exec(machine, wave, decoded, op),
            UnitOp::Buffer(op) => buffer::exec(machine, wave, decoded, op),
            UnitOp::Flat(op) => flat::exec(machine, wave, decoded, op),
            UnitOp::Ds(op) => ds::exec(machine, wave, decoded, op),
            UnitOp::Interp(op) => interp::exec(machine, wave, decoded, op),
            UnitOp::Export(op) => export::exec(machine, wave, decoded, op),
            UnitOp::Image(op) => image::exec(machine, wave, decoded, op),
            UnitOp::Rays(op) => rays::exec(machine, wave, decoded, op),
            UnitOp::Nothing => {}
            UnitOp::Unknown => machine.fault(wave, FaultKind::NoSemantics),
        }
    }
}
