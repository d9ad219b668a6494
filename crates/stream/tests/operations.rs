//! Operations that write registers, load shader state or start work.

mod common;
use common::*;
use unwedge_base::{Generation, Memory};
use unwedge_stream::adreno::*;

#[test]
fn bunches_of_registers() {
    check(
        &cs(Generation::A7xx)
            .op("CONTEXT_REG_BUNCH", &[0x8c17, 1, 0xb800, 2])
            .op("CONTEXT_REG_BUNCH2", &[9, 9, 0x8c18, 3])
            .op("CONTEXT_REG_BUNCH", &[0x8c19]),
        &Memory::default(),
        WalkerOptions::default(),
        "
        ContextRegBunch
          8c17 = 1
          b800 = 2
        ContextRegBunch2
          8c18 = 3
        ContextRegBunch
          trouble at 10: ShortPacket { needed: 2 }",
    );
}

#[test]
fn single_register_writes() {
    let a6xx = cs(Generation::A6xx).op("REG_WRITE", &[2, 0x8801, 0x4010]);
    check(&a6xx, &Memory::default(), WalkerOptions::default(), "RegWrite\n  8801 = 4010");
    let a4xx = cs(Generation::A4xx).op("WIDE_REG_WRITE", &[0x2010, 5, 6]);
    check(&a4xx, &Memory::default(), WalkerOptions::default(), "WideRegWrite\n  2010 = 5\n  2011 = 6");
}

#[test]
fn a2xx_constants_of_type_4_are_registers() {
    let ring = cs(Generation::A2xx)
        .op("SET_CONSTANT", &[4 << 16 | 0x10, 5, 6])
        .op("SET_CONSTANT", &[1 << 31 | 4 << 16 | 0x20, 0x2010, 100])
        .op("SET_CONSTANT", &[1 << 31 | 4 << 16 | 0x20, 0x2222, 100])
        .op("SET_CONSTANT", &[0, 0x3f80_0000]);
    let expected = "
        SetConstant
          2010 = 5
          2011 = 6
        SetConstant
          2020 = 69
        SetConstant
        SetConstant";
    let state = check(&ring, &Memory::default(), WalkerOptions::default(), expected);
    assert_eq!(state.regs.get(0x2020), None, "the offset of an unknown register is unknown");
    let (_, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!(state.regs.get(0x2020), Some(100));
}

#[test]
fn read_modify_write_rotates_adds_and_reads_registers() {
    let rotate = |n: u32| n << 24;
    let (add, src1_reg, src0_reg) = (1 << 29, 1 << 30, 1 << 31);
    let ring = cs(Generation::A6xx)
        .regs(0x8c17, &[0x1234])
        .op("REG_RMW", &[0x8c17, 0xff, 0x100])
        .op("REG_RMW", &[0x8c17 | rotate(4) | add, 0xf0, 1])
        .op("REG_RMW", &[0x8c18, 0, 0xff])
        .op("REG_RMW", &[0x8c17 | src0_reg | src1_reg, 0x8c18, 0x8c18])
        .op("REG_RMW", &[0x8c17, 0xffff_ffff, 0x8000_0000])
        .op("REG_RMW", &[0x8c19, 1, 1]);
    let state = check(
        &ring,
        &Memory::default(),
        WalkerOptions::default(),
        "
        write
          8c17 = 1234
        RegRmw
          8c17 = 134
        RegRmw
          8c17 = 301
        RegRmw
          8c18 = ff
        RegRmw
          8c17 = ff
        RegRmw
          8c17 = 800000ff
        RegRmw",
    );
    assert_eq!(state.regs.get(0x8c19), None);
    let (_, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!(state.regs.get(0x8c19), Some(1), "listings take unwritten for zero");
}

#[test]
fn what_memory_or_scratch_writes_is_unknown_unless_the_stream_tells() {
    let ring = cs(Generation::A6xx)
        .regs(0x8c17, &[1, 2, 3, 4])
        .op("MEM_TO_REG", &[2 << 19 | 0x8c17, 0x1000, 0])
        .op("SCRATCH_WRITE", &[5 << 20, 77])
        .op("SCRATCH_TO_REG", &[5 << 20 | 0x8c19])
        .op("SCRATCH_TO_REG", &[6 << 20 | 0x8c1a])
        .op("REG_TO_SCRATCH", &[1 << 20 | 0x8c19])
        .op("SCRATCH_TO_REG", &[1 << 20 | 0x8c20]);
    let (_, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    let regs = [0x8c17, 0x8c18, 0x8c19, 0x8c1a, 0x8c20].map(|r| state.regs.get(r));
    assert_eq!(regs, [None, None, Some(77), None, Some(77)]);
    let (_, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!(state.regs.get(0x8c17), Some(1), "listings leave them as they were");
}

#[test]
fn conditional_writes_make_a_register_unknown() {
    let ring = cs(Generation::A6xx)
        .regs(0x8c17, &[1, 2])
        .op("COND_WRITE5", &[3, 0, 0, 0, 0, 0x8c17, 0, 9])
        .op("COND_WRITE5", &[3 | 1 << 8, 0, 0, 0, 0, 0x8c18, 0, 9]);
    let (_, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!([0x8c17, 0x8c18].map(|r| state.regs.get(r)), [None, Some(2)]);
}

#[test]
fn every_kind_of_work() {
    let a6xx = cs(Generation::A6xx)
        .op("DRAW_INDX_OFFSET", &[4, 2, 30])
        .op("DRAW_INDIRECT", &[4, 0x1000, 1])
        .op("DRAW_INDX_INDIRECT", &[4, 0, 0, 9, 0x2000, 1])
        .op("DRAW_INDIRECT_MULTI", &[4, 7, 10, 0, 0, 9, 0x3000, 1, 0, 0, 16])
        .op("DRAW_INDIRECT_MULTI", &[4, 2, 10, 0x4000, 1, 16])
        .op("DRAW_AUTO", &[4, 3, 0x5000, 1, 0, 16])
        .op("EXEC_CS", &[0, 1, 1, 1])
        .op("EXEC_CS_INDIRECT", &[0, 0x6000, 1, 0])
        .op("RUN_OPENCL", &[0])
        .op("BLIT", &[3])
        .op("EVENT_WRITE", &[30])
        .op("EVENT_WRITE", &[37 | 1 << 30, 0, 0, 0])
        .op("EVENT_WRITE", &[4]);
    type Facts = (DrawKind, Option<u32>, Option<u32>, Option<u64>);
    struct Draws(Vec<Facts>);
    impl AdrenoSink for Draws {
        fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
            if let AdrenoEvent::Draw(d) = event {
                assert_eq!((d.number as usize, d.summary), (self.0.len(), true));
                self.0.push((d.kind, d.primitive.or(d.event), d.count.or(d.instances), d.indirect));
            }
            Flow::Continue
        }
    }
    let (db, memory) = (unwedge_hw::Db::builtin(), Memory::default());
    let mut walker = AdrenoWalker::new(db.gpu(Generation::A6xx), &memory, WalkerOptions::default());
    let mut draws = Draws(Vec::new());
    walker.walk(unwedge_base::Dwords::from(&a6xx.dwords[..]), None, &mut draws);
    use DrawKind::{Blit, Dispatch, Draw};
    assert_eq!(
        draws.0,
        [
            (Draw, Some(4), Some(30), None),
            (Draw, Some(4), None, Some(0x1_0000_1000)),
            (Draw, Some(4), None, Some(0x1_0000_2000)),
            (Draw, Some(4), None, Some(0x1_0000_3000)),
            (Draw, Some(4), None, Some(0x1_0000_4000)),
            (Draw, Some(4), Some(3), Some(0x1_0000_5000)),
            (Dispatch, None, None, None),
            (Dispatch, None, None, Some(0x1_0000_6000)),
            (Dispatch, None, None, None),
            (Blit, None, None, None),
            (DrawKind::Event, Some(30), None, None),
            (DrawKind::Event, Some(37), None, None),
        ]
    );
    let a4xx =
        cs(Generation::A4xx).op("DRAW_INDX_INDIRECT", &[4, 0, 9, 0x2000]).op("DRAW_INDX_2", &[0, 4, 3, 7]);
    let (log, _) = walk(&a4xx, &memory, WalkerOptions::default());
    assert_eq!(log.draws, [(0, true, Draw), (1, true, Draw)]);
}

#[test]
fn work_that_listings_do_not_summarize_keeps_the_span_of_writes_open() {
    let empty = cs(Generation::A6xx).regs(0x8c17, &[1]).draw(0).draw(3);
    check(
        &empty,
        &Memory::default(),
        WalkerOptions::default(),
        "
        write
          8c17 = 1
        DrawIndxOffset
          draw 0 Draw count Some(0) after [8c17]
        DrawIndxOffset
          draw 0 Draw count Some(3) after [8c17]",
    );
    let a5xx = cs(Generation::A5xx).op("EVENT_WRITE", &[30]).op("BLIT", &[3]);
    let (log, state) = walk(&a5xx, &Memory::default(), WalkerOptions::default());
    assert_eq!(log.draws, [(0, false, DrawKind::Event), (0, true, DrawKind::Blit)]);
    assert_eq!(state.draws, 1);
    let a4xx = cs(Generation::A4xx).op("EVENT_WRITE", &[30]);
    assert!(walk(&a4xx, &Memory::default(), WalkerOptions::default()).0.draws.is_empty());
}

#[test]
fn a_draw_makes_its_values_the_previous_ones() {
    let ring = cs(Generation::A6xx).regs(0x8c17, &[1]).draw(3).regs(0x8c17, &[2]);
    let (_, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!((state.regs.get(0x8c17), state.regs.previous(0x8c17)), (Some(2), 1));
    assert!(state.regs.rewritten(0x8c17));
}

#[test]
fn shader_state_of_all_generations() {
    let shader = [0xabcd];
    let memory = memory(&[(0x1000, &shader), (0x1_0000_0000, &shader)]);
    let a3xx = cs(Generation::A3xx)
        .op("LOAD_STATE", &[2 << 22 | 6 << 19 | 4 << 16, 0x1000])
        .op("LOAD_STATE", &[1 << 22 | 4 << 19 | 3, 1, 0x55])
        .op("LOAD_STATE", &[1 << 22 | 7 << 19, 0, 0x55]);
    check(
        &a3xx,
        &memory,
        WalkerOptions::default(),
        "
        LoadState
          load Some(Fragment) Shader Indirect 2 units to 0 at Some(1000): Some(abcd)
        LoadState
          load Some(Vertex) Constants Direct 1 units to 3 at None: Some(55)
        LoadState
          load None Unknown Direct 1 units to 0 at None: Some(55)",
    );
    let a5xx = cs(Generation::A5xx)
        .op("LOAD_STATE4", &[1 << 22 | 5 << 18 | 2 << 16, 1, 1])
        .op("LOAD_STATE4", &[1 << 22 | 6 << 18 | 16, 2, 0, 7])
        .op("LOAD_STATE4", &[1 << 22 | 0xe << 18, 1, 0, 7]);
    check(
        &a5xx,
        &memory,
        WalkerOptions::default(),
        "
        LoadState4
          load Some(Compute) TexConst Indirect 1 units to 0 at Some(100000000): Some(abcd)
        LoadState4
          load None Ubo Direct 1 units to 16 at None: Some(7)
        LoadState4
          load None Ssbo1 Direct 1 units to 0 at None: Some(7)",
    );
    let a6xx = cs(Generation::A6xx)
        .op("LOAD_STATE6_GEOM", &[1 << 22 | 0xb << 18 | 1 << 14, 0, 0, 7])
        .op("LOAD_STATE6_FRAG", &[1 << 22 | 0xd << 18 | 3 << 14 | 2 << 16, 0x1000, 0])
        .op("LOAD_STATE6", &[1 << 22 | 0xc << 18 | 2 << 16, 0x9000, 0])
        .op("LOAD_STATE6", &[1 << 22 | 9 << 18 | 1 << 14 | 3 << 16, 0xe_0000, 0]);
    check(
        &a6xx,
        &memory,
        WalkerOptions::default(),
        "
        LoadState6Geom
          load Some(Geometry) Constants Direct 1 units to 0 at None: Some(7)
        LoadState6Frag
          load Some(Compute) Ssbo0 Indirect 1 units to 0 at Some(1000): Some(abcd)
        LoadState6
          load Some(Fragment) Shader Indirect 1 units to 0 at Some(9000): None
        LoadState6
          load Some(TessControl) Constants Ubo 1 units to 0 at None: None",
    );
}

#[test]
fn bindless_state_lies_behind_a_base_register() {
    let set = 2;
    let load = |stage: u32| [1 << 22 | stage << 18 | 1 << 16, set << 28 | 4, 0];
    for (generation, graphics, compute) in
        [(Generation::A6xx, 0xbb20, 0xb9c0), (Generation::A7xx, 0xab0a, 0xa9e8)]
    {
        let ring = cs(generation)
            .regs(graphics + 2 * set, &[0x1003, 1])
            .op("LOAD_STATE6_GEOM", &load(0))
            .op("LOAD_STATE6_FRAG", &load(5))
            .regs(compute + 2 * set, &[0x2000, 1])
            .op("LOAD_STATE6_FRAG", &load(5));
        let (log, _) = walk(&ring, &memory(&[(0x1_0000_1010, &[0xabcd])]), WalkerOptions::default());
        let loads: Vec<_> = log.text.lines().filter(|l| l.contains("load")).map(str::trim).collect();
        assert_eq!(
            loads,
            [
                "load Some(Vertex) Sampler Bindless 1 units to 0 at Some(100001010): Some(abcd)",
                "load Some(Compute) Sampler Bindless 1 units to 0 at None: None",
                "load Some(Compute) Sampler Bindless 1 units to 0 at Some(100002010): None",
            ]
        );
    }
}

#[test]
fn the_bin_of_a2xx() {
    let ring = cs(Generation::A2xx).op("SET_BIN", &[0, 32 << 16 | 16, 63 << 16 | 47]);
    let (_, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!(state.bin, Some(Bin { x1: 16, y1: 32, x2: 47, y2: 63 }));
}
