//! Recorded cases of ACO's phases, `amd/cases` of the data: a program before and after a phase.
//!
//! A line of code is an instruction of the hardware, a separator, or a pseudo instruction with its operands as text. [`machine`] makes a machine
//! program of blocks without pseudo instructions.

use serde_json::Value;
use unwedge_aco::ir::Neighbours;
use unwedge_aco::machine::{MachineBlock, MachineInst, MachineProgram};
use unwedge_isa::amdgcn::model::Class;
use unwedge_isa::amdgcn::text::{SymbolValue, Symbols, parse_line};
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, codec};
use unwedge_testkit::{aco_data, data};

/// A case: what a phase takes, and what it makes of that.
pub struct Case {
    pub id: String,
    pub pass: String,
    pub gpu: Gpu,
    pub input: Vec<CaseBlock>,
    pub output: Vec<CaseBlock>,
}

/// A block of a case.
pub struct CaseBlock {
    /// Names as `loop_header`, `top_level`.
    pub kinds: Vec<String>,
    pub loop_depth: u32,
    pub linear_preds: Vec<usize>,
    pub logical_preds: Vec<usize>,
    pub code: Vec<CaseLine>,
}

/// A line of code.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseLine {
    /// An instruction of the hardware; the label of a branch is the number of a block of the case.
    Inst(Inst),
    /// Nothing moves over it.
    Mark(u32),
    Pseudo(PseudoLine),
    /// What the assembler of this project does not take, with the reason.
    Unread(String),
}

/// An instruction of the compiler's IR.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PseudoLine {
    pub op: String,
    pub definitions: Vec<PseudoOperand>,
    pub operands: Vec<PseudoOperand>,
    /// The scalar register that a copy may use.
    pub scratch: Option<String>,
    /// The line as ACO prints it, with what the other fields do not say.
    pub print: Option<String>,
}

/// An operand or definition of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PseudoOperand {
    /// The temporary.
    pub temp: Option<u32>,
    /// Its class, as `v2b`.
    pub class: Option<String>,
    /// Its register, as `s[0:1]`, `v0.b2-3`.
    pub reg: Option<String>,
    /// A constant, and its bytes.
    pub constant: Option<(u64, u8)>,
}

/// Blocks as labels: `B3` is the address to which a branch at 0 has the offset 3.
struct BlockLabels;

impl Symbols for BlockLabels {
    fn symbol(&self, name: &str) -> Option<SymbolValue> {
        let number: i64 = name.strip_prefix('B')?.parse().ok()?;
        Some(SymbolValue::Address(4 + 4 * number))
    }

    fn here(&self) -> i64 {
        0
    }
}

/// The cases of a pass, from all files; none if the data is not there.
pub fn cases(pass: &str) -> Vec<Case> {
    let mut found = Vec::new();
    for path in data::files("amd/cases", ".jsonl.gz") {
        let text = data::read_text(&path);
        for line in text.lines().filter(|line| line.contains(pass)) {
            let value: Value = serde_json::from_str(line).expect("a case is JSON");
            if value["pass"] == pass {
                found.push(case(&value));
            }
        }
    }
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn optional(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn numbers(value: &Value) -> Vec<usize> {
    list(value).iter().filter_map(|number| usize::try_from(number.as_u64()?).ok()).collect()
}

fn case(value: &Value) -> Case {
    let gpu = aco_data::gpu(&text(&value["gfx"]), value["wave"].as_u64().unwrap_or(64));
    let blocks = |name: &str| list(&value[name]).iter().map(|block| read_block(block, &gpu)).collect();
    Case {
        id: text(&value["id"]),
        pass: text(&value["pass"]),
        gpu,
        input: blocks("in"),
        output: blocks("out"),
    }
}

fn read_block(value: &Value, gpu: &Gpu) -> CaseBlock {
    CaseBlock {
        kinds: list(&value["kind"]).iter().map(text).collect(),
        loop_depth: value["loop_depth"].as_u64().unwrap_or_default() as u32,
        linear_preds: numbers(&value["preds"]),
        logical_preds: numbers(&value["lpreds"]),
        code: list(&value["code"]).iter().flat_map(|line| read_line(line, gpu)).collect(),
    }
}

fn read_line(value: &Value, gpu: &Gpu) -> Vec<CaseLine> {
    if let Some(line) = value.as_str() {
        return text_line(line, gpu);
    }
    if let Some(count) = value["repeat"].as_u64() {
        let one = text_line(&text(&value["line"]), gpu);
        return (0..count).flat_map(|_| one.clone()).collect();
    }
    let operands = |name: &str| list(&value[name]).iter().map(pseudo_operand).collect();
    vec![CaseLine::Pseudo(PseudoLine {
        op: text(&value["op"]),
        definitions: operands("defs"),
        operands: operands("ops"),
        scratch: optional(&value["scratch"]),
        print: optional(&value["print"]),
    })]
}

fn pseudo_operand(value: &Value) -> PseudoOperand {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let bytes = value["bytes"].as_u64().unwrap_or(4) as u8;
    PseudoOperand {
        temp: value["id"].as_u64().and_then(|id| u32::try_from(id).ok()),
        class: optional(&value["rc"]),
        reg: optional(&value["r"]),
        constant: value["c"].as_str().and_then(hex).map(|constant| (constant, bytes)),
    }
}

/// A line of text: an instruction, or several.
pub fn text_line(line: &str, gpu: &Gpu) -> Vec<CaseLine> {
    let code = line.split(';').next().unwrap_or_default().trim();
    if let Some(number) = code.strip_prefix("mark ") {
        return vec![CaseLine::Mark(number.parse().unwrap_or_default())];
    }
    let unread = |why: String| vec![CaseLine::Unread(format!("{code}: {why}"))];
    if let Some(words) = code.strip_prefix(".long ") {
        let word = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
        let words: Vec<u32> = words.split(',').filter_map(word).collect();
        return match codec::decode(&words, gpu) {
            Some(sized) => vec![CaseLine::Inst(sized.inst)],
            None => unread("words that are not an instruction".to_owned()),
        };
    }
    match parse_line(code, gpu, &BlockLabels) {
        Ok(inst) => vec![CaseLine::Inst(inst)],
        Err(error) => unread(error.to_string()),
    }
}

/// A machine program of blocks; `Err` says what is not an instruction of the hardware. A separator starts a block of its own. With it, by
/// block of the case, the number of its first block of the program.
pub fn machine(gpu: &Gpu, blocks: &[CaseBlock]) -> Result<(MachineProgram, Vec<usize>), String> {
    let mut program = MachineProgram { gpu: *gpu, neighbours: Neighbours::default(), blocks: Vec::new() };
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for block in blocks {
        first.push(program.blocks.len());
        program.blocks.push(MachineBlock::default());
        for line in &block.code {
            let at = program.blocks.len() - 1;
            match line {
                CaseLine::Inst(inst) => {
                    program.blocks[at].insts.push(MachineInst { inst: *inst, from: None, paired: None });
                }
                CaseLine::Mark(_) => {
                    program.blocks[at].succs.push(at + 1);
                    program.blocks.push(MachineBlock { preds: vec![at], ..MachineBlock::default() });
                }
                CaseLine::Pseudo(pseudo) => return Err(pseudo.op.clone()),
                CaseLine::Unread(why) => return Err(why.clone()),
            }
        }
        last.push(program.blocks.len() - 1);
    }
    for (block, &own) in blocks.iter().zip(&first) {
        for pred in &block.linear_preds {
            let &from = last.get(*pred).ok_or("a block that is not there")?;
            program.blocks[own].preds.push(from);
            program.blocks[from].succs.push(own);
        }
    }
    for block in &mut program.blocks {
        for inst in &mut block.insts {
            retarget(&mut inst.inst, &first);
        }
    }
    Ok((program, first))
}

/// Gives a branch the block of the program for that of the case.
fn retarget(inst: &mut Inst, first: &[usize]) {
    let label = inst.written().position(|(slot, _)| slot.class == Class::Label);
    if let Some(at) = label
        && let Operand::Imm(block) = inst.operands[at]
    {
        inst.operands[at] = Operand::Imm(first[block as usize] as i32);
    }
}
