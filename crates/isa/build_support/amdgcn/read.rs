//! Reads `data/amd`: `encodings.txt` and the tables of instructions.

use super::opcodes;
use crate::amdgcn_facts::model::{
    AccessWord, AtomicOp, COLUMNS, Class, Columns, Encoding, EncodingLayout, FIELDS, Field, FieldBits,
    Format, GENS, Gfx, Need, REAL_TRUE16, Relation, Role, Trait, Type, Unit, generations,
};
use crate::table_text::lines;

/// A source, one line of which is wrong.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Error {
    line: usize,
    what: String,
}

/// An opcode in some generations: `GENERATIONS:[FORMAT.]OPCODE[=NAME][@NEED]`.
#[derive(Debug, Clone)]
pub struct Cell {
    pub gens: Vec<Gfx>,
    /// If it is not the row's.
    pub format: Option<Format>,
    pub opcode: u16,
    pub name: Option<String>,
    pub need: Need,
}

/// An operand as the table states it.
#[derive(Debug, Clone)]
pub struct Operand {
    pub field: Field,
    /// Types with the generations in which they hold: `i32@8-10.3/i16@11-12`.
    pub types: Vec<(Type, Vec<Gfx>)>,
    pub class: Option<Class>,
    /// Classes with the generations in which they hold: `matrix@908/src_inline@90a-9.5`.
    pub classes: Vec<(Class, Vec<Gfx>)>,
    pub reg: Option<u16>,
    pub written: bool,
    pub read: bool,
}

/// A row as the table states it.
#[derive(Debug, Clone)]
pub struct SourceRow {
    pub name: String,
    pub format: Format,
    pub unit: Unit,
    pub role: Role,
    /// Of the role `compare`.
    pub relation: Option<Relation>,
    /// Of the role `atomic`.
    pub atomic: Option<AtomicOp>,
    /// Of the role `memory`.
    pub access: Option<AccessWord>,
    /// Those of the head. Flags say more.
    pub traits: Vec<Trait>,
    pub operands: Vec<Operand>,
    /// With the generations in which they are set.
    pub flags: Vec<(String, Vec<Gfx>)>,
    pub cells: Vec<Cell>,
    /// Other names that are accepted, and where.
    pub aliases: Vec<(String, Columns)>,
}

impl Operand {
    /// Its class in a generation.
    pub fn class(&self, generation: Gfx) -> Option<Class> {
        self.classes.iter().find(|(_, of)| of.contains(&generation)).map(|(class, _)| *class).or(self.class)
    }

    /// Its type in a generation.
    pub fn ty(&self, generation: Gfx) -> Type {
        self.types.iter().find(|(_, of)| of.contains(&generation)).map_or(Type::None, |(ty, _)| *ty)
    }
}

impl SourceRow {
    /// Whether a flag is set in a generation: `FLAG`, or `FLAG@GENERATIONS`.
    pub fn has(&self, flag: &str, generation: Gfx) -> bool {
        self.flags.iter().any(|(name, of)| name == flag && of.contains(&generation))
    }
}

/// `6`, `8-906`, `6-7,10-`.
pub fn gens(text: &str) -> Option<Vec<Gfx>> {
    let set = generations(text)?;
    Some(Gfx::ALL.iter().copied().filter(|generation| set >> *generation as u8 & 1 != 0).collect())
}

/// The columns of generations, those of real true16 included.
pub fn columns(gens: &[Gfx]) -> Columns {
    gens.iter().fold(0, |set, &generation| {
        let column = generation as usize;
        let halves = if column + REAL_TRUE16 >= GENS {
            1 << (column + REAL_TRUE16) | 1 << (column + 2 * REAL_TRUE16)
        } else {
            0
        };
        set | 1 << column | halves
    })
}

/// Which 16-bit operands name half registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedHalves {
    /// None, except where an instruction cannot be written without.
    None,
    /// Those that LLVM 19 names.
    Some,
    /// All.
    All,
}

/// The generation of a column, and which halves are named in it.
pub fn column(column: usize) -> (Gfx, NamedHalves) {
    assert!(column < COLUMNS);
    match column.saturating_sub(GENS - REAL_TRUE16) / REAL_TRUE16 {
        _ if column < GENS => (Gfx::ALL[column], NamedHalves::None),
        1 => (Gfx::ALL[column - REAL_TRUE16], NamedHalves::Some),
        _ => (Gfx::ALL[column - 2 * REAL_TRUE16], NamedHalves::All),
    }
}

fn bits(text: &str) -> Option<(&str, FieldBits)> {
    let (name, at) = text.split_once('@')?;
    let (lsb, width) = at.split_once('+').unwrap_or((at, ""));
    let binary = name.bytes().all(|b| matches!(b, b'0' | b'1'));
    let width = match width {
        "" if binary => name.len() as u8,
        "" => 1,
        _ => width.parse().ok()?,
    };
    Some((name, FieldBits { lsb: lsb.parse().ok()?, width }))
}

/// Layouts with the generations they are of.
pub fn encodings(source: &str) -> Result<Vec<(Vec<Gfx>, EncodingLayout)>, Error> {
    let mut out = Vec::new();
    for (line, text) in lines(source) {
        let wrong = |what: &str| Error { line, what: what.to_owned() };
        let mut words = text.split_whitespace();
        let mut next = |what: &str| words.next().ok_or_else(|| wrong(what));
        let encoding =
            Encoding::from_name(next("an encoding")?).ok_or_else(|| wrong("an unknown encoding"))?;
        let of = gens(next("generations")?).ok_or_else(|| wrong("generations"))?;
        let dwords = next("dwords")?.parse().map_err(|_| wrong("dwords"))?;
        let mut layout = EncodingLayout {
            encoding,
            dwords,
            literal: false,
            mask: 0,
            value: 0,
            high_mask: 0,
            high_value: 0,
            fields: [FieldBits { lsb: 0, width: 0 }; FIELDS],
        };
        for word in words {
            if word == "literal" {
                layout.literal = true;
                continue;
            }
            let (name, bits) = bits(word).ok_or_else(|| wrong(word))?;
            if name.bytes().all(|b| b == b'0' || b == b'1') {
                let value = u64::from_str_radix(name, 2).map_err(|_| wrong(word))?;
                let (mask, set, lsb) = match bits.lsb {
                    ..64 => (&mut layout.mask, &mut layout.value, bits.lsb),
                    lsb => (&mut layout.high_mask, &mut layout.high_value, lsb - 64),
                };
                *mask |= ((1u64 << name.len()) - 1) << lsb;
                *set |= value << lsb;
            } else {
                let field = Field::from_name(name).ok_or_else(|| wrong(word))?;
                if bits.lsb % 32 + bits.width > 32 || bits.width > 31 {
                    return Err(wrong("no field may lie across two dwords"));
                }
                layout.fields[field as usize] = bits;
            }
        }
        out.push((of, layout));
    }
    Ok(out)
}

fn default_class(field: Field) -> Class {
    match field {
        Field::Sdst => Class::Sdst,
        Field::Ssrc0 | Field::Ssrc1 | Field::Soffset => Class::Ssrc,
        Field::Simm16 => Class::Imm16,
        Field::Literal => Class::Imm32,
        Field::Src0 | Field::Src1 | Field::Src2 | Field::SrcX0 | Field::SrcY0 => Class::Src,
        Field::Sbase => Class::SregPair,
        Field::Srsrc | Field::Ssamp => Class::SregQuad,
        Field::Saddr => Class::Sreg,
        _ => Class::Vgpr,
    }
}

fn operand(token: &str, register: &dyn Fn(&str) -> Option<u16>) -> Option<Operand> {
    let (prefix, rest) = match token.as_bytes().first()? {
        b'<' | b'>' | b'+' => token.split_at(1),
        _ => ("", token),
    };
    let mut parts = rest.split(':');
    let name = parts.next()?;
    let ty = parts.next();
    let classes: Vec<(Class, Vec<Gfx>)> = match parts.next() {
        Some(list) => list
            .split('/')
            .map(|one| {
                let (class, of) = one.split_once('@').unwrap_or((one, "6-12"));
                Class::from_name(class).zip(gens(of))
            })
            .collect::<Option<_>>()?,
        None => Vec::new(),
    };
    let class = classes.first().map(|(class, _)| *class);
    let reg = register(name);
    let field = if reg.is_some() { Field::None } else { Field::from_name(name)? };
    let destination = matches!(field, Field::Sdst | Field::Vdst | Field::VdstX | Field::VdstY);
    let implicit = ty.is_none();
    Some(Operand {
        field,
        types: match ty {
            Some(list) => list
                .split('/')
                .map(|one| {
                    let (ty, of) = one.split_once('@').unwrap_or((one, "6-12"));
                    Type::from_name(ty).zip(gens(of))
                })
                .collect::<Option<_>>()?,
            None if matches!(name, "exec" | "vcc") => vec![(Type::Mask, Gfx::ALL.to_vec())],
            None if name == "scc" => Vec::new(),
            None if reg.is_some() => vec![(Type::B32, Gfx::ALL.to_vec())],
            None => return None,
        },
        class: match (class, reg) {
            (Some(class), _) => Some(class),
            (None, Some(_)) if implicit => Some(Class::Implicit),
            (None, Some(_)) => Some(Class::Fixed),
            (None, None) => Some(default_class(field)),
        },
        classes,
        reg,
        written: prefix == ">" || prefix == "+" || (prefix.is_empty() && destination),
        read: prefix == "<" || prefix == "+" || (prefix.is_empty() && !destination),
    })
}

fn cell(text: &str) -> Option<Cell> {
    let (of, rest) = text.split_once(':')?;
    let (rest, need) = match rest.split_once('@') {
        Some((rest, need)) => (rest, Need::from_name(need)?),
        None => (rest, Need::Always),
    };
    let (opcode, name) = match rest.split_once('=') {
        Some((opcode, name)) => (opcode, Some(name.to_owned())),
        None => (rest, None),
    };
    let (format, opcode) = match opcode.split_once('.') {
        Some((format, opcode)) => (Some(Format::from_name(format)?), opcode),
        None => (None, opcode),
    };
    Some(Cell { gens: gens(of)?, format, opcode: u16::from_str_radix(opcode, 16).ok()?, name, need })
}

/// Rows of one table. `register` gives the number of a register by its name.
pub fn rows(source: &str, register: &dyn Fn(&str) -> Option<u16>) -> Result<Vec<SourceRow>, Error> {
    let mut out: Vec<SourceRow> = Vec::new();
    for (line, text) in lines(source) {
        let wrong = |what: &str| Error { line, what: what.to_owned() };
        if let Some(alias) = text.trim().strip_prefix("alias ") {
            let (name, of) = alias.trim().split_once(' ').ok_or_else(|| wrong("alias NAME GENERATIONS"))?;
            let of = columns(&gens(of.trim()).ok_or_else(|| wrong("generations"))?);
            let row = out.last_mut().ok_or_else(|| wrong("an alias of nothing"))?;
            row.aliases.push((name.to_owned(), of));
            continue;
        }
        let mut columns = text.split('|');
        let mut next = |what: &str| columns.next().map(str::trim).ok_or_else(|| wrong(what));
        let head: Vec<&str> = next("a head")?.split_whitespace().collect();
        let [name, format, unit, role, traits @ ..] = &head[..] else {
            return Err(wrong("NAME FORMAT UNIT ROLE TRAITS"));
        };
        let opcodes::RoleWord { role, relation, atomic, access } =
            opcodes::role(role).ok_or_else(|| wrong(role))?;
        let traits = traits
            .iter()
            .map(|word| Trait::from_name(word).ok_or_else(|| wrong(word)))
            .collect::<Result<_, _>>()?;
        let operands = next("operands")?
            .split_whitespace()
            .map(|token| operand(token, register).ok_or_else(|| wrong(token)))
            .collect::<Result<_, _>>()?;
        let flags = next("flags")?
            .split_whitespace()
            .map(|token| {
                let (name, of) = token.split_once('@').map_or((token, "6-12"), |(name, of)| (name, of));
                gens(of).map(|of| (name.to_owned(), of)).ok_or_else(|| wrong(token))
            })
            .collect::<Result<_, _>>()?;
        let cells = next("opcodes")?
            .split_whitespace()
            .map(|token| cell(token).ok_or_else(|| wrong(token)))
            .collect::<Result<_, _>>()?;
        let format = Format::from_name(format).ok_or_else(|| wrong(format))?;
        out.push(SourceRow {
            name: (*name).to_owned(),
            format,
            unit: Unit::from_name(unit).ok_or_else(|| wrong(unit))?,
            role,
            relation,
            atomic,
            access,
            traits,
            operands,
            flags,
            cells,
            aliases: Vec::new(),
        });
    }
    Ok(out)
}
