//! Nested streams: indirect buffers, chains, bins, tables, ambles, packets in memory writes, and their limits.

mod common;
use common::*;
use unwedge_base::{Buffer, Dwords, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::*;

#[test]
fn an_indirect_buffer_on_every_generation() {
    for generation in Generation::ALL {
        let ib = cs(generation).regs(0x2010, &[1, 2]).draw(3);
        let memory = memory(&[(0x1000, &ib.dwords)]);
        let ring = cs(generation).ib(0x1000, ib.dwords.len() as u32).draw(6);
        let draw = if generation <= Generation::A3xx { "DrawIndx" } else { "DrawIndxOffset" };
        for options in [linear(), WalkerOptions::default()] {
            check(
                &ring,
                &memory,
                options,
                &format!(
                    "IndirectBuffer
                       enter Indirect level 1
                         write
                           2010 = 1
                           2011 = 2
                         {draw}
                           draw 0 Draw count Some(3) after [2010, 2011]
                     {draw}
                       draw 1 Draw count Some(6) after []"
                )
                .replace("\n                     ", "\n"),
            );
        }
    }
}

#[test]
fn a_buffer_that_the_dump_does_not_hold_is_missing() {
    let mut memory = Memory::default();
    memory.add(Buffer { iova: 0x1000, size: 64, contents: None, name: String::new() });
    check(
        &cs(Generation::A6xx).ib(0x1000, 4).ib(0x9000, 5),
        &memory,
        WalkerOptions::default(),
        "
        IndirectBuffer
          missing Some(1000) 4 dwords
        IndirectBuffer
          missing Some(9000) 5 dwords",
    );
}

#[test]
fn a_stream_longer_than_its_buffer_is_walked_as_far_as_it_goes() {
    let nop = cs(Generation::A6xx).op("NOP", &[]);
    check(
        &cs(Generation::A6xx).ib(0x1000, 0xffff_ffff),
        &memory(&[(0x1000, &nop.dwords)]),
        WalkerOptions::default(),
        "
        IndirectBuffer
          trouble at 0: CutStream { claimed: ffffffff, present: 1 }
          enter Indirect level 1
            Nop",
    );
}

#[test]
fn a_packet_longer_than_its_stream_is_cut_where_hardware_ends_and_read_on_by_listings() {
    let ib = cs(Generation::A6xx).regs(0x8c17, &[1, 2, 3]);
    let memory = memory(&[(0x1000, &ib.dwords)]);
    let ring = cs(Generation::A6xx).ib(0x1000, 3);
    check(
        &ring,
        &memory,
        WalkerOptions::default(),
        "
        IndirectBuffer
          enter Indirect level 1
            write
              8c17 = 1
              8c18 = 2
            trouble at 0: CutPacket { claimed: 3, present: 2 }",
    );
    let state = check(
        &ring,
        &memory,
        linear(),
        "
        IndirectBuffer
          enter Indirect level 1
            write
              8c17 = 1
              8c18 = 2
              8c19 = 3
            trouble at 0: CutPacket { claimed: 3, present: 2 }",
    );
    assert_eq!(state.regs.get(0x8c19), Some(3));
}

#[test]
fn buffers_nest_three_deep() {
    let inside = cs(Generation::A6xx).ib(0x1000, 4);
    check(
        &inside,
        &memory(&[(0x1000, &inside.dwords)]),
        WalkerOptions::default(),
        "
        IndirectBuffer
          enter Indirect level 1
            IndirectBuffer
              enter Indirect level 2
                IndirectBuffer
                  enter Indirect level 3
                    IndirectBuffer
                      trouble at 0: TooDeep",
    );
}

#[test]
fn a_chain_goes_on_at_the_same_level_and_never_returns() {
    let second = cs(Generation::A6xx).regs(0x8c17, &[2]);
    let first =
        cs(Generation::A6xx).regs(0x8c17, &[1]).op("INDIRECT_BUFFER_CHAIN", &[0x2000, 0, 2]).op("NOP", &[]);
    let memory = memory(&[(0x1000, &first.dwords), (0x2000, &second.dwords)]);
    let ring = cs(Generation::A6xx).ib(0x1000, first.dwords.len() as u32).draw(3);
    check(
        &ring,
        &memory,
        WalkerOptions::default(),
        "
        IndirectBuffer
          enter Indirect level 1
            write
              8c17 = 1
            IndirectBufferChain
          enter Indirect level 1
            write
              8c17 = 2
        DrawIndxOffset
          draw 0 Draw count Some(3) after [8c17]",
    );
    let (log, state) = walk(&ring, &memory, linear());
    assert!(log.text.contains("Nop"), "listings go on after a chain packet");
    assert_eq!(state.regs.get(0x8c17), Some(1));
}

#[test]
fn listings_read_on_in_the_buffer_that_a_buffer_ends_with() {
    let second = cs(Generation::A6xx).regs(0x8c17, &[2]);
    let first = cs(Generation::A6xx).op("INDIRECT_BUFFER_CHAIN", &[0x2000, 0, 2]);
    let memory = memory(&[(0x1000, &first.dwords), (0x2000, &second.dwords)]);
    let ring = cs(Generation::A6xx).ib(0x1000, 4);
    check(
        &ring,
        &memory,
        linear(),
        "
        IndirectBuffer
          enter Indirect level 1
            IndirectBufferChain
            write
              8c17 = 2",
    );
}

#[test]
fn a_chain_that_loops_ends_with_the_budget() {
    let chain = cs(Generation::A6xx).op("INDIRECT_BUFFER_CHAIN", &[0x1000, 0, 4]);
    let ring = cs(Generation::A6xx).ib(0x1000, 4);
    for options in [WalkerOptions::default(), linear()] {
        let options = WalkerOptions { budget: 1000, ..options };
        let (log, _) = walk(&ring, &memory(&[(0x1000, &chain.dwords)]), options);
        assert_eq!(log.troubles, [TroubleKind::BudgetSpent]);
        assert!(log.events < 2000);
    }
}

#[test]
fn a_sink_may_leave_a_buffer_out() {
    let ib = cs(Generation::A6xx).regs(0x8c17, &[1]);
    let memory = memory(&[(0x1000, &ib.dwords)]);
    let db = Db::builtin();
    let mut walker = AdrenoWalker::new(db.gpu(Generation::A6xx), &memory, WalkerOptions::default());
    let mut log = Log { skip: Some(AdrenoStreamKind::Indirect), ..Log::default() };
    let ring = cs(Generation::A6xx).ib(0x1000, 2);
    walker.walk(Dwords::from(&ring.dwords[..]), None, &mut log);
    log.finish();
    assert_eq!(log.text, "IndirectBuffer\n  skip Indirect\n");
    assert_eq!(walker.state.regs.get(0x8c17), None);
}

#[test]
fn state_stays_from_one_walk_to_the_next_and_places_are_addresses() {
    struct Places(Vec<StreamPos>);
    impl AdrenoSink for Places {
        fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
            if let AdrenoEvent::RegWrite(w) = event {
                self.0.push(w.place);
            }
            Flow::Continue
        }
    }
    let (db, memory) = (Db::builtin(), Memory::default());
    let mut walker = AdrenoWalker::new(db.gpu(Generation::A6xx), &memory, WalkerOptions::default());
    let mut places = Places(Vec::new());
    let stream = cs(Generation::A6xx).op("NOP", &[]).regs(0x8c17, &[7]);
    walker.walk(Dwords::from(&stream.dwords[..]), Some(0x1000), &mut places);
    walker.walk(Dwords::from(&stream.dwords[..]), None, &mut places);
    assert_eq!(
        places.0,
        [StreamPos { level: 0, iova: Some(0x1008), index: 2 }, StreamPos { level: 0, iova: None, index: 2 }]
    );
    assert_eq!(walker.state.regs.get(0x8c17), Some(7));
}

#[test]
fn start_bin_repeats_its_body_and_listings_show_the_prefixes_in_a_row() {
    let prefixes = cs(Generation::A6xx).regs(0x8c17, &[1]).regs(0x8c17, &[2]);
    let body = cs(Generation::A6xx).draw(3).op("END_BIN", &[]);
    let ring = cs(Generation::A6xx)
        .op("START_BIN", &[2, 0x1000, 0, 2, body.dwords.len() as u32])
        .raw(&body.dwords)
        .op("NOP", &[]);
    let memory = memory(&[(0x1000, &prefixes.dwords)]);
    check(
        &ring,
        &memory,
        WalkerOptions::default(),
        "
        StartBin
          enter Bin { index: 0 } level 1
            write
              8c17 = 1
        DrawIndxOffset
          draw 0 Draw count Some(3) after [8c17]
        EndBin
          enter Bin { index: 1 } level 1
            write
              8c17 = 2
        DrawIndxOffset
          draw 1 Draw count Some(3) after [8c17]
        EndBin
        Nop",
    );
    check(
        &ring,
        &memory,
        linear(),
        "
        StartBin
          enter Bin { index: 0 } level 1
            write
              8c17 = 1
          enter Bin { index: 1 } level 1
            write
              8c17 = 2
        DrawIndxOffset
          draw 0 Draw count Some(3) after [8c17]
        EndBin
        Nop",
    );
}

#[test]
fn a_draw_table_ends_with_its_memory() {
    let draws = cs(Generation::A7xx).draw(3).draw(6);
    let stride = 4;
    check(
        &cs(Generation::A7xx).op("FIXED_STRIDE_DRAW_TABLE", &[0x1000, 0, stride << 20 | 8, u32::MAX]),
        &memory(&[(0x1000, &draws.dwords)]),
        WalkerOptions::default(),
        "
        FixedStrideDrawTable
          enter DrawTable { index: 0 } level 1
            DrawIndxOffset
              draw 0 Draw count Some(3) after []
          enter DrawTable { index: 1 } level 1
            DrawIndxOffset
              draw 1 Draw count Some(6) after []
          missing Some(1020) 4 dwords",
    );
}

#[test]
fn an_amble_is_kept_for_later_but_listed_in_place() {
    let amble = cs(Generation::A6xx).regs(0x8c17, &[1]);
    let memory = memory(&[(0x1000, &amble.dwords)]);
    let ring = cs(Generation::A6xx).op("SET_AMBLE", &[0x1000, 0, 2]);
    let expected = "
        SetAmble
          enter Amble level 0 [NotTaken]
            write [NotTaken]
              8c17 = 1 [NotTaken]";
    assert_eq!(check(&ring, &memory, WalkerOptions::default(), expected).regs.get(0x8c17), None);
    assert_eq!(check(&ring, &memory, linear(), expected).regs.get(0x8c17), Some(1));
}

#[test]
fn packets_inside_a_memory_write_are_listed_but_data_is_not_mistaken_for_them() {
    let inner = cs(Generation::A6xx).regs(0x8c17, &[1]);
    let none = Memory::default();
    let packets = [&[0x4000, 0], &inner.dwords[..]].concat();
    let expected = "
        MemWrite
          enter Embedded level 0 [NotTaken]
            write [NotTaken]
              8c17 = 1 [NotTaken]";
    let ring = cs(Generation::A6xx).op("MEM_WRITE", &packets);
    assert_eq!(check(&ring, &none, WalkerOptions::default(), expected).regs.get(0x8c17), None);
    assert_eq!(check(&ring, &none, linear(), expected).regs.get(0x8c17), Some(1));

    let data = [&[0x4000, 0], &inner.dwords[..], &[0x1234]].concat();
    check(&cs(Generation::A6xx).op("MEM_WRITE", &data), &none, WalkerOptions::default(), "MemWrite");
    let data = [0x4000, 0, 0x3f80_0000];
    check(&cs(Generation::A6xx).op("MEM_WRITE", &data), &none, linear(), "MemWrite");
}

#[test]
fn a5xx_render_modes_and_checkpoints_carry_commands() {
    let commands = cs(Generation::A5xx).regs(0x2010, &[1]);
    let memory = memory(&[(0x1000, &commands.dwords)]);
    let ring = cs(Generation::A5xx)
        .op("SET_RENDER_MODE", &[3, 0, 0, 0x10, 0])
        .op("SET_RENDER_MODE", &[2, 0, 0, 8, 0, 2, 0x1000, 0])
        .op("COMPUTE_CHECKPOINT", &[0, 0, 0, 0, 2, 0x1000, 0]);
    let state = check(
        &ring,
        &memory,
        WalkerOptions::default(),
        "
        SetRenderMode
        SetRenderMode
          enter Mode level 1 [Unknown]
            write [Unknown]
              2010 = 1 [Unknown]
        ComputeCheckpoint
          enter Mode level 1 [Unknown]
            write [Unknown]
              2010 = 1 [Unknown]",
    );
    assert_eq!((state.marker, state.modes()), (Some(2), mode::BINNING));
}

#[test]
fn a_conditional_buffer_may_or_may_not_run() {
    let ib = cs(Generation::A5xx).regs(0x2010, &[1]);
    let memory = memory(&[(0x1000, &ib.dwords)]);
    let ring = cs(Generation::A5xx).op("COND_INDIRECT_BUFFER_PFE", &[0x1000, 0, 2]);
    check(
        &ring,
        &memory,
        WalkerOptions::default(),
        "
        CondIndirectBufferPfe
          enter Indirect level 1 [Unknown]
            write [Unknown]
              2010 = 1 [Unknown]",
    );
    check(&ring, &memory, linear(), "CondIndirectBufferPfe");
}
