//! What only graphics shaders do: interpolation, exports, messages.

use std::collections::HashMap;
use unwedge_isa::amdgcn::source::assemble;
use unwedge_isa::amdgcn::{Gpu, Reg};
use unwedge_sim::amdgcn::{
    Dispatch, FaultKind, Initial, MessageKind, Outcome, Program, SimMemory, Timing, Trace, run,
};

fn go(name: &str, code: &str, dispatch: &Dispatch) -> (Program, Outcome, HashMap<u16, Vec<u32>>) {
    let gpu = Gpu::new(name).expect("known");
    let made = assemble(code, &gpu);
    assert!(made.errors.is_empty(), "{name}: {:?}\n{code}", made.errors);
    let bytes = &made.sections[0].bytes;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let program = Program::new(&words, 0, gpu);
    let mut registers = HashMap::new();
    let mut tell = |trace: &Trace| {
        registers.extend(trace.writes.iter().map(|(reg, values)| (reg.0, values.clone())));
    };
    let outcome = run(&program, &mut SimMemory::default(), dispatch, Some(&mut tell));
    (program, outcome, registers)
}

fn floats(registers: &HashMap<u16, Vec<u32>>, reg: u8) -> Vec<f32> {
    registers[&Reg::vgpr(reg).0].iter().map(|bits| f32::from_bits(*bits)).collect()
}

/// One primitive in the first quad, another from the second on; attribute 1 behind attribute 0.
fn attributes() -> Dispatch {
    let mut lds = Vec::new();
    for attribute in 0..2 {
        for primitive in 0..2 {
            for vertex in 0..3 {
                for channel in 0..4 {
                    let value = (attribute * 1000 + primitive * 100 + vertex * 10 + channel) as f32;
                    lds.extend(value.to_le_bytes());
                }
            }
        }
    }
    Dispatch {
        size: [32, 1, 1],
        lds: 1024,
        lds_content: lds,
        scalars: vec![(Reg::M0.0, 1 << 16)],
        vectors: vec![(0, Initial::Value(0.5f32.to_bits())), (1, Initial::Value(0.25f32.to_bits()))],
        ..Dispatch::default()
    }
}

#[test]
fn interpolation_from_lds() {
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030"] {
        let code = "v_interp_p1_f32 v2, v0, attr1.z\nv_interp_p2_f32 v2, v1, attr1.z\n\
                    v_interp_mov_f32 v3, p20, attr0.y\nv_interp_mov_f32 v4, p0, attr1.w\ns_endpgm";
        let (_, outcome, registers) = go(name, code, &attributes());
        assert!(outcome.faults.is_empty(), "{name}: {:?}", outcome.faults);
        let expected = |base: f32| (base + 12.0) * 0.5 + (base + 2.0) + (base + 22.0) * 0.25;
        assert_eq!(
            [0, 3, 4, 31].map(|lane| floats(&registers, 2)[lane]),
            [expected(1000.0), expected(1000.0), expected(1100.0), expected(1100.0)]
        );
        assert_eq!([0, 4].map(|lane| floats(&registers, 3)[lane]), [21.0, 121.0], "{name}");
        assert_eq!([0, 4].map(|lane| floats(&registers, 4)[lane]), [1003.0, 1103.0], "{name}");
    }
}

#[test]
fn interpolation_in_quads() {
    for (name, load) in [("gfx1100", "lds_param_load"), ("gfx1200", "ds_param_load")] {
        let wait = if name == "gfx1200" { "s_wait_expcnt 0" } else { "s_waitcnt expcnt(0)" };
        let code = format!(
            "{load} v4, attr1.z\n{wait}\nv_interp_p10_f32 v2, v4, v0, v4\nv_interp_p2_f32 v2, v4, v1, v2\ns_endpgm"
        );
        for timing in [Timing::Plain, Timing::Adversarial { seed: 1 }] {
            let (_, outcome, registers) = go(name, &code, &Dispatch { timing, ..attributes() });
            let hazards = |kind: &FaultKind| matches!(kind, FaultKind::Hazard(..));
            assert!(outcome.faults.iter().all(|f| hazards(&f.kind)), "{name}: {:?}", outcome.faults);
            // Otherwise the load shows what was there before it arrived.
            if timing == Timing::Plain {
                assert_eq!(floats(&registers, 4)[4..8], [1102.0, 1112.0, 1122.0, 0.0]);
            }
            let expected = |base: f32| (base + 12.0) * 0.5 + (base + 2.0) + (base + 22.0) * 0.25;
            assert_eq!(
                [0, 3, 4].map(|lane| floats(&registers, 2)[lane]),
                [1000.0, 1000.0, 1100.0].map(expected)
            );
        }
    }
}

#[test]
fn halves_are_interpolated() {
    let half = [0x3c00u32, 0x4000, 0x4200];
    let lds: Vec<u8> = (0..3u32)
        .flat_map(|vertex| [half[vertex as usize] | 0x4400 << 16; 4])
        .flat_map(u32::to_le_bytes)
        .collect();
    let dispatch = Dispatch { lds_content: lds, scalars: vec![(Reg::M0.0, 0)], ..attributes() };
    // 1 + 2 · 0.5 + 3 · 0.25, and four times the same.
    let code = "v_interp_p1ll_f16 v2, v0, attr0.x\nv_interp_p2_f16 v3, v1, attr0.x, v2\n\
                v_interp_p1ll_f16 v4, v0, attr0.x high\ns_endpgm";
    let (_, outcome, registers) = go("gfx900", code, &dispatch);
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    assert_eq!(floats(&registers, 2)[0], 2.0);
    assert_eq!(registers[&Reg::vgpr(3).0][0] & 0xffff, 0x4180);
    assert_eq!(floats(&registers, 4)[0], 6.0);
}

#[test]
fn exports_and_messages_are_told() {
    let code = "exp mrt0 v0, off, v1, v1 vm\ns_sendmsg 3\nexp pos0 v0, v0, v0, v0 done\ns_endpgm";
    let (program, outcome, _) = go("gfx900", code, &Dispatch { size: [3, 1, 1], ..attributes() });
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    assert_eq!(outcome.messages.len(), 3);
    let MessageKind::Export { target, values, done, valid_mask, compressed, row } = &outcome.messages[0].kind
    else {
        panic!("{:?}", outcome.messages)
    };
    assert_eq!((program.export_target(*target).as_deref(), outcome.messages[0].lanes), (Some("mrt0"), 7));
    assert_eq!((*done, *valid_mask, *compressed, *row), (false, true, false, None));
    assert_eq!(values[0].as_ref().map(|lanes| lanes[2]), Some(0.5f32.to_bits()));
    assert_eq!((values[1].is_none(), values[2].is_some()), (true, true));
    assert_eq!(outcome.messages[1].kind, MessageKind::Message { code: 3, m0: 1 << 16 });
    assert!(matches!(outcome.messages[2].kind, MessageKind::Export { target: 12, done: true, .. }));
}

/// The registers of an export may not be overwritten before `expcnt` says that they were read.
#[test]
fn exports_read_late() {
    for (wait, reported) in [("s_waitcnt expcnt(0)", false), ("s_nop 0", true)] {
        let code = format!("exp mrt0 v0, v0, v1, v1 vm\n{wait}\nv_mov_b32 v1, 0\ns_endpgm");
        let dispatch = Dispatch { timing: Timing::Adversarial { seed: 1 }, ..attributes() };
        let (_, outcome, _) = go("gfx900", &code, &dispatch);
        let found = outcome.faults.iter().any(|fault| matches!(fault.kind, FaultKind::StillRead(..)));
        assert_eq!(found, reported, "{:?}", outcome.faults);
    }
}
