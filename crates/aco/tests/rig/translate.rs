//! Programs of recorded cases in the IR of this compiler.

use super::cases::{CaseLine, PseudoLine, PseudoOperand};
use std::collections::HashMap;
use unwedge_aco::ir::{Definition, NewInst, Operand, Payload, PhysReg, Program, Pseudo, RegClass, Temp};

/// The registers of a text as `s[0:1]`, `v0.b2-3`, `m0`: the first byte.
pub fn register(text: &str) -> Result<PhysReg, String> {
    let (reg, byte) = match text.split_once(".b") {
        Some((reg, bytes)) => (reg, bytes.split('-').next().and_then(|first| first.parse().ok())),
        None => (text, Some(0)),
    };
    let (kind, rest) = reg.split_at(1);
    let first = rest.trim_start_matches('[').split([':', ']', '-']).next().unwrap_or_default();
    let number = first.parse::<u8>().ok();
    let first = match (kind, number) {
        ("v", Some(number)) => Some(PhysReg::vgpr(number)),
        ("s", Some(number)) => Some(PhysReg::sgpr(number)),
        _ => match reg {
            "vcc" => Some(PhysReg::VCC),
            "exec" => Some(PhysReg::EXEC),
            "scc" => Some(PhysReg::SCC),
            "m0" => Some(PhysReg::M0),
            _ => None,
        },
    };
    let first = first.ok_or_else(|| format!("register {text}"))?;
    Ok(first.advance(byte.ok_or_else(|| format!("register {text}"))?))
}

/// A class as ACO names it.
pub fn class(name: &str) -> Result<RegClass, String> {
    let own = name.strip_prefix("vl").map_or_else(|| name.to_owned(), |size| format!("lv{size}"));
    RegClass::parse(&own).ok_or_else(|| format!("class {name}"))
}

/// Temporaries of a case by number.
#[derive(Default)]
pub struct Temps(pub HashMap<u32, Temp>);

impl Temps {
    pub fn definition(&mut self, program: &mut Program, from: &PseudoOperand) -> Result<Definition, String> {
        let class = class(from.class.as_deref().ok_or("a definition without class")?)?;
        let reg = from.reg.as_deref().map(register).transpose()?;
        let temp = from.temp.map(|number| {
            let temp = program.make_temp(class);
            self.0.insert(number, temp);
            temp
        });
        Ok(Definition { reg, temp, ..Definition::reg(PhysReg::sgpr(0), class) })
    }

    pub fn operand(&self, program: &Program, from: &PseudoOperand) -> Result<Operand, String> {
        if let Some((bits, bytes)) = from.constant {
            return Ok(match bytes {
                4 => Operand::c32(bits as u32),
                8 => Operand::c64(bits),
                _ => Operand::constant(bits, RegClass::vgpr_bytes(bytes)),
            });
        }
        let reg = from.reg.as_deref().map(register).transpose()?;
        if let Some(number) = from.temp {
            let temp = *self.0.get(&number).ok_or_else(|| format!("%{number} is not defined"))?;
            return Ok(Operand { reg, ..Operand::temp(temp, program.class(temp)) });
        }
        match (reg, from.class.as_deref()) {
            (Some(reg), Some(name)) => Ok(Operand::reg(reg, class(name)?)),
            (None, Some(name)) => Ok(Operand::undef(class(name)?)),
            _ => Err("an operand without class".to_owned()),
        }
    }
}

/// What a case says of a pseudo instruction beside its operands: of a copy which scalar register is free. Where that is one, `scc` holds something.
pub fn payload(line: &PseudoLine) -> Result<Payload, String> {
    match line.scratch.as_deref() {
        _ if line.op != "p_parallelcopy" => Ok(Payload::None),
        None | Some("scc") => Ok(Payload::Copy(None, false)),
        Some(reg) => Ok(Payload::Copy(Some(register(reg)?), true)),
    }
}

/// Appends a pseudo instruction to the first block.
pub fn append(program: &mut Program, temps: &mut Temps, line: &PseudoLine) -> Result<(), String> {
    let op = Pseudo::from_name(&line.op).ok_or_else(|| line.op.clone())?;
    let operands: Vec<Operand> =
        line.operands.iter().map(|from| temps.operand(program, from)).collect::<Result<_, _>>()?;
    let definitions: Vec<Definition> =
        line.definitions.iter().map(|from| temps.definition(program, from)).collect::<Result<_, _>>()?;
    let new = NewInst { payload: payload(line)?, ..NewInst::pseudo(op, &definitions, &operands) };
    let block = program.blocks.keys().last().ok_or("no block")?;
    program.append(block, &new);
    Ok(())
}

/// The parts of a block's code between separators.
pub fn sections(code: &[CaseLine]) -> Vec<&[CaseLine]> {
    code.split(|line| matches!(line, CaseLine::Mark(_))).collect()
}
