//! Writes the opcodes: one enum of all rows, and one of the rows of each table of semantics, so that a `match` that
//! forgets a row does not compile.

use super::read::{Operand, SourceRow};
use crate::amdgcn_facts::model::{
    AccessWord, AtomicOp, Class, Format, Gfx, Relation, Role, Trait, Traits, Type, Unit,
};
use crate::amdgcn_facts::regs::Reg;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Enums of some rows: name and variant of `Operation`, what its rows do, and their roles.
const FAMILIES: [(&str, &str, &[Role]); 14] = [
    ("Scalar", "Integers of the scalar ALU.", &[Role::Scalar]),
    ("ScalarFloat", "Floating point of the scalar ALU.", &[Role::ScalarFloat]),
    ("Integer", "Integers of the vector ALU.", &[Role::Integer]),
    ("Float", "Sums, products and divisions of the vector ALU.", &[Role::Float]),
    ("Minmax", "Minima, maxima and medians of floating point.", &[Role::Minmax]),
    ("Convert", "Conversions and roundings of floating point.", &[Role::Convert]),
    ("Transcendental", "Reciprocals, roots, exponentials, logarithms, sines.", &[Role::Transcendental]),
    ("Packed", "Packed and mixed precision, and dot products.", &[Role::Packed]),
    ("Dual", "Halves of dual instructions.", &[Role::Dual]),
    ("Lanes", "Moves between lanes.", &[Role::Lanes]),
    ("Matrix", "Products of matrices.", &[Role::Matrix]),
    ("Mfma", "Products of matrices into accumulation registers.", &[Role::Mfma]),
    ("Interp", "Interpolation, and what loads parameters for it.", &[Role::Interp, Role::Parameter]),
    (
        "Control",
        "Program flow, barriers, messages, registers of the hardware.",
        &[
            Role::Branch,
            Role::CBranch,
            Role::CBranchVcc,
            Role::Fork,
            Role::SetPc,
            Role::SwapPc,
            Role::GetPc,
            Role::Call,
            Role::Return,
            Role::Subvector,
            Role::End,
            Role::Trap,
            Role::Barrier,
            Role::Message,
            Role::MessageRtn,
            Role::SetReg,
            Role::GetReg,
            Role::Mode,
            Role::Movrel,
        ],
    ),
];

/// The traits of a row: those of its head, those of its flags, and the one that its role implies.
pub fn traits(row: &SourceRow) -> Traits {
    let flags = row.flags.iter().filter_map(|(flag, _)| Trait::from_name(flag));
    let atomic = (row.role == Role::Atomic).then_some(Trait::Atomic);
    let all = row.traits.iter().copied().chain(flags).chain(atomic);
    Traits(all.fold(0, |set, id| set | 1 << id as u8))
}

/// The opcode of each row: its name, with its format if another row has the name.
pub fn opcodes(rows: &[SourceRow]) -> Vec<String> {
    let mut names = BTreeSet::new();
    rows.iter()
        .map(|row| match names.insert(&row.name) {
            true => row.name.clone(),
            false => format!("{}_{}", row.name, row.format.name().to_lowercase()),
        })
        .collect()
}

/// The enums.
pub fn enums(out: &mut String, rows: &[SourceRow]) -> std::fmt::Result {
    let opcodes = opcodes(rows);
    let line = |row: &SourceRow, opcode: &str| {
        format!("#[doc = \"`{}`, {}.\"] {opcode},\n", row.name, row.format.name())
    };
    let head = "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum";
    let all: String = rows.iter().zip(&opcodes).map(|(row, opcode)| line(row, opcode)).collect();
    writeln!(
        out,
        "/// An instruction of all generations: a row of the table, by its name.\n{head} Opcode {{\n{all}}}"
    )?;
    for (family, about, roles) in FAMILIES {
        let own = rows.iter().zip(&opcodes).filter(|(row, _)| roles.contains(&row.role));
        let lines: String = own.map(|(row, opcode)| line(row, opcode)).collect();
        writeln!(out, "/// {about}\n{head} {family}Op {{\n{lines}}}")?;
    }
    Ok(())
}

/// The source of what a row does.
pub fn operation(row: &SourceRow, opcode: &str) -> Result<String, String> {
    if let Some((family, ..)) = FAMILIES.iter().find(|(_, _, roles)| roles.contains(&row.role)) {
        return Ok(format!("Operation::{family}({family}Op::{opcode})"));
    }
    Ok(match row.role {
        Role::Compare => {
            let relation = row.relation.ok_or("a comparison without its relation")?;
            format!("Operation::Compare(Relation::{relation:?}, Type::{:?})", compared(row))
        }
        Role::Atomic => {
            let op = row.atomic.ok_or("an atomic without its operation")?;
            format!("Operation::Atomic(AtomicOp::{op:?})")
        }
        Role::Memory | Role::Export | Role::Unknown => format!("Operation::{:?}", row.role),
        _ => "Operation::Idle".to_owned(),
    })
}

/// What a comparison compares: the type of its first source.
fn compared(row: &SourceRow) -> Type {
    let source = row.operands.iter().find(|o| o.read && o.class != Some(Class::Implicit));
    let of = row.cells.first().and_then(|cell| cell.gens.first()).copied().unwrap_or(Gfx::Gfx6);
    source.map_or(Type::None, |operand| operand.ty(of))
}

/// Checks that what a row's head says agrees with its operands, so that no trait can be forgotten where they show it.
pub fn check(row: &SourceRow) -> Result<(), String> {
    let traits = traits(row);
    let agree = |what: &str, head: bool, operands: bool| {
        if head == operands { Ok(()) } else { Err(format!("{}: head and operands differ: {what}", row.name)) }
    };
    let vector = matches!(
        row.format,
        Format::Vop1
            | Format::Vop2
            | Format::Vop3
            | Format::Vop3p
            | Format::Mai
            | Format::MaiScaled
            | Format::Vopc
            | Format::Vopd
    );
    let labelled = row.operands.iter().any(|o| o.class == Some(Class::Label));
    if labelled && !row.role.ends_block() {
        return Err(format!("{}: a label, and the role {} does not branch", row.name, row.role.name()));
    }
    let mask = |o: &&Operand| o.read && o.types.iter().any(|(ty, _)| *ty == Type::Mask);
    let exec = |o: &&Operand| o.reg == Some(Reg::EXEC.0);
    let reads_mask = vector && row.operands.iter().any(|o| mask(&o) && !exec(&o));
    agree(Trait::ReadsMask.name(), traits.has(Trait::ReadsMask), reads_mask)?;
    let writes_exec = row.format == Format::Vopc && row.operands.iter().any(|o| o.written && exec(&o));
    agree(Trait::Cmpx.name(), traits.has(Trait::Cmpx), writes_exec)?;
    agree(Role::Matrix.name(), row.role == Role::Matrix, row.unit == Unit::Wmma)?;
    agree(Role::Mfma.name(), row.role == Role::Mfma, row.unit == Unit::Mfma)?;
    agree(Role::Dual.name(), row.role == Role::Dual, row.format == Format::Vopd)?;
    agree(Role::Export.name(), row.role == Role::Export, row.format == Format::Exp)?;
    let accesses = matches!(row.role, Role::Memory | Role::Atomic | Role::Prefetch | Role::Probe);
    let other = matches!(row.role, Role::Cache | Role::Hint) && row.format.is_memory();
    agree("memory", accesses || other, row.format.is_memory())?;
    Ok(())
}

/// A role with its argument.
pub struct RoleWord {
    pub role: Role,
    pub relation: Option<Relation>,
    pub atomic: Option<AtomicOp>,
    pub access: Option<AccessWord>,
}

/// A role and its argument: `compare=lt`, `atomic=add`, `memory=b32`.
pub fn role(word: &str) -> Option<RoleWord> {
    let (name, argument) = word.split_once('=').map_or((word, None), |(name, of)| (name, Some(of)));
    let role = Role::from_name(name)?;
    let mut made = RoleWord { role, relation: None, atomic: None, access: None };
    match (role, argument) {
        (Role::Compare, Some(relation)) => made.relation = Some(Relation::from_name(relation)?),
        (Role::Atomic, Some(op)) => made.atomic = Some(AtomicOp::from_name(op)?),
        (Role::Memory, Some(moved)) => made.access = Some(AccessWord::from_name(moved)?),
        (Role::Compare | Role::Atomic | Role::Memory, None) | (_, Some(_)) => return None,
        _ => {}
    }
    Some(made)
}
