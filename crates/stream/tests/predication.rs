//! Predicates: which packets are executed, and whether the stream and the dump's memory can tell.

mod common;
use common::*;
use unwedge_base::{Generation, Memory};
use unwedge_stream::adreno::*;

/// The value a register write of two dwords leaves in a register when it is executed.
const REG: u32 = 0x8c17;

/// How the write behind a CP_COND_REG_EXEC with this payload is executed, and what it leaves; linear walks apply it.
#[track_caller]
fn behind(before: Cs, condition: &[u32], memory: &Memory) -> Exec {
    let ring = before.op("COND_REG_EXEC", condition).regs(REG, &[1]).regs(REG + 1, &[1]);
    behind_ring(&ring, memory)
}

#[track_caller]
fn behind_ring(ring: &Cs, memory: &Memory) -> Exec {
    struct Last(Option<Exec>);
    impl AdrenoSink for Last {
        fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
            match event {
                AdrenoEvent::RegWrite(w) if w.reg == REG => self.0 = Some(w.exec),
                AdrenoEvent::RegWrite(w) if w.reg == REG + 1 => {
                    assert_eq!(w.exec, Exec::Always, "past the condition")
                }
                _ => {}
            }
            Flow::Continue
        }
    }
    let db = unwedge_hw::Db::builtin();
    let mut seen = Vec::new();
    for options in [linear(), WalkerOptions::default()] {
        let applies_all = options.linear;
        let mut walker = AdrenoWalker::new(db.gpu(ring.generation), memory, options);
        let mut last = Last(None);
        walker.walk(unwedge_base::Dwords::from(&ring.dwords[..]), None, &mut last);
        let exec = last.0.expect("the write is reported");
        let written = walker.state.regs.get(REG).is_some();
        assert_eq!(written, applies_all || exec != Exec::NotTaken, "{exec:?}, linear {applies_all}");
        seen.push(exec);
    }
    seen[1]
}

#[test]
fn render_mode_against_the_marker() {
    let mode = |m: u8| [3 << 28 | u32::from(m) << 25, 2];
    for (marker, is) in [(2, mode::BINNING), (4, mode::GMEM), (1, mode::SYSMEM)] {
        for m in [mode::BINNING, mode::GMEM, mode::SYSMEM, mode::GMEM | mode::SYSMEM] {
            let before = cs(Generation::A6xx).op("SET_MARKER", &[marker]);
            let expected = if m & is != 0 { Exec::Taken } else { Exec::NotTaken };
            assert_eq!(behind(before, &mode(m), &Memory::default()), expected);
        }
    }
    assert_eq!(behind(cs(Generation::A6xx), &mode(mode::GMEM), &Memory::default()), Exec::Unknown);
}

#[test]
fn registers_against_each_other_and_against_a_number() {
    let none = Memory::default();
    let compare = |a: u32, b: u32| {
        behind(cs(Generation::A6xx).regs(0x8801, &[a, b]), &[2 << 28 | 0x8801, 0x8802, 2], &none)
    };
    assert_eq!(compare(7, 7), Exec::Taken);
    assert_eq!(compare(7, 8), Exec::NotTaken);
    assert_eq!(behind(cs(Generation::A6xx), &[2 << 28 | 0x8801, 0x8802, 2], &none), Exec::Unknown);
    let number = |n| behind(cs(Generation::A7xx).regs(0x8801, &[7]), &[4 << 28 | 0x8801, n, 2], &none);
    assert_eq!((number(7), number(8)), (Exec::Taken, Exec::NotTaken));
    let on_chip = behind(cs(Generation::A7xx).regs(0x8801, &[7]), &[4 << 28 | 1 << 24 | 0x8801, 7, 2], &none);
    assert_eq!(on_chip, Exec::Unknown);
}

#[test]
fn a_bit_that_a_register_test_latched() {
    let none = Memory::default();
    let test = |bit: u32| [5 << 26 | bit << 20 | 0x8801];
    let predicate = [1 << 28 | 5 << 18, 2];
    let tested = |bit| {
        behind(cs(Generation::A6xx).regs(0x8801, &[0b10]).op("REG_TEST", &test(bit)), &predicate, &none)
    };
    assert_eq!((tested(1), tested(0)), (Exec::Taken, Exec::NotTaken));
    assert_eq!(behind(cs(Generation::A6xx).op("REG_TEST", &test(1)), &predicate, &none), Exec::Unknown);
    let direct = |value: u32| {
        let update = [1 << 31, 1 << 5, value << 5];
        behind(cs(Generation::A7xx).op("REG_TEST", &update), &predicate, &none)
    };
    assert_eq!((direct(1), direct(0)), (Exec::Taken, Exec::NotTaken));
}

#[test]
fn memory_that_a_packet_compares() {
    let exec = |flag: u32, value: u32, below: u32| {
        let ring = cs(Generation::A6xx)
            .op("COND_EXEC", &[0x1000, 0, 0x1004, 0, below, 2])
            .regs(REG, &[1])
            .regs(REG + 1, &[1]);
        behind_ring(&ring, &memory(&[(0x1000, &[flag, value])]))
    };
    assert_eq!(exec(1, 5, 6), Exec::Taken);
    assert_eq!(exec(1, 6, 6), Exec::NotTaken);
    assert_eq!(exec(0, 5, 6), Exec::NotTaken);
    assert_eq!(exec(1, -1i32 as u32, 0), Exec::Taken, "the comparison is signed");
    let absent = cs(Generation::A6xx)
        .op("COND_EXEC", &[0x9000, 0, 0x9004, 0, 1, 2])
        .regs(REG, &[1])
        .regs(REG + 1, &[1]);
    assert_eq!(behind_ring(&absent, &Memory::default()), Exec::Unknown, "absent memory is unknown");
    let old = cs(Generation::A3xx).op("COND_EXEC", &[0x400, 0x401, 1, 2]).regs(0x2010, &[1]);
    let (log, _) = walk(&old, &Memory::default(), WalkerOptions::default());
    assert!(log.text.contains("write [Unknown]"), "{}", log.text);
}

#[test]
fn conditions_nest_and_reach_into_buffers() {
    let ib = cs(Generation::A6xx).regs(REG, &[1]);
    let ring = cs(Generation::A6xx)
        .op("SET_MARKER", &[1])
        .op("COND_REG_EXEC", &[3 << 28 | u32::from(mode::SYSMEM) << 25, 9])
        .op("COND_REG_EXEC", &[3 << 28 | u32::from(mode::GMEM) << 25, 4])
        .ib(0x1000, 2)
        .op("SET_MODE", &[7])
        .op("NOP", &[]);
    let state = check(
        &ring,
        &memory(&[(0x1000, &ib.dwords)]),
        WalkerOptions::default(),
        "
        SetMarker
        CondRegExec
        CondRegExec [Taken]
        IndirectBuffer [NotTaken]
          enter Indirect level 1 [NotTaken]
            write [NotTaken]
              8c17 = 1 [NotTaken]
        SetMode [Taken]
        Nop",
    );
    assert_eq!((state.regs.get(REG), state.set_mode), (None, 7));
}

#[test]
fn conditions_nested_beyond_reason_are_unknown() {
    let mut ring = cs(Generation::A6xx).op("SET_MARKER", &[1]);
    for _ in 0..20 {
        ring = ring.op("COND_REG_EXEC", &[3 << 28 | u32::from(mode::SYSMEM) << 25, 1000]);
    }
    let (log, _) = walk(&ring.regs(REG, &[1]), &Memory::default(), WalkerOptions::default());
    assert!(log.text.ends_with("write [Unknown]\n  8c17 = 1 [Unknown]\n"), "{}", log.text);
}

#[test]
fn predicated_draws_change_nothing_but_count() {
    let ring = |value: u64| {
        let ring = cs(Generation::A6xx)
            .op("DRAW_PRED_ENABLE_GLOBAL", &[1])
            .regs(REG, &[1])
            .draw(3)
            .op("DRAW_PRED_SET", &[5 << 4, 0x1000, 0])
            .draw(6)
            .op("DRAW_PRED_ENABLE_LOCAL", &[0])
            .draw(9);
        (ring, memory(&[(0x1000, &[value as u32, (value >> 32) as u32])]))
    };
    let (stream, passing) = ring(1 << 40);
    let (log, _) = walk(&stream, &passing, WalkerOptions::default());
    assert_eq!(log.draws.len(), 3);
    let (stream, failing) = ring(0);
    check(
        &stream,
        &failing,
        WalkerOptions::default(),
        "
        DrawPredEnableGlobal
        write
          8c17 = 1
        DrawIndxOffset [Taken]
          draw 0 Draw count Some(3) after [8c17]
        DrawPredSet
        DrawIndxOffset [NotTaken]
        DrawPredEnableLocal
        DrawIndxOffset
          draw 2 Draw count Some(9) after []",
    );
    let (log, _) = walk(&stream, &failing, linear());
    assert_eq!(log.draws.iter().map(|d| d.0).collect::<Vec<_>>(), [0, 1, 2]);
    let (log, _) = walk(&stream, &Memory::default(), WalkerOptions::default());
    assert!(log.text.contains("DrawIndxOffset [Unknown]"));
}

#[test]
fn buffers_skipped_by_visibility_are_unknown_in_gmem_only() {
    let ib2 = cs(Generation::A6xx).regs(REG, &[1]);
    let ib1 = cs(Generation::A6xx).ib(0x2000, 2);
    let memory = memory(&[(0x1000, &ib1.dwords), (0x2000, &ib2.dwords)]);
    for (marker, expected) in [(4, "enter Indirect level 2 [Unknown]"), (2, "enter Indirect level 2\n")] {
        let ring = cs(Generation::A6xx)
            .op("SET_MARKER", &[marker])
            .op("SKIP_IB2_ENABLE_GLOBAL", &[1])
            .op("SKIP_IB2_ENABLE_LOCAL", &[1])
            .ib(0x1000, 4);
        let (log, state) = walk(&ring, &memory, WalkerOptions::default());
        assert!(log.text.contains(expected), "{}", log.text);
        assert_eq!((state.skip_ib2_global, state.skip_ib2_local), (1, 1));
        assert_eq!(state.regs.get(REG), Some(1));
    }
}

#[test]
fn threads_of_a7xx_keep_their_own_registers() {
    const THREAD_MODE: u32 = 5 << 28;
    const BV: u32 = 1 << 25;
    let ring = cs(Generation::A7xx)
        .regs(REG, &[1])
        .op("THREAD_CONTROL", &[2])
        .regs(REG, &[2])
        .draw(3)
        .op("THREAD_CONTROL", &[1])
        .draw(3)
        .op("THREAD_CONTROL", &[3])
        .regs(REG + 1, &[3])
        .op("COND_REG_EXEC", &[THREAD_MODE | BV, 2])
        .regs(REG + 2, &[4])
        .op("THREAD_CONTROL", &[1])
        .op("COND_REG_EXEC", &[THREAD_MODE | BV, 2])
        .regs(REG + 3, &[5]);
    let state = check(
        &ring,
        &Memory::default(),
        WalkerOptions::default(),
        "
        write
          8c17 = 1
        ThreadControl
        write
          8c17 = 2
        DrawIndxOffset
          draw 0 Draw count Some(3) after [8c17]
        ThreadControl
        DrawIndxOffset
          draw 1 Draw count Some(3) after [8c17]
        ThreadControl
        write
          8c18 = 3
        CondRegExec
        write [Taken]
          8c19 = 4 [Taken]
        ThreadControl
        CondRegExec
        write [NotTaken]
          8c1a = 5 [NotTaken]",
    );
    let see = |thread| [0, 1, 2, 3].map(|i| state.regs_for(thread).get(REG + i));
    assert_eq!(see(Thread::Br), [Some(1), Some(3), None, None]);
    assert_eq!(see(Thread::Bv), [Some(2), Some(3), Some(4), None]);
    assert_eq!(state.thread, Some(Thread::Br));
    let (_, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!(state.regs_for(Thread::Bv).get(REG), Some(2), "one set of registers for listings");
    assert_eq!(state.regs.get(REG), Some(2));
}
