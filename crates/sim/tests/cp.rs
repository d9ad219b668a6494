//! The command processor of the virtual Adreno, packet by packet.

mod cp_rig;

use cp_rig::{DATA, PLAIN, STREAM, Stream, data, high, low, machine, register, run};
use unwedge_base::Generation::{self, A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::{CpErrorKind, CpStop, GpuFaultKind, RunEnd, ThreadId};

const BOTH: [Generation; 2] = [A6xx, A7xx];

fn stopped(end: RunEnd) -> CpStop {
    match end {
        RunEnd::Stopped { stop, .. } => stop,
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_move_between_memory_and_registers() {
    let db = Db::builtin();
    for generation in BOTH {
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        let at = |offset: u64| [low(DATA + offset), high(DATA + offset)];
        let [l, h] = at(0);
        if generation == A7xx {
            // What both threads add up, they add twice.
            s.op("THREAD_CONTROL", &[1]);
        }
        s.op("MEM_WRITE", &[l, h, 5, 7, 0xffff_ffff, 1]);
        // 32 and 64 bits, with one of three negated.
        let [d, dh] = at(0x20);
        s.op("MEM_TO_MEM", &[1 << 2, d, dh, l, h, l + 4, h, l, h]);
        s.op("MEM_TO_MEM", &[1 << 29, d + 8, dh, l + 8, h, l, h]);
        s.op("MEMCPY", &[2, l, h, l + 0x40, h]);
        s.op("MEM_TO_REG", &[PLAIN | 2 << 19, l, h]);
        s.op("MEM_TO_REG", &[(PLAIN + 4) | 1 << 30, l, h]);
        // A register pair as one number, added to what is there.
        s.op("REG_TO_MEM", &[PLAIN | 2 << 18 | 1 << 30 | 1 << 31, l + 0x60, h]);
        s.op("REG_TO_MEM", &[PLAIN | 2 << 18 | 1 << 30 | 1 << 31, l + 0x60, h]);
        s.op("REG_TO_MEM_OFFSET_REG", &[PLAIN + 1, l + 0x79, h, PLAIN + 1]);
        s.op("REG_TO_MEM_OFFSET_MEM", &[PLAIN, l + 0x83, h, l, h]);
        assert_eq!(run(&mut m, &s.words), RunEnd::Done);
        assert_eq!(data(&m, 0x20), 7, "5 + 7 - 5");
        assert_eq!([data(&m, 0x28), data(&m, 0x2c)], [4, 9], "5 and 7, added to 2^32 - 1 and 1");
        assert_eq!([data(&m, 0x40), data(&m, 0x44), data(&m, 0x48)], [5, 7, 0]);
        assert_eq!([register(&m, PLAIN), register(&m, PLAIN + 1), register(&m, PLAIN + 4)], [5, 7, 20]);
        assert_eq!([data(&m, 0x60), data(&m, 0x64)], [10, 14]);
        assert_eq!([data(&m, 0x80), data(&m, 0x88)], [7, 5]);
    }
}

#[test]
fn registers_are_changed_in_place_and_kept_in_scratch() {
    let db = Db::builtin();
    for generation in BOTH {
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        s.write(PLAIN, &[0xf0f0, 3, 9]);
        s.op("REG_RMW", &[PLAIN | 8 << 24, 0xff, 1]);
        s.op("REG_RMW", &[(PLAIN + 1) | 7 << 29, PLAIN + 1, PLAIN + 2]);
        s.op("SCRATCH_WRITE", &[6 << 20, 11, 12]);
        s.op("SCRATCH_TO_REG", &[(PLAIN + 4) | 6 << 20 | 1 << 24]);
        s.op("REG_TO_SCRATCH", &[(PLAIN + 2) | 2 << 20]);
        s.op("CONTEXT_REG_BUNCH", &[PLAIN + 6, 21, PLAIN + 7, 22]);
        assert_eq!(run(&mut m, &s.words), RunEnd::Done);
        assert_eq!(register(&m, PLAIN), 0xf001, "masked, rotated by 8, 1 set");
        assert_eq!(register(&m, PLAIN + 1), 12, "3 & 3, 9 added");
        assert_eq!([register(&m, PLAIN + 4), register(&m, PLAIN + 5)], [11, 12]);
        let scratch =
            s.gpu.reg_offset("CP_SCRATCH[0x2].REG").or(s.gpu.reg_offset("CP_SCRATCH[2].REG")).unwrap();
        assert_eq!(register(&m, scratch), 9);
        assert_eq!([register(&m, PLAIN + 6), register(&m, PLAIN + 7)], [21, 22]);
    }
}

#[test]
fn conditions_skip_what_they_are_over() {
    let db = Db::builtin();
    for generation in BOTH {
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        let store = 4; // dwords of a store
        s.store(0x100, 1).store(0x104, 5);
        s.write(PLAIN, &[1 << 9, 4, 4]);
        let flag = [low(DATA + 0x100), high(DATA), low(DATA + 0x104), high(DATA)];
        for (reference, slot) in [(6, 0), (5, 4)] {
            let mut words = flag.to_vec();
            words.extend([reference, store]);
            s.op("COND_EXEC", &words).store(slot, 1);
        }
        for (bit, slot) in [(9, 8), (8, 12)] {
            s.op("REG_TEST", &[PLAIN | bit << 20]).op("COND_REG_EXEC", &[1 << 28, store]).store(slot, 1);
        }
        for (reg, slot) in [(PLAIN + 2, 16), (PLAIN, 20)] {
            s.op("COND_REG_EXEC", &[2 << 28 | (PLAIN + 1), reg, store]).store(slot, 1);
        }
        s.op("SET_MARKER", &[1]);
        for (modes, slot) in [(1 << 27, 24), (1 << 26 | 1 << 25, 28)] {
            s.op("COND_REG_EXEC", &[3 << 28 | modes, store]).store(slot, 1);
        }
        // One inside another: the inner one holds, the outer does not.
        s.op("COND_REG_EXEC", &[3 << 28 | 1 << 26, 3 + store])
            .op("COND_REG_EXEC", &[3 << 28 | 1 << 27, store])
            .store(32, 1);
        s.store(36, 1);
        assert_eq!(run(&mut m, &s.words), RunEnd::Done);
        let taken: Vec<u32> = (0..10).map(|n| data(&m, 4 * n)).collect();
        assert_eq!(taken, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    }
}

#[test]
fn waits_end_when_the_value_is_there_and_hang_when_nobody_will_write_it() {
    let db = Db::builtin();
    for generation in BOTH {
        let at = [low(DATA), high(DATA)];
        let wait = |s: &mut Stream<'_>, value| {
            s.op("WAIT_REG_MEM", &[3 | 1 << 4, at[0], at[1], value, u32::MAX, 16]);
        };
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        s.store(0, 8);
        wait(&mut s, 8);
        s.store(4, 1);
        let blocked = s.words.len() as u64;
        wait(&mut s, 9);
        s.store(8, 1);
        assert_eq!(run(&mut m, &s.words), RunEnd::Hung);
        assert_eq!([data(&m, 4), data(&m, 8)], [1, 0]);
        let place = m.position(ThreadId::Br);
        assert_eq!((place[0].level, place[0].next), (1, STREAM + 4 * blocked), "at the packet that waits");
        // The CPU writes it.
        m.space.memory.store(DATA, 4, 9);
        assert_eq!(m.run(1000), RunEnd::Done);
        assert_eq!(data(&m, 8), 1);
    }
}

#[test]
fn a_conditional_write_goes_where_it_says() {
    let db = Db::builtin();
    for generation in BOTH {
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        s.write(PLAIN, &[0x15]);
        // (register & 0xf) > 4: to memory; == 4: to a register, not taken.
        s.op("COND_WRITE5", &[6 | 1 << 8, PLAIN, 0, 4, 0xf, low(DATA), high(DATA), 77]);
        s.op("COND_WRITE5", &[3, PLAIN, 0, 4, 0xf, PLAIN + 1, 0, 78]);
        s.op("COND_WRITE5", &[3, PLAIN, 0, 5, 0xf, PLAIN + 2, 0, 79]);
        assert_eq!(run(&mut m, &s.words), RunEnd::Done);
        assert_eq!((data(&m, 0), register(&m, PLAIN + 1), register(&m, PLAIN + 2)), (77, 0, 79));
    }
}

#[test]
fn buffers_are_entered_and_left_and_chained() {
    let db = Db::builtin();
    let (mut m, mut s) = (machine(&db, A6xx), Stream::new(&db, A6xx));
    let (mut inner, mut chained) = (Stream::new(&db, A6xx), Stream::new(&db, A6xx));
    let (at, next) = (0x3_0000_0000_u64, 0x3_0001_0000_u64);
    chained.store(8, 3);
    let length = chained.words.len() as u32;
    inner.store(0, 1).op("INDIRECT_BUFFER_CHAIN", &[low(next), high(next), length]).store(12, 9);
    s.op("INDIRECT_BUFFER", &[low(at), high(at), inner.words.len() as u32]).store(4, 2);
    for (iova, words) in [(at, &inner.words), (next, &chained.words)] {
        m.space.memory.map(iova, words.iter().flat_map(|word| word.to_le_bytes()).collect()).unwrap();
    }
    assert_eq!(run(&mut m, &s.words), RunEnd::Done);
    assert_eq!([0, 4, 8, 12].map(|offset| data(&m, offset)), [1, 2, 3, 0]);

    // A buffer that enters itself goes deeper than the CP has levels.
    let mut s = Stream::new(&db, A6xx);
    s.op("INDIRECT_BUFFER", &[low(STREAM), high(STREAM), 4]);
    let CpStop::Error(error) = stopped(run(&mut m, &s.words)) else { panic!("no error of the stream") };
    assert_eq!(error.kind, CpErrorKind::TooDeep);
}

#[test]
fn draw_states_are_executed_by_the_draw_that_needs_them() {
    let db = Db::builtin();
    for generation in BOTH {
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        let place = |id: u64| 0x3_0000_0000 + id * 0x1000;
        for id in 0..4 {
            let mut group = Stream::new(&db, generation);
            group.op("REG_RMW", &[(PLAIN + id as u32) | 1 << 29, u32::MAX, 1]);
            let bytes = group.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            m.space.memory.map(place(id), bytes).unwrap();
        }
        let set = |s: &mut Stream<'_>, id: u64, flags: u32| {
            s.op("SET_DRAW_STATE", &[4 | flags | (id as u32) << 24, low(place(id)), high(place(id))]);
        };
        let draw = |s: &mut Stream<'_>| {
            s.op("DRAW_INDX_OFFSET", &[4 | 2 << 6, 1, 3, 0, 0, 0, 0]);
        };
        let (binning, gmem, sysmem, now, disable) = (1 << 20, 1 << 21, 1 << 22, 1 << 19, 1 << 17);
        s.op("SET_MARKER", &[1]);
        set(&mut s, 0, binning | gmem | sysmem);
        set(&mut s, 1, binning);
        set(&mut s, 2, sysmem);
        set(&mut s, 3, now | sysmem);
        draw(&mut s);
        draw(&mut s);
        s.op("SET_MARKER", &[2]);
        draw(&mut s);
        set(&mut s, 2, sysmem | binning);
        set(&mut s, 2, disable);
        draw(&mut s);
        assert_eq!(run(&mut m, &s.words), RunEnd::Done);
        // Group 1 waited until its mode came; 2 was executed once and then forgotten.
        assert_eq!([0, 1, 2, 3].map(|n| register(&m, PLAIN + n)), [1, 1, 1, 1], "{generation:?}");
        assert_eq!(m.work_done(), 4);
    }
}

#[test]
fn threads_of_a7xx_take_their_own_packets_and_meet() {
    let db = Db::builtin();
    let (br, bv, both, sync) = (1, 2, 3, 1 << 31);
    let (mut m, mut s) = (machine(&db, A7xx), Stream::new(&db, A7xx));
    s.op("THREAD_CONTROL", &[br]);
    // BR waits for what only BV writes.
    s.op("WAIT_REG_MEM", &[3 | 1 << 4, low(DATA), high(DATA), 1, u32::MAX, 16]);
    s.write(PLAIN, &[1]);
    s.op("THREAD_CONTROL", &[bv]).store(0, 1);
    s.write(PLAIN, &[2]);
    s.op("THREAD_CONTROL", &[both | sync]);
    s.write(PLAIN + 1, &[3]);
    // By now BR has been here: its count is one.
    s.op("THREAD_CONTROL", &[br]).op("EVENT_WRITE7", &[1 | 1 << 17]);
    s.op("THREAD_CONTROL", &[bv]).op("BV_BR_COUNT_OPS", &[4, 0]).store(4, 1);
    assert_eq!(run(&mut m, &s.words), RunEnd::Done);
    let seen = |reg| [ThreadId::Br, ThreadId::Bv].map(|id| m.read_register(id, reg));
    assert_eq!((seen(PLAIN), seen(PLAIN + 1)), ([1, 2], [3, 3]));
    assert_eq!(data(&m, 4), 1);

    // BV waits for work that BR never does.
    let mut s = Stream::new(&db, A7xx);
    s.op("THREAD_CONTROL", &[br]).op("BV_BR_COUNT_OPS", &[1, 0]).op("BV_BR_COUNT_OPS", &[3, 0]);
    assert_eq!(run(&mut m, &s.words), RunEnd::Hung);
}

#[test]
fn events_write_when_they_are_over() {
    let db = Db::builtin();
    let (mut m, mut s) = (machine(&db, A6xx), Stream::new(&db, A6xx));
    let number =
        |s: &Stream<'_>, name| s.gpu.enumeration("vgt_event_type").unwrap().value_of(name).unwrap() as u32;
    let flush = number(&s, "CACHE_FLUSH_TS");
    s.op("EVENT_WRITE", &[flush | 1 << 31, low(DATA), high(DATA), 42]);
    let count = s.gpu.reg_offset("RB_SAMPLE_COUNT_ADDR").unwrap();
    s.store(16, 5);
    s.write(count, &[low(DATA + 16), high(DATA)]);
    let zpass = number(&s, "ZPASS_DONE");
    s.op("EVENT_WRITE", &[zpass]);
    assert_eq!(run(&mut m, &s.words), RunEnd::Done);
    assert_eq!((data(&m, 0), data(&m, 16)), (42, 0), "no sample passes while nothing is rendered");

    let (mut m, mut s) = (machine(&db, A7xx), Stream::new(&db, A7xx));
    let clean = number(&s, "CACHE_CLEAN");
    let (enabled, wide, on_chip) = (1 << 27, 1 << 20, 1 << 24);
    s.op("THREAD_CONTROL", &[1]);
    s.op("EVENT_WRITE7", &[clean, low(DATA), high(DATA), 1]);
    s.op("EVENT_WRITE7", &[clean | enabled, low(DATA + 4), high(DATA), 43]);
    s.op("EVENT_WRITE7", &[clean | enabled | wide, low(DATA + 8), high(DATA), 44, 45]);
    s.op("EVENT_WRITE7", &[clean | enabled | on_chip, 7, 0, 46]);
    s.op("WAIT_TIMESTAMP", &[1 << 4, 7, 0, 46]).op("WAIT_TIMESTAMP", &[0, low(DATA + 4), high(DATA), 43]);
    assert_eq!(run(&mut m, &s.words), RunEnd::Done);
    assert_eq!([0, 4, 8, 12].map(|offset| data(&m, offset)), [0, 43, 44, 45]);
}

#[test]
fn bins_repeat_their_body_after_each_prefix() {
    let db = Db::builtin();
    let (mut m, mut s) = (machine(&db, A6xx), Stream::new(&db, A6xx));
    let prefixes = 0x3_0000_0000_u64;
    let mut prefix = Stream::new(&db, A6xx);
    for n in 0..3 {
        prefix.write(PLAIN, &[10 + n]);
    }
    m.space.memory.map(prefixes, prefix.words.iter().flat_map(|word| word.to_le_bytes()).collect()).unwrap();
    s.op("START_BIN", &[3, low(prefixes), high(prefixes), 2, 4]);
    s.op("REG_TO_MEM", &[PLAIN | 1 << 31, low(DATA), high(DATA)]);
    s.op("END_BIN", &[]);
    assert_eq!(run(&mut m, &s.words), RunEnd::Done);
    assert_eq!(data(&m, 0), 10 + 11 + 12);
}

#[test]
fn what_hardware_faults_on_stops_the_machine_at_the_packet() {
    let db = Db::builtin();
    let unmapped = 0x9_0000_0000_u64;
    let (mut m, mut s) = (machine(&db, A6xx), Stream::new(&db, A6xx));
    s.op("MEM_WRITE", &[low(unmapped), high(unmapped), 1]);
    let CpStop::Fault(fault) = stopped(run(&mut m, &s.words)) else { panic!("no fault") };
    assert_eq!((fault.iova, fault.kind), (unmapped, GpuFaultKind::Translation));

    let mut s = Stream::new(&db, A6xx);
    s.op("INDIRECT_BUFFER", &[low(unmapped), high(unmapped), 8]);
    assert!(matches!(stopped(run(&mut m, &s.words)), CpStop::Fault(_)));

    m.space.memory.map_unknown(unmapped, 0x1000).unwrap();
    let CpStop::Fault(fault) = stopped(run(&mut m, &s.words)) else { panic!("no fault") };
    assert_eq!(fault.kind, GpuFaultKind::Unknown, "what is not known is not zero");

    for (words, kind) in [
        (vec![0xdead_beef], CpErrorKind::BadHeader { raw: 0xdead_beef }),
        (vec![0x70f0_8000 | 0x6f << 16], CpErrorKind::BadHeader { raw: 0x70ff_8000 }),
        (vec![0x7010_0005, 0], CpErrorKind::BadHeader { raw: 0x7010_0005 }),
    ] {
        let CpStop::Error(error) = stopped(run(&mut m, &words)) else { panic!("no error") };
        assert_eq!((error.iova, error.kind), (STREAM, kind));
    }
    let mut s = Stream::new(&db, A6xx);
    s.op("MEM_WRITE", &[low(DATA), high(DATA), 1]);
    let raw = s.words[0];
    let CpStop::Error(error) = stopped(run(&mut m, &s.words[..3])) else { panic!("no error") };
    assert_eq!(error.kind, CpErrorKind::CutPacket { raw, left: 3 });
    assert_eq!(data(&m, 0), 0);
}

#[test]
fn any_stream_ends() {
    let db = Db::builtin();
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as u32
    };
    for round in 0..3000 {
        let generation = BOTH[round % 2];
        let (mut m, mut s) = (machine(&db, generation), Stream::new(&db, generation));
        for _ in 0..8 {
            let opcode = (0..).map(|_| (random() & 0x7f) as u8).find(|&op| s.gpu.packet_name(op).is_some());
            let name = s.gpu.packet_name(opcode.unwrap_or(0x10)).unwrap_or("CP_NOP");
            let Some(name) = name.strip_prefix("CP_") else { continue };
            let count = random() % 12;
            let payload: Vec<u32> = (0..count)
                .map(|n| match random() % 4 {
                    0 => low(DATA) + random() % 0x1000,
                    1 if n % 2 == 1 => high(DATA),
                    2 => random() % 64,
                    _ => random(),
                })
                .collect();
            s.op(name, &payload);
        }
        // It ends by itself: no packet works longer than memory is long.
        let end = run(&mut m, &s.words);
        assert_ne!(end, RunEnd::Budget, "{:x?}", s.words);
    }
}
