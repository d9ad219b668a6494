//! Conditions over draws: what they mean, what mistakes are told, and that evaluating them equals the naive way.

mod common;

use common::{cs, memory};
use std::collections::HashMap;
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::{AdrenoWalker, WalkerOptions};
use unwedge_stream::query::{DrawChoice, DrawScene, Draws, Expr, Pass, Query, Truth};

/// Walks a stream linearly and asks a question at each draw.
fn ask(generation: Generation, stream: &[u32], held: &Memory, mut question: impl FnMut(&DrawScene<'_>)) {
    let db = Db::builtin();
    let gpu = db.gpu(generation);
    let mut walker = AdrenoWalker::new(gpu, held, WalkerOptions { linear: true, ..WalkerOptions::default() });
    let mut draws = Draws::new(gpu, true, false, |scene: &DrawScene<'_>| question(scene));
    walker.walk(Dwords::from(stream), None, &mut draws);
}

/// The registers hold these values at one draw: what is the condition there?
fn truth(generation: Generation, values: &[(&str, u64)], condition: &str) -> Truth {
    let db = Db::builtin();
    let gpu = db.gpu(generation);
    let mut stream = cs(generation);
    for &(name, value) in values {
        let register = gpu.select(name).unwrap().remove(0);
        for (i, reg) in register.dwords().enumerate() {
            stream = stream.regs(reg, &[(value >> (32 * i)) as u32]);
        }
    }
    let stream = stream.draw(3);
    let mut bound = Expr::parse(condition).unwrap().bind(gpu).unwrap();
    let mut result = None;
    ask(generation, &stream.dwords, &Memory::default(), |scene| result = Some(bound.holds(scene)));
    result.expect("a draw")
}

#[test]
fn conditions_mean_what_they_say() {
    use Truth::{False, True, Unknown};
    const MRT0: &str = "RB_MRT[0].BUF_INFO";
    let check = |values: &[(&str, u64)], condition: &str, expected: Truth| {
        assert_eq!(truth(Generation::A6xx, values, condition), expected, "{condition}");
    };
    let rgba = &[(MRT0, 0x6030), ("GRAS_CL_CNTL", 0x40)];
    check(rgba, "RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNORM", True);
    check(rgba, "FMT6_8_8_8_8_UNORM == rb_mrt[0x0].buf_info.color_format", True);
    check(rgba, "RB_MRT[0].BUF_INFO.COLOR_FORMAT != FMT6_8_8_8_8_UNORM", False);
    check(
        rgba,
        "RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNORM && GRAS_CL_CNTL.ZERO_GB_SCALE_Z",
        True,
    );
    check(rgba, "GRAS_CL_CNTL.ZERO_GB_SCALE_Z == TRUE && !GRAS_CL_CNTL.ZNEAR_CLIP_DISABLE", True);
    check(rgba, "RB_MRT[0].BUF_INFO & 0xff == 48", True);
    check(rgba, "@0x8822 == 0x6030 && @0x8822.COLOR_SWAP == 3", True);
    check(rgba, "~RB_MRT[0].BUF_INFO & 0xf == 0xf", True);
    check(rgba, "RB_MRT[0].BUF_INFO | 1 > 0x6030", True);
    // What nothing has written is unknown, and one side may be enough to know.
    check(rgba, "RB_MRT[1].BUF_INFO == 0", Unknown);
    check(rgba, "RB_MRT[1].BUF_INFO != 0", Unknown);
    check(rgba, "!RB_MRT[1].BUF_INFO", Unknown);
    check(rgba, "RB_MRT[1].BUF_INFO && GRAS_CL_CNTL == 0", False);
    check(rgba, "RB_MRT[1].BUF_INFO || GRAS_CL_CNTL", True);
    check(rgba, "RB_MRT[1].BUF_INFO == RB_MRT[1].BUF_INFO", Unknown);
    // Attributes of the draw.
    check(rgba, "draw.kind == draw && draw.count == 3 && draw.number == 0 && submit == 0", True);
    check(rgba, "draw.primitive == DI_PT_TRILIST", True);
    check(rgba, "pass == gmem", Unknown);
    // Both halves of a 64-bit register; signs; fractions; shader registers.
    check(&[("SP_VS_OBJ_START", 0x1_2345_6789)], "SP_VS_OBJ_START == 0x123456789", True);
    check(&[("SP_VS_OBJ_START", 0x1_2345_6789)], "SP_VS_OBJ_START_HI == 1", True);
    check(&[("SP_VS_OBJ_START_LO", 1)], "SP_VS_OBJ_START == 1", Unknown);
    let half = u64::from(0.1_f32.to_bits());
    check(&[("GRAS_CL_VPORT[0].XOFFSET", half)], "GRAS_CL_VPORT[0].XOFFSET == 0.1", True);
    check(&[("GRAS_CL_VPORT[0].XOFFSET", half)], "GRAS_CL_VPORT[0].XOFFSET < 1e-1", False);
    let minus = u64::from((-2.5_f32).to_bits());
    check(&[("GRAS_CL_VPORT[0].XOFFSET", minus)], "GRAS_CL_VPORT[0].XOFFSET <= -2.5", True);
    check(&[("SP_FS_OUTPUT[0].REG", 6)], "SP_FS_OUTPUT[0].REG.REGID == r1.z", True);
}

#[test]
fn halves_that_are_registers_of_their_own_are_one_value() {
    let values = &[("SP_VS_OBJ_START_LO", 0x2000), ("SP_VS_OBJ_START_HI", 5)];
    assert_eq!(truth(Generation::A5xx, values, "SP_VS_OBJ_START == 0x500002000"), Truth::True);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let check = |text: &str, at: &str, message: &str| {
        let error = match Expr::parse(text) {
            Ok(expr) => expr.bind(gpu).map(|_| ()).expect_err(text),
            Err(error) => error,
        };
        assert_eq!(text.get(error.start..error.end), Some(at), "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    };
    check("", "", "expected a register");
    check("(RB_CCU_CNTL", "(", "never closed");
    check("RB_CCU_CNTL)", ")", "closes nothing");
    check("RB_CCU_CNTL = 3", "=", "compare with ==");
    check("RB_CCU_CNTL 3", "3", "operator");
    check("RB_CCU_CNTL == ", "", "expected a");
    check("1 < RB_CCU_CNTL < 3", "<", "do not chain");
    check("RB_MRT[*].BUF_INFO", "RB_MRT[*].BUF_INFO", "not a pattern");
    check("RB_CCU_CNTL == 0xzz", "0xzz", "not a number");
    check("RB_CCU_CNTL == 0x1ffffffffffffffff", "0x1ffffffffffffffff", "64 bits");
    check("RB_CCU_CNTL == §", "§", "means nothing");
    check("RB_CCU_CNTRL == 3", "RB_CCU_CNTRL", "RB_CCU_CNTL");
    check("1 == RB_MRT[0].BUF_INFO.COLOR_FORMT", "RB_MRT[0].BUF_INFO.COLOR_FORMT", "COLOR_FORMAT");
    check(
        "RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNROM",
        "FMT6_8_8_8_8_UNROM",
        "FMT6_8_8_8_8_UNORM",
    );
    check("pass == tiling", "tiling", "binning");
    check("draw == 3", "draw", "draw.number");
    check("draw.kid == draw", "draw.kid", "draw.kind");
    check("GRAS_CL_VPORT[0].XOFFSET & 1", "GRAS_CL_VPORT[0].XOFFSET", "whole numbers");
    check("!RB_CCU_CNTL == 3", "!RB_CCU_CNTL", "true or false");
    check("RB_CCU_CNTL == -RB_CCU_CNTL", "-RB_CCU_CNTL", "minus");
    check(&format!("{}1", "(".repeat(65)), "(", "nested too deeply");
    let long = vec!["1"; 5000].join(" || ");
    assert!(Expr::parse(&long).unwrap_err().to_string().contains("too long"));
}

#[test]
fn any_text_is_a_condition_or_a_mistake_within_it() {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let pieces = [
        "RB_CCU_CNTL",
        "draw.kind",
        "pass",
        "gmem",
        " ",
        "(",
        ")",
        "!",
        "~",
        "-",
        "&&",
        "||",
        "==",
        "<",
        "&",
        "|",
        "0x",
        "1.5",
        "7",
        "[",
        "]",
        "*",
        "+0x1",
        "é",
        "@",
        ".",
        "\0",
        "FMT6_8_8_8_8_UNORM",
    ];
    let mut seed = 1_u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    for _ in 0..2000 {
        let text: String = (0..1 + next(9)).map(|_| pieces[next(pieces.len())]).collect();
        if let Err(error) = Expr::parse(&text).and_then(|expr| expr.bind(gpu).map(|_| ())) {
            assert!(text.get(error.start..error.end).is_some(), "{text:?}: {error:?}");
        }
    }
}

/// A condition as a tree, for the naive way.
enum Tree {
    Number(i128),
    Register(u32),
    Not(Box<Tree>),
    Complement(Box<Tree>),
    Two(&'static str, Box<Tree>, Box<Tree>),
}

/// Operators by how tight they bind.
const LEVELS: [&[&str]; 5] = [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">="], &["|"], &["&"]];

impl Tree {
    fn random(next: &mut impl FnMut(usize) -> usize, depth: usize) -> Tree {
        let below = |next: &mut _| Box::new(Tree::random(next, depth.saturating_sub(1)));
        match if depth == 0 { next(2) } else { next(9) } {
            0 => Tree::Number([0, 1, 2, 5, 0xffff_ffff, 0x1_0000_0000][next(6)]),
            1 | 2 => Tree::Register(0x8800 + next(6) as u32),
            3 => Tree::Not(below(next)),
            4 => Tree::Complement(below(next)),
            _ => {
                let level = LEVELS[next(LEVELS.len())];
                Tree::Two(level[next(level.len())], below(next), below(next))
            }
        }
    }

    /// Only the parentheses that are needed.
    fn text(&self, around: usize) -> String {
        match self {
            Tree::Number(n) => format!("{n:#x}"),
            Tree::Register(reg) => format!("@{reg:#x}"),
            Tree::Not(a) => format!("!{}", a.text(LEVELS.len())),
            Tree::Complement(a) => format!("~{}", a.text(LEVELS.len())),
            Tree::Two(op, a, b) => {
                let level = LEVELS.iter().position(|ops| ops.contains(op)).unwrap();
                let left = level + usize::from(level == 2);
                let text = format!("{} {op} {}", a.text(left), b.text(level + 1));
                if level < around { format!("({text})") } else { text }
            }
        }
    }

    /// Conditions that compare a yes or no with a number are mistakes.
    fn is_truth(&self) -> bool {
        matches!(self, Tree::Not(_)) || matches!(self, Tree::Two(op, ..) if !matches!(*op, "&" | "|"))
    }

    fn is_sound(&self) -> bool {
        match self {
            Tree::Number(_) | Tree::Register(_) => true,
            Tree::Not(a) | Tree::Complement(a) => a.is_sound(),
            Tree::Two(op, a, b) => {
                let digit = |t: &Tree| matches!(t, Tree::Number(0 | 1));
                let fits = |a: &Tree, b: &Tree| !a.is_truth() || b.is_truth() || digit(b);
                let compares = LEVELS[2].contains(op);
                a.is_sound() && b.is_sound() && (!compares || (fits(a, b) && fits(b, a)))
            }
        }
    }

    fn value(&self, registers: &HashMap<u32, u32>) -> Option<i128> {
        match self {
            Tree::Number(n) => Some(*n),
            Tree::Register(reg) => registers.get(reg).map(|&v| v.into()),
            Tree::Not(a) => a.value(registers).map(|v| (v == 0).into()),
            Tree::Complement(a) => a.value(registers).map(|v| u64::MAX as i128 - v),
            Tree::Two(op, a, b) => {
                let (a, b) = (a.value(registers), b.value(registers));
                let yes = |v: Option<i128>| v.map(|v| v != 0);
                match *op {
                    "&&" if yes(a) == Some(false) || yes(b) == Some(false) => Some(0),
                    "||" if yes(a) == Some(true) || yes(b) == Some(true) => Some(1),
                    _ => {
                        let (a, b) = (a?, b?);
                        Some(match *op {
                            "&&" => 1,
                            "||" => 0,
                            "==" => (a == b).into(),
                            "!=" => (a != b).into(),
                            "<" => (a < b).into(),
                            "<=" => (a <= b).into(),
                            ">" => (a > b).into(),
                            ">=" => (a >= b).into(),
                            "&" => a & b,
                            _ => a | b,
                        })
                    }
                }
            }
        }
    }
}

#[test]
fn random_conditions_are_what_the_naive_way_says() {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let mut seed = 7_u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..3000 {
        let tree = Tree::random(&mut next, 5);
        let text = tree.text(0);
        let bound = Expr::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}")).bind(gpu);
        assert_eq!(bound.is_ok(), tree.is_sound(), "{text}: {:?}", bound.err());
        let Ok(mut bound) = bound else { continue };
        let mut registers = HashMap::new();
        let mut stream = cs(Generation::A6xx);
        for reg in 0x8800..0x8806 {
            if next(4) != 0 {
                let value = [0, 1, 5, u32::MAX][next(4)];
                registers.insert(reg, value);
                stream = stream.regs(reg, &[value]);
            }
        }
        let expected = match tree.value(&registers) {
            None => Truth::Unknown,
            Some(0) => Truth::False,
            Some(_) => Truth::True,
        };
        if expected == Truth::Unknown {
            unknown += 1
        } else {
            known += 1
        }
        let stream = stream.draw(3);
        let mut seen = 0;
        ask(Generation::A6xx, &stream.dwords, &Memory::default(), |scene| {
            assert_eq!(bound.holds(scene), expected, "{text} with {registers:x?}");
            seen += 1;
        });
        assert_eq!(seen, 1);
    }
    assert!(known > 300 && unknown > 100, "{known} known, {unknown} unknown");
}

#[test]
fn what_only_a_context_switch_runs_changes_nothing() {
    let amble = cs(Generation::A6xx).regs(0x8820, &[7]).draw(3);
    let stream = cs(Generation::A6xx)
        .regs(0x8820, &[1])
        .op("SET_AMBLE", &[0x1000, 0, amble.dwords.len() as u32])
        .draw(3);
    let mut values = Vec::new();
    let held = memory(&[(0x1000, &amble.dwords)]);
    ask(Generation::A6xx, &stream.dwords, &held, |scene| values.push(scene.regs.get(0x8820)));
    assert_eq!(values, [Some(1)]);
}

#[test]
fn draws_are_chosen_by_number_pass_and_change() {
    const REG: u32 = 0x8820;
    let stream = cs(Generation::A6xx)
        .op("SET_MARKER", &[2])
        .regs(REG, &[1])
        .draw(3)
        .op("SET_MARKER", &[4])
        .regs(REG, &[1])
        .draw(3)
        .draw(3)
        // About power: the pass goes on.
        .op("SET_MARKER", &[0x101])
        .regs(REG, &[2])
        .draw(3)
        .op("SET_MARKER", &[1])
        .draw(3);
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let ask_for = |change: &dyn Fn(&mut Query<'_>)| {
        let columns = gpu.select("0x8820").unwrap().into_iter().map(Some).collect();
        let mut query = Query::new(columns);
        change(&mut query);
        let mut found = Vec::new();
        ask(Generation::A6xx, &stream.dwords, &memory(&[]), |scene| {
            if query.wants(scene).is_some() {
                found.push((scene.draw.number, scene.pass.map_or("?", Pass::name), query.values()[0]));
            }
        });
        found
    };
    let all = ask_for(&|_| {});
    let passes = ["binning", "gmem", "gmem", "gmem", "sysmem"];
    let values = [1, 1, 1, 2, 2].map(Some);
    let expected: Vec<_> = (0..).zip(passes).zip(values).map(|((n, p), v)| (n, p, v)).collect();
    assert_eq!(all, expected);
    let numbers = |found: Vec<(u32, &str, Option<u64>)>| found.iter().map(|f| f.0).collect::<Vec<_>>();
    assert_eq!(numbers(ask_for(&|q| q.draws = 1..=2)), [1, 2]);
    assert_eq!(numbers(ask_for(&|q| q.submits = 1..=2)), []);
    assert_eq!(numbers(ask_for(&|q| q.passes = vec![Pass::Binning, Pass::Sysmem])), [0, 4]);
    assert_eq!(numbers(ask_for(&|q| q.when = DrawChoice::Written)), [0, 1, 3]);
    assert_eq!(numbers(ask_for(&|q| q.when = DrawChoice::Changed)), [0, 3]);
}
