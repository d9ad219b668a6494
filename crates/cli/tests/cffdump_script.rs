//! `unwedge cffdump -L`: what scripts are told, what they can ask, and how they end.

#![cfg(feature = "lua")]

mod captures;
mod program;

use captures::{Capture, Stream, Temporary};
use program::{text, unwedge};
use std::process::Output;
use unwedge::base::Generation;
use unwedge_testkit::pm4::pkt4;

/// Runs a script over captures.
fn run(script: &str, captures: &[&[u8]]) -> Output {
    // Tests run side by side.
    let id = format!("{:?}", std::thread::current().id());
    let script = Temporary::new(&format!("{id}.lua"), script.as_bytes());
    let files: Vec<_> =
        captures.iter().enumerate().map(|(i, c)| Temporary::new(&format!("{id}-{i}.rd"), c)).collect();
    let args: Vec<&str> = ["cffdump", "--unit-test", "--script", script.path()]
        .into_iter()
        .chain(files.iter().map(Temporary::path))
        .collect();
    unwedge(&args, b"")
}

/// Standard output of a script that goes well.
fn said(script: &str, captures: &[&[u8]]) -> String {
    let output = run(script, captures);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Two draws, an event of the tile buffer and a texture; the second submit is empty.
fn capture() -> Vec<u8> {
    let texture = [0x3000_0040, 0x0002_0010, 0, 0, 0x5000, 3 << 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut stream = Stream::new(Generation::A6xx).op("CP_SET_MARKER", &[4]);
    // RB_MRT[1].BASE, both halves at once.
    stream.words.extend(pkt4(0x882d, &[0x2345_6000, 1]));
    let stream = stream
        .set("RB_MRT[0].CONTROL", 0x7e0)
        .set("RB_MRT[1].BUF_INFO", 0x30)
        .set("RB_DEPTH_CNTL", 1)
        .op("CP_LOAD_STATE6_FRAG", &[&[1 << 22 | 4 << 18 | 1 << 14, 0, 0], &texture[..]].concat())
        .draw(3)
        .set("RB_DEPTH_CNTL", 2)
        .op("CP_EVENT_WRITE", &[30])
        .draw(6);
    Capture::new(630)
        .buffer(0x4000, &[0; 0x800])
        .submit(0x1000, &stream)
        .submit(0x1_0000, &Stream::new(Generation::A6xx).op("CP_WAIT_FOR_IDLE", &[]))
        .bytes()
}

#[test]
fn hooks_are_called_in_the_order_of_the_capture() {
    let script = r#"
        local function tell(...) print(...) end
        tell("load")
        function start_cmdstream(name) tell("start", name:match("rd$")) end
        function start_submit() tell("submit") end
        function draw(primtype, nindx) tell("draw", primtype, nindx) end
        function CP_SET_MARKER(pkt, size) tell("marker", pkt[0].MODE, size) end
        function CP_LOAD_STATE6(pkt, size) tell("state", pkt[0].STATE_TYPE, pkt[0].STATE_BLOCK, pkt[0].NUM_UNIT) end
        function A6XX_TEX_CONST(pkt, size) tell("texture", pkt[1].WIDTH, pkt[1].HEIGHT, pkt[4].BASE_LO, size) end
        function CP_EVENT_WRITE(pkt, size) tell("event", pkt[0].EVENT) end
        function CP_DRAW_INDX_OFFSET(pkt, size) tell("packet", pkt[2].NUM_INDICES) end
        function end_submit() tell("end submit") end
        function end_cmdstream() tell("end") end
        function finish() tell("finish") end
    "#;
    let capture_said = "start\trd\nsubmit\nmarker\tRM6_BIN_RENDER_START\t1.0\nstate\tST6_CONSTANTS\tSB6_FS_TEX\t1\n\
        texture\t16\t4\t20480\t16.0\npacket\t3\ndraw\tDI_PT_TRILIST\t3.0\nevent\tBLIT\ndraw\tEVENT:BLIT\t0.0\npacket\t6\n\
        draw\tDI_PT_TRILIST\t6.0\nend submit\nsubmit\nend submit\nend\n";
    assert_eq!(
        said(script, &[&capture(), &capture()]),
        format!("load\n{capture_said}{capture_said}finish\n")
    );
    assert_eq!(said("local nothing = 1", &[&capture()]), "");
}

#[test]
fn registers_are_read_by_name_as_they_are_at_the_moment() {
    let script = r#"
        local r = rnn.init("a630")
        function draw(primtype)
            print(r.RB_MRT[1].BASE, r.RB_MRT[0].CONTROL.COMPONENT_ENABLE, r.RB_MRT[1].BUF_INFO.COLOR_FORMAT,
                r.RB_DEPTH_CNTL.Z_TEST_ENABLE, r.RB_DEPTH_CNTL.Z_WRITE_ENABLE)
            print(regs.val(0x8871), regs.lastval(0x8871), regs.written(0x8871), regs.written(0x8870), regs.val(-1))
        end
    "#;
    assert_eq!(
        said(script, &[&capture()]),
        "4886716416\t15\tFMT6_8_8_8_8_UNORM\ttrue\tfalse\n1.0\t0.0\t1.0\t0.0\t0.0\n\
         4886716416\t15\tFMT6_8_8_8_8_UNORM\tfalse\ttrue\n2.0\t1.0\t1.0\t0.0\t0.0\n\
         4886716416\t15\tFMT6_8_8_8_8_UNORM\tfalse\ttrue\n2.0\t2.0\t1.0\t0.0\t0.0\n"
    );
}

#[test]
fn values_convert_to_text_and_numbers() {
    let script = r#"
        local r = rnn.init("a6xx")
        local done = false
        function draw()
            if done then return end
            done = true
            local format = r.RB_MRT[1].BUF_INFO.COLOR_FORMAT
            print("[" .. format .. "]", tonumber(format), string.format("%s %d", format, tonumber(format)))
            print(tonumber(r.RB_MRT[0].CONTROL), tonumber("0x10"), tonumber("zz", 36), tonumber({}))
            print((tostring(r.RB_MRT[0].CONTROL):gsub("\27%[[%d;]*m", "")))
            print((rnn.regname(r, 0x8820):gsub("\27%[[%d;]*m", "")), (rnn.regval(r, 0x8820, 0):gsub("\27%[[%d;]*m", "")))
            print(rnn.enumname(r, "a6xx_format", 0x30), rnn.enumname(r, "a6xx_format", 0xffff))
            print(r.NOTHING, r.RB_MRT[0].NOTHING, r.RB_MRT[77], r.SP_VS_OUT[0].A_COMPMASK)
            print(r.RB_MRT[0].CONTROL.NOTHING)
        end
    "#;
    assert_eq!(
        said(script, &[&capture()]),
        "[FMT6_8_8_8_8_UNORM]\t48\tFMT6_8_8_8_8_UNORM 48\n2016\t16\t1295\tnil\n\
         { ROP_CODE = ROP_COPY | COMPONENT_ENABLE = 0xf }\n\
         RB_MRT[0].CONTROL\t{ ROP_CODE = ROP_CLEAR | COMPONENT_ENABLE = 0 }\nFMT6_8_8_8_8_UNORM\tnil\n\
         nil\tnil\tnil\t0\ninvalid member: NOTHING\nnil\n"
    );
}

#[test]
fn buffers_are_found_by_address() {
    let script = r#"
        function start_submit() print(bos.base(0x5004), bos.size(0x5004), bos.base(0x9999), bos.size(nil)) end
        function finish() print(bos.base(0x5004)) end
    "#;
    // The second submit has the buffers of the first no more.
    assert_eq!(said(script, &[&capture()]), "16384.0\t4092.0\t0.0\t0.0\n0.0\t0.0\t0.0\t0.0\n0.0\n");
}

#[test]
fn packets_hold_their_dwords_for_good_and_arrays_are_indexed() {
    let entries = [5 << 24 | 7 << 20 | 2, 0x4000, 0, 6 << 24 | 1 << 20 | 3, 0x4100, 0];
    let stream = Stream::new(Generation::A6xx).op("CP_SET_DRAW_STATE", &entries);
    let script = r#"
        local kept
        function CP_SET_DRAW_STATE(pkt) kept = pkt end
        function finish()
            for i = 0, 1 do
                local entry = kept[0][i]
                print(entry["0"].GROUP_ID, entry["0"].COUNT, entry["0"].GMEM, entry[1].ADDR_LO)
            end
            print(kept["x"], kept[-1])
        end
    "#;
    assert_eq!(
        said(script, &[&Capture::new(630).submit(0x1000, &stream).bytes()]),
        "5\t2\ttrue\t16384\n6\t3\tfalse\t16640\nnil\tnil\n"
    );
}

#[test]
fn the_output_of_scripts_is_in_order_with_the_programs() {
    let script = r#"
        print("print")
        io.write("write ", 1, " ", 2.5, "\n")
        io.stdout:write("stdout"):write("\n")
        io.output():write(io.type(io.stdout), "\n")
        function start_submit() io.write("submit\n") end
        function end_submit() print("end") end
        function finish() io.output(io.stdout); io.write("finish\n") end
    "#;
    let mut stream = Stream::new(Generation::A6xx);
    stream.words.push(0xdead_d00d);
    let capture = Capture::new(630).submit(0x1000, &stream).bytes();
    assert_eq!(
        said(script, &[&capture]),
        "print\nwrite 1 2.5\nstdout\nfile\nsubmit\nbad type! deadd00d\nend\nfinish\n"
    );
}

#[test]
fn what_scripts_of_freedreno_require_is_there() {
    let script = r#"#!/usr/bin/env lua
        local posix = require "posix"
        print(posix.basename("a320/x.rd"), posix.dirname("a320/x.rd"), posix.basename(posix.dirname("b/a320/x.rd")))
        print(type(os.getenv), type(io.open), type(string.pack), type(debug.traceback), type(coroutine.wrap), 7 // 2, 1 << 33)
    "#;
    assert_eq!(
        said(script, &[&capture()]),
        "x.rd\ta320\ta320\nfunction\tfunction\tfunction\tfunction\tfunction\t3\t8589934592\n"
    );
}

#[test]
fn mistakes_are_said_with_their_line_and_end_the_run() {
    for (script, said, complaint) in [
        ("x = = 1", "", ".lua:1: unexpected symbol near '='"),
        ("print('a')\nerror('boom')", "a\n", ".lua:2: boom"),
        ("function draw()\n print('a')\n local x = nil + 1\nend", "a\n", "in draw: "),
        (
            "function draw()\n print('a')\n local x = nil + 1\nend",
            "a\n",
            ".lua:3: attempt to perform arithmetic",
        ),
        (
            "function CP_SET_MARKER(pkt)\n return pkt[0].MODE + 1 end",
            "",
            ".lua:2: attempt to perform arithmetic",
        ),
        ("function finish() error({}) end", "", "in finish: "),
        ("rnn.init('gpu')", "", ".lua:1: no register database for 'gpu'"),
        ("rnn.regname({}, 1)", "", ".lua:1: bad argument #1"),
        ("function f() return f() + 1 end f()", "", "stack overflow"),
        ("io.write({})", "", ".lua:1: bad argument #1 to 'write' (string expected, got table)"),
        ("require 'no.such.module'", "", ".lua:1: module 'no.such.module' not found"),
        ("\x1bLua", "", "attempt to load a binary chunk"),
    ] {
        let output = run(script, &[&capture(), &capture()]);
        assert_eq!(output.status.code(), Some(1), "{script}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), said, "{script}");
        assert!(text(&output.stderr).contains(complaint), "{script}: {}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("panicked"), "{script}");
    }
    let missing = unwedge(&["cffdump", "-L", "/nonexistent/x.lua", "-"], b"");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/nonexistent/x.lua: "), "{}", text(&missing.stderr));
}

#[test]
fn a_script_may_leave() {
    for (leave, status) in [("os.exit(7)", 7), ("os.exit()", 0), ("os.exit(true)", 0), ("os.exit(false)", 1)]
    {
        let script =
            format!("print('a') function draw() print('b') {leave} end function finish() print('c') end");
        let output = run(&script, &[&capture(), &capture()]);
        assert_eq!(output.status.code(), Some(status), "{leave}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "a\nb\n", "{leave}");
        assert_eq!(text(&output.stderr), "", "{leave}");
    }
}

#[test]
fn a_query_and_a_script_go_together() {
    let script = Temporary::new("both.lua", b"function draw(p, n) print('draw', n) end");
    let output = unwedge(
        &["cffdump", "--unit-test", "-L", script.path(), "-qRB_DEPTH_CNTL", "--query-delta", "-"],
        &capture(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    let starts: Vec<&str> = shown.lines().map(|line| line.split(['(', '>']).next().unwrap()).collect();
    assert_eq!(
        starts,
        [
            "querystr: RB_DEPTH_CNTL -",
            "draw\t3.0",
            "   0: DI_PT_TRILIST",
            "draw\t0.0",
            "   1: EVENT:BLIT",
            "draw\t6.0"
        ]
    );
}

#[test]
fn names_of_enums_are_the_first_in_the_file() {
    // Of a6xx it is PC_CCU_FLUSH_DEPTH_TS, which is what listings say.
    let stream = Stream::new(Generation::A6xx).op("CP_EVENT_WRITE", &[28]);
    let capture = Capture::new(630).submit(0x1000, &stream).bytes();
    assert_eq!(said("function CP_EVENT_WRITE(pkt) print(pkt[0].EVENT) end", &[&capture]), "FACENESS_FLUSH\n");
}
