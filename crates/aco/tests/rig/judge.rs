//! What the interpreter makes of a graphics shader with the inputs of a case, and the comparison of compiled code with it.

use super::captures;
use super::pipeline::{
    BUFFER_STRIDE, BUFFERS, BufferContents, CAPTURED, CODE, Case, Fill, RING, RING_ELEMENT, RING_PART,
    RING_TOGETHER, VERTICES, close, is_inexact, single,
};
use super::recorded::Problem;
use std::collections::BTreeMap;
use unwedge_aco::abi::PixelProlog;
use unwedge_aco::graphics::{HalfColour, VertexInput};
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{Compiled, Options};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{InterfaceSlot, InvocationOutput};
use unwedge_shader::ir::{Builtin, FIRST_LOCATION_SLOT, InterpAt, Op, Payload, Shader, Stage};
use unwedge_sim::amdgcn::{FaultKind, MessageKind, Program, SimMemory, WaveMessage, run};
use unwedge_testkit::mutate::Rng;

/// The shading rate of the hardware for one of Vulkan.
fn hardware_rate(rate: u32) -> u32 {
    u32::from(rate & 12 != 0) << 2 | u32::from(rate & 3 != 0) << 4
}

/// By target: the lanes that export, and the words of each component that is enabled, of those lanes.
pub type PixelExports = BTreeMap<u8, Exported>;

/// Values of an export by component and lane, and the lanes that gave them.
type Exported = (u64, [Option<Vec<u32>>; 4]);

/// The last export to each target.
fn exports(messages: &[WaveMessage]) -> BTreeMap<u8, Exported> {
    let mut found = BTreeMap::new();
    for message in messages {
        if let MessageKind::Export { target, values, .. } = &message.kind {
            found.insert(*target, (message.lanes, values.clone()));
        }
    }
    found
}

/// What the interpreter makes of a shader after a prolog; `covered` is bit 31 of the word with the mask of primitives.
pub fn expect_prolog(
    shader: &Shader,
    lanes: usize,
    seed: u64,
    state: PixelProlog,
    covered: bool,
) -> Option<Expectation> {
    let mut expected = expect(shader, lanes, seed)?;
    let given = expected.case.inputs.clone();
    for input in &mut expected.case.inputs {
        for linear in [false, true] {
            let [center, sample] =
                [InterpAt::Pixel, InterpAt::Sample].map(|at| input.barycentrics[&(at, linear)]);
            if covered && state.centroid_at_center {
                input.barycentrics.insert((InterpAt::Centroid, linear), center);
            }
            if state.per_sample {
                input.barycentrics.insert((InterpAt::Pixel, linear), sample);
                input.barycentrics.insert((InterpAt::Centroid, linear), sample);
            }
        }
    }
    (expected.outputs, expected.buffers) = expected.case.interpret().ok()?;
    // The hardware gives what it gives without a prolog.
    expected.case.inputs = given;
    expected.case.covered = covered;
    Some(expected)
}

/// Components of outputs that a shader stores anywhere, and the bits of them that count. Of vertices of a patch it is those of the first one.
pub fn stored_by(shader: &Shader) -> Vec<(InterfaceSlot, usize, u32)> {
    let func = shader.entry();
    let mut all = Vec::new();
    for inst in func.walk().filter(|inst| func.op(*inst) == Op::StoreSlot) {
        let Payload::Slot(access) = func.payload(inst) else { continue };
        let ty = func.ty(func.args(inst)[0]);
        let (lanes, mask) = (usize::from(ty.lanes), ty.base.mask() as u32);
        for slot in access.slot..access.slot.saturating_add(access.count) {
            let key =
                InterfaceSlot { slot: slot.into(), vertex: 0, patch: access.patch, index: access.index };
            let first = usize::from(access.component);
            all.extend((first..(first + lanes).min(4)).map(|component| (key, component, mask)));
        }
    }
    all
}

/// Whether a component that is stored somewhere is undefined.
pub(super) fn has_undefined(
    stored: &[(InterfaceSlot, usize, u32)],
    slots: &BTreeMap<InterfaceSlot, [Option<u32>; 4]>,
) -> bool {
    stored.iter().any(|(key, component, _)| slots.get(key).is_none_or(|words| words[*component].is_none()))
}

/// What the interpreter makes of a shader with some inputs, in waves of one size.
pub struct Expectation {
    case: Case,
    outputs: Vec<InvocationOutput>,
    buffers: BufferContents,
    inexact: bool,
}

/// Interprets a shader. `None`: it does not end, or is undefined, with what it was given.
pub fn expect(shader: &Shader, lanes: usize, seed: u64) -> Option<Expectation> {
    expect_formats(shader, lanes, seed, &BTreeMap::new())
}

/// The same of a shader whose attributes have formats.
pub fn expect_formats(
    shader: &Shader,
    lanes: usize,
    seed: u64,
    formats: &BTreeMap<u32, VertexInput>,
) -> Option<Expectation> {
    let mut shader = shader.clone();
    shader.info.float_modes[1].flush = Some(false);
    let inexact = shader.functions().iter().any(|func| func.walk().any(|inst| is_inexact(func.op(inst))));
    [Fill::Mixed, Fill::Small, Fill::Switches, Fill::Sizes].into_iter().find_map(|fill| {
        let case = Case::with_formats(&shader, lanes, &mut Rng::new(seed), fill, formats);
        let (outputs, buffers) = case.interpret().ok()?;
        Some(Expectation { case, outputs, buffers, inexact })
    })
}

/// Returns to each lane its own sources of dual-source blending, which gfx11 and later export in pairs of lanes: the first one as target 21, the second one as target 22. The
/// halves of a pair that belong to dead lanes do not matter.
fn join_blend_sources(found: &mut BTreeMap<u8, Exported>) {
    let (Some((lanes, even)), Some((_, odd))) = (found.get(&21), found.get(&22)) else { return };
    let own = |source: usize| {
        std::array::from_fn(|component| {
            let (even, odd) = (even[component].as_ref()?, odd[component].as_ref()?);
            Some((0..even.len()).map(|lane| [even, odd][lane & 1][lane & !1 | source]).collect())
        })
    };
    let (lanes, sources): (u64, [[Option<Vec<u32>>; 4]; 2]) = (*lanes, [own(0), own(1)]);
    for (target, values) in (21..).zip(sources) {
        found.insert(target, (lanes, values));
    }
}

/// What a pixel shader exports: by target the lanes, and words by component and lane. `None`: something of it is undefined.
pub fn pixel_exports(
    expected: &Expectation,
    compiled: &Compiled,
    options: &Options,
    seed: u64,
) -> Result<Option<PixelExports>, Problem> {
    let Expectation { case, outputs, .. } = expected;
    let stored = stored_by(&case.shader);
    // Helpers store nothing, and neither do terminated lanes.
    let live = |output: &&InvocationOutput| !output.helper && !output.terminated;
    let lives = (0..).zip(outputs).filter(|(_, output)| live(output));
    let lives = lives.fold(0u64, |mask, (lane, _)| mask | 1 << lane);
    if lives == 0 || outputs.iter().filter(live).any(|output| has_undefined(&stored, &output.slots)) {
        return Ok(None);
    }
    let program = Program::new(&compiled.code.words, CODE, options.gpu);
    let mut memory = case.memory(options, &compiled.args.interface, &[]);
    let outcome = run(&program, &mut memory, &case.dispatch(compiled, options, seed), None);
    if let Some(fault) = outcome.faults.first() {
        return Err(("run", format!("{fault}: {}", program.text(fault.at).unwrap_or_default())));
    }
    let mut all = PixelExports::new();
    let mut found = exports(&outcome.messages);
    join_blend_sources(&mut found);
    for (target, (lanes, values)) in found {
        let lanes = lanes & lives;
        let active = |words: Vec<u32>| -> Vec<u32> {
            let own = words.into_iter().enumerate().filter(|(lane, _)| lanes >> lane & 1 != 0);
            own.map(|(_, word)| word).collect()
        };
        all.insert(target, (lanes, values.map(|words| words.map(active))));
    }
    Ok(Some(all))
}

/// Compares compiled code with what the interpreter makes of the shader.
pub fn judge(
    expected: &Expectation,
    compiled: &Compiled,
    options: &Options,
    seed: u64,
) -> Result<(), Problem> {
    let Expectation { case, outputs, buffers, inexact } = expected;
    let gpu = &options.gpu;
    let program = Program::new(&compiled.code.words, CODE, *gpu);
    let mut memory = case.memory(options, &compiled.args.interface, &[]);
    let outcome = run(&program, &mut memory, &case.dispatch(compiled, options, seed), None);
    // What is undefined for the interpreter may be exported.
    let stored = stored_by(&case.shader);
    let undefined = outputs.iter().any(|output| has_undefined(&stored, &output.slots));
    let allowed = |kind: &FaultKind| undefined && matches!(kind, FaultKind::Stored(..));
    if let Some(fault) = outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
        let text = program.text(fault.at).unwrap_or_default();
        return Err(("run", format!("{fault}: {text}")));
    }
    let same = |key: &InterfaceSlot, component: usize, a: u32, b: u32| {
        let own = stored.iter().find(|(other, at, _)| other == key && *at == component);
        let mask = own.map_or(u32::MAX, |(_, _, mask)| *mask);
        if *inexact { close(a & mask, b & mask) } else { a & mask == b & mask }
    };
    for (number, (point, content)) in buffers.iter().enumerate() {
        let base = BUFFERS + number as u64 * BUFFER_STRIDE;
        let found = memory.get(base, content.len()).unwrap_or_default();
        if !inexact && found != content {
            return Err(("buffer", format!("{point:?} differs")));
        }
    }
    captures::compare(
        &memory,
        &compiled.args.interface,
        |_| outputs.iter().take(CAPTURED).map(|output| &output.slots).collect(),
        &same,
    )?;
    let compared = match case.shader.info.stage {
        Stage::Fragment => pixels(case, outputs, &outcome.messages, options, &same),
        _ => vertices(outputs, &outcome.messages, compiled, &memory, &same),
    };
    compared.map_err(|what| ("output", what))
}

/// Whether words of a component of an output agree.
type Same<'a> = dyn Fn(&InterfaceSlot, usize, u32, u32) -> bool + 'a;

fn pixels(
    case: &Case,
    outputs: &[InvocationOutput],
    messages: &[WaveMessage],
    options: &Options,
    same: &Same<'_>,
) -> Result<(), String> {
    let done: Vec<bool> = messages
        .iter()
        .filter_map(|message| match &message.kind {
            MessageKind::Export { done, .. } => Some(*done),
            MessageKind::Message { .. } => None,
        })
        .collect();
    if done.iter().filter(|done| **done).count() != 1 || done.last() != Some(&true) {
        return Err(format!("{done:?}: not the last export is done"));
    }
    let found = exports(messages);
    let stored = stored_by(&case.shader);
    // Colours of 16 bits are exported in 32 bits.
    let widened = |key: &InterfaceSlot, word: u32, numbers: HalfColour| {
        let mut own = stored.iter().filter(|(other, ..)| other == key);
        let halves = key.slot >= FIRST_LOCATION_SLOT.into() && own.all(|(.., mask)| *mask == 0xffff);
        halves.then(|| match numbers {
            HalfColour::Float => single(word).to_bits(),
            HalfColour::Uint => word & 0xffff,
            HalfColour::Sint => word as u16 as i16 as u32,
        })
    };
    let blends = stored.iter().any(|(key, ..)| key.index > 0);
    let blends = blends && options.gpu.generation() >= Gfx::Gfx11;
    for (lane, output) in outputs.iter().enumerate() {
        let live = !output.helper && !output.terminated;
        // What lanes export that do not cover a pixel, the hardware drops.
        let covers = !case.inputs[lane].helper;
        for (target, (lanes, _)) in &found {
            if covers && (lanes >> lane & 1 != 0) != live {
                return Err(format!("lane {lane} exports to {target}: {}", !live));
            }
        }
        for (key, words) in output.slots.iter().filter(|_| live) {
            let slot = key.slot as u16;
            let part = [Builtin::FragDepth, Builtin::FragStencilRef, Builtin::SampleMask]
                .iter()
                .position(|builtin| builtin.slots().start == slot);
            for (component, word) in words.iter().enumerate() {
                let Some(word) = word else { continue };
                let (target, at) = match (part, slot.checked_sub(FIRST_LOCATION_SLOT)) {
                    (Some(part), _) if component == 0 => (8, part),
                    // Both sources of an even lane go to the first target, in a pair of lanes.
                    (None, Some(0)) if blends => (21 + (lane & 1) as u8, component),
                    (None, Some(location)) => (location as u8 + key.index, component),
                    _ => continue,
                };
                let paired = blends && slot == FIRST_LOCATION_SLOT;
                let place = if paired { lane & !1 | usize::from(key.index) } else { lane };
                let value = found.get(&target).and_then(|(_, values)| values[at].as_ref());
                let value = value.map(|value| value[place]);
                let agrees = |value: u32| {
                    let numbers = options.graphics.half_colours.get(usize::from(target));
                    match widened(key, *word, numbers.copied().unwrap_or_default()) {
                        Some(word) => close(value, word),
                        None => same(key, component, value, *word),
                    }
                };
                if !value.is_some_and(agrees) {
                    let gpu = options.gpu.name();
                    return Err(format!(
                        "{gpu}: lane {lane}, slot {slot}.{component}: {value:x?}, not {word:#x}"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn vertices(
    outputs: &[InvocationOutput],
    messages: &[WaveMessage],
    compiled: &Compiled,
    memory: &SimMemory,
    same: &Same<'_>,
) -> Result<(), String> {
    let found = exports(messages);
    let interface = &compiled.args.interface;
    let ngg = interface.hardware == Some(HardwareStage::Ngg);
    if ngg {
        let room = messages.iter().any(|message| {
            let wanted = (VERTICES as u32) | 7 << 12;
            matches!(message.kind, MessageKind::Message { code: 9, m0 } if m0 == wanted)
        });
        let primitives = found.get(&20).is_some_and(|(lanes, values)| {
            let given =
                values[0].as_ref().is_some_and(|words| (0..7).all(|n| words[n] == n as u32 * 0x0040_0401));
            *lanes == 0x7f && given
        });
        if !room || !primitives {
            return Err(format!("room is asked for: {room}, primitives are exported: {primitives}"));
        }
    }
    let stride = interface.parameters.len() as u64 * 16;
    let element = |vertex: u64, parameter: u64| {
        RING + (RING_PART << 9)
            + vertex / RING_TOGETHER * stride * RING_TOGETHER
            + parameter * RING_ELEMENT * RING_TOGETHER
            + vertex % RING_TOGETHER * RING_ELEMENT
    };
    for (lane, output) in outputs.iter().enumerate() {
        for (key, words) in &output.slots {
            for (component, word) in words.iter().enumerate() {
                let Some(mut word) = *word else { continue };
                let exported = |target: u8, at: usize| {
                    let (lanes, values) = found.get(&target)?;
                    values[at].as_ref().filter(|_| lanes >> lane & 1 != 0).map(|values| values[lane])
                };
                let value = match (key.slot, interface.parameter(key.slot as u16)) {
                    (0, _) => exported(12, component),
                    (1, _) => exported(13, 0),
                    (9, _) => {
                        word = hardware_rate(word);
                        exported(13, 1)
                    }
                    (_, Some(number)) if ngg && !found.contains_key(&32) => {
                        let at = element(lane as u64, number.into()) + component as u64 * 4;
                        let bytes = memory.get(at, 4).and_then(|bytes| bytes.try_into().ok());
                        bytes.map(u32::from_le_bytes)
                    }
                    (_, Some(number)) => exported(32 + number as u8, component),
                    _ => continue,
                };
                if !value.is_some_and(|value| same(key, component, value, word)) {
                    return Err(format!(
                        "lane {lane}, slot {}.{component}: {value:x?}, not {word:#x}",
                        key.slot
                    ));
                }
            }
        }
    }
    Ok(())
}
