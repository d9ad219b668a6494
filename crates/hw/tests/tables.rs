//! The compiled tables against a naive reading of the same facts: every offset, every generation, every space.

mod naive;

use naive::Naive;
use std::fs;
use std::path::Path;
use unwedge_base::Generation;
use unwedge_hw::model::{DbFacts, DomainElem, FactsItem};
use unwedge_hw::{Db, Palette, Reg, RegSpace, Variants, text};

/// The files the built-in tables are made of.
fn facts() -> DbFacts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/adreno");
    let mut facts = DbFacts::default();
    for folder in [folder.clone(), folder.join("additions")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "regs") {
                let name = path.file_stem().unwrap().to_str().unwrap().to_string();
                facts.add(text::read_file(&name, &fs::read_to_string(&path).unwrap()).unwrap());
            }
        }
    }
    facts
}

#[test]
fn additions_add_registers_fields_and_packets() {
    let mut facts = facts();
    let registers = "domain A6XX width=32 varset=chip prefix=variant\n  reg32 0x3fff0 ADDED_REGISTER\n    3:0 ADDED_FIELD uint\n\
                     domain A6XX width=32 varset=chip prefix=variant\n  reg32 0x3fff1 ADDED_TOO\n";
    let packets = "enum adreno_pm4_type3_packets varset=chip\n  CP_ADDED_PACKET = 0x7d variants=A6XX-\n\
                   domain CP_ADDED_PACKET width=32\n  reg32 0x0 0\n    7:0 ADDED_COUNT uint\n";
    facts.add(text::read_file("a6xx", registers).unwrap());
    facts.add(text::read_file("adreno_pm4", packets).unwrap());
    let (db, issues) = Db::from_facts("additions", &facts);
    assert_eq!(issues, []);
    let (gpu, before) = (db.gpu(Generation::A6xx), Db::builtin());
    assert!(before.gpu(Generation::A6xx).reg(0x3fff0).is_none());
    let reg = gpu.reg(0x3fff0).unwrap();
    assert_eq!(
        (reg.name().to_string(), gpu.reg_offset("ADDED_TOO")),
        ("ADDED_REGISTER".to_owned(), Some(0x3fff1))
    );
    assert_eq!(written(reg, 5, &mut Variants::default()), "{ ADDED_FIELD = 5 }");
    assert_eq!(gpu.packet_name(0x7d), Some("CP_ADDED_PACKET"));
    // What was there is there still.
    for (reg, was) in gpu
        .space(RegSpace::Gpu)
        .iter()
        .filter(|reg| reg.offset() < 0x3fff0)
        .zip(before.gpu(Generation::A6xx).space(RegSpace::Gpu).iter())
    {
        assert_eq!(reg.name().to_string(), was.name().to_string());
    }
}

fn written(reg: Reg<'_>, value: u64, selected: &mut Variants) -> String {
    let mut out = Vec::new();
    if let Some(ty) = reg.ty() {
        ty.write(value, selected, &Palette::default(), &mut out);
    }
    String::from_utf8(out).unwrap()
}

const VALUES: [u64; 7] = [
    0,
    1,
    u64::MAX,
    0x1234_5678_9abc_def0,
    0xfedc_ba98_7654_3210,
    0xaaaa_5555_aaaa_5555,
    0x4200_0000_3f80_3c00,
];

/// Files and domains of each register space.
fn spaces(generation: Generation) -> Vec<(RegSpace, &'static str, Vec<String>)> {
    let name = generation.variant();
    let (file, gmu) = match generation {
        Generation::A2xx => ("a2xx", false),
        Generation::A3xx => ("a3xx", false),
        Generation::A4xx => ("a4xx", false),
        Generation::A5xx => ("a5xx", false),
        _ => ("a6xx", true),
    };
    let own = if gmu { "A6XX".to_string() } else { name.to_string() };
    let mut domains = vec![own];
    if generation <= Generation::A3xx {
        domains.push("AXXX".to_string());
    }
    let mut spaces = vec![(RegSpace::Gpu, file, domains)];
    if generation >= Generation::A5xx {
        spaces.push((RegSpace::CpControl, "adreno_control_regs", vec![format!("{name}_CONTROL_REG")]));
        spaces.push((RegSpace::CpPipe, "adreno_pipe_regs", vec![format!("{name}_PIPE_REG")]));
    }
    if gmu {
        spaces.push((RegSpace::Gmu, "a6xx_gmu", vec!["A6XX".to_string()]));
        spaces.push((RegSpace::Sqe, "adreno_control_regs", vec!["A6XX_SQE_REG".to_string()]));
    }
    if generation == Generation::A7xx {
        let gen3 = vec!["A7XX_GEN3_CONTROL_REG".to_string()];
        spaces.push((RegSpace::CpControlGen3, "adreno_control_regs", gen3));
    }
    spaces
}

#[test]
fn every_offset_of_every_space_reads_as_the_facts_say() {
    let (db, facts) = (Db::builtin(), facts());
    let mut compared = 0;
    for generation in Generation::ALL {
        for (space, file, domains) in spaces(generation) {
            let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
            let mut naive = Naive::new(&facts, &[file], generation.variant());
            let registers = db.gpu(generation).space(space);
            let last = registers.iter().map(Reg::offset).max().unwrap_or(0);
            for offset in 0..=last + 9 {
                let (reg, found) = (registers.at(offset), naive.at(&domains, offset.into()));
                let names = (reg.map(Reg::name), found.as_ref().map(|f| f.name.as_str()));
                assert_eq!(names.0, names.1, "{generation} {space:?} {offset:#x}");
                let (Some(reg), Some(found)) = (reg, found) else { continue };
                assert_eq!(reg.offset(), offset);
                assert_eq!(reg.width(), found.width, "{}", found.name);
                assert_eq!(reg.ty().is_some(), found.ty.is_some(), "{}", found.name);
                let Some((ty, inherited)) = found.ty else { continue };
                for value in VALUES.map(|v| if found.width == 32 { v & 0xffff_ffff } else { v }) {
                    let expected = naive.text(ty, &inherited, value);
                    let got = written(reg, value, &mut Variants::new());
                    assert_eq!(got, expected, "{generation} {} {value:#x}", found.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50_000, "only {compared} values compared");
}

/// The field of a domain's registers that selects variants: the register's offset, the field's lowest bit, its enum.
fn selector(elems: &[DomainElem]) -> Option<(u32, u32, String)> {
    elems.iter().find_map(|elem| match elem {
        DomainElem::Reg(reg) => {
            let field = reg.ty.fields.iter().find(|f| f.ty.addvariant)?;
            Some((reg.offset as u32, field.ty.low, field.ty.name.clone()?))
        }
        DomainElem::Block(block) => selector(&block.elems),
        DomainElem::Use(_) => None,
    })
}

#[test]
fn every_packet_and_descriptor_reads_as_the_facts_say_whatever_its_mode() {
    let (db, facts) = (Db::builtin(), facts());
    let mut modes = 0;
    for generation in Generation::ALL {
        let (_, file, registers) = spaces(generation).swap_remove(0);
        let gpu = db.gpu(generation);
        let listed = Naive::new(&facts, &[file, "ocmem"], generation.variant());
        let names: Vec<&str> = facts
            .files
            .iter()
            .flat_map(|f| &f.items)
            .filter_map(|item| match item {
                FactsItem::Domain(d) if !listed.domains(&d.name).is_empty() => Some(d.name.as_str()),
                _ => None,
            })
            .filter(|name| !registers.iter().any(|r| r == name))
            .collect();
        for name in names {
            let naive = Naive::new(&facts, &[file, "ocmem"], generation.variant());
            let Some(domain) = gpu.domain(name) else {
                for offset in 0..64 {
                    assert!(naive.at(&[name], offset).is_none(), "{generation} has no {name}");
                }
                continue;
            };
            let select = naive.domains(name).iter().find_map(|d| selector(&d.elems));
            let choices: Vec<Option<u64>> = match &select {
                None => vec![None],
                Some((.., varset)) => {
                    std::iter::once(None).chain(naive.values(varset).iter().map(|v| v.value)).collect()
                }
            };
            for choice in choices {
                let mut selected = Variants::new();
                let mut naive = Naive::new(&facts, &[file, "ocmem"], generation.variant());
                if let (Some(number), Some((offset, low, _))) = (choice, &select) {
                    let Some(reg) = domain.at(*offset, &selected) else { continue };
                    let found = naive.at(&[name], (*offset).into()).unwrap();
                    let (ty, inherited) = found.ty.unwrap();
                    let expected = naive.text(ty, &inherited, number << low);
                    assert_eq!(written(reg, number << low, &mut selected), expected, "{generation} {name}");
                    modes += 1;
                }
                for offset in 0..320 {
                    let (reg, found) = (domain.at(offset, &selected), naive.at(&[name], offset.into()));
                    let names = (reg.map(Reg::name), found.as_ref().map(|f| f.name.as_str()));
                    assert_eq!(names.0, names.1, "{generation} {name} {choice:?} dword {offset}");
                    let (Some(reg), Some((ty, inherited))) = (reg, found.and_then(|f| f.ty)) else {
                        continue;
                    };
                    for value in VALUES {
                        let kept = naive.selected.clone();
                        let expected = naive.text(ty, &inherited, value);
                        naive.selected = kept;
                        let got = written(reg, value, &mut selected.clone());
                        assert_eq!(got, expected, "{generation} {name} {choice:?} {}", reg.name());
                    }
                }
            }
        }
    }
    assert!(modes > 20, "only {modes} packet modes seen");
}

#[test]
fn names_lead_back_to_their_offsets() {
    let db = Db::builtin();
    for generation in Generation::ALL {
        for space in RegSpace::ALL {
            let registers = db.gpu(generation).space(space);
            for reg in registers.iter().filter(|reg| reg.width() != 0) {
                let offset = registers.offset_of(reg.name()).unwrap();
                assert_eq!(registers.at(offset).unwrap().name(), reg.name(), "{generation} {space:?}");
            }
            assert_eq!(registers.offset_of("NO_SUCH_REGISTER"), None);
        }
    }
}

#[test]
fn names_take_indices_in_any_notation() {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let expected = gpu.reg_offset("RB_MRT[0x1].CONTROL");
    assert_eq!(expected, Some(0x8828));
    for name in ["RB_MRT[1].CONTROL", "RB_MRT[01].CONTROL", "RB_MRT[0x01].CONTROL"] {
        assert_eq!(gpu.reg_offset(name), expected, "{name}");
    }
    assert_eq!(gpu.reg_offset("RB_MRT[0x0].CONTROL"), Some(0x8820));
    assert_eq!(gpu.reg(0x8820).unwrap().name(), "RB_MRT[0].CONTROL");
    assert_eq!(gpu.reg_offset("RB_MRT[8].CONTROL"), None);
    for broken in ["RB_MRT[", "RB_MRT]", "RB_MRT[]", "RB_MRT[99999999999999999999].CONTROL", "[", ""] {
        assert_eq!(gpu.reg_offset(broken), None, "{broken}");
    }
}

#[test]
fn search_finds_by_substring_or_pattern() {
    let db = Db::builtin();
    let registers = db.gpu(Generation::A6xx).space(RegSpace::Gpu);
    let find = |pattern: &str| -> Vec<&str> { registers.search(pattern).map(Reg::name).collect() };
    assert_eq!(find("rb_mrt[1].control"), ["RB_MRT[0x1].CONTROL"]);
    assert_eq!(find("RB_MRT[?].CONTROL").len(), 1, "`?` stands for one byte: only [0] is one digit");
    assert_eq!(find("RB_MRT[*].CONTROL").len(), 8);
    assert_eq!(find("*MRT[2].BASE"), ["RB_MRT[0x2].BASE"]);
    assert_eq!(find("no such thing"), [""; 0]);
}

#[test]
fn packets_have_names() {
    let db = Db::builtin();
    assert_eq!(db.gpu(Generation::A6xx).packet_name(0x10), Some("CP_NOP"));
    assert_eq!(db.gpu(Generation::A2xx).packet_name(0x10), Some("CP_NOP"));
    assert_eq!(db.gpu(Generation::A6xx).packet_name(0xff), None);
    assert!(db.gpu(Generation::A3xx).domain("CP_SET_MARKER").is_none());
    assert!(db.gpu(Generation::A6xx).domain("CP_SET_MARKER").is_some());
}

#[test]
fn the_tables_say_what_they_are() {
    let db = Db::builtin();
    let identity = db.identity();
    assert_eq!(identity.source, "built-in");
    assert!(!identity.version.is_empty());
    assert_eq!(identity.hash.len(), 16);
    assert_eq!(identity, Db::builtin().identity());
}
