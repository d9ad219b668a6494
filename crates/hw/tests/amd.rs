//! The tables of AMD GPUs.

use unwedge_hw::amd::{Gfx, RegBank};
use unwedge_hw::{Db, DecodedValue, Variants};

#[test]
fn every_packet_layout_is_of_a_packet() {
    let db = Db::amd();
    for gfx in Gfx::ALL {
        let amd = db.amd_gpu(gfx);
        let packets: Vec<&str> = (0..=255).filter_map(|opcode| amd.packet_name(opcode)).collect();
        assert!(packets.len() > 60, "{gfx}");
        for domain in amd.domains() {
            let name = domain.name();
            let others = ["SDMA_", "SIDMA_", "VCN_", "JPEG_", "MES_"];
            let of_other_engine = others.iter().any(|prefix| name.starts_with(prefix));
            let known = name == "DISPATCH_INDIRECT_MEC" || name == "STATUS" || packets.contains(&name);
            // A layout that is the same everywhere is not taken away from generations without the packet.
            let elsewhere = Gfx::ALL.into_iter().any(|other| {
                let other = db.amd_gpu(other);
                (0..=255).any(|opcode| other.packet_name(opcode) == Some(name))
            });
            assert!(of_other_engine || known || elsewhere, "{name} is not a packet of any generation");
        }
    }
}

#[test]
fn registers_have_one_name_at_one_offset() {
    let db = Db::amd();
    for gfx in Gfx::ALL {
        let amd = db.amd_gpu(gfx);
        let all: Vec<_> = amd.registers_of_gpu().collect();
        assert!(all.len() > 500, "{gfx}");
        for pair in all.windows(2) {
            assert!(pair[0].offset() < pair[1].offset(), "{gfx}: {} {}", pair[0].name(), pair[1].name());
        }
        for reg in all {
            assert_eq!(amd.reg_offset(reg.name()), Some(reg.offset()), "{gfx}: {}", reg.name());
        }
    }
}

/// Offsets in bytes, as driver sources state them.
#[test]
fn registers_where_drivers_say_they_are() {
    let db = Db::amd();
    for (gfx, name, byte) in [
        (Gfx::Gfx6, "SPI_SHADER_PGM_LO_ES", 0xb320),
        (Gfx::Gfx9, "SPI_SHADER_PGM_LO_ES", 0xb210),
        (Gfx::Gfx10, "SPI_SHADER_PGM_LO_ES", 0xb320),
        (Gfx::Gfx12, "SPI_SHADER_PGM_LO_ES", 0xb224),
        (Gfx::Gfx8, "VGT_STRMOUT_BUFFER_CONFIG", 0x28b98),
        (Gfx::Gfx9, "CB_COLOR7_DCC_BASE_EXT", 0x28e3c),
        (Gfx::Gfx10_3, "CB_COLOR7_ATTRIB3", 0x28efc),
        (Gfx::Gfx10_3, "PA_CL_UCP_5_W", 0x28618),
        (Gfx::Gfx11, "SPI_GFX_SCRATCH_BASE_HI", 0x286f0),
        (Gfx::Gfx12, "CB_MEM0_INFO", 0x28f00),
        (Gfx::Gfx12, "PA_SC_SHADER_CONTROL", 0x28c58),
        (Gfx::Gfx12, "SPI_BARYC_SSAA_CNTL", 0x286e4),
        (Gfx::Gfx11, "COMPUTE_DISPATCH_INTERLEAVE", 0xb8bc),
        (Gfx::Gfx7, "GRBM_STATUS", 0x8010),
    ] {
        assert_eq!(db.amd_gpu(gfx).reg_offset(name), Some(byte / 4), "{gfx}: {name}");
    }
    assert_eq!(RegBank::Context.base() * 4, 0x28000);
}

fn flags(gfx: Gfx, name: &str, value: u32) -> Vec<String> {
    let db = Db::amd();
    let reg = db.amd_gpu(gfx).register(name).unwrap();
    let DecodedValue::Fields(fields) = reg.ty().unwrap().decode(value.into(), &mut Variants::new()) else {
        panic!("{name}")
    };
    let value = |value: DecodedValue<'_>| match value {
        DecodedValue::Fields(bits) => {
            bits.iter().filter(|bit| bit.raw != 0).map(|bit| bit.name).collect::<Vec<_>>().join("|")
        }
        value => format!("{value:?}"),
    };
    fields.into_iter().filter(|f| f.raw != 0).map(|f| format!("{}={}", f.name, value(f.value))).collect()
}

#[test]
fn status_registers_have_fields() {
    assert_eq!(
        flags(Gfx::Gfx10_3, "GRBM_STATUS", 0xa000_0000),
        ["CP_BUSY=Bool(true)", "GUI_ACTIVE=Bool(true)"]
    );
    assert_eq!(flags(Gfx::Gfx10_3, "GRBM_STATUS", 1 << 21), ["GE_BUSY=Bool(true)"]);
    assert_eq!(flags(Gfx::Gfx9, "GRBM_STATUS", 1 << 21), ["WD_BUSY=Bool(true)"]);
    let fault = |gfx, name, status| flags(gfx, name, status).join(" ");
    assert_eq!(
        fault(Gfx::Gfx10_3, "GCVM_L2_PROTECTION_FAULT_STATUS", 0x0014_1051),
        "MORE_FAULTS=Bool(true) PERMISSION_FAULTS=NOT_VALID|NOT_WRITABLE CID=Enum(8, Some(\"TCP\")) RW=Enum(1, Some(\"WRITE\")) VMID=Uint(1)"
    );
    assert_eq!(
        fault(Gfx::Gfx9, "VM_L2_PROTECTION_FAULT_STATUS", 0x0010_0000),
        "VMID=Uint(1)",
        "client 0 is CB, which is a value like any other"
    );
    assert_eq!(fault(Gfx::Gfx12, "GCVM_L2_PROTECTION_FAULT_STATUS_LO32", 8 << 11), "CID=Enum(8, None)");
}
