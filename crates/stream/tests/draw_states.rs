//! Draw-state groups: set, masked by mode, loaded at a draw or at once, disabled.

mod common;
use common::*;
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_stream::adreno::*;

const DISABLE: u32 = 1 << 17;
const DISABLE_ALL: u32 = 1 << 18;
const LOAD_IMMED: u32 = 1 << 19;

/// An entry of CP_SET_DRAW_STATE on a5xx and later.
fn group(id: u32, bits: u32, iova: u32) -> [u32; 3] {
    [id << 24 | bits | 2, iova, 0]
}

fn enabled(modes: u8) -> u32 {
    u32::from(modes) << 20
}

/// Two groups' commands of two dwords, at 0x1000 and 0x2000.
fn states(generation: Generation) -> Memory {
    let write = |value| cs(generation).regs(0x2010, &[value]).dwords;
    memory(&[(0x1000, &write(1)), (0x2000, &write(2))])
}

#[test]
fn a_draw_loads_what_waits_once_in_order_of_ids() {
    let generation = Generation::A6xx;
    let entries = [group(7, enabled(mode::ALL), 0x1000), group(3, enabled(mode::ALL), 0x2000)].concat();
    let state = check(
        &cs(generation).op("SET_DRAW_STATE", &entries).draw(3).draw(6),
        &states(generation),
        WalkerOptions::default(),
        "
        SetDrawState
        group 3 loaded true
        enter Group { id: 3 } level 1
          write
            2010 = 2
        group 7 loaded true
        enter Group { id: 7 } level 1
          write
            2010 = 1
        DrawIndxOffset
          draw 0 Draw count Some(3) after [2010]
        DrawIndxOffset
          draw 1 Draw count Some(6) after []",
    );
    assert_eq!(state.groups, [GroupState::default(); 32]);
}

/// Each draw's number and pass, what 0x2010 holds then, and whether it has been rewritten since the draw before.
#[derive(Default)]
struct Passes {
    seen: Vec<(u32, Pass, u32, bool)>,
    /// Look at no pass but the first two.
    skip: bool,
}

impl AdrenoSink for Passes {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let AdrenoEvent::Draw(draw) = event else { return Flow::Continue };
        self.seen.push((draw.number, draw.pass, state.regs.raw(0x2010), state.regs.rewritten(0x2010)));
        if self.skip { Flow::Skip } else { Flow::Continue }
    }
}

#[test]
fn a_comparison_loads_the_groups_of_each_draw_for_every_pass() {
    use Pass::{All, Binning, Current, Drawing};
    let groups = [group(3, enabled(mode::BINNING), 0x1000), group(7, enabled(mode::GMEM), 0x2000)].concat();
    let ring = cs(Generation::A6xx)
        .op("SET_MARKER", &[2])
        .op("SET_DRAW_STATE", &groups)
        .draw(3)
        .op("SET_DRAW_STATE", &groups)
        .draw(0)
        .draw(3);
    let (memory, db) = (states(Generation::A6xx), unwedge_hw::Db::builtin());
    let walk = |skip| {
        let mut walker = AdrenoWalker::new(db.gpu(Generation::A6xx), &memory, linear());
        walker.compare = true;
        let mut passes = Passes { skip, ..Passes::default() };
        walker.walk(Dwords::new(&ring.dwords, ring.dwords.len()), None, &mut passes);
        assert_eq!(walker.state.groups, [GroupState::default(); 32]);
        assert_eq!(walker.state.modes(), mode::BINNING, "the mode is as before");
        passes.seen
    };
    let expected = [
        (0, Current, 1, true),
        (0, All, 2, true),
        (0, Binning, 1, true),
        (0, Drawing, 2, true),
        // Without indices: it does not count, nor does it begin a new span of writes.
        (1, Current, 1, true),
        (1, All, 2, true),
        (1, Binning, 1, true),
        (1, Drawing, 2, true),
        // Without groups.
        (1, Current, 2, true),
        (1, All, 2, false),
        (1, Binning, 2, false),
        (1, Drawing, 2, false),
    ];
    assert_eq!(walk(false), expected);
    let first_two: Vec<_> =
        expected.into_iter().filter(|(_, pass, ..)| matches!(pass, Current | All)).collect();
    assert_eq!(walk(true), first_two);
}

#[test]
fn an_enable_mask_leaves_groups_out_in_other_modes() {
    const MARKERS: [(u32, u8); 3] = [(2, mode::BINNING), (4, mode::GMEM), (1, mode::SYSMEM)];
    for (marker, loads) in MARKERS {
        for mask in [mode::BINNING, mode::GMEM, mode::SYSMEM] {
            let ring = cs(Generation::A6xx)
                .op("SET_MARKER", &[marker])
                .op("SET_DRAW_STATE", &group(0, enabled(mask), 0x1000))
                .draw(3);
            for options in [linear(), WalkerOptions::default()] {
                let (log, state) = walk(&ring, &states(Generation::A6xx), options);
                assert!(log.text.contains(&format!("group 0 loaded {}", mask == loads)), "{}", log.text);
                assert_eq!(state.regs.get(0x2010).is_some(), mask == loads);
                assert_eq!((state.marker, state.modes()), (Some(marker), loads));
            }
        }
    }
}

#[test]
fn a_marker_that_switches_power_collapse_is_no_render_mode() {
    let ring = cs(Generation::A7xx).op("SET_MARKER", &[2]).op("SET_MARKER", &[0x101]);
    let (_, state) = walk(&ring, &Memory::default(), WalkerOptions::default());
    assert_eq!((state.marker, state.modes()), (Some(2), mode::BINNING));
    let (_, state) = walk(&ring, &Memory::default(), linear());
    assert_eq!((state.marker, state.modes()), (Some(1), mode::SYSMEM), "listings do not look at the bit");
}

#[test]
fn every_other_rendering_marker_counts_as_gmem() {
    for marker in [3, 5, 6, 7, 8] {
        let ring = cs(Generation::A6xx).op("SET_MARKER", &[1]).op("SET_MARKER", &[marker]);
        assert_eq!(walk(&ring, &Memory::default(), WalkerOptions::default()).1.modes(), mode::GMEM);
        assert_eq!(walk(&ring, &Memory::default(), linear()).1.modes(), mode::SYSMEM);
    }
}

#[test]
fn before_a6xx_groups_have_no_mask_and_on_a4xx_entries_have_two_dwords() {
    check(
        &cs(Generation::A4xx).op("SET_DRAW_STATE", &[1 << 24 | 2, 0x1000]).draw(3),
        &states(Generation::A4xx),
        WalkerOptions::default(),
        "
        SetDrawState
        group 1 loaded true
        enter Group { id: 1 } level 1
          write
            2010 = 1
        DrawIndxOffset
          draw 0 Draw count Some(3) after [2010]",
    );
}

#[test]
fn immediate_groups_are_loaded_by_the_packet_itself() {
    check(
        &cs(Generation::A6xx)
            .op("SET_DRAW_STATE", &group(1, LOAD_IMMED | enabled(mode::ALL), 0x1000))
            .op("EXEC_CS", &[0, 1, 1, 1]),
        &states(Generation::A6xx),
        WalkerOptions::default(),
        "
        SetDrawState
          group 1 loaded true
          enter Group { id: 1 } level 1
            write
              2010 = 1
        ExecCs
          draw 0 Dispatch count None after [2010]",
    );
}

#[test]
fn groups_are_disabled_one_by_one_or_all_at_once() {
    let set = [group(1, enabled(mode::ALL), 0x1000), group(2, enabled(mode::ALL), 0x2000)].concat();
    let ring =
        |bits| cs(Generation::A6xx).op("SET_DRAW_STATE", &set).op("SET_DRAW_STATE", &group(1, bits, 0));
    let waiting = |bits| {
        let (_, state) = walk(&ring(bits), &states(Generation::A6xx), WalkerOptions::default());
        state.groups.map(|g| g.iova).into_iter().filter(|&i| i != 0).collect::<Vec<_>>()
    };
    assert_eq!(waiting(DISABLE), [0x2000]);
    assert_eq!(waiting(DISABLE_ALL), [0; 0]);
    assert_eq!(waiting(0), [0x2000], "a new address replaces the old one");
}

#[test]
fn draw_state_that_draws_does_not_load_draw_state() {
    let inner = cs(Generation::A6xx).draw(3);
    let ring =
        cs(Generation::A6xx).op("SET_DRAW_STATE", &[1 << 24 | enabled(mode::ALL) | 4, 0x1000, 0]).draw(6);
    check(
        &ring,
        &memory(&[(0x1000, &inner.dwords)]),
        WalkerOptions::default(),
        "
        SetDrawState
        group 1 loaded true
        enter Group { id: 1 } level 1
          trouble at 0: RecursiveGroups
          DrawIndxOffset
            draw 0 Draw count Some(3) after []
        DrawIndxOffset
          draw 1 Draw count Some(6) after []",
    );
}

#[test]
fn a_group_that_loads_itself_comes_to_an_end() {
    let itself = cs(Generation::A6xx)
        .op("SET_DRAW_STATE", &[1 << 24 | LOAD_IMMED | enabled(mode::ALL) | 4, 0x1000, 0]);
    let (log, _) = walk(&itself, &memory(&[(0x1000, &itself.dwords)]), WalkerOptions::default());
    assert_eq!(log.troubles, [TroubleKind::TooDeep]);
}

#[test]
fn a_group_without_memory_is_missing_and_a_short_entry_is_reported() {
    check(
        &cs(Generation::A6xx)
            .op("SET_DRAW_STATE", &group(1, enabled(mode::ALL), 0x9000))
            .draw(3)
            .op("SET_DRAW_STATE", &[1 << 24 | 2, 0x1000]),
        &Memory::default(),
        WalkerOptions::default(),
        "
        SetDrawState
        group 1 loaded true
        missing Some(9000) 2 dwords
        DrawIndxOffset
          draw 0 Draw count Some(3) after []
        SetDrawState
          trouble at 8: ShortPacket { needed: 3 }",
    );
}
