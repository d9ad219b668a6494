//! Workgroups of primitive shaders that cull, on the emulator. What they export is compared with what the interpreter says of their vertices, and the primitives that are left
//! with what may and what must be culled, in exact arithmetic.

use super::feedback::{Feedback, GROUPS};
use super::judge::{has_undefined, stored_by};
use super::pipeline::{
    BufferContents, CODE, Case, FIRST_PRIMITIVE, Fill, MACHINE_STEPS, RING, RING_ELEMENT, RING_PART,
    RING_TOGETHER, RINGS, close, is_inexact,
};
use super::recorded::Problem;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::abi::{Argument, Interface};
use unwedge_aco::culling::CullState;
use unwedge_aco::{Compiled, Options};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{InterfaceSlot, InvocationOutput};
use unwedge_shader::ir::{FIRST_LOCATION_SLOT, Payload, Shader, Stage, SystemValue};
use unwedge_sim::amdgcn::{
    Dispatch, FaultKind, MessageKind, OrderedState, Program, SimMemory, Timing, WaveMessage, run,
};
use unwedge_testkit::mutate::Rng;

/// Positions are compared exactly in units of two to the power of -20, if they are below two to the power of 20.
const UNIT: f64 = (1u64 << 20) as f64;
const MOST: f64 = UNIT * UNIT;
/// The same of the viewport, in units of two to the power of -8.
const SCREEN_UNIT: f64 = 256.0;
/// How much narrower than a pixel a small triangle surely is, beside the precision: more than rounding errors of coordinates up to [`SURE`].
const SLACK: f64 = 1.0 / 64.0;
const SURE: f64 = 4096.0;
const NO_PRIMITIVE: u32 = 0x8000_0000;

/// x, y, z and w of a vertex.
pub type Position = [f32; 4];

/// What a reference says of a triangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// It may be seen, so it is never culled.
    Visible,
    /// It cannot be seen, or it is not known.
    Any,
    /// It cannot be seen, and this is clear enough.
    Hidden,
}

/// A workgroup.
pub struct Draw {
    case: Case,
    outputs: Vec<InvocationOutput>,
    buffers: BufferContents,
    primitives: Vec<[u32; 3]>,
    /// The machine's results may be off by some units in the last place.
    inexact: bool,
    /// Something that is exported is undefined.
    undefined: bool,
    /// Vertices of a primitive.
    pub corners: usize,
    pub state: CullState,
    /// Scale and translation.
    pub viewport: [f32; 4],
}

/// The culling state, and a reference in exact arithmetic that judges triangles.
#[derive(Debug, Clone, Copy)]
pub struct CullReference {
    pub state: CullState,
    /// Scale and translation.
    pub viewport: [f32; 4],
    /// Positions on the emulator may differ by some units in the last place.
    pub inexact: bool,
}

fn exact(value: f32) -> Option<i128> {
    let scaled = f64::from(value) * UNIT;
    (scaled.fract() == 0.0 && scaled.abs() < MOST).then_some(scaled as i128)
}

/// Twice the area that a triangle has for its sides x, y and w, and the sum of the magnitudes of the terms.
fn determinant(corners: &[[i128; 3]; 3]) -> (i128, i128) {
    let (mut sum, mut magnitude) = (0, 0);
    for first in 0..3 {
        let ([x, ..], [_, y1, w1], [_, y2, w2]) =
            (corners[first], corners[(first + 1) % 3], corners[(first + 2) % 3]);
        sum += x * (y1 * w2 - y2 * w1);
        magnitude += x.abs() * ((y1 * w2).abs() + (y2 * w1).abs());
    }
    (sum, magnitude)
}

fn beyond(corners: &[Position; 3]) -> bool {
    let all = |test: &dyn Fn(&Position) -> bool| corners.iter().all(test);
    all(&|[.., w]| *w <= 0.0)
        || (0..2)
            .any(|axis| all(&|corner| corner[axis] > corner[3]) || all(&|corner| corner[axis] < -corner[3]))
}

/// Whether a whole number and a half is between two quotients.
fn has_centre(low: (i128, i128), high: (i128, i128)) -> bool {
    // The first number n with n + 1/2 not below the lower end.
    let (a, b) = (2 * low.0 - low.1, 2 * low.1);
    let first = -(-a).div_euclid(b);
    (2 * first + 1) * high.1 <= 2 * high.0
}

impl CullReference {
    /// Whether a triangle may be culled.
    pub fn visibility(&self, corners: [Position; 3]) -> Visibility {
        let state = &self.state;
        let bits = corners.map(|[x, y, _, w]| [x, y, w].map(f32::to_bits));
        let twice = bits[0] == bits[1] || bits[1] == bits[2] || bits[0] == bits[2];
        if !self.inexact && (state.outside && beyond(&corners) || state.degenerate && twice) {
            return Visibility::Hidden;
        }
        let words = corners.map(|[x, y, _, w]| [x, y, w].map(exact));
        let others = state.counterclockwise || state.clockwise || state.small;
        if !self.inexact && !others {
            return Visibility::Visible;
        }
        if self.inexact || words.iter().flatten().any(Option::is_none) {
            return Visibility::Any;
        }
        let words = words.map(|corner| corner.map(Option::unwrap_or_default));
        let (area, magnitude) = determinant(&words);
        let turned = state.counterclockwise && area > 0 || state.clockwise && area < 0;
        if turned && area.abs() << 18 > magnitude {
            return Visibility::Hidden;
        }
        match self.missed(&words) {
            Visibility::Visible if turned => Visibility::Any,
            missed => missed,
        }
    }

    /// Whether a triangle lies between pixel centres.
    fn missed(&self, corners: &[[i128; 3]; 3]) -> Visibility {
        if !self.state.small || corners.iter().any(|[.., w]| *w <= 0) {
            return Visibility::Visible;
        }
        let precision = 2f64.powi(self.state.precision.into());
        let mut best = Visibility::Visible;
        for axis in 0..2 {
            let [scale, translation] =
                [axis, axis + 2].map(|at| (f64::from(self.viewport[at]) * SCREEN_UNIT) as i128);
            let mut places =
                corners.map(|corner| (corner[axis] * scale + translation * corner[2], corner[2] * 256));
            places.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
            if has_centre(places[0], places[2]) {
                continue;
            }
            let [low, .., high] = places.map(|(a, b)| a as f64 / b as f64);
            let (low, high) = (low - precision - SLACK, high + precision + SLACK);
            let sure = (low - 0.5).ceil() + 0.5 > high && low.abs().max(high.abs()) < SURE;
            best = best.max(if sure { Visibility::Hidden } else { Visibility::Any });
        }
        best
    }
}

impl Draw {
    /// Interprets a shader for `lanes` vertices, with given words of the first attribute. `None` if the result is undefined.
    pub fn new(
        shader: &Shader,
        lanes: usize,
        counts: [usize; 2],
        positions: Option<&[Position]>,
        rng: &mut Rng,
    ) -> Option<Draw> {
        let mut shader = shader.clone();
        shader.info.float_modes[1].flush = Some(false);
        let inexact = shader.functions().iter().any(|func| func.walk().any(|inst| is_inexact(func.op(inst))));
        let mut case = Case::without_inputs(&shader, lanes, rng, Fill::Mixed);
        match case.shader.info.stage {
            Stage::TessEval => case.evaluations(rng, counts[0]),
            _ => case.vertices(rng, counts[0]),
        }
        if let Some(positions) = positions {
            let words = case.vertices.entry(0).or_default();
            for (word, value) in words.iter_mut().zip(positions.iter().flatten()) {
                *word = value.to_bits();
            }
            for input in &mut case.inputs {
                let index = input.system_values[&SystemValue::VertexIndex][0] as usize;
                let own = std::array::from_fn(|lane| words.get(index * 4 + lane).copied());
                let slot = FIRST_LOCATION_SLOT.into();
                input.slots.insert(InterfaceSlot { slot, vertex: 0, patch: false, index: 0 }, own);
            }
        }
        let mut primitives: Vec<[u32; 3]> =
            (0..counts[1]).map(|_| std::array::from_fn(|_| rng.below(counts[0]) as u32)).collect();
        let reads_number =
            |inst| case.shader.entry().payload(inst) == Payload::SysVal(SystemValue::PrimitiveId);
        if case.shader.info.stage == Stage::Vertex && case.shader.entry().walk().any(reads_number) {
            // Each vertex is the provoking one of one primitive.
            assert_eq!(counts[0], counts[1], "the number of the primitive of each vertex is defined");
            let first = rng.below(counts[0]);
            for (number, corners) in primitives.iter_mut().enumerate() {
                let provoking = (number + first) % counts[0];
                corners[0] = provoking as u32;
                let word = [FIRST_PRIMITIVE + number as u32, 0, 0, 0];
                case.inputs[provoking].system_values.insert(SystemValue::PrimitiveId, word);
            }
        }
        let (outputs, buffers) = case.interpret().ok()?;
        let stored = stored_by(&case.shader);
        let undefined = outputs.iter().any(|output| has_undefined(&stored, &output.slots));
        Some(Draw {
            case,
            outputs,
            buffers,
            primitives,
            inexact,
            undefined,
            corners: 3,
            state: CullState::default(),
            viewport: [1.0, 1.0, 0.0, 0.0],
        })
    }

    /// Makes each vertex the first one of a primitive, if there are enough of these. Programs that do not cull export all vertices.
    pub fn cover_vertices(&mut self) {
        let (count, first) = (self.outputs.len() as u32, self.primitives.first().map_or(0, |own| own[0]));
        for (number, corners) in (0..).zip(&mut self.primitives) {
            corners[0] = (number + first) % count;
        }
    }

    /// Makes the provoking vertex of each primitive its last one.
    pub fn provoke_last(&mut self) {
        for corners in &mut self.primitives {
            corners[..self.corners].rotate_left(1);
        }
    }

    /// Whether the positions of all vertices are known.
    pub fn is_placed(&self) -> bool {
        let key = InterfaceSlot { slot: 0, vertex: 0, patch: false, index: 0 };
        let placed = |output: &InvocationOutput| {
            output.slots.get(&key).is_some_and(|words| words.iter().all(Option::is_some))
        };
        self.outputs.iter().all(placed)
    }

    fn position(&self, vertex: u32) -> Position {
        let key = InterfaceSlot { slot: 0, vertex: 0, patch: false, index: 0 };
        let words = self.outputs[vertex as usize].slots.get(&key);
        std::array::from_fn(|lane| f32::from_bits(words.and_then(|words| words[lane]).unwrap_or_default()))
    }

    fn visibility(&self, primitive: usize) -> Visibility {
        let (state, viewport, inexact) = (self.state, self.viewport, self.inexact);
        let corners = self.primitives[primitive].map(|vertex| self.position(vertex));
        CullReference { state, viewport, inexact }.visibility(corners)
    }

    fn threads(&self, argument: Argument, generation: Gfx) -> Option<Vec<u32>> {
        let distance = if generation >= Gfx::Gfx12 { 9 } else { 16 };
        Some(match argument {
            Argument::VertexOffset(0) => (0..)
                .zip(&self.primitives)
                .map(|(number, [a, b, c])| match generation >= Gfx::Gfx12 {
                    true => a | b << distance | c << (2 * distance) | edges(number, 9, 8),
                    false => a | b << distance,
                })
                .collect(),
            Argument::Connectivity => (0..)
                .map(|number| self.connectivity(number, generation))
                .take(self.primitives.len())
                .collect(),
            Argument::VertexOffset(1) => self.primitives.iter().map(|[.., c]| *c).collect(),
            Argument::GeometryPrimitive => (FIRST_PRIMITIVE..).take(self.primitives.len()).collect(),
            Argument::GeometryInvocation => {
                (0..).zip(&self.primitives).map(|(number, _)| edges(number, 1, 8) | 3).collect()
            }
            _ => return self.case.threads(argument).and_then(|all| all.into_iter().next()),
        })
    }

    /// The word of a primitive that is exported unchanged.
    fn connectivity(&self, number: u32, generation: Gfx) -> u32 {
        let (distance, edge) = if generation >= Gfx::Gfx12 { (9, 8) } else { (10, 9) };
        let corners = (0..).zip(&self.primitives[number as usize][..self.corners]);
        corners.fold(edges(number, distance, edge), |all, (at, vertex)| all | vertex << (at * distance))
    }

    fn word(&self, argument: Argument) -> Option<u32> {
        Some(match argument {
            Argument::PrimitiveVertices => self.corners as u32,
            Argument::CullState => self.state.word(),
            Argument::ViewportTransform(number) => self.viewport[usize::from(number)].to_bits(),
            Argument::GroupInfo => (self.outputs.len() as u32) << 12 | (self.primitives.len() as u32) << 22,
            Argument::MergedWaveInfo => return None,
            _ => return self.case.word(argument),
        })
    }

    fn dispatch(&self, compiled: &Compiled, options: &Options, seed: u64) -> Dispatch {
        let (gpu, lanes) = (&options.gpu, self.case.lanes);
        let counts = [self.outputs.len(), self.primitives.len()];
        let waves = counts[0].max(counts[1]).div_ceil(lanes);
        let mut dispatch = Dispatch {
            size: [(waves * lanes) as u32, 1, 1],
            lds: compiled.code.lds_bytes,
            scratch: compiled.code.scratch_bytes,
            mode: 0x100 | u32::from(compiled.float_mode),
            timing: Timing::Adversarial { seed },
            steps: MACHINE_STEPS,
            ..Dispatch::default()
        };
        for location in compiled.args.iter() {
            let reg = location.reg.reg();
            if location.argument == Argument::MergedWaveInfo {
                let part =
                    |part: usize, wave: usize| counts[part].saturating_sub(wave * lanes).min(lanes) as u32;
                let words = (0..waves).map(|wave| {
                    let place = (wave as u32) << 24 | (waves as u32) << 28;
                    part(0, wave) | part(1, wave) << 8 | place
                });
                dispatch.waves_hold.push((reg.0, words.collect()));
            } else if let Some(word) = self.word(location.argument) {
                dispatch.scalars.push((reg.0, word));
            } else if let Some(words) = self.threads(location.argument, gpu.generation()) {
                dispatch.threads_hold.push((reg.index() as u8, words));
            } else if location.argument == Argument::ScratchOffset {
                dispatch.scalars.push((reg.0, 0));
            } else if location.argument == Argument::RingOffsets {
                let words = match gpu.generation() >= Gfx::Gfx11 {
                    true => [RINGS as u32, options.address_high, 0, 0],
                    false => super::scratch_descriptor(gpu),
                };
                dispatch.scalars.extend((reg.0..).zip(words).take(location.dwords.into()));
            }
        }
        dispatch
    }

    /// Runs a program, and judges what it exports. Returns how many primitives had to stay, and had to go.
    pub fn judge(&self, compiled: &Compiled, options: &Options, seed: u64) -> Result<[usize; 2], Problem> {
        let program = Program::new(&compiled.code.words, CODE, options.gpu);
        let mut memory = self.case.memory(options, &compiled.args.interface, &[]);
        let outcome = run(&program, &mut memory, &self.dispatch(compiled, options, seed), None);
        let allowed = |kind: &FaultKind| self.undefined && matches!(kind, FaultKind::Stored(..));
        if let Some(fault) = outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
            return Err(("run", format!("{fault}: {}", program.text(fault.at).unwrap_or_default())));
        }
        let exported = Exported::of(&outcome.messages, self.case.lanes);
        let left = self.primitives_left(&exported, options).map_err(|what| ("primitive", what))?;
        let interface = &compiled.args.interface;
        self.compare_vertices(&exported, &memory, interface, options, left.vertices)?;
        for (number, (point, content)) in self.buffers.iter().enumerate() {
            let base = super::pipeline::BUFFERS + number as u64 * super::pipeline::BUFFER_STRIDE;
            if !self.inexact && memory.get(base, content.len()).unwrap_or_default() != content {
                return Err(("buffer", format!("{point:?} differs")));
            }
        }
        Ok(left.sure)
    }

    /// Runs the workgroups of a draw whose primitives are captured, and compares exports of the last one, and all buffers. Returns how many primitives were written, and how many did not fit.
    pub fn capture(&self, compiled: &Compiled, options: &Options, seed: u64) -> Result<[u64; 2], Problem> {
        let program = Program::new(&compiled.code.words, CODE, options.gpu);
        let interface = &compiled.args.interface;
        let mut feedback = Feedback::new(&interface.captures, &mut Rng::new(seed ^ 0xfeed));
        let mut memory = self.case.memory(options, interface, &[]);
        feedback.map(&mut memory, options);
        let mut ordered = feedback.ordered();
        let mut exported = None;
        let vertices = |corners: &[u32; 3]| {
            let corners = corners[..self.corners].iter();
            corners.map(|vertex| &self.outputs[*vertex as usize].slots).collect()
        };
        for group in 0..GROUPS {
            let dispatch =
                self.turn(compiled, options, seed + u64::from(group), feedback.order(group), ordered);
            let outcome = run(&program, &mut memory, &dispatch, None);
            let allowed = |kind: &FaultKind| self.undefined && matches!(kind, FaultKind::Stored(..));
            if let Some(fault) = outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
                return Err(("run", format!("{fault}: {}", program.text(fault.at).unwrap_or_default())));
            }
            feedback.write(|_| self.primitives.iter().map(vertices).collect());
            ordered = outcome.ordered;
            exported = Some(Exported::of(&outcome.messages, self.case.lanes));
        }
        let same = |key: &InterfaceSlot, component: usize, found: u32, wanted: u32| {
            let mask = self.mask(key, component);
            found & mask == wanted & mask || self.inexact && close(found & mask, wanted & mask)
        };
        feedback.compare(&memory, &ordered, options, &same)?;
        if let Some(exported) = exported {
            let own = (0..self.outputs.len() as u32).map(|vertex| (vertex, vertex)).collect();
            self.compare_vertices(&exported, &memory, interface, options, own)?;
            let generation = options.gpu.generation();
            for number in 0..self.primitives.len() as u32 {
                let wanted = self.connectivity(number, generation);
                let found = exported.values.get(&(20, number)).and_then(|own| own[0]);
                if found != Some(wanted) {
                    return Err(("primitive", format!("{number} is {found:x?}, not {wanted:#x}")));
                }
            }
        }
        Ok(feedback.sums())
    }

    /// The dispatch of a workgroup with a position in the order of a draw.
    fn turn(
        &self,
        compiled: &Compiled,
        options: &Options,
        seed: u64,
        order: u32,
        ordered: OrderedState,
    ) -> Dispatch {
        let mut dispatch = self.dispatch(compiled, options, seed);
        (dispatch.ordered, dispatch.gds) = (ordered, 16);
        let info = compiled.args.find(Argument::GroupInfo).map(|location| location.reg.reg().0);
        for (_, word) in dispatch.scalars.iter_mut().filter(|(reg, _)| Some(*reg) == info) {
            *word |= order;
        }
        dispatch
    }

    /// Runs a workgroup before its turn: it must wait, and must not change buffers or counters. Returns whether there are buffers.
    pub fn capture_early(&self, compiled: &Compiled, options: &Options, seed: u64) -> Result<bool, Problem> {
        let program = Program::new(&compiled.code.words, CODE, options.gpu);
        let interface = &compiled.args.interface;
        let feedback = Feedback::new(&interface.captures, &mut Rng::new(seed ^ 0xfeed));
        if !feedback.is_bound() {
            return Ok(false);
        }
        let mut memory = self.case.memory(options, interface, &[]);
        feedback.map(&mut memory, options);
        let dispatch = self.turn(compiled, options, seed, feedback.order(1), feedback.ordered());
        let outcome = run(&program, &mut memory, &dispatch, None);
        if outcome.faults.is_empty() {
            return Err(("run", "the workgroup does not wait".to_owned()));
        }
        feedback.compare(&memory, &outcome.ordered, options, &|_, _, _, _| false)?;
        Ok(true)
    }

    /// Compares the exports of vertices, each with its number.
    fn compare_vertices(
        &self,
        exported: &Exported,
        memory: &SimMemory,
        interface: &Interface,
        options: &Options,
        vertices: BTreeMap<u32, u32>,
    ) -> Result<(), Problem> {
        let stride = interface.parameters.len() as u64 * RING_ELEMENT;
        for (vertex, number) in vertices {
            for (key, words) in &self.outputs[vertex as usize].slots {
                for (component, word) in words.iter().enumerate() {
                    let Some(word) = word else { continue };
                    let direct = |target: u8, at: usize| {
                        exported.values.get(&(target, number)).and_then(|own| own[at])
                    };
                    let found = match (key.slot, interface.parameter(key.slot as u16)) {
                        (0, _) => direct(12, component),
                        (1, _) => direct(13, 0),
                        (_, Some(parameter)) if options.gpu.generation() >= Gfx::Gfx11 => {
                            let vertex = u64::from(number);
                            let at = RING
                                + (RING_PART << 9)
                                + vertex / RING_TOGETHER * stride * RING_TOGETHER
                                + u64::from(parameter) * RING_ELEMENT * RING_TOGETHER
                                + vertex % RING_TOGETHER * RING_ELEMENT
                                + component as u64 * 4;
                            memory.get(at, 4).and_then(|own| own.try_into().ok()).map(u32::from_le_bytes)
                        }
                        (_, Some(parameter)) => direct(32 + parameter as u8, component),
                        _ => continue,
                    };
                    let mask = self.mask(key, component);
                    let same = |found: u32| {
                        found & mask == word & mask || self.inexact && close(found & mask, word & mask)
                    };
                    if !found.is_some_and(same) {
                        let slot = key.slot;
                        return Err((
                            "vertex",
                            format!(
                                "{vertex} as {number}, slot {slot}.{component}: {found:x?}, not {word:#x}"
                            ),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The bits of a component that count.
    fn mask(&self, key: &InterfaceSlot, component: usize) -> u32 {
        let stored = stored_by(&self.case.shader);
        let own = stored.iter().filter(|(other, at, _)| other == key && *at == component);
        own.fold(u32::MAX, |all, (.., mask)| all & mask)
    }

    fn primitives_left(&self, exported: &Exported, options: &Options) -> Result<PrimitivesLeft, String> {
        let generation = options.gpu.generation();
        let (distance, edge) = if generation >= Gfx::Gfx12 { (9, 8) } else { (10, 9) };
        let mut left = PrimitivesLeft { vertices: BTreeMap::new(), sure: [0; 2] };
        let mut words = Vec::new();
        for (number, corners) in self.primitives.iter().enumerate() {
            let word = exported.values.get(&(20, number as u32)).and_then(|own| own[0]);
            words.extend(word);
            let word = word.unwrap_or(NO_PRIMITIVE);
            let visibility = self.visibility(number);
            let culled = word == NO_PRIMITIVE;
            match visibility {
                Visibility::Visible => left.sure[0] += 1,
                Visibility::Hidden => left.sure[1] += 1,
                Visibility::Any => {}
            }
            if culled && visibility == Visibility::Visible || !culled && visibility == Visibility::Hidden {
                let positions = corners.map(|vertex| self.position(vertex));
                return Err(format!("{number} is {visibility:?}, and culled: {culled}: {positions:?}"));
            }
            if culled {
                continue;
            }
            let marked = edges(number as u32, distance, edge);
            for (at, vertex) in (0..).zip(corners) {
                let new = word >> (at * distance) & 0xff;
                if *left.vertices.entry(*vertex).or_insert(new) != new {
                    return Err(format!("vertex {vertex} has two numbers"));
                }
            }
            let again = (0..)
                .zip(corners)
                .fold(marked, |all, (at, vertex)| all | left.vertices[vertex] << (at * distance));
            if again != word {
                return Err(format!("{number} is {word:#x}, not {again:#x}"));
            }
        }
        let numbers: BTreeSet<u32> = left.vertices.values().copied().collect();
        let count = left.vertices.len() as u32;
        if numbers.len() as u32 != count || numbers.last().is_some_and(|last| *last >= count) {
            return Err(format!("{count} vertices have the numbers {numbers:?}"));
        }
        let none = count == 0;
        let asked = match (none, generation == Gfx::Gfx10) {
            (true, true) => 1 | 1 << 12,
            (true, false) => 0,
            _ => count | (self.primitives.len() as u32) << 12,
        };
        if exported.room != [asked] {
            return Err(format!("asked for {:x?}, not {asked:#x}", exported.room));
        }
        let expected = if !none { self.primitives.len() } else { usize::from(generation == Gfx::Gfx10) };
        if words.len() != expected {
            return Err(format!("{} primitives are exported, not {expected}", words.len()));
        }
        let vertices = exported.values.keys().filter(|(target, _)| *target == 12).count() as u32;
        if vertices != asked & 0xfff {
            return Err(format!("{vertices} vertices are exported for {count}"));
        }
        Ok(left)
    }
}

/// What is left of a workgroup: the new numbers of vertices, and how many primitives had to stay and to go.
struct PrimitivesLeft {
    vertices: BTreeMap<u32, u32>,
    sure: [usize; 2],
}

/// The edge flags of a primitive, from a bit on and apart from each other.
fn edges(number: u32, distance: u32, first: u32) -> u32 {
    (0..3).filter(|at| number >> at & 1 != 0).fold(0, |all, at| all | 1 << (first + at * distance))
}

struct Exported {
    /// By target and thread.
    values: BTreeMap<(u8, u32), [Option<u32>; 4]>,
    room: Vec<u32>,
}

impl Exported {
    fn of(messages: &[WaveMessage], lanes: usize) -> Exported {
        let mut all = Exported { values: BTreeMap::new(), room: Vec::new() };
        for message in messages {
            match &message.kind {
                MessageKind::Message { m0, .. } => all.room.push(*m0),
                MessageKind::Export { target, values, .. } => {
                    for lane in (0..64).filter(|lane| message.lanes >> lane & 1 != 0) {
                        let number = message.wave * lanes as u32 + lane;
                        let own =
                            std::array::from_fn(|at| values[at].as_ref().map(|words| words[lane as usize]));
                        all.values.insert((*target, number), own);
                    }
                }
            }
        }
        all
    }
}
