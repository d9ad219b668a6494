//! Two dumps compared: what the streams had set where they stopped, of every vendor.

use unwedge_capture::intel::RingRegister;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_postmortem::explain;
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP};
use unwedge_testkit::hangs::{HangRun, hangs};
use unwedge_testkit::i915::ErrorStateBuilder;
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, primitive, stream,
};
use unwedge_testkit::pm4::pkt3;
use unwedge_view::diff::{ExplainedDump, VerdictOptions, verdicts};

const IB: u64 = 0x1_0000_0000;

/// The comparison of two dumps as text, and as JSON lines.
fn compared(a: &[u8], b: &[u8]) -> [String; 2] {
    let db = Db::builtin();
    let read = |bytes| Dump::read(&[DumpPart { name: "dump", bytes }]).expect("a dump");
    let (a, b) = (read(a), read(b));
    let (report_a, report_b) = (explain(&a, &db), explain(&b, &db));
    [false, true].map(|json| {
        let mut out = Vec::new();
        let sides = [
            ExplainedDump { name: "a", dump: &a, report: &report_a },
            ExplainedDump { name: "b", dump: &b, report: &report_b },
        ];
        let options = VerdictOptions { json, max_size: 1 << 30, ..VerdictOptions::default() };
        verdicts(sides, options, &db, &mut out);
        String::from_utf8(out).expect("text")
    })
}

/// The ME at a draw of a primitive type.
fn amd(primitive: u32) -> Vec<u8> {
    // SET_UCONFIG_REG of VGT_PRIMITIVE_TYPE, DRAW_INDEX_AUTO
    let draw = pkt3(0x2d, &[3, 2]);
    let ib = [pkt3(0x79, &[0x242, primitive]), draw.clone()].concat();
    let ring = pkt3(0x3f, &[IB as u32, (IB >> 32) as u32, ib.len() as u32]);
    let builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V7_1)
        .timeout("gfx_0.0.0")
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", IB as u32)
        .register("CP_IB1_BASE_HI", (IB >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", 4, 6, &[ring, vec![NOP; 4]].concat())
        .ib(IB, &ib);
    (0..8).fold(builder, |builder, _| builder.register("CP_ME_HEADER_DUMP", draw[0])).text()
}

/// The CS at a 3DPRIMITIVE of a topology.
fn intel(topology: u32) -> Vec<u8> {
    let set = [0x784b_0000, topology];
    let batch = stream(&[&set, &primitive(3), &[MI_BATCH_BUFFER_END]]);
    let ring = stream(&[&[0, 0], &batch_buffer_start(IB), &[0, 0, 0]]);
    let engine = EngineState::new("rcs0")
        .ring(0x10_0000, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, IB + 8)
        .set(RingRegister::Ipehr, primitive(3)[0].into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(IB, &batch)
        .hung(1);
    ErrorStateBuilder::new(TestDevice::named("tgl")).engine(engine).text()
}

#[test]
fn the_state_at_the_stop_is_compared() {
    let blits = HangRun::BOTH.map(|run| {
        let all = hangs(run).into_iter().find(|hang| hang.name == "msm: a 2D engine that is busy");
        all.expect("the kit makes it").files.remove(0).1
    });
    for (name, a, b) in [
        ("RB_2D_DST", blits[0].clone(), blits[1].clone()),
        ("VGT_PRIMITIVE_TYPE", amd(4), amd(1)),
        ("3DSTATE_VF_TOPOLOGY", intel(4), intel(1)),
    ] {
        let [text, json] = compared(&a, &b);
        let title = text.lines().position(|line| line.starts_with("state at the stop: "));
        let title = title.unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(text.lines().nth(title).is_some_and(|line| line.ends_with(" in both, 1 differs")), "{text}");
        let line = text.lines().nth(title + 1).unwrap_or_default();
        assert!(line.starts_with(&format!("    {name}")) && line.contains(" -> "), "{text}");
        let state: Vec<&str> = json.lines().filter(|line| line.contains("\"type\":\"state\"")).collect();
        assert!(matches!(state[..], [one] if one.contains(name)), "{json}");
        let [same, _] = compared(&a, &a);
        assert!(same.contains("state at the stop: ") && same.contains(" in both, none differs"), "{same}");
    }
}
