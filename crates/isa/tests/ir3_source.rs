//! The ir3 assembler on sources made here: lines, labels, directives, what may be written otherwise, errors.

use unwedge_isa::ir3::asm::{AsmProblem, Assembler, Directive};
use unwedge_isa::ir3::write;

fn assemble(source: &str) -> Vec<u64> {
    let (program, errors) = Assembler::new(630).assemble("test.asm", source);
    assert!(errors.is_empty(), "{}", errors[0]);
    program.words
}

fn errors(source: &str) -> Vec<String> {
    let (_, errors) = Assembler::new(630).assemble("test.asm", source);
    errors.iter().map(ToString::to_string).collect()
}

fn text(word: u64) -> String {
    let mut out = Vec::new();
    write(word, 630, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_shader_with_labels() {
    let source = "\
; copies until the counter is zero
@localsize 32, 1, 1
@const(c1.x) 1.0, 2, 0x3, -4

start:
    mov.u32u32 r0.x, c0.x   ; counter
loop: (rpt5)nop
\tbr !p0.x, #done
    sub.u r0.x, r0.x, 1
    jump #loop
done:
    end
";
    let (program, problems) = Assembler::new(630).assemble("test.asm", source);
    assert!(problems.is_empty(), "{problems:?}");
    let texts: Vec<_> = program.words.iter().map(|&word| text(word)).collect();
    assert_eq!(
        texts,
        ["mov.u32u32 r0.x, c0.x", "(rpt5)nop", "br !p0.x, #3", "sub.u r0.x, r0.x, 1", "jump #-3", "end"]
    );
    assert_eq!(program.lines, [6, 7, 8, 9, 10, 12]);
    assert_eq!(
        program.directives,
        [
            Directive::LocalSize([32, 1, 1]),
            Directive::Const { register: 1, values: [0x3f80_0000, 2, 3, u32::MAX - 3] }
        ]
    );
}

#[test]
fn listings_assemble_again() {
    let listing = "\
\t:2:0000:0000[40100007x_68010008x] add.f r1.w, r2.x, (neg)(0.5)
\t:0:0001:0001[00800000x_00000001x] br p0.x, #l2
\t:0:0002:0002[03000000x_00000000x] l2:
\t:0:0002:0002[03000000x_00000000x] end
no match: ffffffffffffffff
raw 0xFFFFFFFFFFFFFFFE
";
    assert_eq!(
        assemble(listing),
        [0x4010_0007_6801_0008, 0x0080_0000_0000_0001, 0x0300_0000_0000_0000, u64::MAX, u64::MAX - 1]
    );
}

/// A text with a field that is nothing known does not tell the word; the listing does.
#[test]
fn listings_of_unknown_fields_assemble_again() {
    use unwedge_isa::table::generate;
    use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};
    let mut found = 0;
    for word in IR3.leaves(IR3_INSTRUCTION).flat_map(|leaf| generate::words(IR3, leaf, 5, 40)) {
        let word = word as u64;
        let text = text(word);
        if !text.contains("no match") || text.starts_with("no match") {
            continue;
        }
        let listed = format!(":3:0000:0000[{:08x}x_{:08x}x] {text}", word >> 32, word as u32);
        assert_eq!(assemble(&listed), [word], "{listed}");
        assert_eq!(Assembler::new(630).instruction(&listed), Ok(word));
        assert!(Assembler::new(630).instruction(&text).is_err(), "{text}");
        found += 1;
    }
    assert!(found > 10, "{found}");
    let wrong = ":2:0000:0000[40100007x_68010008x] add.f r1.w, nonsense";
    assert!(Assembler::new(630).instruction(wrong).is_err());
}

#[test]
fn what_is_not_printed_so_may_be_written_so() {
    for (written, printed) in [
        ("(ss)(sy) nop", "(sy)(ss)nop"),
        ("(rpt1)(ss)(sat)add.f r0.x,r1.x,r2.x", "(ss)(sat)(rpt1)add.f r0.x, r1.x, r2.x"),
        ("mov.u32u32 r0.x, 0x10", "mov.u32u32 r0.x, 16"),
        ("mov.u32u32 r0.x, 305419896", "mov.u32u32 r0.x, 0x12345678"),
        ("mov.f32f32 r0.x, (2)", "mov.f32f32 r0.x, (2.000000)"),
        ("mov.f32f32 r0.x, r<a0.x - 3>", "mov.f32f32 r0.x, r<a0.x + -3>"),
        ("sam.s.a (f32)(xyzw)r0.x, r1.x, s#0, t#1", "sam.a.s (f32)(xyzw)r0.x, r1.x, s#0, t#1"),
        ("fence.r.w.l.g", "fence.g.l.r.w"),
        ("(rpt1)add.f r0.x, (r)(neg)r1.x, r2.x", "(rpt1)add.f r0.x, (neg)(r)r1.x, r2.x"),
    ] {
        assert_eq!(text(assemble(written)[0]), printed, "{written}");
    }
}

#[test]
fn padding_sections_put_nops_before_instructions() {
    let source = "@fullnopstart\nend\n@fullnopend\n@fullsyncstart\nend\n@fullsyncend\nend\n";
    let texts: Vec<_> = assemble(source).into_iter().map(text).collect();
    assert_eq!(texts, ["(rpt5)nop", "end", "(sy)(ss)nop", "end", "end"]);
}

#[test]
fn every_error_of_a_file_is_told() {
    assert_eq!(
        errors("add.f r0.x r1.x, r2.x\nbr p0.x, #nowhere\nend\n  foo.f r0.x\nx: nop\nx: nop\n@what\n"),
        [
            "test.asm:1:12: expected `,`\n  add.f r0.x r1.x, r2.x\n             ^",
            "test.asm:2:11: no label `nowhere`\n  br p0.x, #nowhere\n            ^",
            "test.asm:4:3: `foo.f` is not an instruction of a6xx\n    foo.f r0.x\n    ^",
            "test.asm:6:1: label `x` is already defined in line 5\n  x: nop\n  ^",
            "test.asm:7:1: `@what` is not a directive\n  @what\n  ^",
        ]
    );
}

#[test]
fn errors_stand_where_the_text_stops_to_fit() {
    for (source, column, part) in [
        ("add.f r0.x, r1.x", 17, "expected `,`"),
        ("add.f r0.x, r1.q, r2.x", 16, "`x`"),
        ("add.f r0.x, r1.x, r2.x r3.x", 24, "the end of the instruction"),
        ("cmps.f.zz p0.x, r0.x, r1.x", 8, "`lt`"),
        ("ldg.f32 r0.x, g[r0.x+5000], 1", 22, "a number from -4096 to 4095"),
        ("mad.f32 r0.x, r0.x, c0.x, r1.x", 21, "`r`"),
        ("add.f hr0.x, r0.x, hr1.x", 21, "expected"),
        // Only the instructions of category 0 repeat so often.
        ("(rpt4)add.f r0.x, r1.x, r2.x", 2, "expected"),
        ("(ss", 1, "an instruction"),
        ("raw 0xg", 5, "a number of 64 bits"),
    ] {
        let (_, errors) = Assembler::new(630).assemble("", source);
        let [error] = &errors[..] else { panic!("{source}: {errors:?}") };
        assert!(error.to_string().contains(part), "{error}\nshould have {part}");
        assert_eq!(error.at.column, column, "{error}");
    }
}

#[test]
fn instructions_belong_to_generations() {
    let error = Assembler::new(630).instruction("lock").unwrap_err();
    assert_eq!(error.problem, AsmProblem::UnknownInstruction { name: "lock".to_string(), generation: 6 });
    assert_eq!(Assembler::new(730).instruction("lock"), Ok(0xe3c2_0000_0000_0000));
}

#[test]
fn errors_are_counted_to_an_end() {
    let (program, errors) = Assembler::new(630).assemble("", &"bad\n".repeat(5000));
    assert!(program.words.is_empty());
    assert_eq!((errors.len(), &errors[1000].problem), (1001, &AsmProblem::TooMany));
}

/// Texts that are nearly right, and texts that are not: no panic, whatever comes out.
#[test]
fn any_text_ends() {
    const LINES: [&str; 12] = [
        "(sy)(ss)(nop3) add.f r1.w, (last)r2.x, (neg)c<a0.x + 12>",
        "sam.s2en.uniform.base1 (f32)(xyz)r1.w, r0.z, r1.y, a1.x",
        "stib.b.untyped.1d.u32.4.imm.base0 r2.y, r5.z+30, 4",
        "ldg.a.f32 r1.w, g[r1.y+r1.w<<5+2<<2], 3",
        "(rpt2)mov.f16f16 hr<a0.x + 4>, h(0.625000)",
        "alias.tex.f32.1 r40.x, (-1.456763)",
        "br !p0.x, #label",
        ":2:0004:0005[42380c01x_00040001x] nop",
        "@const(c1.x) 1.0, 2, 0x3, -4",
        "@tex(r0.x) src=0, bindless=0, samp=1, tex=2, wrmask=15, cmd=sam",
        "label: raw 0xffffffffffffffff ; \u{1f600}",
        "mov.f32f32 r0.x, (340282346638528859811704183484516925440.000000)",
    ];
    const BYTES: [&str; 10] = ["(", ")", ".", "-", "9999999999999999999999", "\u{e9}", "\t", "h", ":", "@"];
    let mut assemblers: Vec<_> = [330, 530, 630, 730].map(Assembler::new).into();
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for _ in 0..3000 {
        let mut line: Vec<char> = LINES[random(LINES.len())].chars().collect();
        for _ in 0..=random(3) {
            let at = random(line.len() + 1);
            match random(3) {
                0 => line.truncate(at),
                1 => drop(line.splice(at..at, BYTES[random(BYTES.len())].chars())),
                _ => drop(line.splice(
                    at.min(line.len().saturating_sub(1))..,
                    LINES[random(LINES.len())].chars().skip(at),
                )),
            }
        }
        let line: String = line.into_iter().collect();
        for assembler in &mut assemblers {
            let (program, errors) = assembler.assemble("", &line);
            assert!(program.words.len() <= 1 && errors.len() <= 1, "{line}");
            for error in errors {
                let _ = error.to_string();
            }
        }
    }
    for long in ["(ss)", "(neg)", "a.", "9", "r0.x, ", " ", ":", "x:"] {
        let line = format!("add.f {}", long.repeat(5_000));
        assert!(assemblers[2].instruction(&line).is_err());
        let _ = assemblers[2].assemble("", &long.repeat(5_000));
    }
}
