//! Registers of the GPU space as listings need them: looked up once, and with the text of the value shown last.
//!
//! A capture writes the same registers again and again, mostly the same values. Never: values that print differently
//! from time to time are remembered.

use super::registers::{Address, Beside, Half, Special};
use super::{Text, names};
use unwedge_hw::{Gpu, Palette, Reg, Space, Type, Variants};

/// Registers of a page.
const PAGE: usize = 128;

/// What is known of one register.
#[derive(Clone, Debug)]
struct Known<'d> {
    /// Its name in its colours; its offset if it has none.
    name: Vec<u8>,
    ty: Option<Type<'d>>,
    half: Half,
    address: Address,
    beside: Option<Beside>,
    /// Its text depends on the value alone.
    steady: bool,
    /// The value shown last, and `NAME: value`; empty before the first.
    value: u64,
    line: Vec<u8>,
}

type Page<'d> = [Option<Box<Known<'d>>>; PAGE];

/// The registers met so far.
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

    fn get(&mut self, reg: u32) -> Option<&mut Known<'d>> {
        // No register space is larger; a packet may name any number.
        const END: u32 = 0x8_0000;
        let index = reg as usize / PAGE;
        if index >= self.pages.len() && reg < END {
            self.pages.resize_with(index + 1, || None);
        }
        let page = self.pages.get_mut(index)?.get_or_insert_with(|| Box::new([const { None }; PAGE]));
        let slot = page.get_mut(reg as usize % PAGE)?;
        if slot.is_none() {
            *slot = Some(Box::new(known(self.gpu, &self.palette, &self.special, reg)));
        }
        slot.as_deref_mut()
    }

    /// Which dword of a register this is.
    pub fn half(&mut self, reg: u32) -> Half {
        self.get(reg).map_or(Half::Whole, |known| known.half)
    }

    /// What is shown beside its value.
    pub fn beside(&mut self, reg: u32) -> Option<Beside> {
        self.get(reg)?.beside
    }

    /// How its value is an address.
    pub fn address(&mut self, reg: u32) -> Address {
        self.get(reg).map_or(Address::No, |known| known.address)
    }

    /// Writes its name.
    pub fn write_name(&mut self, reg: u32, text: &mut Text<'_>) {
        match self.get(reg) {
            Some(known) => text.append(&known.name),
            None => names::write_unknown(reg, &self.palette, text),
        }
    }

    /// Writes `NAME: value`.
    pub fn write_value(&mut self, reg: u32, value: u64, variants: &mut Variants, text: &mut Text<'_>) {
        let palette = self.palette;
        let Some(known) = self.get(reg) else {
            names::write_unknown(reg, &palette, text);
            text.str(": ").hex(value, 8);
            return;
        };
        if known.value == value && !known.line.is_empty() {
            return text.append(&known.line);
        }
        let start = text.buffer().len();
        text.append(&known.name);
        text.str(": ");
        match known.ty {
            Some(ty) => ty.write(value, variants, &palette, text.buffer()),
            None => {
                text.hex(value, 8);
            }
        }
        if known.steady {
            known.value = value;
            known.line.clear();
            known.line.extend_from_slice(text.buffer().get(start..).unwrap_or_default());
        }
    }
}

fn known<'d>(gpu: Gpu<'d>, palette: &Palette, special: &Special, reg: u32) -> Known<'d> {
    let entry = gpu.space(Space::Gpu).at(reg);
    let ty = entry.and_then(Reg::ty);
    let mut name = Vec::new();
    names::append(entry, reg, palette, &mut name);
    Known {
        name,
        ty,
        half: Half::of(entry),
        address: Address::of(gpu, reg),
        beside: special.beside(reg),
        steady: ty.is_none_or(Type::is_steady),
        value: 0,
        line: Vec::new(),
    }
}
