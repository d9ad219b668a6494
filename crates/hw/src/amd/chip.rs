//! Which chip an AMD GPU is: by the version of its graphics core, its PCI ids, or a name that a driver or a person gives it.
//!
//! Facts: `data/amd/amd.devices` and `data/amd/amd.products`. Never: guesses a target from a core version. Their numbers are not
//! the same, and what the table does not have stays unknown.

use crate::adreno::AdrenoDevice;
use crate::db::Db;
use unwedge_base::{GcVersion, Gfx, GfxTarget};

include!(concat!(env!("OUT_DIR"), "/amd_products.rs"));

/// A chip of the table.
#[derive(Clone, Copy, Debug)]
pub struct AmdChip<'d> {
    row: AdrenoDevice<'d>,
}

impl<'d> AmdChip<'d> {
    /// Its name in the table, which is Mesa's, the kernel's or LLVM's: `VANGOGH`.
    pub fn name(self) -> &'d str {
        self.row.name()
    }

    /// Its code name: `Van Gogh`.
    pub fn code_name(self) -> &'d str {
        self.row.property("code").unwrap_or(self.name())
    }

    /// What compilers generate code for.
    pub fn target(self) -> Option<GfxTarget> {
        GfxTarget::from_numbers(self.row.property("gfx")?)
    }

    /// Its generation.
    pub fn generation(self) -> Option<Gfx> {
        self.target()?.generation()
    }

    /// Versions of its graphics core; none where IP discovery is newer than the chip, or another name of the chip has them.
    pub fn gc_versions(self) -> impl Iterator<Item = GcVersion> + use<'d> {
        self.list("gc").filter_map(|text| {
            // The same notation.
            let GfxTarget { major, minor, stepping } = GfxTarget::from_numbers(text)?;
            Some(GcVersion { major, minor, revision: stepping })
        })
    }

    /// PCI device ids that only this chip has.
    pub fn pci_ids(self) -> impl Iterator<Item = u16> + use<'d> {
        self.list("pci").filter_map(|text| u16::from_str_radix(text, 16).ok())
    }

    fn list(self, property: &str) -> impl Iterator<Item = &'d str> + use<'d> {
        self.row.property(property).into_iter().flat_map(|list| list.split(','))
    }
}

impl Db {
    /// Every chip and other name of one; of a database made by [`Db::amd`].
    pub fn amd_chips(&self) -> impl Iterator<Item = AmdChip<'_>> {
        self.devices().map(|row| AmdChip { row })
    }

    /// The chip with this version of the graphics core.
    pub fn amd_chip_by_gc(&self, version: GcVersion) -> Option<AmdChip<'_>> {
        self.amd_chips().find(|chip| chip.gc_versions().any(|gc| gc == version))
    }

    /// The chip with this PCI device id, if only one has it.
    pub fn amd_chip_by_pci(&self, device_id: u32) -> Option<AmdChip<'_>> {
        let device_id = u16::try_from(device_id).ok()?;
        self.amd_chips().find(|chip| chip.pci_ids().any(|id| id == device_id))
    }

    /// The chip whose name or code name is a word of this text: `AMD Radeon RX 6800 (RADV NAVI21)`.
    pub fn amd_chip_named(&self, text: &str) -> Option<AmdChip<'_>> {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        text.split(word).filter(|word| !word.is_empty()).find_map(|word| {
            let joined = |name: &str| name.chars().filter(|c| *c != ' ').collect::<String>();
            let fits = |chip: &AmdChip<'_>| {
                chip.name().eq_ignore_ascii_case(word) || joined(chip.code_name()).eq_ignore_ascii_case(word)
            };
            self.amd_chips().find(fits)
        })
    }
}

/// The name a chip is sold under, by PCI device id and revision: `AMD Radeon RX 6800 XT`.
pub fn product(device_id: u32, revision: u32) -> Option<&'static str> {
    let key = (u16::try_from(device_id).ok()?, u8::try_from(revision).ok()?);
    let at = PRODUCTS.binary_search_by_key(&key, |(device_id, revision, _)| (*device_id, *revision)).ok()?;
    PRODUCTS.get(at).map(|(.., name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn by_gc(text: &str) -> Option<(String, String)> {
        let numbers = GfxTarget::from_numbers(text).expect("three numbers");
        let gc = GcVersion { major: numbers.major, minor: numbers.minor, revision: numbers.stepping };
        let db = Db::amd();
        let chip = db.amd_chip_by_gc(gc)?;
        assert_eq!(chip.generation(), gc.generation(), "{text}");
        Some((chip.code_name().to_owned(), chip.target()?.to_string()))
    }

    #[test]
    fn core_versions_lead_to_chips_and_targets() {
        for (gc, code_name, target) in [
            ("9.0.1", "Vega 10", "gfx900"),
            ("9.1.0", "Raven", "gfx902"),
            ("9.2.1", "Vega 12", "gfx904"),
            ("9.2.2", "Raven 2", "gfx909"),
            ("9.3.0", "Renoir", "gfx90c"),
            ("9.4.0", "Vega 20", "gfx906"),
            ("9.4.1", "Arcturus", "gfx908"),
            ("9.4.2", "Aldebaran", "gfx90a"),
            ("9.4.3", "MI300", "gfx942"),
            ("9.4.4", "MI300", "gfx942"),
            ("9.5.0", "MI350", "gfx950"),
            ("10.1.10", "Navi 10", "gfx1010"),
            ("10.1.1", "Navi 14", "gfx1012"),
            ("10.1.2", "Navi 12", "gfx1011"),
            ("10.1.3", "Cyan Skillfish", "gfx1013"),
            ("10.1.4", "Cyan Skillfish", "gfx1013"),
            ("10.3.0", "Navi 21", "gfx1030"),
            ("10.3.1", "Van Gogh", "gfx1033"),
            ("10.3.2", "Navi 22", "gfx1031"),
            ("10.3.3", "Rembrandt", "gfx1035"),
            ("10.3.4", "Navi 23", "gfx1032"),
            ("10.3.5", "Navi 24", "gfx1034"),
            ("10.3.6", "Raphael", "gfx1036"),
            ("10.3.7", "Mendocino", "gfx1036"),
            ("11.0.0", "Navi 31", "gfx1100"),
            ("11.0.1", "Phoenix", "gfx1103"),
            ("11.0.2", "Navi 33", "gfx1102"),
            ("11.0.3", "Navi 32", "gfx1101"),
            ("11.0.4", "Phoenix 2", "gfx1103"),
            ("11.5.0", "Strix Point", "gfx1150"),
            ("11.5.1", "Strix Halo", "gfx1151"),
            ("11.5.2", "Krackan Point", "gfx1152"),
            ("11.5.3", "GFX1153", "gfx1153"),
            ("12.0.0", "Navi 44", "gfx1200"),
            ("12.0.1", "Navi 48", "gfx1201"),
        ] {
            assert_eq!(by_gc(gc), Some((code_name.to_owned(), target.to_owned())), "GC {gc}");
        }
        for gc in ["10.3.9", "9.0.0", "10.1.0", "11.0.9", "12.1.0", "13.0.0", "255.255.255"] {
            assert_eq!(by_gc(gc), None, "GC {gc}");
        }
    }

    #[test]
    fn pci_ids_lead_to_chips_and_products() {
        let db = Db::amd();
        let chip = |id| db.amd_chip_by_pci(id).map(AmdChip::code_name);
        assert_eq!(chip(0x163f), Some("Van Gogh"));
        assert_eq!(chip(0x67df), Some("Polaris 10"));
        assert_eq!(chip(0x67ff), None, "Polaris 11, and by its revision Polaris 10");
        assert_eq!(chip(0x15d8), None, "Raven and Raven 2");
        assert_eq!((chip(0), chip(0x1_163f)), (None, None));
        assert_eq!(product(0x73bf, 0xc1), Some("AMD Radeon RX 6800 XT"));
        assert_eq!(product(0x163f, 0xae), Some("AMD Custom GPU 0405"));
        assert_eq!((product(0x73bf, 0x77), product(0x1_73bf, 0xc1)), (None, None));
    }

    #[test]
    fn no_id_leads_to_two_chips() {
        let db = Db::amd();
        let (mut versions, mut ids) = (HashSet::new(), HashSet::new());
        for chip in db.amd_chips() {
            assert!(chip.generation().is_some(), "{}", chip.name());
            assert!(chip.gc_versions().all(|gc| versions.insert(gc)), "{}", chip.name());
            assert!(chip.pci_ids().all(|id| ids.insert(id)), "{}", chip.name());
        }
        assert!(PRODUCTS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    }

    #[test]
    fn names_of_drivers_and_people() {
        let db = Db::amd();
        let named = |text| db.amd_chip_named(text).map(|chip| (chip.code_name(), chip.generation()));
        assert_eq!(named("AMD Radeon RX 6800 XT (RADV NAVI21)"), Some(("Navi 21", Some(Gfx::Gfx10_3))));
        assert_eq!(named("AMD Custom GPU (RADV VANGOGH)"), Some(("Van Gogh", Some(Gfx::Gfx10_3))));
        assert_eq!(named("name = raven2"), Some(("Raven 2", Some(Gfx::Gfx9))));
        assert_eq!(named("sienna_cichlid.gfx1030"), Some(("Navi 21", Some(Gfx::Gfx10_3))));
        assert_eq!(named("aqua_vanjaram"), Some(("MI300", Some(Gfx::Gfx940))));
        assert_eq!(named("VanGogh"), Some(("Van Gogh", Some(Gfx::Gfx10_3))));
        assert_eq!(named("strixhalo"), Some(("Strix Halo", Some(Gfx::Gfx11_5))));
        assert_eq!(named("RADV NAVI"), None);
    }
}
