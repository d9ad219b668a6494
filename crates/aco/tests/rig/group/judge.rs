//! Compares what programs of a workgroup leave with what the interpreter makes of their shaders.

use super::run::{
    ES_RING, FACTOR_OFFSET, FACTORS, GS_RING, GS_WAVE, GroupRun, LEFT, LEFT_OFFSET, es_place, run_group, word,
};
use super::{GroupExpectation, GroupPrograms, Slots};
use crate::rig::captures;
use crate::rig::culling::{CullReference, Visibility};
use crate::rig::feedback::{Feedback, GROUPS};
use crate::rig::judge::{has_undefined, stored_by};
use crate::rig::pipeline::{
    BUFFER_STRIDE, BUFFERS, CODE, RING, RING_ELEMENT, RING_PART, RING_TOGETHER, close,
};
use crate::rig::recorded::Problem;
use std::collections::BTreeMap;
use unwedge_aco::abi::{Argument, Interface};
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{Compiled, Options};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::InterfaceSlot;
use unwedge_shader::ir::Primitive;
use unwedge_sim::amdgcn::{
    Control, FaultKind, MessageKind, Program, SimMemory, Timing, Watch, WaveMessage, run, watch,
};
use unwedge_testkit::mutate::Rng;

/// The slots of a patch and of one of its vertices.
fn vertex_of(slots: &Slots, vertex: u32) -> Slots {
    let own = slots.iter().filter(|(key, _)| key.patch || key.vertex == vertex);
    own.map(|(key, words)| (InterfaceSlot { vertex: 0, ..*key }, *words)).collect()
}

impl GroupExpectation {
    fn same(&self, found: Option<u32>, wanted: u32, mask: u32) -> bool {
        found.is_some_and(|found| {
            if self.inexact { close(found & mask, wanted & mask) } else { found & mask == wanted & mask }
        })
    }

    /// Compares slots with what is found; `mask` has the bits of a component that count.
    fn compare(
        &self,
        what: &str,
        slots: &Slots,
        find: impl Fn(&InterfaceSlot, usize) -> Option<Option<u32>>,
    ) -> Result<(), Problem> {
        let masks = self.masks();
        for (key, words) in slots {
            for (component, wanted) in words.iter().enumerate() {
                let Some(wanted) = wanted else { continue };
                let Some(found) = find(key, component) else { continue };
                let mask = masks.get(&(key.slot, component)).copied().unwrap_or(u32::MAX);
                if !self.same(found, *wanted, mask) {
                    return Err((
                        "output",
                        format!(
                            "{what}, slot {} vertex {}.{component}: {found:x?}, not {wanted:#x}",
                            key.slot, key.vertex
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The bits of components that count: others than of 32 bits have undefined ones.
    fn masks(&self) -> BTreeMap<(u32, usize), u32> {
        let mut all = BTreeMap::new();
        for shader in [&self.first.shader, &self.second] {
            for (key, component, mask) in stored_by(shader) {
                *all.entry((key.slot, component)).or_insert(u32::MAX) &= mask;
            }
        }
        all
    }

    /// Whether something that a shader may store is undefined: then it may be stored.
    pub(super) fn has_undefined(&self) -> bool {
        let [first, mut second] = [&self.first.shader, &self.second].map(stored_by);
        second.retain(|(key, ..)| key.index == 0);
        let mut left = self.strips.iter().flat_map(|strips| &strips.vertices);
        let others = stored_by(&self.second);
        let other = |stream: u8| {
            let own: Vec<_> = others.iter().copied().filter(|(key, ..)| key.index == stream).collect();
            self.strips
                .iter()
                .flat_map(|strips| strips.stream(stream))
                .any(|slots| has_undefined(&own, slots))
        };
        let vertices = self.second.info.output_vertices;
        let mut patches =
            self.patches.iter().flat_map(|slots| (0..vertices).map(move |at| vertex_of(slots, at)));
        self.passed.iter().any(|slots| has_undefined(&first, slots))
            || left.any(|slots| has_undefined(&second, slots))
            || patches.any(|slots| has_undefined(&second, &slots))
            || (1..4).any(other)
    }

    fn patches(&self, memory: &SimMemory, interface: &Interface, options: &Options) -> Result<(), Problem> {
        let vertices = self.second.info.output_vertices;
        let slots = &interface.outputs;
        for (patch, own) in (0u32..).zip(&self.patches) {
            let begin = LEFT_OFFSET + patch * slots.patch_bytes(vertices);
            self.compare(&format!("patch {patch}"), own, |key, component| {
                let at = slots.offset(key.slot as u16, key.patch)?;
                let inside = if key.patch { vertices } else { key.vertex } * slots.vertex_bytes();
                Some(word(memory, LEFT + u64::from(begin + inside + at) + component as u64 * 4))
            })?;
            let order: &[(u32, usize)] = match self.second.info.input_primitive {
                Some(Primitive::Quads) => &[(10, 0), (10, 1), (10, 2), (10, 3), (11, 0), (11, 1)],
                Some(Primitive::Isolines) => &[(10, 1), (10, 0)],
                _ => &[(10, 0), (10, 1), (10, 2), (11, 0)],
            };
            let control = options.gpu.generation() <= Gfx::Gfx8;
            let first = FACTOR_OFFSET + if control { 4 } else { 0 } + patch * order.len() as u32 * 4;
            if control && word(memory, FACTORS + u64::from(FACTOR_OFFSET)) != Some(0x8000_0000) {
                return Err(("output", "factors do not begin with the control word".to_owned()));
            }
            for (number, (slot, component)) in (0..).zip(order) {
                let key = InterfaceSlot { slot: *slot, vertex: 0, patch: true, index: 0 };
                let wanted = own.get(&key).and_then(|words| words[*component]);
                let found = word(memory, FACTORS + u64::from(first + number * 4));
                if let Some(wanted) = wanted
                    && !self.same(found, wanted, u32::MAX)
                {
                    return Err((
                        "output",
                        format!("patch {patch}, factor {number}: {found:x?}, not {wanted:#x}"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What waves of geometry shaders told of their vertices.
    fn told(&self, messages: &[WaveMessage], lanes: usize) -> Result<(), Problem> {
        let wrong = |what: String| Err(("output", what));
        let mut counts = vec![(0usize, Vec::new()); self.primitives.len()];
        let mut done: Vec<u32> = Vec::new();
        for message in messages {
            let MessageKind::Message { code, m0 } = message.kind else { continue };
            if m0 != GS_WAVE + message.wave {
                return wrong(format!("message {code:#x} of wave {} with {m0:#x}", message.wave));
            }
            if done.contains(&message.wave) {
                return wrong(format!("wave {} goes on after its end", message.wave));
            }
            if code == 3 {
                done.push(message.wave);
                continue;
            }
            if message.lanes == 0 {
                return wrong(format!("message {code:#x} without a lane"));
            }
            if code >> 8 != 0 {
                continue;
            }
            for lane in (0..64).filter(|lane| message.lanes >> lane & 1 != 0) {
                let Some((count, cuts)) = counts.get_mut(message.wave as usize * lanes + lane) else {
                    return wrong(format!("lane {lane} of wave {} has no primitive", message.wave));
                };
                match code {
                    0x22 => *count += 1,
                    _ => cuts.push(*count),
                }
            }
        }
        if done.is_empty() {
            return wrong("no wave ends".to_owned());
        }
        for (primitive, (strips, (count, cuts))) in self.strips.iter().zip(counts).enumerate() {
            if strips.vertices.len() != count || strips.cuts != cuts {
                let (wanted, ends) = (strips.vertices.len(), &strips.cuts);
                return wrong(format!(
                    "primitive {primitive}: {count} vertices cut at {cuts:?}, not {wanted} at {ends:?}"
                ));
            }
        }
        Ok(())
    }

    fn emitted(&self, memory: &SimMemory, of: &GroupRun<'_>) -> Result<(), Problem> {
        let most = self.second.info.output_vertices;
        for (primitive, strips) in self.strips.iter().enumerate() {
            for stream in 0..4 {
                for (vertex, slots) in (0..).zip(strips.stream(stream)) {
                    let what = format!("primitive {primitive}, vertex {vertex} of stream {stream}");
                    self.compare(&what, slots, |key, component| {
                        let at = of.stream_slots(stream).offset(key.slot as u16, false);
                        let at = at.filter(|_| key.index == stream)?;
                        let place = gs_place(of, primitive, vertex, stream);
                        Some(word(
                            memory,
                            GS_RING + u64::from(place + (at + component as u32 * 4) * most * 16),
                        ))
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Where the first dword of a vertex is in the ring after geometry shaders.
fn gs_place(of: &GroupRun<'_>, primitive: usize, vertex: u32, stream: u8) -> u32 {
    let (wave, lane) = ((primitive / of.lanes) as u32, (primitive % of.lanes) as u32);
    let before: u32 = (0..stream).map(|stream| of.stream_stride(stream) * 64).sum();
    of.wave_bytes() * wave + before + lane / 16 * of.stream_stride(stream) * 16 + vertex * 64 + lane % 16 * 4
}

/// Compares compiled programs with what the interpreter makes of the shaders.
pub fn judge_group(
    expected: &GroupExpectation,
    programs: &GroupPrograms,
    options: &Options,
    seed: u64,
) -> Result<(), Problem> {
    let first_stage = &programs.programs[0];
    if programs.programs.len() > 1 {
        judge_first(expected, first_stage, options, seed)?;
    }
    let Some(compiled) = programs.programs.last() else { return Ok(()) };
    let of = GroupRun::new(expected, options, compiled);
    let primitives = of.interface.hardware == Some(HardwareStage::Ngg);
    if primitives && !of.interface.captures.words.is_empty() {
        return judge_feedback(expected, of, compiled, seed);
    }
    let mut memory = of.memory();
    let outcome = run_group(&of, compiled, seed, &mut memory)?;
    if programs.programs.len() == 1
        && let Some(buffers) = &expected.buffers
    {
        for (number, (point, content)) in buffers.iter().enumerate() {
            let base = BUFFERS + number as u64 * BUFFER_STRIDE;
            if memory.get(base, content.len()).unwrap_or_default() != content {
                return Err(("buffer", format!("{point:?} differs")));
            }
        }
    }
    match compiled.args.interface.hardware {
        Some(HardwareStage::Hs | HardwareStage::LsHs) => expected.patches(&memory, of.interface, options),
        Some(HardwareStage::Ngg) => {
            let left = left(expected, &of, None);
            exported(expected, &of, &outcome.messages, &memory, left)
        }
        _ => {
            expected.told(&outcome.messages, of.lanes)?;
            expected.emitted(&memory, &of)?;
            match &programs.copy {
                Some(copy) => judge_copy(expected, &of, copy, seed, memory),
                None => Ok(()),
            }
        }
    }
}

/// A first stage alone leaves vertices in LDS or in the ring.
fn judge_first(
    expected: &GroupExpectation,
    compiled: &Compiled,
    options: &Options,
    seed: u64,
) -> Result<(), Problem> {
    let of = GroupRun::new(expected, options, compiled);
    let mut memory = of.memory();
    let slots = &of.interface.outputs;
    if of.interface.hardware == Some(HardwareStage::Es) {
        run_group(&of, compiled, seed, &mut memory)?;
        for (vertex, own) in (0..).zip(&expected.passed) {
            expected.compare(&format!("vertex {vertex}"), own, |key, component| {
                let at = slots.offset(key.slot as u16, false)?;
                Some(word(&memory, ES_RING + u64::from(es_place(vertex, at + component as u32 * 4))))
            })?;
        }
        return Ok(());
    }
    run_group(&of, compiled, seed, &mut of.memory())?;
    // The contents of LDS are seen at the end of the last wave, in a run in which every access ends at once.
    let program = Program::new(&compiled.code.words, CODE, options.gpu);
    let mut local = Vec::new();
    let mut look = |state: &mut unwedge_sim::amdgcn::GroupState<'_, '_>| {
        local = (0..of.lds / 4).map(|at| state.lds(at * 4)).collect();
        Control::Go
    };
    let dispatch = of.dispatch(compiled, Timing::Plain);
    watch(&program, &mut memory, &dispatch, Watch::Step(&mut look));
    for (vertex, own) in (0..).zip(&expected.passed) {
        expected.compare(&format!("vertex {vertex}"), own, |key, component| {
            let at = slots.offset(key.slot as u16, false)?;
            let place = vertex * slots.vertex_bytes() + at;
            Some(local.get(place as usize / 4 + component).copied().flatten())
        })?;
    }
    Ok(())
}

/// The vertices that primitive shaders export: by number.
fn exported(
    expected: &GroupExpectation,
    of: &GroupRun<'_>,
    messages: &[WaveMessage],
    memory: &SimMemory,
    RemainingPrimitives { vertices: all, words: wanted }: RemainingPrimitives<'_>,
) -> Result<(), Problem> {
    let wrong = |what: String| Err(("output", what));
    let mut values: BTreeMap<(u8, usize), [Option<u32>; 4]> = BTreeMap::new();
    let mut room = Vec::new();
    for message in messages {
        match &message.kind {
            MessageKind::Message { m0, .. } => room.push(*m0),
            MessageKind::Export { target, values: words, .. } => {
                for lane in (0..64).filter(|lane| message.lanes >> lane & 1 != 0) {
                    let number = message.wave as usize * of.lanes + lane;
                    let own = std::array::from_fn(|at| words[at].as_ref().map(|words| words[lane]));
                    values.insert((*target, number), own);
                }
            }
        }
    }
    let count = all.len() as u32;
    let none = count == 0 && of.options.gpu.generation() == Gfx::Gfx10;
    let asked = if none { 1 | 1 << 12 } else { count | count << 12 };
    if room != [asked] {
        return wrong(format!("asked for {room:x?}, not for {count} vertices"));
    }
    for (number, primitive) in wanted.iter().enumerate() {
        let found = values.get(&(20, number)).and_then(|words| words[0]);
        if found != Some(*primitive) {
            return wrong(format!("primitive {number}: {found:x?}, not {primitive:#x}"));
        }
    }
    if !none && values.keys().filter(|(target, _)| *target == 20).count() != wanted.len() {
        return wrong("more primitives than vertices".to_owned());
    }
    let interface = of.interface;
    let stride = interface.parameters.len() as u64 * 16;
    for (number, (primitive, slots)) in all.iter().enumerate() {
        expected.compare(&format!("vertex {number} of primitive {primitive}"), slots, |key, component| {
            let target = match (key.slot, interface.parameter(key.slot as u16)) {
                (0, _) => 12,
                (1, _) => 13,
                (_, Some(parameter)) if of.options.gpu.generation() >= Gfx::Gfx11 => {
                    let vertex = number as u64;
                    let at = RING
                        + (RING_PART << 9)
                        + vertex / RING_TOGETHER * stride * RING_TOGETHER
                        + u64::from(parameter) * RING_ELEMENT * RING_TOGETHER
                        + vertex % RING_TOGETHER * RING_ELEMENT;
                    return Some(word(memory, at + component as u64 * 4));
                }
                (_, Some(parameter)) => 32 + parameter as u8,
                _ => return None,
            };
            Some(
                values
                    .get(&(target, number))
                    .and_then(|words| words[if target == 13 { 0 } else { component }]),
            )
        })?;
    }
    Ok(())
}

/// Vertices that are exported, each with the invocation that emitted it, and the words of primitives, one for each vertex.
struct RemainingPrimitives<'e> {
    vertices: Vec<(usize, &'e Slots)>,
    words: Vec<u32>,
}

/// Whether the triangle with these vertices is culled.
type Culled<'a> = dyn Fn(&[&Slots]) -> bool + 'a;

/// The vertices and primitives of the first stream that are left after culling. Without `culled`, all of them are left.
fn left<'e>(
    expected: &'e GroupExpectation,
    of: &GroupRun<'_>,
    culled: Option<&Culled<'_>>,
) -> RemainingPrimitives<'e> {
    let distance = if of.options.gpu.generation() >= Gfx::Gfx12 { 9 } else { 10 };
    let mut left = RemainingPrimitives { vertices: Vec::new(), words: Vec::new() };
    for (invocation, strips) in expected.strips.iter().enumerate() {
        let vertices = strips.stream(0);
        let last_provokes = of.options.graphics.last_vertex_provokes;
        let mut own = strips.primitives(0, expected.second.info.output_primitive, last_provokes);
        let mut stays = vec![culled.is_none(); vertices.len()];
        if let Some(culled) = culled {
            for primitive in &mut own {
                let slots = primitive.iter().flatten().map(|at| vertices[*at]).collect::<Vec<_>>();
                *primitive = primitive.take().filter(|_| !culled(&slots));
                primitive.iter().flatten().for_each(|at| stays[*at] = true);
            }
        }
        let mut numbers = vec![0; vertices.len()];
        for (at, slots) in vertices.into_iter().enumerate().filter(|(at, _)| stays[*at]) {
            numbers[at] = left.vertices.len() as u32;
            left.vertices.push((invocation, slots));
            let corners = own[at].iter().flatten();
            let word = (0..)
                .zip(corners)
                .fold(0, |all, (place, corner)| all | numbers[*corner] << (place * distance));
            left.words.push(if own[at].is_some() { word } else { 0x8000_0000 });
        }
    }
    left
}

/// Workgroups of primitive shaders that cull what geometry shaders emit. Returns how many triangles had to be kept, and how many had to be culled; `None` if the reference cannot decide about one.
pub fn judge_culled(
    expected: &GroupExpectation,
    programs: &GroupPrograms,
    options: &Options,
    seed: u64,
    mut culls: CullReference,
) -> Result<Option<[usize; 2]>, Problem> {
    let Some(compiled) = programs.programs.last() else { return Ok(None) };
    let mut of = GroupRun::new(expected, options, compiled);
    culls.inexact = expected.inexact;
    of.culls = Some(culls);
    let position = |slots: &Slots| {
        let words = slots.get(&InterfaceSlot { slot: 0, vertex: 0, patch: false, index: 0 })?;
        let words: Vec<u32> = words.iter().copied().collect::<Option<_>>()?;
        Some(std::array::from_fn(|lane| f32::from_bits(words[lane])))
    };
    let mut sure = [0; 2];
    for strips in &expected.strips {
        let vertices = strips.stream(0);
        let last_provokes = of.options.graphics.last_vertex_provokes;
        let primitives = strips.primitives(0, expected.second.info.output_primitive, last_provokes);
        for corners in primitives.into_iter().flatten() {
            let corners: Option<Vec<_>> = corners.iter().map(|at| position(vertices[*at])).collect();
            let Some(corners) = corners else { return Ok(None) };
            match culls.visibility([corners[0], corners[1], corners[2]]) {
                Visibility::Visible => sure[0] += 1,
                Visibility::Hidden => sure[1] += 1,
                Visibility::Any => return Ok(None),
            }
        }
    }
    let mut memory = of.memory();
    let outcome = run_group(&of, compiled, seed, &mut memory)?;
    let culled = |slots: &[&Slots]| {
        let corners: Vec<_> = slots.iter().filter_map(|slots| position(slots)).collect();
        matches!(corners[..], [a, b, c] if culls.visibility([a, b, c]) == Visibility::Hidden)
    };
    let left = left(expected, &of, Some(&culled));
    exported(expected, &of, &outcome.messages, &memory, left)?;
    Ok(Some(sure))
}

/// Runs the workgroups of a draw whose primitives are captured.
fn judge_feedback(
    expected: &GroupExpectation,
    mut of: GroupRun<'_>,
    compiled: &Compiled,
    seed: u64,
) -> Result<(), Problem> {
    let mut feedback = Feedback::new(&of.interface.captures, &mut Rng::new(seed ^ 0xfeed));
    let mut memory = of.memory();
    feedback.map(&mut memory, of.options);
    of.ordered = feedback.ordered();
    let mut messages = Vec::new();
    let primitive = expected.second.info.output_primitive;
    let last_provokes = of.options.graphics.last_vertex_provokes;
    let captured = |stream: u8| {
        let mut all: Vec<Vec<&Slots>> = Vec::new();
        for strips in &expected.strips {
            let vertices = strips.stream(stream);
            let own = strips.primitives(stream, primitive, last_provokes).into_iter().flatten();
            all.extend(own.map(|corners| corners.into_iter().map(|at| vertices[at]).collect()));
        }
        all
    };
    for group in 0..GROUPS {
        of.order = feedback.order(group);
        let outcome = run_group(&of, compiled, seed + u64::from(group), &mut memory)?;
        feedback.write(captured);
        (of.ordered, messages) = (outcome.ordered, outcome.messages);
    }
    let masks = expected.masks();
    feedback.compare(&memory, &of.ordered, of.options, &|key, component, found, wanted| {
        let mask = masks.get(&(key.slot, component)).copied().unwrap_or(u32::MAX);
        expected.same(Some(found), wanted, mask)
    })?;
    let left = left(expected, &of, None);
    exported(expected, &of, &messages, &memory, left)
}

/// The shader that exports vertices of the ring, and captures those of all streams.
fn judge_copy(
    expected: &GroupExpectation,
    of: &GroupRun<'_>,
    copy: &Compiled,
    seed: u64,
    mut memory: SimMemory,
) -> Result<(), Problem> {
    let captured = &copy.args.interface.captures;
    // With transform feedback, waves have vertices of all streams, whether their outputs are captured or not.
    let streams = if captured.words.is_empty() { 1 } else { 4 };
    for stream in 0..streams {
        copy_stream(expected, of, copy, seed, &mut memory, stream)?;
    }
    let masks = expected.masks();
    let vertices = |stream| expected.strips.iter().flat_map(|strips| strips.stream(stream)).collect();
    captures::compare(&memory, &copy.args.interface, vertices, &|key, component, found, wanted| {
        let mask = masks.get(&(key.slot, component)).copied().unwrap_or(u32::MAX);
        expected.same(Some(found), wanted, mask)
    })
}

fn copy_stream(
    expected: &GroupExpectation,
    of: &GroupRun<'_>,
    copy: &Compiled,
    seed: u64,
    memory: &mut SimMemory,
    stream: u8,
) -> Result<(), Problem> {
    let all: Vec<(u32, &Slots)> = expected
        .strips
        .iter()
        .enumerate()
        .flat_map(|(primitive, strips)| {
            (0..)
                .zip(strips.stream(stream))
                .map(move |(vertex, slots)| (gs_place(of, primitive, vertex, stream), slots))
        })
        .collect();
    let program = Program::new(&copy.code.words, CODE, of.options.gpu);
    for (number, chunk) in all.chunks(of.lanes).enumerate() {
        let mut dispatch = of.dispatch(copy, Timing::Adversarial { seed });
        dispatch.size[0] = chunk.len() as u32;
        dispatch.threads_hold.clear();
        for location in copy.args.iter() {
            let reg = location.reg.reg();
            if let Some(word) = captures::word(location.argument, chunk.len(), stream, number * of.lanes) {
                dispatch.scalars.retain(|(other, _)| *other != reg.0);
                dispatch.scalars.push((reg.0, word));
            }
        }
        for location in copy.args.iter().filter(|location| location.argument == Argument::VertexId) {
            let held = chunk.iter().map(|(place, _)| place / 4).collect();
            dispatch.threads_hold.push((location.reg.reg().index() as u8, held));
        }
        let outcome = run(&program, memory, &dispatch, None);
        let undefined = expected.has_undefined();
        let allowed = |kind: &FaultKind| undefined && matches!(kind, FaultKind::Stored(..));
        if let Some(fault) = outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
            return Err(("copy", format!("{fault}: {}", program.text(fault.at).unwrap_or_default())));
        }
        let mut found = BTreeMap::new();
        for message in &outcome.messages {
            if let MessageKind::Export { target, values, .. } = &message.kind
                && message.lanes != 0
            {
                found.insert(*target, values.clone());
            }
        }
        if stream > 0 {
            if !found.is_empty() {
                return Err(("copy", format!("vertices of stream {stream} are exported")));
            }
            continue;
        }
        for (lane, (_, slots)) in chunk.iter().enumerate() {
            expected.compare(&format!("copied vertex {lane}"), slots, |key, component| {
                let (target, at) = match (key.slot, copy.args.interface.parameter(key.slot as u16)) {
                    _ if key.index > 0 => return None,
                    (0, _) => (12, component),
                    (1, _) => (13, 0),
                    (_, Some(parameter)) => (32 + parameter as u8, component),
                    _ => return None,
                };
                Some(found.get(&target).and_then(|values| values[at].as_ref()).map(|values| values[lane]))
            })?;
        }
    }
    Ok(())
}
