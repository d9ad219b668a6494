//! Registers and payloads as listings need them: looked up once, and with the text of the value shown last.
//!
//! A capture writes the same registers and packets again and again, mostly with the same values. Never: values that print differently
//! from time to time are remembered.

use super::registers::{Address, Beside, Half, Special};
use super::{TextOut, names};
use unwedge_base::Dwords;
use unwedge_hw::{Domain, Gpu, Palette, Reg, RegSpace, ValueType, Variants};

/// Registers of a page.
const PAGE: usize = 128;

/// A value and its text, remembered.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    value: u64,
    /// Empty when there is none.
    text: Vec<u8>,
}

impl Remembered {
    /// Appends the text of a value, as it was before, or as `make` writes it.
    pub fn write(&mut self, value: u64, text: &mut TextOut<'_>, make: impl FnOnce(&mut TextOut<'_>)) {
        if self.value == value && !self.text.is_empty() {
            return text.append(&self.text);
        }
        let start = text.buffer().len();
        make(text);
        self.value = value;
        self.text.clear();
        self.text.extend_from_slice(text.buffer().get(start..).unwrap_or_default());
    }
}

/// The layout of a packet's payload, with the text of each dword shown last.
pub struct KnownLayout<'d> {
    layout: Domain<'d>,
    entries: Vec<Option<KnownEntry<'d>>>,
}

/// A dword of a payload that is the same whatever is selected.
struct KnownEntry<'d> {
    ty: ValueType<'d>,
    /// `{ NAME = `; empty for a bitset.
    open: Vec<u8>,
    /// Its text depends on the value alone.
    steady: bool,
    last: Remembered,
}

/// Dwords of a payload that are remembered.
const ENTRIES: usize = 16;

impl<'d> KnownLayout<'d> {
    /// Nothing shown yet.
    pub fn new(layout: Domain<'d>) -> KnownLayout<'d> {
        KnownLayout { layout, entries: Vec::new() }
    }

    /// The layout itself.
    pub fn layout(&self) -> Domain<'d> {
        self.layout
    }

    /// Writes a payload, one line for each entry.
    pub fn write(
        &mut self,
        dwords: Dwords<'_>,
        level: usize,
        palette: &Palette,
        variants: &mut Variants,
        text: &mut TextOut<'_>,
    ) {
        if self.entries.is_empty() {
            let entry = |i| KnownEntry::of(self.layout.fixed_at(i)?, palette);
            self.entries = (0..ENTRIES as u32).map(entry).collect();
        }
        let mut i = 0;
        while let Some(dword) = dwords.get(i) {
            let mut other = None;
            let entry = match self.entries.get_mut(i) {
                Some(Some(entry)) => entry,
                _ => {
                    let Some(entry) = self.layout.at(i as u32, variants) else { break };
                    let Some(entry) = KnownEntry::of(entry, palette) else { break };
                    other.insert(entry)
                }
            };
            let mut value = u64::from(dword);
            i += 1;
            if entry.ty.high() >= 32
                && let Some(high) = dwords.get(i)
            {
                value |= u64::from(high) << 32;
                i += 1;
            }
            text.level(level);
            entry.write(value, palette, variants, text);
            text.end();
        }
    }
}

impl<'d> KnownEntry<'d> {
    fn of(entry: Reg<'d>, palette: &Palette) -> Option<KnownEntry<'d>> {
        let ty = entry.ty()?;
        let mut open = Vec::new();
        if !ty.is_bitset() {
            open.extend_from_slice(b"{ ");
            open.extend_from_slice(palette.name.as_bytes());
            names::append(Some(entry), 0, palette, &mut open);
            open.extend_from_slice(palette.reset.as_bytes());
            open.extend_from_slice(b" = ");
        }
        Some(KnownEntry { ty, open, steady: ty.is_steady(), last: Remembered::default() })
    }

    fn write(&mut self, value: u64, palette: &Palette, variants: &mut Variants, text: &mut TextOut<'_>) {
        let KnownEntry { ty, open, steady, last } = self;
        let mut make = |text: &mut TextOut<'_>| {
            text.append(open);
            ty.write(value, variants, palette, text.buffer());
            if !open.is_empty() {
                text.append(b" }");
            }
        };
        if *steady { last.write(value, text, make) } else { make(text) }
    }
}

/// What counts of a register before its text.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Which dword of a register this is.
    pub half: Half,
    /// How its value is an address.
    pub address: Address,
    /// What is shown beside its value.
    pub beside: Option<Beside>,
}

/// What is known of one register that has a name.
#[derive(Clone, Debug)]
struct KnownText<'d> {
    facts: Facts,
    /// Its name in its colours.
    name: Vec<u8>,
    ty: Option<ValueType<'d>>,
    /// Its text depends on the value alone.
    steady: bool,
    /// `NAME: value`.
    last: Remembered,
}

type Page<'d> = [Option<Box<KnownText<'d>>>; PAGE];

/// The registers met so far, of those that have names: streams can write to any number, and there are many.
pub struct KnownRegisters<'d> {
    gpu: Gpu<'d>,
    palette: Palette,
    /// Those with something beside their value.
    pub special: Special,
    pages: Vec<Option<Box<Page<'d>>>>,
}

impl<'d> KnownRegisters<'d> {
    /// None met yet.
    pub fn new(gpu: Gpu<'d>, palette: Palette) -> KnownRegisters<'d> {
        KnownRegisters { gpu, palette, special: Special::new(gpu), pages: Vec::new() }
    }

    /// They are those of this GPU, in these colours.
    pub fn fits(&self, gpu: Gpu<'_>, palette: &Palette) -> bool {
        self.gpu.generation() == gpu.generation() && self.palette.reset == palette.reset
    }

    #[inline]
    fn get(&mut self, reg: u32) -> Option<&mut KnownText<'d>> {
        let (page, at) = (reg as usize / PAGE, reg as usize % PAGE);
        if !matches!(self.pages.get(page), Some(Some(page)) if page[at].is_some()) {
            self.meet(reg);
        }
        self.pages.get_mut(page)?.as_deref_mut()?.get_mut(at)?.as_deref_mut()
    }

    #[cold]
    fn meet(&mut self, reg: u32) {
        // No register space is larger; a packet may name any number.
        const END: u32 = 0x8_0000;
        let Some(entry) = self.gpu.space(RegSpace::Gpu).at(reg) else { return };
        let index = reg as usize / PAGE;
        if index >= self.pages.len() && reg < END {
            self.pages.resize_with(index + 1, || None);
        }
        let Some(page) = self.pages.get_mut(index) else { return };
        let page = page.get_or_insert_with(|| Box::new([const { None }; PAGE]));
        page[reg as usize % PAGE] = Some(Box::new(known(self.gpu, &self.palette, &self.special, reg, entry)));
    }

    /// What counts of it before its text.
    pub fn facts(&mut self, reg: u32) -> Facts {
        const NOTHING: Facts = Facts { half: Half::Whole, address: Address::No, beside: None };
        self.get(reg).map_or(NOTHING, |known| known.facts)
    }

    /// Writes its name.
    pub fn write_name(&mut self, reg: u32, text: &mut TextOut<'_>) {
        match self.get(reg) {
            Some(known) => text.append(&known.name),
            None => names::write_unknown(reg, &self.palette, text),
        }
    }

    /// Writes `NAME: value`.
    pub fn write_value(&mut self, reg: u32, value: u64, variants: &mut Variants, text: &mut TextOut<'_>) {
        let palette = self.palette;
        let Some(KnownText { name, ty, steady, last, .. }) = self.get(reg) else {
            names::write_unknown(reg, &palette, text);
            text.str(": ").hex(value, 8);
            return;
        };
        let mut make = |text: &mut TextOut<'_>| {
            text.append(name);
            text.append(b": ");
            match ty {
                Some(ty) => ty.write(value, variants, &palette, text.buffer()),
                None => _ = text.hex(value, 8),
            }
        };
        if *steady { last.write(value, text, make) } else { make(text) }
    }
}

fn known<'d>(gpu: Gpu<'d>, palette: &Palette, special: &Special, reg: u32, entry: Reg<'d>) -> KnownText<'d> {
    let ty = entry.ty();
    let mut name = Vec::new();
    names::append(Some(entry), reg, palette, &mut name);
    KnownText {
        facts: Facts {
            half: Half::of(Some(entry)),
            address: Address::of(gpu, reg),
            beside: special.beside(reg),
        },
        name,
        ty,
        steady: ty.is_none_or(ValueType::is_steady),
        last: Remembered::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::out::tests::written;
    use super::*;
    use unwedge_base::Generation;
    use unwedge_hw::Db;

    #[test]
    fn registers_without_a_name_are_shown_and_not_remembered() {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A6xx);
        let mut known = KnownRegisters::new(gpu, Palette::default());
        let text = written(|text| {
            for reg in 0..0x10_0000 {
                let named = gpu.space(RegSpace::Gpu).at(reg).is_some();
                let facts = known.facts(reg);
                assert!(named || (facts.half, facts.address) == (Half::Whole, Address::No), "{reg:#x}");
                known.write_value(reg, 1, &mut Variants::default(), text);
                text.end();
            }
        });
        assert_eq!(text.lines().nth(0x7ffff), Some("0x7ffff: 00000001"));
        let remembered = known.pages.iter().flatten().flat_map(|page| page.iter()).flatten().count();
        let named = (0..0x8_0000).filter(|&reg| gpu.space(RegSpace::Gpu).at(reg).is_some()).count();
        assert_eq!(remembered, named);
        assert!(named < 0x8000, "{named} registers have names");
    }
}
