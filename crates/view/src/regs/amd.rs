//! Registers, packets and enums of AMD GPUs, as `unwedge regs` looks them up.
//!
//! Facts: `data/amd`. Registers that dumps only name have no offset.

use super::describe::{self, DescribedEntry, RegAddress};
use super::{IN_FULL, LookupError, Question, SCHEMA, fits, number};
use crate::Style;
use crate::device::database_line;
use crate::json::Heading;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_capture::amd::plain_name;
use unwedge_hw::amd::{Amd, AmdChip, GcVersion, Gfx, GfxTarget, holds_packet_header};
use unwedge_hw::{Db, Pattern, Reg};
use unwedge_stream::amd::AmdPacketHeader;

/// An AMD GPU that a person means.
#[derive(Clone, Debug)]
pub struct AmdGpu {
    pub(crate) gfx: Gfx,
    /// `Navi 21`, where a chip was named.
    pub(crate) code_name: Option<String>,
    pub(crate) target: Option<GfxTarget>,
}

/// The AMD GPU of `gfx1030`, `navi21`, `gfx10.3`, a PCI id (`1002:73bf`) or a version of the graphics core (`10.3.0`). `db` is that
/// of [`Db::amd`].
pub fn amd_gpu(text: &str, db: &Db) -> Option<AmdGpu> {
    let chip = |chip: AmdChip<'_>| {
        let code_name = Some(chip.code_name().to_owned());
        Some(AmdGpu { gfx: chip.generation()?, code_name, target: chip.target() })
    };
    let lower = text.trim().to_ascii_lowercase();
    if let Some(id) = lower.strip_prefix("1002:") {
        return chip(db.amd_chip_by_pci(u32::from_str_radix(id, 16).ok()?)?);
    }
    // A target may be of several chips, or of none in the tables. Some generations have the name of a target.
    let target = GfxTarget::from_name(&lower);
    let known = target.filter(|target| db.amd_chips().any(|chip| chip.target() == Some(*target)));
    let generation = Gfx::ALL.into_iter().find(|gfx| gfx.name() == lower);
    if let Some(gfx) = generation.or(known.and_then(|target| target.generation())) {
        return Some(AmdGpu { gfx, code_name: None, target: known });
    }
    if target.is_some() {
        return None;
    }
    if let Some(numbers) = GfxTarget::from_numbers(lower.strip_prefix("gc").unwrap_or(&lower).trim_start()) {
        let gc = GcVersion { major: numbers.major, minor: numbers.minor, revision: numbers.stepping };
        return match db.amd_chip_by_gc(gc) {
            Some(found) => chip(found),
            None => Some(AmdGpu { gfx: gc.generation()?, code_name: None, target: None }),
        };
    }
    // One word: `van gogh` is `vangogh`.
    let word: String = lower.chars().filter(|c| *c != ' ').collect();
    chip(
        db.amd_chip_named(&word)
            .filter(|_| !word.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_'))?,
    )
}

/// What was found for each question.
pub struct Answers<'d, 'q> {
    db: &'d Db,
    amd: Amd<'d>,
    gpu: &'q AmdGpu,
    results: Vec<(&'q str, Vec<DescribedEntry<'d>>)>,
}

impl<'d, 'q> Answers<'d, 'q> {
    /// Looks everything up. `db` is that of [`Db::amd`].
    ///
    /// # Errors
    /// When a value does not fit its register, or an offset is none.
    pub fn of(
        db: &'d Db,
        gpu: &'q AmdGpu,
        questions: &[Question<'q>],
    ) -> Result<Answers<'d, 'q>, LookupError> {
        let amd = db.amd_gpu(gpu.gfx);
        let mut answers = Answers { db, amd, gpu, results: Vec::new() };
        for &Question { query, value } in questions {
            let found = answers.answer(query, value)?;
            answers.results.push((query, found));
        }
        Ok(answers)
    }

    fn answer(&self, query: &str, value: Option<u64>) -> Result<Vec<DescribedEntry<'d>>, LookupError> {
        if let Some(offset) = number(query) {
            let offset =
                u32::try_from(offset).map_err(|_| LookupError::Offset { query: query.to_owned() })?;
            let Some(reg) = self.amd.reg(offset) else { return Ok(Vec::new()) };
            fits(reg.name(), reg.width(), value)?;
            return Ok(vec![self.register(reg, value)]);
        }
        // As dumps and umr write it: `mmGRBM_STATUS`, `regGRBM_STATUS`.
        let name = plain_name(query);
        if holds_packet_header(name) {
            fits(name, 32, value)?;
            return Ok(value.map(|value| self.header(name, value as u32)).into_iter().collect());
        }
        if let Some(reg) = self.amd.register(name) {
            fits(reg.name(), reg.width(), value)?;
            return Ok(vec![self.register(reg, value)]);
        }
        let view = *self.amd;
        let exact: Vec<_> = describe::layout(view, name)
            .into_iter()
            .chain(describe::enumeration(view, name, value))
            .collect();
        if !exact.is_empty() {
            return Ok(exact);
        }
        let pattern = Pattern::new(name);
        let registers = self.amd.registers_of_gpu().chain(self.amd.registers_by_name());
        let mut found: Vec<_> = registers
            .filter(|reg| pattern.matches(reg.name()))
            .map(|reg| self.register(reg, value))
            .collect();
        let layouts = self.amd.domains().map(|d| d.name()).filter(|n| pattern.matches(n));
        found.extend(layouts.filter_map(|n| describe::layout(view, n)));
        let enums = self.amd.enumerations().map(|e| e.name()).filter(|n| pattern.matches(n));
        found.extend(enums.filter_map(|n| describe::enumeration(view, n, value)));
        Ok(found)
    }

    fn register(&self, reg: Reg<'d>, value: Option<u64>) -> DescribedEntry<'d> {
        let name = reg.name();
        let db = self.db;
        let elsewhere = self.others().filter_map(|gfx| Some((gfx.name(), db.amd_gpu(gfx).register(name)?)));
        let has_offset = self.amd.reg_offset(name).is_some();
        describe::register(reg, RegAddress { space: None, has_offset }, value, elsewhere)
    }

    /// The other generations that have registers of their own: those of Vega 20, MI100 and MI200 are those of gfx9.
    fn others(&self) -> impl Iterator<Item = Gfx> + use<> {
        let own = self.amd.gfx();
        let same = |gfx: &Gfx| matches!(gfx, Gfx::Gfx906 | Gfx::Gfx908 | Gfx::Gfx90a | Gfx::Gfx950);
        Gfx::ALL.into_iter().filter(move |gfx| *gfx != own && !same(gfx))
    }

    fn header(&self, register: &str, value: u32) -> DescribedEntry<'d> {
        let header = AmdPacketHeader::decode(value);
        let packet = header.and_then(|header| header.name(self.amd));
        let dwords = header.map(AmdPacketHeader::count);
        describe::header(register.to_owned(), value, packet, dwords)
    }

    /// Why nothing was found for the first question that nothing was found for, and where there is something.
    pub fn missing(&self) -> Option<String> {
        let (query, _) = self.results.iter().find(|(_, found)| found.is_empty())?;
        let gfx = self.amd.gfx();
        if holds_packet_header(plain_name(query)) {
            return Some(format!(
                "{query}: holds the header of a packet; say its value, as in `{query} 0xc0031500`"
            ));
        }
        let elsewhere: Vec<&str> = self
            .others()
            .filter(|other| {
                let gpu = AmdGpu { gfx: *other, code_name: None, target: None };
                let question = [Question { query, value: None }];
                Answers::of(self.db, &gpu, &question).is_ok_and(|found| found.missing_nothing())
            })
            .map(Gfx::name)
            .collect();
        let hint = match elsewhere.as_slice() {
            [] => "try a pattern such as '*STATUS*'".to_owned(),
            names => format!("known on {}", names.join(", ")),
        };
        Some(format!("{query}: not on {gfx}; {hint}"))
    }

    fn missing_nothing(&self) -> bool {
        self.results.iter().all(|(_, found)| !found.is_empty())
    }

    /// As JSON lines.
    ///
    /// # Errors
    /// When `out` does not take them.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = AmdRegsHeader {
            heading: Heading::of_lines("unwedge.regs", SCHEMA, self.db.identity()),
            vendor: "AMD",
            generation: self.amd.gfx().name(),
            gpu: self.gpu.code_name.as_deref(),
            target: self.gpu.target.map(|target| target.to_string()),
        };
        serde_json::to_writer(&mut *out, &header)?;
        writeln!(out)?;
        for entry in self.results.iter().flat_map(|(_, found)| found) {
            serde_json::to_writer(&mut *out, entry)?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// For people: in full, unless a question has many answers.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        for (_, found) in &self.results {
            for entry in found {
                if found.len() <= IN_FULL {
                    entry.in_full(style, false, out)?
                } else {
                    entry.in_short(style, out)?
                }
            }
        }
        writeln!(out, "{}", database_line(self.db.identity()))
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct AmdRegsHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    vendor: &'static str,
    generation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

crate::schema::shapes!(lines: AmdRegsHeader<'_>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_as_people_write_them() {
        let db = Db::amd();
        let of = |text| {
            let gpu = amd_gpu(text, &db)?;
            Some((gpu.gfx, gpu.code_name.unwrap_or_default(), gpu.target.map(|t| t.to_string())))
        };
        let chip = |gfx, name: &str, target: &str| Some((gfx, name.to_owned(), Some(target.to_owned())));
        assert_eq!(of("gfx1030"), chip(Gfx::Gfx10_3, "", "gfx1030"));
        assert_eq!(of("gfx942"), chip(Gfx::Gfx940, "", "gfx942"));
        assert_eq!(of("navi21"), chip(Gfx::Gfx10_3, "Navi 21", "gfx1030"));
        assert_eq!(of("Navi 21"), chip(Gfx::Gfx10_3, "Navi 21", "gfx1030"));
        assert_eq!(of("VANGOGH"), chip(Gfx::Gfx10_3, "Van Gogh", "gfx1033"));
        assert_eq!(of("1002:163f"), chip(Gfx::Gfx10_3, "Van Gogh", "gfx1033"));
        assert_eq!(of("10.3.1"), chip(Gfx::Gfx10_3, "Van Gogh", "gfx1033"));
        assert_eq!(of("10.3.77"), Some((Gfx::Gfx10_3, String::new(), None)));
        assert_eq!(of("gfx10.3"), Some((Gfx::Gfx10_3, String::new(), None)));
        for text in
            ["", "gfx", "gfx1031f", "gfx10300", "tgl", "1002:zz", "a630", "gfx101a", "navi 21 22", "99.1.1"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
