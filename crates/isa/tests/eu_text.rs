//! Text that goes beyond what Mesa's disassembler writes, and text of what its test data does not have.

use unwedge_isa::eu::{Field, Instruction, Platform, program};

fn platform(name: &str) -> Platform {
    Platform::by_name(name).unwrap()
}

/// The only instruction of a text.
fn instruction(name: &str, text: &str) -> Instruction {
    let bytes = program::assemble(platform(name), text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    Instruction::decode(platform(name), bytes.try_into().unwrap())
}

/// The listing of an instruction with single spaces.
fn listing(inst: &Instruction) -> String {
    let text = program::listing(inst.platform, &inst.encode());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn precision_of_matrices() {
    let text =
        "dpas.8x8(8) g40<1>D g20<1,1,0>D g30<1,1,0>UB g35<1,1,0>B { align1 1Q $1 src1_4bit src2_2bit };";
    for name in ["dg2", "mtl"] {
        let inst = instruction(name, text);
        assert_eq!((inst.get(Field::DpasSrc1Precision), inst.get(Field::DpasSrc2Precision)), (1, 2));
        assert_eq!(listing(&inst), text);
        let as_mesa = program::disassemble(inst.platform, &inst.encode());
        assert!(!as_mesa.contains("bit"), "Mesa's text does not have it: {as_mesa}");
    }
    let mut reserved = instruction("dg2", text);
    reserved.set(Field::DpasSrc1Precision, 3);
    assert!(listing(&reserved).starts_with(".raw "), "the code is reserved");
    assert!(program::assemble(platform("dg2"), "mov(8) g1<1>D g2<8,8,1>D { align1 1Q src1_4bit };").is_err());
}

#[test]
fn indirect_operands_of_split_sends() {
    for name in ["skl", "icl"] {
        for (destination, source) in
            [("g[a0.2 1008]<UD", "g[a0.3 496]UD"), ("g[a0]<UD", "g5.1UD"), ("g9.1UD", "g[a0.1 512]UD")]
        {
            let text = format!(
                "sends(8) {destination} {source} g7UD 0x02025efd 0x00000040 dp data 1 MsgDesc: {{ align1 1Q }};"
            );
            let inst = instruction(name, &text);
            let shown = listing(&inst);
            assert!(shown.starts_with(&format!("sends(8) {destination} {source} g7UD ")), "{name}: {shown}");
        }
        let negative =
            "sends(8) g9UD g[a0 -16]UD g7UD 0x02025efd 0x00000040 dp data 1 MsgDesc: { align1 1Q };";
        let shown = listing(&instruction(name, negative));
        assert!(shown.starts_with("sends(8) g9UD g[a0 1008]UD "), "the field is signed: {shown}");
        let outside =
            "sends(8) g9UD g[a0 1024]UD g7UD 0x02025efd 0x00000040 dp data 1 MsgDesc: { align1 1Q };";
        assert!(program::assemble(platform(name), outside).is_err());
    }
}

#[test]
fn lists_of_registers_in_xe3() {
    let text = "send(16) g40UD r[s0.4] nullUD 0x02000000 0x00000000 ugm MsgDesc: { align1 1H $2 };";
    let inst = instruction("ptl", text);
    // Mesa's assembler makes the same of it.
    assert_eq!(inst.encode(), [0x31, 0xc2, 0x10, 0, 0, 0, 4, 0x28, 8, 0x60, 0, 0xf0, 0x10, 0, 0, 0]);
    let shown = listing(&inst);
    assert!(shown.starts_with("send(16) g40UD r[s0.4] nullUD 0x02000000 0x00000000 ugm MsgDesc:"), "{shown}");
    // The bits of the subregister are not part of the descriptor.
    let mut inst = inst;
    inst.set(Field::SendExtendedDescriptor, 0xc742_7400 >> 6);
    assert!(listing(&inst).contains("r[s0.32] nullUD 0x02000000 0xc7427000 ugm"), "{}", listing(&inst));
    assert!(program::assemble(platform("bmg"), text).is_err(), "Xe2 has none");
    let odd = text.replace("s0.4", "s0.3");
    assert!(program::assemble(platform("ptl"), &odd).is_err(), "subregisters are words");
}

#[test]
fn an_unknown_platform_is_answered_with_those_that_are_known() {
    let error = Platform::by_name("pvc").unwrap_err().to_string();
    for name in Platform::names() {
        assert!(error.contains(name), "{error}");
    }
}

/// What only reserved bits say is not in Mesa's text, and is in that of listings.
#[test]
fn reserved_bits_as_mesa_shows_them() {
    // A condition of a matrix instruction.
    let mut matrix =
        instruction("dg2", "dpas.8x8(8) g40<1>F g20<1,1,0>F g30<1,1,0>HF g35<1,1,0>HF { align1 1Q $1 };");
    matrix.set(Field::ConditionModifier, 4);
    let mut text = String::new();
    unwedge_isa::eu::disasm::push_alone(&mut text, &matrix, false);
    assert!(text.starts_with("dpas.8x8(8) "), "{text}");
    assert!(listing(&matrix).starts_with(".raw "), "{}", listing(&matrix));
    // Pipes of a generation that has one.
    let waits = instruction("tgl", "mov(8) g4<1>D g2<8,8,1>D { align1 1Q I@2 };");
    assert!(listing(&waits).contains(" I@2 "), "{}", listing(&waits));
    // Half floats of gen8 and gen9 among floats.
    let mixed = "mad(8) g4<1>F g33<4,4,1>F g15<4,4,1>HF g37<4,4,1>F { align16 1Q };";
    let mixed = instruction("skl", mixed);
    let mut text = String::new();
    unwedge_isa::eu::disasm::push_alone(&mut text, &mixed, false);
    assert!(text.contains("g15<4,4,1>F") && listing(&mixed).contains("g15<4,4,1>HF"), "{text}");
    // Functions that Mesa has no messages of.
    let null = "send(8) g96UD g104UD nullUD 0x0210b500 0x00000000 null MsgDesc: { align1 1Q $3 };";
    let shown = listing(&instruction("dg2", null));
    assert!(shown.contains("MsgDesc:unsupported shared function ID 0 mlen 1"), "{shown}");
}
