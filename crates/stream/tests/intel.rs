//! Rings and batches made here: what a walk meets, where an engine stands in it, which state it leaves.

use unwedge_base::{Buffer, Memory};
use unwedge_hw::intel::IntelValue;
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_stream::intel::commands::{Decoder, length_by_type};
use unwedge_stream::intel::instdone;
use unwedge_stream::intel::position::{Agreement, Locator};
use unwedge_stream::intel::references::{BufferUse, ReferenceTarget, ReferenceWalk};
use unwedge_stream::intel::state::{Base, IntelState, RegisterOrigin};
use unwedge_stream::intel::walk::{EventKind, IntelEvent, IntelWalk, RingRange, Space, Spaces};

const TGL: Version = Version::new(12, 0);

fn decoder(version: Version) -> Decoder {
    Decoder::new(version, EngineClass::Render)
}

/// Commands, one behind the other.
struct Stream {
    decoder: Decoder,
    words: Vec<u32>,
}

impl Stream {
    fn new() -> Stream {
        Stream { decoder: decoder(TGL), words: Vec::new() }
    }

    /// A command of the tables: flags of its header, and what follows.
    fn command(mut self, name: &str, flags: u32, rest: &[u32]) -> Stream {
        let instruction = self.decoder.gpu.instruction_named(name).expect(name);
        let header = instruction.header(rest.len() as u32 + 1).expect(name);
        self.words.push(header | flags);
        self.words.extend(rest);
        self
    }

    fn raw(mut self, words: &[u32]) -> Stream {
        self.words.extend(words);
        self
    }

    fn call(self, target: u64, flags: u32) -> Stream {
        self.command("MI_BATCH_BUFFER_START", flags | 1 << 8, &[target as u32, (target >> 32) as u32])
    }

    fn end(self) -> Vec<u32> {
        self.command("MI_BATCH_BUFFER_END", 0, &[]).words
    }
}

fn memory(buffers: Vec<(u64, Vec<u32>)>) -> Memory {
    let buffer = |(iova, words): (u64, Vec<u32>)| Buffer {
        iova,
        size: words.len() as u64 * 4,
        contents: Some(words),
        name: String::new(),
    };
    buffers.into_iter().map(buffer).collect()
}

/// One line for each event.
fn shown(events: impl Iterator<Item = IntelEvent<'static>>) -> Vec<String> {
    events.map(line).collect()
}

fn line(event: IntelEvent<'_>) -> String {
    let what = match event.kind {
        EventKind::Command(c) => c.name().unwrap_or("?").to_string(),
        EventKind::Noops(n) => format!("noop*{n}"),
        EventKind::Unknown(words) => format!("unknown*{}", words.len()),
        EventKind::Enter(e) => format!(
            "enter{}{}",
            if e.returns { "" } else { " chained" },
            if e.predicated { " perhaps" } else { "" }
        ),
        EventKind::End => "end".to_string(),
        EventKind::Absent => "absent".to_string(),
        EventKind::Loop => "loop".to_string(),
        EventKind::TooDeep => "too deep".to_string(),
        EventKind::Budget => "budget".to_string(),
    };
    format!("{} {:x} {what}", event.level, event.address)
}

fn walk(buffers: Vec<(u64, Vec<u32>)>, start: u64) -> Vec<String> {
    let ppgtt: &'static Memory = Box::leak(Box::new(memory(buffers)));
    let ggtt: &'static Memory = Box::leak(Box::default());
    shown(IntelWalk::batch(decoder(TGL), Spaces { ggtt, ppgtt }, Space::Ppgtt, start).with_budget(10_000))
}

#[test]
fn second_level_batches_return_and_chains_do_not() {
    let first = Stream::new().call(0x2000, 1 << 22).call(0x3000, 0).raw(&[0x0280_0000]).end();
    let second = Stream::new().command("PIPELINE_SELECT", 0x300, &[]).end();
    let third = Stream::new().raw(&[0, 0, 0]).end();
    let events = walk(vec![(0x1000, first), (0x2000, second), (0x3000, third)], 0x1000);
    let expected = [
        "0 1000 enter chained",
        "0 1000 MI_BATCH_BUFFER_START",
        "1 2000 enter",
        "1 2000 PIPELINE_SELECT",
        "1 2004 MI_BATCH_BUFFER_END",
        "1 2004 end",
        "0 100c MI_BATCH_BUFFER_START",
        "0 3000 enter chained",
        "0 3000 noop*3",
        "0 300c MI_BATCH_BUFFER_END",
        "0 300c end",
    ];
    assert_eq!(events, expected);
}

#[test]
fn behind_a_predicated_batch_the_walk_goes_on() {
    let first = Stream::new().call(0x2000, 1 << 15).command("MI_USER_INTERRUPT", 0, &[]).end();
    let events = walk(vec![(0x1000, first), (0x2000, Stream::new().end())], 0x1000);
    assert_eq!(events[2], "1 2000 enter chained perhaps");
    assert_eq!(events[5..], ["0 100c MI_USER_INTERRUPT", "0 1010 MI_BATCH_BUFFER_END", "0 1010 end"]);
}

#[test]
fn loops_depth_and_budget_end_a_walk() {
    let chained = Stream::new().call(0x1000, 0).words;
    assert_eq!(walk(vec![(0x1000, chained)], 0x1000).last().unwrap(), "0 1000 loop");
    let recursive = Stream::new().call(0x1000, 1 << 22).end();
    let events = walk(vec![(0x1000, recursive)], 0x1000);
    assert!(events.contains(&"8 1000 too deep".to_string()), "{events:?}");
    // Each of two calls calls two: more than any budget.
    let twice = Stream::new().call(0x1000, 1 << 22).call(0x1000, 1 << 22).end();
    let events = walk(vec![(0x1000, twice)], 0x1000);
    assert!(events.len() < 20_000);
    let long = vec![0x0280_0000; 20_000];
    assert!(walk(vec![(0x1000, long)], 0x1000).last().unwrap().ends_with("budget"));
}

#[test]
fn absent_memory_is_unknown() {
    let cut = Stream::new().command("STATE_SIP", 0, &[0, 0]).words[..2].to_vec();
    assert_eq!(walk(vec![(0x1000, cut)], 0x1000)[1..], ["0 1000 STATE_SIP", "0 100c absent"]);
    assert_eq!(walk(vec![], 0x1000), ["0 1000 enter chained", "0 1000 absent"]);
    let lost = Stream::new().call(0x9000, 1 << 22).end();
    assert_eq!(walk(vec![(0x1000, lost)], 0x1000)[2..4], ["1 9000 enter", "1 9000 absent"]);
    // A command may begin in one buffer and end in the next.
    let words = Stream::new().command("STATE_SIP", 0, &[0, 0]).end();
    let events = walk(vec![(0x1000, words[..2].to_vec()), (0x1008, words[2..].to_vec())], 0x1000);
    assert_eq!(events[1..], ["0 1000 STATE_SIP", "0 100c MI_BATCH_BUFFER_END", "0 100c end"]);
}

#[test]
fn garbage_is_skipped() {
    let words = Stream::new().raw(&[0xffff_ffff, 0xe000_0001]).command("MI_ARB_CHECK", 0, &[]).end();
    assert_eq!(walk(vec![(0x1000, words)], 0x1000)[1..3], ["0 1000 unknown*2", "0 1008 MI_ARB_CHECK"]);
}

#[test]
fn a_ring_is_walked_around_its_end() {
    let mut ring = vec![0x0280_0000; 1024];
    let call = Stream::new().call(0x8000, 0).words;
    ring[..3].copy_from_slice(&call);
    let ggtt = memory(vec![(0x10_0000, ring)]);
    let ppgtt = memory(vec![(0x8000, Stream::new().end())]);
    let spaces = Spaces { ggtt: &ggtt, ppgtt: &ppgtt };
    let ring = RingRange { start: 0x10_0000, size: 4096, from: 4088, to: 16 };
    let events: Vec<_> = IntelWalk::ring(decoder(TGL), spaces, ring).map(line).collect();
    let expected = [
        "0 100ff8 MI_ARB_CHECK",
        "0 100ffc MI_ARB_CHECK",
        "0 100000 MI_BATCH_BUFFER_START",
        "1 8000 enter",
        "1 8000 MI_BATCH_BUFFER_END",
        "1 8000 end",
        "0 10000c MI_ARB_CHECK",
    ];
    assert_eq!(events, expected);
    let none = IntelWalk::ring(decoder(TGL), spaces, RingRange { from: 64, to: 64, ..ring });
    assert_eq!(none.count(), 0);
}

fn batch_position(words: &[u32], acthd: u64, ipehr: Option<u32>) -> Option<(u64, Option<u64>, Agreement)> {
    let ppgtt = memory(vec![(0x1000, words.to_vec())]);
    let ggtt = Memory::default();
    let mut locator = Locator::new(acthd, Some(Space::Ppgtt), ipehr);
    let spaces = Spaces { ggtt: &ggtt, ppgtt: &ppgtt };
    IntelWalk::batch(decoder(TGL), spaces, Space::Ppgtt, 0x1000).for_each(|event| locator.see(&event));
    let found = locator.position()?;
    Some((found.at_acthd.address, found.executing.map(|p| p.address), found.agreement))
}

#[test]
fn acthd_runs_ahead_of_ipehr() {
    let words = Stream::new()
        .command("PIPE_CONTROL", 0, &[0; 5])
        .command("3DPRIMITIVE", 0, &[0; 6])
        .command("MI_SEMAPHORE_WAIT", 0, &[0; 4])
        .end();
    let (draw, wait) = (words[6], words[13]);
    assert_eq!(batch_position(&words, 0x1018, Some(draw)), Some((0x1018, Some(0x1018), Agreement::Here)));
    assert_eq!(batch_position(&words, 0x101c, Some(draw)), Some((0x1018, Some(0x1018), Agreement::Here)));
    let before = Some((0x1034, Some(0x1018), Agreement::Before(0x1c)));
    assert_eq!(batch_position(&words, 0x1034, Some(draw)), before);
    assert_eq!(batch_position(&words, 0x1034, Some(wait)), Some((0x1034, Some(0x1034), Agreement::Here)));
    assert_eq!(batch_position(&words, 0x1034, Some(0x1234_5678)), Some((0x1034, None, Agreement::Nowhere)));
    assert_eq!(batch_position(&words, 0x1034, None), Some((0x1034, None, Agreement::Unknown)));
    // At the end of what there is: the last command is it, if it has the header.
    let end = 0x1000 + words.len() as u64 * 4;
    assert_eq!(batch_position(&words, end, Some(words[18])).map(|p| p.0), Some(end - 4));
    assert_eq!(batch_position(&words, 0x9000, Some(draw)), None);
}

fn state(words: &[u32], check: impl FnOnce(&IntelState<'_>)) {
    let ppgtt = memory(vec![(0x1000, words.to_vec())]);
    let ggtt = Memory::default();
    let mut state = IntelState::new(decoder(TGL).gpu);
    let spaces = Spaces { ggtt: &ggtt, ppgtt: &ppgtt };
    IntelWalk::batch(decoder(TGL), spaces, Space::Ppgtt, 0x1000).for_each(|event| state.see(&event));
    check(&state);
}

#[test]
fn pointers_count_from_the_bases_that_were_set() {
    let mut bases = [0; 21];
    bases[3] = 0x10_0000 | 1; // surface state
    bases[9] = 0x20_0000 | 1; // instructions
    bases[5] = 0x30_0000; // dynamic state: not to be changed
    let mut shader = [0; 8];
    shader[0] = 0x40;
    let words = Stream::new()
        .command("STATE_BASE_ADDRESS", 0, &bases)
        .command("3DSTATE_VS", 0, &shader)
        .command("3DSTATE_BINDING_TABLE_POINTERS_VS", 0, &[0x80])
        .command("3DSTATE_CC_STATE_POINTERS", 0, &[0x100 | 1])
        .command("3DPRIMITIVE", 0, &[0; 6])
        .command("MI_LOAD_REGISTER_IMM", 1 << 19, &[0x358, 7])
        .command("MI_LOAD_REGISTER_IMM", 0, &[0x2358, 8, 0x7000, 9])
        .command("MI_LOAD_REGISTER_MEM", 0, &[0x2600, 0x5000, 1])
        .command("3DPRIMITIVE", 0, &[0; 6])
        .end();
    state(&words, |state| {
        let pointers: Vec<_> =
            state.pointers().iter().map(|p| (p.field.name, p.base, p.offset, p.address)).collect();
        let expected = [
            ("Kernel Start Pointer", Base::Instruction, 0x40, Some(0x20_0040)),
            ("Pointer to VS Binding Table", Base::SurfaceState, 0x80, Some(0x10_0080)),
            ("Color Calc State Pointer", Base::DynamicState, 0x100, None),
        ];
        assert_eq!(pointers, expected);
        assert_eq!(state.counts().draws, 2);
        assert_eq!(state.last_work().unwrap().command.name(), Some("3DPRIMITIVE"));
        let written: Vec<_> = state.registers().map(|(offset, w)| (offset, w.written, w.relative)).collect();
        let expected = [
            (0x358, RegisterOrigin::Value(7), true),
            (0x2358, RegisterOrigin::Value(8), false),
            (0x2600, RegisterOrigin::Memory(0x1_0000_5000), false),
            (0x7000, RegisterOrigin::Value(9), false),
        ];
        assert_eq!(written, expected);
    });
}

#[test]
fn fields_of_a_short_form_end_with_it() {
    let words = Stream::new().command("MI_STORE_DATA_IMM", 0, &[0x1000, 0, 0x1234]).words;
    let command = decoder(TGL).command(&words).unwrap();
    let data: Vec<_> = command.fields().filter(|f| f.name == "Immediate Data").collect();
    assert_eq!((data.len(), data[0].width, data[0].value()), (1, 32, Some(IntelValue::Uint(0x1234))));
}

#[test]
fn commands_without_a_name_have_a_length() {
    for (header, length) in [
        (0x0780_0000, Some(1)),   // MI below 16
        (0x0880_0003, Some(5)),   // MI from 16 on
        (0x4f00_0006, Some(8)),   // blitter
        (0x6100_0002, Some(4)),   // common state
        (0x6800_ffff, Some(1)),   // single dwords
        (0x7000_0004, Some(6)),   // media state
        (0x7100_0100, Some(258)), // media objects
        (0x73ff_0fff, Some(4097)),
        (0x78ff_0003, Some(5)),
        (0x7d00_0003, None),
        (0xa000_0003, Some(5)),
        (0xe000_0000, None),
        (0x2000_0000, None),
    ] {
        assert_eq!(length_by_type(header), length, "{header:#x}");
    }
}

#[test]
fn each_vertex_buffer_has_its_number_and_size() {
    let words = Stream::new()
        .command("3DSTATE_VERTEX_BUFFERS", 0, &[16 | 3 << 26, 0x5000, 0, 48, 8 | 9 << 26, 0x6000, 0, 80])
        .end();
    let (ppgtt, ggtt) = (memory(vec![(0x1000, words)]), Memory::default());
    let spaces = Spaces { ggtt: &ggtt, ppgtt: &ppgtt };
    let mut references = ReferenceWalk::new(decoder(TGL).gpu, spaces);
    let events = IntelWalk::batch(decoder(TGL), spaces, Space::Ppgtt, 0x1000);
    let found: Vec<_> = events.flat_map(|event| references.see(&event)).collect();
    let buffers: Vec<_> = found.iter().map(|found| (found.index, found.address, found.target)).collect();
    let buffer = |size| ReferenceTarget::Buffer { usage: BufferUse::Vertex, size: Some(size) };
    assert_eq!(buffers, [(Some(3), Some(0x5000), buffer(48)), (Some(9), Some(0x6000), buffer(80))]);
}

#[test]
fn units_that_are_not_done() {
    let gpu = decoder(TGL).gpu;
    let engine = decoder(TGL).engine;
    let row = instdone::register(gpu, engine, "ROW_INSTDONE").unwrap();
    let all: Vec<_> = instdone::busy(row, 0).collect();
    assert!(all.len() > 10);
    assert_eq!(instdone::busy(row, u32::MAX).count(), 0);
    assert_eq!(instdone::busy(row, instdone::reserved(row)).count(), all.len());
    let eu = instdone::busy(row, !(1 << 16)).next().unwrap();
    assert_eq!((eu.bit, eu.field, eu.unit()), (16, "EU00 Done SS0", "EU00 Done SS0"));
    let streamer = instdone::register(gpu, engine, "INSTDONE").unwrap();
    assert_eq!(streamer.name(), "INSTDONE_1");
    let vs = instdone::busy(streamer, !(1 << 2)).next().unwrap();
    assert_eq!(vs.unit(), "VS");
    // Its bit 0 says that the ring is enabled, which is no unit.
    assert_eq!(instdone::busy(streamer, !1).count(), 0);
    assert!(instdone::register(gpu, engine, "IPEHR").is_none());
}

#[test]
fn walks_over_anything_end() {
    let mut state = 0x2545_f491_u32;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let starts = [0x18a0_0101, 0x1880_0101, 0x18c0_8101, 0x0500_0000, 0x1100_0001, 0x7808_00ff];
    for round in 0..300 {
        let version = [Version::new(8, 0), Version::new(9, 0), TGL, Version::new(20, 1)][round % 4];
        let class = [EngineClass::Render, EngineClass::Copy, EngineClass::VideoDecode][round % 3];
        let words: Vec<u32> = (0..512)
            .map(|_| match next() % 4 {
                0 => starts[next() as usize % starts.len()],
                1 => 0x1000 + (next() & 0x7fc),
                2 => 0,
                _ => next(),
            })
            .collect();
        let ppgtt = memory(vec![(0x1000, words)]);
        let spaces = Spaces { ggtt: &ppgtt, ppgtt: &ppgtt };
        let decoder = Decoder::new(version, class);
        let mut state = IntelState::new(decoder.gpu);
        let mut locator = Locator::new(0x1100, None, Some(0x18a0_0101));
        let (mut dwords, mut events) = (0u64, 0u64);
        for event in IntelWalk::batch(decoder, spaces, Space::Ppgtt, 0x1000).with_budget(5_000) {
            events += 1;
            state.see(&event);
            locator.see(&event);
            if let EventKind::Command(command) = event.kind {
                assert!(command.length >= 1);
                dwords += u64::from(command.length);
                if round % 10 == 0 {
                    command.fields().for_each(|f| assert!(f.value().is_some() || command.is_cut()));
                }
            }
        }
        assert!(events < 15_010 && dwords < 5_000 + 70_000, "{events} events, {dwords} dwords");
        state.pointers();
    }
}
