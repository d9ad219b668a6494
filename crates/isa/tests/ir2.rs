//! ir2: text to words and back, and the texts that cffdump printed for real shaders.

use unwedge_base::Dwords;
use unwedge_isa::ir2::{Ir2ListingOptions, ShaderStage, assemble, listing};
use unwedge_testkit::data;

const COMPLETE: Ir2ListingOptions =
    Ir2ListingOptions { stage: ShaderStage::Vertex, tabs: 0, words: false, complete: true };

/// A vertex fetch, a texture fetch, both halves of an ALU instruction, and every kind of control flow.
const SHADER: &str = "\
EXEC ADDR(0x7) CNT(0x2) YIELD
   (S)FETCH:\tVERTEX\tR1.xyz1 = R0.x FMT_32_32_32_FLOAT SIGNED NORMALIZED STRIDE(12) OFFSET(16) CONST(20, 1)
      FETCH:\tSAMPLEEQ\tR0.xyzw = R0.xyz CONST(3) MAG(LINEAR) MIP(BASEMAP) LOCATION(CENTER) OFFSET(1,2,3)
ALLOC POSITION SIZE(0x0)
COND_EXEC ADDR(0x9) CNT(0x3) BOOL_ADDR(0x4) COND(1)
   (S)ALU:\tMULADDvNE\texport62.xy__ = -|C1.wyww|, R2, C3 CLAMP
\t    \tRECIP_IEEE\texport63.x___ = -|C1.wyww|\t; gl_PointSize
      ALU:\tMAXv\tR1.____ = R2, R3
\t    \tOP(41)\tR0.____ = R4.yyyy CLAMP
      ALU:\tFRACv\tR1 = C4 {relative=0x1, const0_rel=0x1}
LOOP_START ADDR(0x5) LOOP_ID(3)
LOOP_END ADDR(0x2) LOOP_ID(3) ABSOLUTE_ADDR
COND_JMP ADDR(0x6) DIR(1) COND(1) BOOL_ADDR(0x2)
COND_CALL ADDR(0x1) DIR(0) FORCE_CALL
RETURN ADDR(0x0) DIR(0)
ALLOC PARAM/PIXEL SIZE(0x2) NO_SERIAL
EXEC_END ADDR(0xc) CNT(0x1)
      FETCH:\t?\tR1.__?0 = R2.wzy CONST(1) LOD(0) LOD_BIAS(9) LOCATION(CENTROID) {opcode=0x11}
MARK_VS_FETCH_DONE {reserved=0x123}
NOP
NOP
NOP
";

fn complete(words: &[u32]) -> String {
    listing(Dwords::from(words), &COMPLETE)
}

/// A sequence with no pattern to it.
fn noise(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 32) as u32
    }
}

#[test]
fn a_shader_reads_back_as_written() {
    let words = assemble(SHADER).unwrap();
    let plain: String = SHADER.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let again: String =
        complete(&words).lines().map(|line| line.replace("\t; gl_Position", "") + "\n").collect();
    assert_eq!(again, plain);
    let with_words =
        listing(Dwords::from(&words[..]), &Ir2ListingOptions { words: true, tabs: 3, ..COMPLETE });
    assert!(with_words.lines().all(|line| line.starts_with("\t\t\t")), "{with_words}");
    assert_eq!(assemble(&with_words), Ok(words));
}

#[test]
fn the_assembler_places_instructions() {
    let words = assemble("ALLOC PARAM/PIXEL SIZE(0)\nEXEC_END\nALU: MAXv export0 = C0, C0\nNOP").unwrap();
    assert_eq!(words, assemble(&complete(&words)).unwrap());
    assert!(complete(&words).contains("EXEC_END ADDR(0x2) CNT(0x1)"), "{}", complete(&words));
}

#[test]
fn any_words_survive() {
    for seed in 0..400 {
        let mut next = noise(seed);
        let mut words: Vec<u32> = (0..seed % 61).map(|_| next()).collect();
        if seed % 2 == 0 && words.len() > 6 {
            // An EXEC whose instructions are inside.
            words[0] = 2 | 3 << 12 | next() << 16;
            words[1] = next() & 0xffff_0000 | 0x1000;
        }
        let text = complete(&words);
        let again = assemble(&text).unwrap_or_else(|complaints| panic!("{complaints:?}\n{text}"));
        assert_eq!(again, words, "{text}");
    }
}

#[test]
fn every_instruction_reads_back() {
    let mut next = noise(7);
    for opcode in 0..96u32 {
        for _ in 0..40 {
            let mut words = [2 | 1 << 12, 0x1000, 0, 0, 0, 0, next(), next(), next()];
            if opcode < 32 {
                words[0] |= 1 << 16;
                words[6] = words[6] & !31 | opcode;
            } else if opcode < 64 {
                words[8] = words[8] & !(31 << 24) | (opcode & 31) << 24;
            } else {
                words[6] = words[6] & !(63 << 26) | ((opcode * 2) & 63) << 26;
            }
            let text = complete(&words);
            assert_eq!(assemble(&text).as_deref(), Ok(&words[..]), "{text}");
        }
    }
}

#[test]
fn every_control_flow_word_reads_back() {
    let mut next = noise(11);
    for _ in 0..2000 {
        let words = [next(), next(), next()];
        let text = complete(&words);
        assert_eq!(assemble(&text).as_deref(), Ok(&words[..]), "{text}");
    }
}

#[test]
fn all_mistakes_are_reported_with_their_place() {
    let text = "EXEC ADDR(0x2) CNT(0x1) HURRY\n ALU: MAXv R99 = R0, R1\nNOP\n  FROB\nALLOC POSITION SIZE(99)";
    let complaints = assemble(text).unwrap_err();
    let places: Vec<_> = complaints.iter().map(|c| (c.line, c.column)).collect();
    assert_eq!(places, [(1, 25), (2, 7), (4, 3), (5, 21)], "{complaints:#?}");
    assert!(complaints[0].message.contains("YIELD"), "{}", complaints[0]);
}

#[test]
fn contradictions_are_mistakes() {
    for text in [
        "EXEC ADDR(0x1) CNT(0x2)\nALU: MAXv R0 = R0, R0",
        "EXEC ADDR(0x0) CNT(0x1)\nALU: MAXv R0 = R0, R0",
        "ALU: MAXv R0 = R0, R0",
        "EXEC\nALU: MULADDv R0 = R1, R2, R3\nADDs R0 = R2",
        "EXEC\nFETCH: ? R0.xyzw = R0.xyz",
        ".at 0xffffffff\n.word 1",
    ] {
        assert!(assemble(text).is_err(), "{text}");
    }
}

/// Each shader in a log of a2xx stands above the packet that holds it, as hex.
#[test]
fn shaders_of_real_captures() {
    let mut shaders = 0;
    for path in data::files("adreno/captures", ".log.gz") {
        let log = data::read_text(&path);
        let lines: Vec<&str> = log.lines().collect();
        for (at, head) in lines.iter().enumerate() {
            let stage = match head.trim_start() {
                text if text.starts_with("vertex shader, start=") => ShaderStage::Vertex,
                text if text.starts_with("fragment shader, start=") => ShaderStage::Fragment,
                _ => continue,
            };
            let is_hex =
                |line: &&&str| line.split(':').next().is_some_and(|a| a.len() == 8 && !a.contains('\t'));
            let length = lines[at + 1..].iter().take_while(|line| !is_hex(line)).count();
            let words: Vec<u32> = lines[at + 1 + length..]
                .iter()
                .take_while(is_hex)
                .flat_map(|line| line.rsplit(':').next().unwrap_or("").split_whitespace())
                .map(|word| u32::from_str_radix(word, 16).unwrap())
                .skip(3)
                .collect();
            let expected: String = lines[at + 1..at + 1 + length].iter().map(|l| format!("{l}\n")).collect();
            let tabs = expected.chars().take_while(|c| *c == '\t').count();
            let how = Ir2ListingOptions { stage, tabs, words: true, complete: false };
            let text = listing(Dwords::from(&words[..]), &how);
            assert_eq!(text, expected, "{}:{}", path.display(), at + 1);
            assert_eq!(assemble(&complete(&words)).as_deref(), Ok(&words[..]));
            shaders += 1;
        }
    }
    println!("{shaders} shaders");
}

#[test]
fn complaints_are_counted_to_an_end() {
    let complaints = assemble(&"bad\n".repeat(5000)).unwrap_err();
    assert_eq!(complaints.len(), 1001);
    assert_eq!((complaints[1000].line, complaints[999].line), (1000, 1000));
    assert!(complaints[1000].message.contains("too many"), "{}", complaints[1000].message);
}
