//! Tables as text: readable ones (`data/intel/lrc.tables`), and comma-separated ones of one step a line.
//!
//! Readable: `table NAME DRIVER…` starts a table, `skip N` skips dwords, `lri [posted] REGISTER…` is an MI_LOAD_REGISTER_IMM
//! whose registers may go on in the next lines. A register is a name, an offset (`0x34`), or a range of either (`A..B`:
//! every dword). `#` starts a comment. Comma-separated: `table,step,nop|lri,count,posted,OFFSET OFFSET…`.

use super::encoding::{EncodedRegister, MAX_REGISTERS, MAX_SKIP, TableEncodeError, TableStep};
use thiserror::Error;

/// A table with its name; empty where the text gives none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LrcTable {
    /// Its name.
    pub name: String,
    /// Which drivers have it, where the text says it.
    pub drivers: Vec<String>,
    /// What it consists of.
    pub steps: Vec<TableStep>,
}

/// A mistake in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {mistake}")]
pub struct TableTextError {
    /// From 1.
    pub line: usize,
    /// What it is.
    pub mistake: TableTextProblem,
}

/// What can be wrong in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableTextProblem {
    /// Not a word of the grammar.
    #[error("expected `table`, `skip` or `lri`, found `{0}`")]
    Word(String),
    /// Not a number that is possible there.
    #[error("expected a number of dwords up to {MAX_SKIP}, found `{0}`")]
    Skip(String),
    /// No register has the name, and it is no offset.
    #[error("no register has the name `{0}`; an offset begins with 0x")]
    Register(String),
    /// The end of a range is before its start, or too far from it.
    #[error("`{0}` is not a range of at most {MAX_REGISTERS} registers")]
    Range(String),
    /// `table` without a name.
    #[error("a table has a name")]
    NoName,
    /// Not the columns of a comma-separated table.
    #[error("expected table,step,nop|lri,count,posted,offsets")]
    Columns,
    /// The count is not that of the offsets.
    #[error("announces {said} registers and has {found}")]
    Count {
        /// What the line says.
        said: String,
        /// What it has.
        found: usize,
    },
    /// Something that has no encoding.
    #[error(transparent)]
    Encode(#[from] TableEncodeError),
}

/// Reads the tables of a text. `lookup` gives the offset of a register's name.
///
/// # Errors
///
/// [`TableTextError`] with the first line that is not of the grammar, has a name that `lookup` does not know,
/// or a step without an encoding.
pub fn parse(text: &str, lookup: &dyn Fn(&str) -> Option<u32>) -> Result<Vec<LrcTable>, TableTextError> {
    let mut reader = TableReader { tables: Vec::new(), lookup };
    let lines =
        || text.lines().enumerate().map(|(i, line)| (i + 1, line.split('#').next().unwrap_or_default()));
    let commas =
        lines().find(|(_, line)| !line.trim().is_empty()).is_some_and(|(_, line)| line.contains(','));
    for (number, line) in lines().filter(|(_, line)| !line.trim().is_empty()) {
        let read = if commas { reader.columns(line) } else { reader.words(line) };
        read.map_err(|mistake| TableTextError { line: number, mistake })?;
    }
    // A load is complete where the next step starts.
    for table in &reader.tables {
        super::encoding::encode(&table.steps)
            .map_err(|e| TableTextError { line: text.lines().count(), mistake: e.into() })?;
    }
    Ok(reader.tables)
}

struct TableReader<'a> {
    tables: Vec<LrcTable>,
    lookup: &'a dyn Fn(&str) -> Option<u32>,
}

impl TableReader<'_> {
    fn words(&mut self, line: &str) -> Result<(), TableTextProblem> {
        let mut words = line.split_whitespace().peekable();
        match words.next().unwrap_or_default() {
            "table" => {
                let name = words.next().ok_or(TableTextProblem::NoName)?.to_owned();
                let drivers = words.map(str::to_owned).collect();
                self.tables.push(LrcTable { name, drivers, steps: Vec::new() });
            }
            "skip" => {
                let number = words.next().unwrap_or_default();
                let dwords = number.parse().ok().filter(|&n| n <= MAX_SKIP);
                let dwords = dwords.ok_or_else(|| TableTextProblem::Skip(number.to_owned()))?;
                self.table().steps.push(TableStep::Skip(dwords));
                words.next().map_or(Ok(()), |more| Err(TableTextProblem::Word(more.to_owned())))?;
            }
            "lri" => {
                let posted = words.next_if_eq(&"posted").is_some();
                self.table().steps.push(TableStep::Load { posted, registers: Vec::new() });
                self.registers(words)?;
            }
            first if matches!(self.table().steps.last(), Some(TableStep::Load { .. })) => {
                self.registers([first].into_iter().chain(words))?;
            }
            other => return Err(TableTextProblem::Word(other.to_owned())),
        }
        Ok(())
    }

    fn registers<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> Result<(), TableTextProblem> {
        let mut found = Vec::new();
        for word in words {
            let (first, last) = word.split_once("..").unwrap_or((word, word));
            let (first, last) = (self.register(first)?, self.register(last)?);
            let count = last.checked_sub(first).map(|bytes| bytes as usize / 4 + 1);
            count.filter(|&n| n <= MAX_REGISTERS).ok_or_else(|| TableTextProblem::Range(word.to_owned()))?;
            for offset in (first..=last).step_by(4) {
                found.push(EncodedRegister::new(offset)?);
            }
        }
        if let Some(TableStep::Load { registers, .. }) = self.table().steps.last_mut() {
            registers.append(&mut found);
        }
        Ok(())
    }

    fn register(&self, word: &str) -> Result<u32, TableTextProblem> {
        let offset = match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => (self.lookup)(word),
        };
        offset.ok_or_else(|| TableTextProblem::Register(word.to_owned()))
    }

    fn columns(&mut self, line: &str) -> Result<(), TableTextProblem> {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[name, _, kind, count, flags, offsets] = columns.as_slice() else {
            return Err(TableTextProblem::Columns);
        };
        if (name, kind) == ("table", "kind") {
            return Ok(());
        }
        if self.tables.last().is_none_or(|table| table.name != name) {
            self.tables.push(LrcTable { name: name.to_owned(), ..LrcTable::default() });
        }
        match kind {
            "nop" => self.words(&format!("skip {count}")),
            "lri" if matches!(flags, "" | "posted") => {
                self.words(&format!("lri {flags} {offsets}"))?;
                match self.table().steps.last() {
                    Some(TableStep::Load { registers, .. }) if count.parse() != Ok(registers.len()) => {
                        Err(TableTextProblem::Count { said: count.to_owned(), found: registers.len() })
                    }
                    _ => Ok(()),
                }
            }
            _ => Err(TableTextProblem::Columns),
        }
    }

    /// The table that steps go to: a text may begin without one's name.
    fn table(&mut self) -> &mut LrcTable {
        if self.tables.is_empty() {
            self.tables.push(LrcTable::default());
        }
        let last = self.tables.len() - 1;
        &mut self.tables[last]
    }
}
