//! Typed instructions against the text of the same words: what the text names is what the instruction has.

mod data;

use data::{cell, csv};
use std::collections::BTreeSet;
use unwedge_isa::ir3::{self, Attributes, Instruction, Opcode, Operand, OperandKind};
use unwedge_isa::table::{DisplayPart, FieldKind};

fn text(word: u64, gpu_id: u32) -> String {
    let mut out = Vec::new();
    ir3::write(word, gpu_id, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn name(number: u16) -> String {
    format!("{}.{}", number / 4, ['x', 'y', 'z', 'w'][usize::from(number % 4)])
}

fn operand_text(operand: Operand) -> Option<String> {
    let signed = |file: &str, offset: i16| match offset {
        0 => format!("{file}<a0.x>"),
        _ => format!("{file}<a0.x + {offset}>"),
    };
    Some(match operand.kind {
        OperandKind::Gpr(number) => format!("r{}", name(number.into())),
        OperandKind::Const(number) => format!("c{}", name(number)),
        OperandKind::RelativeGpr(offset) => signed("r", offset),
        OperandKind::RelativeConst(offset) => signed("c", offset),
        OperandKind::Predicate(component) => format!("p0.{}", ['x', 'y', 'z', 'w'][usize::from(component)]),
        OperandKind::Address(0) => "a0.x".into(),
        OperandKind::Address(1) => "a1.x".into(),
        OperandKind::Address(component) => format!("a0.{}", ['x', 'y', 'z', 'w'][usize::from(component)]),
        OperandKind::RenderTarget(number) => format!("rt{}", name(number.into())),
        OperandKind::Immediate(_) | OperandKind::IndexedConst(_) => return None,
    })
}

/// Whether a register of the text is written as half.
fn is_register(token: &str) -> Option<(String, bool)> {
    let (name, half) = match token.strip_prefix('h') {
        Some(rest) => (rest, true),
        None => (token, false),
    };
    let number = name.strip_prefix(['r', 'c', 'p', 'a']).or_else(|| name.strip_prefix("rt"))?;
    let number = number.strip_prefix('t').unwrap_or(number);
    let (digits, component) = number.split_once('.')?;
    // Special registers have one size; `a1.x` is the second of its kind.
    if name.starts_with(['a', 'p'])
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && component.len() == 1
    {
        return Some((if name == "a0.y" { "a1.x".into() } else { name.to_owned() }, false));
    }
    (!digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && matches!(component, "x" | "y" | "z" | "w"))
    .then(|| (name.to_owned(), half))
}

/// The registers that a text names, and whether each is a half one.
fn named(text: &str) -> BTreeSet<(String, bool)> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find("<a0.x") {
        let (before, after) = rest.split_at(at);
        let end = after.find('>').map_or(after.len(), |end| end + 1);
        let file = before.chars().next_back().unwrap_or(' ');
        let half = before.ends_with("hr") || before.ends_with("hc");
        found.insert((format!("{file}{}", after[..end].replace(" + 0>", ">")), half));
        rest = &after[end..];
    }
    let plain = text.replace("<a0.x", "<");
    let tokens = plain.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    found.extend(tokens.filter_map(is_register));
    found
}

/// Operands of local memory are shown without their size.
fn hides_size(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Ldl | Ldlw | Ldlv | Stl | Stp | Stlw | Stc | ResinfoB | Resinfo | Resbase | Getspid | Getwid
    ) || matches!(opcode, Getfiberid | Ldib | Ldgb)
}

fn check(word: u64, gpu_id: u32, shown: &str) -> Result<(), String> {
    let Some(instruction) = Instruction::decode(word, gpu_id) else {
        return Err("is not decoded".into());
    };
    let body = shown.split("\t;").next().unwrap_or(shown);
    let mnemonic = instruction.opcode.name().split('.').next().unwrap();
    if instruction.opcode != Opcode::Mov && !body.contains(mnemonic) {
        return Err(format!("is {}", instruction.opcode));
    }
    let flags = instruction.flags;
    for (flag, set) in
        [("(ss)", flags.ss), ("(sy)", flags.sy), ("(jp)", flags.jp), ("(ul)", flags.ul), ("(sat)", flags.sat)]
    {
        if body.contains(flag) != set {
            return Err(format!("{flag} is {set}"));
        }
    }
    let repeat = body.find("(rpt").map_or(0, |at| body.as_bytes()[at + 4] - b'0');
    let mut nops = body.find("(nop").map_or(0, |at| body.as_bytes()[at + 4] - b'0');
    let mut stepping = body.matches("(r)").count();
    if repeat == 0 && matches!(instruction.opcode, Opcode::BaryF | Opcode::FlatB) {
        // The text has no `(nopN)` for these: it shows the bits as flags of the sources.
        let shows = |at: usize| body.split(',').nth(at).is_some_and(|source| source.contains("(r)"));
        nops = u8::from(shows(1)) + 2 * u8::from(shows(2));
        stepping = 0;
    }
    if (repeat, nops) != (instruction.repeat, instruction.nops) {
        return Err(format!("repeats {} and waits {}", instruction.repeat, instruction.nops));
    }
    let steps = instruction.srcs.iter().filter(|operand| operand.step).count();
    if stepping != steps && !(instruction.is_mova() && stepping == 2) {
        return Err(format!("{steps} sources step"));
    }
    let mut has: Vec<Operand> = instruction.dsts.iter().chain(instruction.srcs.iter()).collect();
    if let Attributes::Texture(access) = instruction.attributes {
        has.extend(access.numbers);
    }
    let any_size = hides_size(instruction.opcode);
    let sized = |(name, half): (String, bool)| (name, half && !any_size);
    let mut names: BTreeSet<(String, bool)> =
        has.iter().filter_map(|operand| Some(sized((operand_text(*operand)?, operand.half)))).collect();
    let mut shown: BTreeSet<(String, bool)> = named(body).into_iter().map(sized).collect();
    // Fields that are shown as plain numbers, or in brackets; a1.x is implied.
    let brackets = |name: &String| !(name.starts_with('c') && body.contains("c["));
    names.retain(|(name, _)| brackets(name));
    shown.retain(|(name, _)| brackets(name) && (name != "a1.x" || names.contains(&("a1.x".into(), false))));
    if names == shown { Ok(()) } else { Err(format!("has {names:?}, the text {shown:?}")) }
}

#[test]
fn what_the_text_names_is_what_the_instruction_has() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (_, rows) in csv("ir3") {
        let (generation, encoding) = (cell(&rows, "generation"), cell(&rows, "encoding"));
        for row in rows.iter().skip(1) {
            let gpu_id = row[generation].parse::<u32>().unwrap() * 100;
            let word = u64::from_str_radix(&row[encoding], 16).unwrap();
            let shown = text(word, gpu_id);
            let Some(decoded) = ir3::decode(word, gpu_id) else {
                assert_eq!(Instruction::decode(word, gpu_id), None, "{word:016x} {shown}");
                continue;
            };
            // A word with an operand that has no valid form is not an instruction.
            if shown.contains("no match") || !decoded.walk(&mut |_| ()).without_ignored().is_empty() {
                continue;
            }
            count += 1;
            if Instruction::decode(word, gpu_id).is_none() {
                // A number that the table has no name for.
                let mut unnamed = false;
                let is_unnamed = |part: &DisplayPart<'_>| {
                    matches!(part, DisplayPart::Field { kind: FieldKind::Enum { text: None }, .. })
                };
                decoded.walk(&mut |part| unnamed |= is_unnamed(&part));
                if unnamed {
                    continue;
                }
            }
            if let Err(why) = check(word, gpu_id, &shown) {
                wrong.push(format!("{gpu_id} {word:016x} {shown}: {why}"));
            }
        }
    }
    println!("{count} instructions");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

/// Every bit pattern is an instruction or is none.
#[test]
fn any_word_is_decoded_or_not() {
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut some = 0;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let word = state ^ state >> 29;
        for gpu_id in [330, 430, 530, 630, 740] {
            let typed = Instruction::decode(word, gpu_id);
            assert!(typed.is_none() || ir3::decode(word, gpu_id).is_some());
            some += usize::from(typed.is_some());
        }
    }
    assert!(some > 100_000);
}
