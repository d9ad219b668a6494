//! Every form of every row of AMD's tables: words to text and back, one reading of any words, lines and words that are
//! broken.

mod amdgcn;

use amdgcn::{GPUS, Numbers, assemble, disassemble, gpu, instructions, variants};
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::codec::SizedInst;
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::amdgcn::model::{
    Access, AccessWord, Class, Components, Direction, Element, Encoding, Field, OperandSlot, Pair, Role,
    Signedness, Trait,
};
use unwedge_isa::amdgcn::{Gpu, Opcode, Operand, Operation, codec, semantics, source, tables, text};
use unwedge_testkit::parallel;

/// Instructions of each form in each generation and mode.
const OF_EACH: usize = 5;

/// Words guessed for each form before none is said to be found.
const GUESSES: usize = 1500;

#[test]
fn every_form_survives_words_text_words() {
    let mut forms = 0;
    let mut broken = Vec::new();
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(7);
        let mut unseen = Vec::new();
        for (number, variant) in variants(&gpu) {
            let found = instructions(number, &gpu, &mut numbers, GUESSES, OF_EACH);
            forms += 1;
            if found.is_empty() {
                unseen.push((variant.name, variant.form));
            }
            broken.extend(found.iter().filter_map(|(_, words)| survives(words, &gpu).err()));
        }
        assert_eq!(unseen, [], "{name} {features}: forms of which no word was found");
    }
    println!("{forms} forms");
    none(&broken);
}

#[test]
fn one_opcode_is_one_row() {
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut seen = BTreeMap::new();
        for (number, variant) in variants(&gpu) {
            let key = (variant.encoding, variant.opcodes[gpu.generation() as usize]);
            let other = seen.insert(key, number);
            assert_eq!(other, None, "{name} {features}: {} and another are {key:x?}", variant.name);
            assert_eq!(
                tables::variant_of(key.0, key.1.into(), &gpu),
                Some(number),
                "{name}: {}",
                variant.name
            );
        }
    }
}

/// Words of one encoding, made those of another where their fixed bits allow: they are one of both or none.
#[test]
fn words_that_two_encodings_could_have_are_read_once() {
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(17);
        let mut shared = 0;
        let layouts: Vec<_> = variants(&gpu).filter_map(|(_, v)| tables::layout(v.encoding, &gpu)).collect();
        let mut layouts: Vec<_> = layouts.iter().map(|layout| (layout.mask, layout.value)).collect();
        layouts.sort_unstable();
        layouts.dedup();
        for (number, variant) in variants(&gpu) {
            let own = tables::layout(variant.encoding, &gpu).expect("a layout of every encoding in use");
            for (mask, value) in &layouts {
                if (own.mask, own.value) == (*mask, *value) || (own.value ^ value) & own.mask & mask != 0 {
                    continue;
                }
                for (_, mut words) in instructions(number, &gpu, &mut numbers, 8, 2) {
                    words.resize(words.len() + 3, 0x0001_0001);
                    for (at, word) in words.iter_mut().enumerate().take(2) {
                        let (mask, value) = ((mask >> (32 * at)) as u32, (value >> (32 * at)) as u32);
                        *word = *word & !mask | value;
                    }
                    shared += 1;
                    let readings: Vec<_> = codec::readings(&words, &gpu).collect();
                    assert!(readings.len() < 2, "{name} {features}: {words:x?}: {readings:?}");
                }
            }
        }
        assert!(shared > 0, "{name}: some encodings share words until their opcode");
    }
}

/// Whether words are read as an instruction; if so, its text must make the same words, and there must be no other reading.
fn survives(words: &[u32], gpu: &Gpu) -> Result<bool, String> {
    let readings: Vec<_> = codec::readings(words, gpu).collect();
    let [decoded] = readings[..] else {
        return if readings.is_empty() { Ok(false) } else { Err(format!("{words:x?}: {readings:?}")) };
    };
    let taken = words.get(..decoded.dwords.into()).expect("no more than there are");
    let text = disassemble(taken, gpu).expect("an instruction");
    let again = assemble(&text, gpu);
    if again.as_deref() == Ok(taken)
        || again.as_ref().is_ok_and(|short| is_dwords(&decoded, taken, short, &text, gpu))
    {
        return Ok(true);
    }
    Err(format!("{}: {text}: {again:x?}, not {taken:x?}", gpu.name()))
}

/// Whether words have a literal that could be an inline constant: their text is the same instruction without the literal's
/// dword, so a listing has them as dwords.
fn is_dwords(decoded: &SizedInst, words: &[u32], short: &[u32], text: &str, gpu: &Gpu) -> bool {
    let Some(constants) = codec::decode(short, gpu) else { return false };
    let shorter = decoded.inst.written().zip(constants.inst.written()).all(|((_, long), (_, short))| {
        long == short || matches!((long, short), (Operand::Literal(_), Operand::Inline(_)))
    });
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut listing = String::new();
    listing::write(&code, gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
    let made = source::assemble(&listing, gpu);
    decoded.inst.number() == constants.inst.number()
        && short.len() + 1 == words.len()
        && shorter
        && listing.starts_with("\t.long 0x")
        && listing.ends_with(&format!(" // {text}\n"))
        && made.errors.is_empty()
        && made.sections.first().map(|section| &section.bytes) == Some(&code)
}

/// Fails with what is broken.
fn none(broken: &[String]) {
    assert!(broken.is_empty(), "{} broken:\n{}", broken.len(), broken[..broken.len().min(60)].join("\n"));
}

/// How many of each GPU: so many, or a hundred thousand with `UNWEDGE_ALL=1` (use `--release`).
fn rounds(usual: usize) -> usize {
    if std::env::var_os("UNWEDGE_ALL").is_some() { 100_000 } else { usual }
}

/// Random words, and words of instructions with a few bits turned over.
fn any_words(rounds: usize, seed: u64) -> usize {
    let mut read = 0;
    let mut broken = Vec::new();
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(seed);
        let all: Vec<u16> = variants(&gpu).map(|(number, _)| number).collect();
        for round in 0..rounds / GPUS.len() {
            let mut words: Vec<u32> =
                (0..1 + numbers.next(5)).map(|_| numbers.next(1 << 32) as u32).collect();
            if round % 2 == 0 {
                let number = all[numbers.next(all.len() as u64) as usize];
                if let Some((_, found)) = instructions(number, &gpu, &mut numbers, 4, 1).pop() {
                    words = found;
                }
                for _ in 0..numbers.next(4) {
                    let at = numbers.next(words.len() as u64) as usize;
                    words[at] ^= 1 << numbers.next(32);
                }
                words.truncate(1 + numbers.next(words.len() as u64 + 2) as usize);
            }
            match survives(&words, &gpu) {
                Ok(is) => read += usize::from(is),
                Err(why) => broken.push(why),
            }
        }
    }
    none(&broken);
    read
}

#[test]
fn any_words_are_an_instruction_that_survives_or_none() {
    let read = any_words(rounds(20_000), 13);
    assert!(read > 1000, "some of them are instructions");
}

#[test]
fn code_of_any_words_survives_as_a_listing() {
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(19);
        let code: Vec<u8> = (0..2000).flat_map(|_| (numbers.next(1 << 32) as u32).to_le_bytes()).collect();
        let mut listing = String::new();
        let counts = listing::write(&code, &gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
        assert!(counts.unknown > 0 && counts.instructions > 0, "{name}: {counts:?}");
        let made = source::assemble(&listing, &gpu);
        assert_eq!(made.errors, [], "{name}");
        assert_eq!(made.sections.first().map(|section| &section.bytes), Some(&code), "{name}");
    }
}

#[test]
fn bits_that_mean_nothing_are_listed_and_assembled() {
    let mut turned = 0;
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(41);
        for (number, _) in variants(&gpu) {
            for (_, mut words) in instructions(number, &gpu, &mut numbers, 20, 2) {
                let at = numbers.next(words.len() as u64) as usize;
                words[at] ^= 1 << numbers.next(32);
                if codec::decode(&words, &gpu).is_some() {
                    continue;
                }
                let Some(decoded) = codec::decode_executed(&words, &gpu) else { continue };
                let own = &words[..usize::from(decoded.dwords).min(words.len())];
                if usize::from(decoded.dwords) > words.len() {
                    continue;
                }
                turned += 1;
                let code: Vec<u8> = own.iter().flat_map(|word| word.to_le_bytes()).collect();
                let mut listing = String::new();
                listing::write(&code, &gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
                assert!(listing.contains(" unused:[0x"), "{name} {features}: {own:x?}: {listing}");
                let made = source::assemble(&listing, &gpu);
                let bytes = made.sections.first().map(|section| &section.bytes);
                assert!(
                    made.errors.is_empty() && bytes == Some(&code),
                    "{name}: {own:x?}: {listing}{made:?}"
                );
            }
        }
    }
    assert!(turned > 1000, "{turned} instructions with a bit that means nothing");
}

#[test]
fn bits_with_a_meaning_are_not_unused() {
    let gpu = gpu("gfx900", "");
    assert!(assemble("v_mov_b32_e32 v0, v1", &gpu).is_ok());
    // The lowest bit of the source, and a dword past the end.
    for bits in ["0x1", "0x0,0x1"] {
        assert!(assemble(&format!("v_mov_b32_e32 v0, v1 unused:[{bits}]"), &gpu).is_err(), "{bits}");
    }
}

/// Words with such bits are first read with all half registers named; the line may be of the variant that names none.
#[test]
fn unused_bits_of_a_line_that_names_no_halves() {
    let line = "v_cvt_i32_i16_e64 v0, 55 unused:[0x0,0x80000000]";
    for features in ["", "+real-true16"] {
        let words = assemble(line, &gpu("gfx1100", features));
        assert_eq!(words.as_deref(), Ok(&[0xd5ea_0000, 0x8000_00b7][..]), "{features}");
    }
    // The half that is read is a meaning.
    assert!(assemble("v_cvt_i32_i16_e64 v0, v1 unused:[0x800]", &gpu("gfx1100", "")).is_err());
}

/// In modes that do not name half registers they are named where the words have no other text.
#[test]
fn high_halves_are_named_in_any_mode() {
    let cases: [(&str, &[u32]); 6] = [
        ("v_cvt_f32_f16_e32 v1, v0.h", &[0x7e02_1780]),
        ("v_cvt_f32_f16_e64 v1, v0.h op_sel:[1,0]", &[0xd58b_0801, 0x0000_0100]),
        ("v_cmp_gt_f16_e64 s5, v0.h, v1.h op_sel:[1,1,0]", &[0xd404_1805, 0x0002_0300]),
        ("v_fmac_f16_e32 v1.h, v2.l, v3.h", &[0x6d03_0702]),
        ("v_cndmask_b16 v5.h, v1.h, v2.l, vcc_lo", &[0xd65d_4805, 0x01aa_0501]),
        ("v_mov_b16_e32 v0.l, v1.h", &[0x7e00_3981]),
    ];
    let gpu = gpu("gfx1100", "");
    for (text, words) in cases {
        assert_eq!(assemble(text, &gpu).as_deref(), Ok(words), "{text}");
        assert_eq!(disassemble(words, &gpu).as_deref(), Some(text));
    }
    // What has another text keeps it.
    assert_eq!(assemble("v_cvt_f32_f16 v1, v0.l", &gpu), assemble("v_cvt_f32_f16 v1, v0", &gpu));
    assert_eq!(disassemble(&[0x7e02_1700], &gpu).as_deref(), Some("v_cvt_f32_f16_e32 v1, v0"));
}

/// Literals of mixed precision have 32 bits: a float, or two halves of which `op_sel` chooses.
#[test]
fn literals_of_mixed_precision_are_whole() {
    for (name, line) in [
        ("gfx1010", "v_fma_mix_f32 v0, v1, 0x40400000, v2"),
        ("gfx1030", "v_fma_mix_f32 v0, v1, 0x42003e00, 0x42003e00 op_sel:[0,0,1] op_sel_hi:[0,1,1]"),
        ("gfx1100", "v_fma_mixlo_f16 v0, v1, 0x3f800000, v2"),
    ] {
        let gpu = gpu(name, "");
        let words = assemble(line, &gpu).expect("is read");
        assert_eq!(words.len(), 3, "{line}");
        assert_eq!(disassemble(&words, &gpu).as_deref(), Some(line));
    }
}

/// Spellings of older assemblers, and of hand-written code.
#[test]
fn other_spellings_are_read() {
    let cases = [
        ("gfx600", "v_cmps_lt_f32 vcc, v0, v1", &[0x7c82_0300][..]),
        ("gfx700", "v_cmpsx_tru_f64 vcc, v[0:1], v[2:3]", &[0x7cfe_0500]),
        ("gfx600", "buffer_wbinvl1_sc", &[0xe1c0_0000, 0]),
        ("gfx900", "s_mov_b32 s0, execz", &[0xbe80_00fc]),
        ("gfx900", "s_mov_b64 s[0:1], shared_base", &[0xbe80_01eb]),
        ("gfx900", "v_mov_b32 v0, .5", &[0x7e00_02f0]),
        ("gfx900", "v_mov_b32 v0, -.5", &[0x7e00_02f1]),
        ("gfx900", "global_load_dword v1, v[2:3], off inst_offset:4", &[0xdc50_8004, 0x017f_0002]),
        ("gfx900", "s_waitcnt vmcnt(3) lgkmcnt(2) vmcnt(5)", &[0xbf8c_0275]),
        ("gfx1030", "v_mqsad_pk_u16_u8 v[0:1], s[2:3], s4, v[6:7]", &[0xd573_0000, 0x0418_0802]),
        ("gfx900", "exp mrt0 off, v3, v5, v5 compr", &[0xc400_040e, 0x0000_0503]),
        ("gfx900", "exp mrt0, off, off, v1, v1 compr", &[0xc400_040c, 0x0000_0100]),
        ("gfx1200", "s_wait_event {export_ready:1}", &[0xbf8b_0002]),
        ("gfx1100", "v_dot8_i32_i4 v0, v1, v2, v3 neg_lo:[1,0,0]", &[0xcc18_4000, 0x7c0e_0501]),
        ("gfx1100", "v_pk_fmac_f16 v62, 0xc000c000, v8", &[0x787c_10f5]),
        ("gfx1030", "v_pk_fmac_f16 v62, 0xc000, v8", &[0x787c_10f5]),
    ];
    for (name, text, words) in cases {
        assert_eq!(assemble(text, &gpu(name, "")).as_deref(), Ok(words), "{text}");
    }
}

/// What LLVM 23 writes in another way than LLVM 19, or LLVM 19 does not have.
#[test]
fn texts_of_llvm_23() {
    let cases = [
        ("gfx1100", "v_swap_b16 v0.l, v113.h", &[0x7e00_cdf1][..]),
        ("gfx1201", "s_wait_event { export_ready: 1 }", &[0xbf8b_0002]),
        ("gfx1201", "s_wait_event 0x1", &[0xbf8b_0001]),
        ("gfx1153", "s_wait_event { dont_wait_export_ready: 1 }", &[0xbf8b_0001]),
        ("gfx1100", "v_dot4_i32_i8 v11, v28, v0, v244", &[0xcc16_400b, 0x7fd2_011c]),
        (
            "gfx1200",
            "v_dot4_i32_iu8 v0, v8, v0, v0 neg_lo:[1,1,0] neg_hi:[1,1,1]",
            &[0xcc16_4700, 0x7c02_0108],
        ),
        ("gfx1153", "v_pk_fmac_f16 v62, 0xc000, v8", &[0x787c_10ff, 0xc000]),
        ("gfx1201", "s_cselect_b32 s16, s0, lit(0x0)", &[0x9810_ff00, 0]),
        ("gfx908", "exp mrt0, off, off, v1, v1 compr", &[0xc400_040c, 0x0000_0100]),
        ("gfx1201", "s_setreg_imm32_b32 hwreg(63, 15, 32), 64", &[0xb980_fbff, 64]),
        ("gfx1100", "ds_swizzle_b32 v124, v0 offset:swizzle(FFT,4)", &[0xd8d4_e004, 0x7c00_0000]),
        ("gfx908", "ds_swizzle_b32 v1, v2 offset:swizzle(ROTATE,0,5)", &[0xd87a_c0a0, 0x0100_0002]),
        ("gfx1201", "s_load_b128 null, s[0:1], s8 offset:0x0", &[0xf400_5f00, 0x1000_0000]),
        (
            "gfx908",
            "v_interp_p2_f16 v12, |v133|, attr24.y, |v18| op_sel:[0,0,1,1]",
            &[0xd277_660c, 0x044b_0a58],
        ),
        ("gfx1153", "s_endpgm_ordered_ps_done", &[0xbfb2_0000]),
        ("gfx1100", "v_alignbit_b32 v1, s1, s20, v74.l clamp", &[0xd616_8001, 0x0528_2801]),
        ("gfx1100", "v_cmp_class_f16_e64 s18, vcc_lo, |s0|", &[0xd47d_0212, 0x0200_006a]),
    ];
    for (name, text, words) in cases {
        let gpu = gpu(name, "+llvm23");
        assert_eq!(assemble(text, &gpu).as_deref(), Ok(words), "{text}");
        assert_eq!(disassemble(words, &gpu).as_deref(), Some(text));
    }
}

#[test]
fn literals_that_could_be_inline_constants_survive_as_a_listing() {
    const SMALL: [u32; 8] = [0, 1, 64, 65, -16i32 as u32, 0x3f80_0000, 0x3c00, 0x3ff0_0000];
    let of_each = parallel::map(GPUS, |(name, features)| {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(37);
        let mut all: Vec<Vec<u32>> = Vec::new();
        for (number, variant) in variants(&gpu) {
            let own: usize = tables::layout(variant.encoding, &gpu).expect("a layout").dwords.into();
            for (at, (_, mut found)) in
                instructions(number, &gpu, &mut numbers, 40, 8).into_iter().enumerate()
            {
                if variant.encoding != Encoding::Smem && found.len() == own + 1 {
                    found[own] = SMALL[at % SMALL.len()];
                }
                all.push(found);
            }
        }
        let mut dwords = 0;
        // One by one, so that no branch hides what another instruction does.
        for own in all {
            let code: Vec<u8> = own.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut listing = String::new();
            listing::write(&code, &gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
            dwords += usize::from(listing.starts_with("\t.long") && listing.contains(" // "));
            let made = source::assemble(&listing, &gpu);
            let bytes = made.sections.first().map(|section| &section.bytes);
            assert!(made.errors.is_empty() && bytes == Some(&code), "{name}: {own:x?}: {listing}{made:?}");
        }
        dwords
    });
    let dwords: usize = of_each.into_iter().sum();
    assert!(dwords > 100, "{dwords} literals could be inline constants");
    let mut listing = String::new();
    let gpu = gpu("gfx900", "");
    let code = [0xbe80_00ffu32, 0, 0xbe80_00ff, 65].map(u32::to_le_bytes).concat();
    let counts = listing::write(&code, &gpu, &AmdListingOptions::default(), &mut listing, &mut |_, _| ());
    assert_eq!(listing, "\t.long 0xbe8000ff, 0x00000000 // s_mov_b32 s0, 0x0\n\ts_mov_b32 s0, 0x41\n");
    assert_eq!((counts.instructions, counts.unknown), (2, 0));
}

/// As LLVM 19 has it, tried.
#[test]
fn bfloats_are_rounded_to_even() {
    let gpu = gpu("gfx1100", "");
    let numbers: [(&str, u32, Option<u32>); 6] = [
        ("0.1", 0xff, Some(0x3dcd)),
        ("0.15915494", 0xf8, None),
        ("0.15915494309189532", 0xff, Some(0x3e23)),
        ("-0.15915494", 0xff, Some(0xbe23)),
        ("0.5019", 0xf0, None),
        ("1.0000001", 0xf2, None),
    ];
    for (number, code, literal) in numbers {
        let mut words = vec![0xd667_0000, 0x03c3_4c00 | code];
        words.extend(literal);
        assert_eq!(
            assemble(&format!("v_dot2_bf16_bf16 v0, {number}, v166, 0.5"), &gpu),
            Ok(words),
            "{number}"
        );
    }
}

/// Modifiers and operands of one form have bits of their own: the decoder looks at a modifier only if a bit is set that
/// no operand has.
#[test]
fn fields_of_modifiers_are_those_of_no_operand() {
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        for (_, variant) in variants(&gpu) {
            let layout = tables::layout(variant.encoding, &gpu).expect("a layout of every encoding in use");
            let bits = |field: Field| {
                let place = layout.fields[field as usize];
                (u128::MAX.unbounded_shl(place.width.into()) ^ u128::MAX) << place.lsb
            };
            let all =
                |fields: &mut dyn Iterator<Item = Field>| fields.fold(0, |all, field| all | bits(field));
            let operands = all(&mut variant.slots.iter().map(|slot| slot.field))
                | all(&mut variant.slots.iter().flat_map(besides));
            let modifiers = all(&mut variant.mods.iter().map(|slot| slot.field));
            let opcode = all(&mut [Field::Op, Field::OpHi].into_iter()) | u128::from(layout.mask);
            let what = format!("{name} {features}: {} {:?}", variant.name, variant.form);
            assert_eq!(operands & modifiers, 0, "{what}");
            assert_eq!((operands | modifiers) & opcode, 0, "{what}");
        }
    }
}

/// Fields that operands of a class have besides their own.
fn besides(slot: &OperandSlot) -> Vec<Field> {
    match slot.class {
        Class::SrcSdwa => vec![if slot.source == 0 { Field::S0 } else { Field::S1 }],
        Class::SdwaSdst => vec![Field::Sd],
        Class::VgprDual => vec![Field::VdstX],
        Class::Attr => vec![Field::Chan],
        _ => Vec::new(),
    }
}

/// What is put into lines.
const PIECES: &[&str] = &[
    "v1",
    "v[0:3]",
    "v[255:256]",
    "s[4:7]",
    "s103",
    "off",
    "null",
    "vcc",
    "exec_lo",
    "m0",
    "ttmp15",
    "src_scc",
    "v3.h",
    "[v1,v2,v[3:9]]",
    "[",
    "]",
    "|",
    "(",
    ")",
    ",",
    ":",
    "::",
    "-",
    "--",
    "neg(",
    "abs(",
    "sext(",
    "lit(",
    "0x",
    "1e9",
    "1e999",
    "0.5",
    "-1",
    "64",
    "65",
    "0xffffffffffffffff",
    "99999999999999999999",
    "<<",
    "%0",
    "~",
    "offset:",
    "dmask:99999999999",
    "dim:",
    "format:[",
    "swizzle(",
    "\"",
    "th:",
    "glc",
    "clamp",
    "op_sel:[",
    "op_sel:[1,1,1,1,1]",
    "quad_perm:[0,1,2,9]",
    "dpp8:[7]",
    "row_mask:16",
    "mul:3",
    "hwreg(",
    "sendmsg(",
    "vmcnt(",
    "attr33.x",
    "attr0",
    "mrt9",
    "\u{3c0}",
    "\t",
    " ",
    "_e64",
    "_dpp",
    "_sdwa",
    "_e32",
];

/// Lines of instructions with pieces put in, taken away, doubled, and characters changed. A line is read, or the error has
/// a column in it.
fn any_lines(rounds: usize, seed: u64) -> (usize, usize) {
    let (mut read, mut refused) = (0, 0);
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(seed);
        let all: Vec<u16> = variants(&gpu).map(|(number, _)| number).collect();
        let mut lines: Vec<String> = Vec::new();
        for _ in 0..rounds / GPUS.len() {
            let number = all[numbers.next(all.len() as u64) as usize];
            if let Some((_, words)) = instructions(number, &gpu, &mut numbers, 4, 1).pop() {
                lines.extend(disassemble(&words, &gpu));
            }
            let mut line: Vec<char> = match lines.len() {
                0 => tables::variants()[usize::from(number)].name.chars().collect(),
                count => lines[numbers.next(count as u64) as usize].chars().collect(),
            };
            for _ in 0..1 + numbers.next(3) {
                let at = numbers.next(line.len() as u64 + 1) as usize;
                let end = (at + 1 + numbers.next(8) as usize).min(line.len());
                match numbers.next(6) {
                    0 => drop(line.drain(at..end)),
                    1 => drop(line.splice(at..at, numbers.one_of(PIECES).chars())),
                    2 => drop(line.splice(at..end, numbers.one_of(PIECES).chars())),
                    3 => line.truncate(at),
                    4 => line.extend_from_within(at..end),
                    _ => line.extend(char::from_u32(numbers.next(0x300) as u32)),
                }
            }
            let line: String = line.into_iter().collect();
            match text::parse_line(&line, &gpu, &()) {
                Ok(inst) => {
                    read += 1;
                    if let Ok(words) = codec::encode(&inst, &gpu) {
                        assert!(!words.is_empty(), "{name}: {line}");
                    }
                }
                Err(error) => {
                    refused += 1;
                    let columns = line.chars().count() + 1;
                    assert!((1..=columns).contains(&error.column), "{name}: {line}: {error}");
                    assert!(error.operand.is_none_or(|operand| operand < 16), "{name}: {line}: {error}");
                }
            }
            // The same line in a file: its errors are of its line.
            let file = format!("s_nop 0\n{line}\ns_endpgm\n");
            let made = source::assemble(&file, &gpu);
            assert!(made.errors.iter().all(|error| error.line >= 1 && error.column >= 1), "{name}: {line}");
        }
    }
    (read, refused)
}

#[test]
fn any_line_is_an_instruction_or_refused_where_it_is_wrong() {
    let (read, refused) = any_lines(rounds(8000), 11);
    assert!(read > 100 && refused > 1000, "{read} read, {refused} refused");
}

/// Text of LLVM 23 that LLVM 19 does not read.
#[test]
fn literals_and_patterns_by_name() {
    for (name, line, words) in [
        ("gfx90a", "s_mov_b32 s0, lit(1)", [0xbe80_00ffu32, 1]),
        ("gfx1100", "s_add_u32 s0, s1, lit(0x40)", [0x8000_ff01, 0x40]),
        ("gfx1200", "v_add_f32_e32 v0, lit(0x3f800000), v1", [0x0600_02ff, 0x3f80_0000]),
        ("gfx1100", "ds_swizzle_b32 v124, v0 offset:swizzle(FFT,4)", [0xd8d4_e004, 0x7c00_0000]),
        ("gfx1100", "ds_swizzle_b32 v199, v124 offset:swizzle(ROTATE,1,29)", [0xd8d4_c7a0, 0xc700_007c]),
    ] {
        let gpu = gpu(name, "");
        let inst = text::parse_line(line, &gpu, &()).expect(line);
        assert_eq!(codec::encode(&inst, &gpu).expect(line).as_slice(), words, "{line}");
    }
    // Where no literal is allowed it is refused.
    assert!(text::parse_line("v_mad_f32 v0, v1, lit(1), v2", &gpu("gfx900", ""), &()).is_err());
}

#[test]
fn messages_name_column_operand_and_rule() {
    let messages = [
        ("gfx900", "v_add_f32 v0, v1, s2, v3", "column 23: operand 4: too many operands"),
        (
            "gfx900",
            "v_add_f32_e64 v0, s1, s2",
            "column 23: operand 3: more scalar registers and literals than the constant bus carries",
        ),
        ("gfx900", "v_mad_f32 v0, v1, 0x1234, v2", "column 19: operand 3: a literal is not allowed here"),
        ("gfx900", "s_mov_b64 s[1:2], 0", "column 11: operand 1: invalid register alignment"),
        ("gfx900", "s_add_u32 s0, s1", "column 17: operand 3: too few operands"),
        (
            "gfx900",
            "v_add_f32_e64 v0, v1, v2 mul:2 clamp",
            "column 37: this modifier is not valid here: modifiers have an order, and each is given once",
        ),
        ("gfx1030", "v_frobnicate v0", "column 1: no instruction of this name"),
        ("gfx600", "v_add_f16 v0, v1, v2", "column 1: not an instruction of this GPU"),
    ];
    for (name, line, message) in messages {
        let error = text::parse_line(line, &gpu(name, ""), &()).expect_err(line);
        assert_eq!(error.to_string(), message, "{line}");
    }
    let made = source::assemble("s_nop 0\n  s_mov_b64 s[1:2], 0\n", &gpu("gfx900", ""));
    let error = made.errors.first().expect("an error");
    let place = (error.line, error.column, error.what.to_string());
    assert_eq!(place, (2, 13, "operand 1: invalid register alignment".to_owned()));
}

#[test]
fn roles_and_traits_of_heads_are_documented() {
    let documented = include_str!("../../../docs/amd.md");
    let heads: Vec<&str> = Trait::ALL.iter().map(|id| id.name()).take_while(|name| *name != "load").collect();
    let missing: Vec<&str> = Role::ALL
        .iter()
        .map(|role| role.name())
        .chain(heads)
        .filter(|word| !documented.contains(&format!("\n| `{word}` | ")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let (_, moved) = documented.split_once("| `memory=` | |").expect("a table of what is moved");
    let words = moved.lines().skip(2).take_while(|line| line.starts_with('|'));
    let words: Vec<&str> =
        words.filter_map(|line| line.split('|').nth(1)).flat_map(str::split_whitespace).collect();
    let missing: Vec<&str> =
        AccessWord::names().filter(|word| !words.contains(&format!("`{word}`").as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn what_rows_of_memory_access_is_known() {
    for row in tables::rows() {
        let accesses = matches!(row.role, Role::Memory | Role::Atomic);
        assert_eq!(row.access.is_some(), accesses, "{:?}", row.opcode);
    }
    for (opcode, access) in [
        (Opcode::s_load_dwordx16, Access::Value(Direction::Load, Element::B512, None)),
        (Opcode::buffer_store_byte_d16_hi, Access::Value(Direction::Store, Element::U8Hi, None)),
        (Opcode::ds_read_i8_d16, Access::Value(Direction::Load, Element::I8Lo, None)),
        (Opcode::ds_read2_b64, Access::Value(Direction::Load, Element::B64, Some(Pair { stride: 1 }))),
        (Opcode::ds_write2st64_b32, Access::Value(Direction::Store, Element::B32, Some(Pair { stride: 64 }))),
        (
            Opcode::ds_wrxchg2st64_rtn_b64,
            Access::Atomic { pair: Some(Pair { stride: 64 }), from_memory: false },
        ),
        (Opcode::ds_add_src2_u32, Access::Atomic { pair: None, from_memory: true }),
        (Opcode::tbuffer_load_format_d16_xyz, Access::Typed(Direction::Load, Components::D16Xyz)),
        (Opcode::global_load_tr_b128, Access::Transposed { halves: true }),
        (Opcode::image_load_mip_pck_sgn, Access::Raw(Direction::Load, Signedness::Signed)),
        (Opcode::image_get_lod, Access::Sample),
    ] {
        assert_eq!(opcode.row().access, Some(access), "{opcode:?}");
    }
}

#[test]
fn what_computes_has_semantics() {
    for row in tables::rows() {
        let computes = match row.operation {
            Operation::Scalar(_)
            | Operation::ScalarFloat(_)
            | Operation::Integer(_)
            | Operation::Float(_)
            | Operation::Minmax(_)
            | Operation::Convert(_)
            | Operation::Transcendental(_)
            | Operation::Packed(_)
            | Operation::Compare(..)
            | Operation::Dual(_) => true,
            Operation::Lanes(_)
            | Operation::Matrix(_)
            | Operation::Mfma(_)
            | Operation::Scaled(_)
            | Operation::Interp(_)
            | Operation::Control(_)
            | Operation::Atomic(_)
            | Operation::Memory
            | Operation::Export
            | Operation::Idle
            | Operation::Unknown => false,
        };
        assert_eq!(semantics::of_opcode(row.opcode).is_some(), computes, "{:?}", row.opcode);
        assert_eq!(row.opcode.row().opcode, row.opcode);
    }
}
