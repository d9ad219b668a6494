//! `amd_kernel_code_t`: the 256 bytes before the code of a kernel of HSA v2, as the lines between `.amd_kernel_code_t` and
//! `.end_amd_kernel_code_t` write them.
//!
//! One table has every field with its bits. Facts: the bytes that LLVM 14 makes for each field and GPU, the last LLVM that
//! writes HSA v2; the names before the comma are those that it prints. Never: text of a file ([`super::source`] reads
//! that), ELF.

use super::Gpu;
use super::descriptor;
use super::model::Gfx;

/// Bytes of a header; the code follows it unless the header says otherwise.
pub const SIZE: usize = 256;

/// A field of the header.
#[derive(Clone, Copy, Debug)]
pub struct KernelCodeField {
    /// The name that is printed.
    pub name: &'static str,
    /// Another name that assemblers read; empty if there is none.
    pub alias: &'static str,
    /// First byte.
    pub byte: u8,
    /// Lowest bit in that byte.
    pub lsb: u8,
    /// How many bits.
    pub width: u8,
    /// Whether its bits have a meaning only from gfx10 on.
    pub gfx10: bool,
}

const fn field(name: &'static str, alias: &'static str, byte: u8, lsb: u8, width: u8) -> KernelCodeField {
    KernelCodeField { name, alias, byte, lsb, width, gfx10: false }
}

const fn gfx10(name: &'static str, alias: &'static str, byte: u8, lsb: u8) -> KernelCodeField {
    KernelCodeField { name, alias, byte, lsb, width: 1, gfx10: true }
}

/// Where the fields of `COMPUTE_PGM_RSRC1` and `2` and those of registers that are set begin. Within these dwords they are as in a
/// descriptor.
const RSRC1: u8 = 48;
const RSRC2: u8 = 52;
const PROPERTIES: u8 = 56;
const WAVEFRONT_SIZE: &str = "wavefront_size";
const CALL_CONVENTION: &str = "call_convention";

/// Every field, in the order in which it is printed.
pub static FIELDS: [KernelCodeField; 66] = [
    field("amd_code_version_major", "kernel_code_version_major", 0, 0, 32),
    field("amd_code_version_minor", "kernel_code_version_minor", 4, 0, 32),
    field("amd_machine_kind", "machine_kind", 8, 0, 16),
    field("amd_machine_version_major", "machine_version_major", 10, 0, 16),
    field("amd_machine_version_minor", "machine_version_minor", 12, 0, 16),
    field("amd_machine_version_stepping", "machine_version_stepping", 14, 0, 16),
    field("kernel_code_entry_byte_offset", "", 16, 0, 64),
    field("kernel_code_prefetch_byte_size", "", 32, 0, 64),
    field("granulated_workitem_vgpr_count", "compute_pgm_rsrc1_vgprs", RSRC1, 0, 6),
    field("granulated_wavefront_sgpr_count", "compute_pgm_rsrc1_sgprs", RSRC1, 6, 4),
    field("priority", "compute_pgm_rsrc1_priority", RSRC1 + 1, 2, 2),
    field("float_mode", "compute_pgm_rsrc1_float_mode", RSRC1 + 1, 4, 8),
    field("priv", "compute_pgm_rsrc1_priv", RSRC1 + 2, 4, 1),
    field("enable_dx10_clamp", "compute_pgm_rsrc1_dx10_clamp", RSRC1 + 2, 5, 1),
    field("debug_mode", "compute_pgm_rsrc1_debug_mode", RSRC1 + 2, 6, 1),
    field("enable_ieee_mode", "compute_pgm_rsrc1_ieee_mode", RSRC1 + 2, 7, 1),
    gfx10("enable_wgp_mode", "compute_pgm_rsrc1_wgp_mode", RSRC1 + 3, 5),
    gfx10("enable_mem_ordered", "compute_pgm_rsrc1_mem_ordered", RSRC1 + 3, 6),
    gfx10("enable_fwd_progress", "compute_pgm_rsrc1_fwd_progress", RSRC1 + 3, 7),
    field("enable_sgpr_private_segment_wave_byte_offset", "compute_pgm_rsrc2_scratch_en", RSRC2, 0, 1),
    field("user_sgpr_count", "compute_pgm_rsrc2_user_sgpr", RSRC2, 1, 5),
    field("enable_trap_handler", "compute_pgm_rsrc2_trap_handler", RSRC2, 6, 1),
    field("enable_sgpr_workgroup_id_x", "compute_pgm_rsrc2_tgid_x_en", RSRC2, 7, 1),
    field("enable_sgpr_workgroup_id_y", "compute_pgm_rsrc2_tgid_y_en", RSRC2 + 1, 0, 1),
    field("enable_sgpr_workgroup_id_z", "compute_pgm_rsrc2_tgid_z_en", RSRC2 + 1, 1, 1),
    field("enable_sgpr_workgroup_info", "compute_pgm_rsrc2_tg_size_en", RSRC2 + 1, 2, 1),
    field("enable_vgpr_workitem_id", "compute_pgm_rsrc2_tidig_comp_cnt", RSRC2 + 1, 3, 2),
    field("enable_exception_msb", "compute_pgm_rsrc2_excp_en_msb", RSRC2 + 1, 5, 2),
    field("granulated_lds_size", "compute_pgm_rsrc2_lds_size", RSRC2 + 1, 7, 9),
    field("enable_exception", "compute_pgm_rsrc2_excp_en", RSRC2 + 3, 0, 7),
    field("enable_sgpr_private_segment_buffer", "", PROPERTIES, 0, 1),
    field("enable_sgpr_dispatch_ptr", "", PROPERTIES, 1, 1),
    field("enable_sgpr_queue_ptr", "", PROPERTIES, 2, 1),
    field("enable_sgpr_kernarg_segment_ptr", "", PROPERTIES, 3, 1),
    field("enable_sgpr_dispatch_id", "", PROPERTIES, 4, 1),
    field("enable_sgpr_flat_scratch_init", "", PROPERTIES, 5, 1),
    field("enable_sgpr_private_segment_size", "", PROPERTIES, 6, 1),
    field("enable_sgpr_grid_workgroup_count_x", "", PROPERTIES, 7, 1),
    field("enable_sgpr_grid_workgroup_count_y", "", PROPERTIES + 1, 0, 1),
    field("enable_sgpr_grid_workgroup_count_z", "", PROPERTIES + 1, 1, 1),
    gfx10("enable_wavefront_size32", "", PROPERTIES + 1, 2),
    field("enable_ordered_append_gds", "", PROPERTIES + 2, 0, 1),
    field("private_element_size", "", PROPERTIES + 2, 1, 2),
    field("is_ptr64", "", PROPERTIES + 2, 3, 1),
    field("is_dynamic_callstack", "", PROPERTIES + 2, 4, 1),
    field("is_debug_enabled", "", PROPERTIES + 2, 5, 1),
    field("is_xnack_enabled", "", PROPERTIES + 2, 6, 1),
    field("workitem_private_segment_byte_size", "", 60, 0, 32),
    field("workgroup_group_segment_byte_size", "", 64, 0, 32),
    field("gds_segment_byte_size", "", 68, 0, 32),
    field("kernarg_segment_byte_size", "", 72, 0, 64),
    field("workgroup_fbarrier_count", "", 80, 0, 32),
    field("wavefront_sgpr_count", "", 84, 0, 16),
    field("workitem_vgpr_count", "", 86, 0, 16),
    field("reserved_vgpr_first", "", 88, 0, 16),
    field("reserved_vgpr_count", "", 90, 0, 16),
    field("reserved_sgpr_first", "", 92, 0, 16),
    field("reserved_sgpr_count", "", 94, 0, 16),
    field("debug_wavefront_private_segment_offset_sgpr", "", 96, 0, 16),
    field("debug_private_segment_buffer_sgpr", "", 98, 0, 16),
    field("kernarg_segment_alignment", "", 100, 0, 8),
    field("group_segment_alignment", "", 101, 0, 8),
    field("private_segment_alignment", "", 102, 0, 8),
    field(WAVEFRONT_SIZE, "", 103, 0, 8),
    field(CALL_CONVENTION, "", 104, 0, 32),
    field("runtime_loader_kernel_symbol", "", 120, 0, 64),
];

/// Why a field cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelCodeError {
    /// No such field.
    #[error("no such field in amd_kernel_code_t")]
    Unknown,
    /// Not on this GPU.
    #[error("only GPUs from gfx10 on have that")]
    NotHere,
    /// Too large.
    #[error("{0} does not fit this field of {1} bits")]
    Range(i64, u8),
}

/// A header as it is being written, field by field.
#[derive(Clone, Debug)]
pub struct KernelCodeBuilder {
    bytes: [u8; SIZE],
    gfx10: bool,
}

impl KernelCodeBuilder {
    /// The header in which no field is given: version 1.2, of this GPU, with its code after it, and alignments of 16 bytes.
    pub fn new(gpu: &Gpu) -> KernelCodeBuilder {
        let later = gpu.generation() >= Gfx::Gfx10;
        let mut builder = KernelCodeBuilder { bytes: [0; SIZE], gfx10: later };
        let [major, minor, stepping] = gpu.version().map(i64::from);
        let wave32 = i64::from(later && !gpu.wave64());
        let usual = [
            ("amd_code_version_major", 1),
            ("amd_code_version_minor", 2),
            ("amd_machine_kind", 1),
            ("amd_machine_version_major", major),
            ("amd_machine_version_minor", minor),
            ("amd_machine_version_stepping", stepping),
            ("kernel_code_entry_byte_offset", SIZE as i64),
            ("enable_wgp_mode", i64::from(later)),
            ("enable_mem_ordered", i64::from(later)),
            ("enable_wavefront_size32", wave32),
            ("kernarg_segment_alignment", 4),
            ("group_segment_alignment", 4),
            ("private_segment_alignment", 4),
            (WAVEFRONT_SIZE, 6 - wave32),
            (CALL_CONVENTION, -1),
        ];
        for (name, value) in usual {
            let set = builder.set(name, value);
            debug_assert_eq!(set, Ok(()), "{name}");
        }
        builder
    }

    /// A field, by either of its names.
    ///
    /// # Errors
    /// When no field has that name, this GPU does not have it, or its value does not fit.
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), KernelCodeError> {
        let named = |field: &&KernelCodeField| field.name == name || !name.is_empty() && field.alias == name;
        let field = FIELDS.iter().find(named).ok_or(KernelCodeError::Unknown)?;
        let (width, mask) = (field.width, field.mask());
        // A negative number is taken as one of the width of the field, as in data.
        let fits = width == 64 || value >= -(1 << (width - 1)) && value <= mask as i64;
        match fits {
            _ if value != 0 && field.gfx10 && !self.gfx10 => Err(KernelCodeError::NotHere),
            true => {
                field.put(&mut self.bytes, value as u64);
                Ok(())
            }
            false => Err(KernelCodeError::Range(value, width)),
        }
    }

    /// The header.
    pub fn finish(self) -> [u8; SIZE] {
        self.bytes
    }
}

impl KernelCodeField {
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    fn bytes(&self) -> std::ops::Range<usize> {
        let first = usize::from(self.byte);
        first..first + usize::from(self.lsb + self.width).div_ceil(8)
    }

    fn get(&self, header: &[u8; SIZE]) -> u64 {
        let mut word = [0; 8];
        let bytes = &header[self.bytes()];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word) >> self.lsb & self.mask()
    }

    fn put(&self, header: &mut [u8; SIZE], value: u64) {
        let (old, mask) = (self.get(header), self.mask());
        let change = ((old ^ value) & mask) << self.lsb;
        for (byte, change) in header[self.bytes()].iter_mut().zip(change.to_le_bytes()) {
            *byte ^= change;
        }
    }
}

/// The fields of a header with their values, and whether they are all of it: false if a bit is set that no field of this GPU
/// has, because directives cannot express it.
pub fn fields(header: &[u8; SIZE], gpu: &Gpu) -> (Vec<(&'static str, i64)>, bool) {
    let mut rest = *header;
    let mut all = Vec::with_capacity(FIELDS.len());
    for field in &FIELDS {
        let value = field.get(header);
        let shown = if field.name == CALL_CONVENTION { i64::from(value as i32) } else { value as i64 };
        all.push((field.name, shown));
        if !field.gfx10 || gpu.generation() >= Gfx::Gfx10 {
            field.put(&mut rest, 0);
        }
    }
    (all, rest == [0; SIZE])
}

/// The descriptor of HSA v3 that starts a kernel as its header does: sizes of segments, the program registers, and what is
/// set in scalar registers. Counts of workgroups, which only headers can ask for, are left out; `user_sgpr_count` still
/// counts their registers.
pub fn as_descriptor(header: &[u8; SIZE]) -> [u8; descriptor::SIZE] {
    let mut made = [0; descriptor::SIZE];
    let (group, private, arguments, rsrc1) = (64, 60, 72, usize::from(RSRC1));
    made[0..4].copy_from_slice(&header[group..group + 4]);
    made[4..8].copy_from_slice(&header[private..private + 4]);
    made[8..12].copy_from_slice(&header[arguments..arguments + 4]);
    let rsrcs = usize::from(descriptor::RSRC1);
    made[rsrcs..rsrcs + 8].copy_from_slice(&header[rsrc1..rsrc1 + 8]);
    // The bits of what is set in registers and of waves of 32 lanes are the same.
    let properties = usize::from(PROPERTIES);
    made[rsrcs + 8] = header[properties] & 0x7f;
    made[rsrcs + 9] = header[properties + 1] & 4;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str) -> Gpu {
        Gpu::new(name).expect("a GPU")
    }

    /// No two fields share a bit, and each is within its bytes.
    #[test]
    fn fields_do_not_overlap() {
        let mut taken = [0_u8; SIZE];
        for field in &FIELDS {
            let mut bits = [0; SIZE];
            field.put(&mut bits, u64::MAX);
            let set: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(set, u32::from(field.width), "{}", field.name);
            assert_eq!(field.get(&bits), field.mask(), "{}", field.name);
            assert!(taken.iter().zip(&bits).all(|(a, b)| a & b == 0), "{}", field.name);
            taken.iter_mut().zip(bits).for_each(|(taken, bits)| *taken |= bits);
        }
    }

    /// What LLVM 14 makes of a header without fields.
    #[test]
    fn defaults_of_llvm() {
        let words = |name| {
            let bytes = KernelCodeBuilder::new(&gpu(name)).finish();
            let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).enumerate();
            words.filter(|(_, word)| *word != 0).map(|(at, word)| (4 * at, word)).collect::<Vec<_>>()
        };
        let first = [(0, 1), (4, 2)];
        let gfx8 = [(8, 0x8_0001), (12, 0x3_0000), (16, 0x100), (100, 0x604_0404), (104, u32::MAX)];
        assert_eq!(words("gfx803"), [&first[..], &gfx8].concat());
        let gfx10 = [
            (8, 0xa_0001),
            (12, 1),
            (16, 0x100),
            (48, 0x6000_0000),
            (56, 0x400),
            (100, 0x504_0404),
            (104, u32::MAX),
        ];
        assert_eq!(words("gfx1010"), [&first[..], &gfx10].concat());
    }

    #[test]
    fn every_value_is_read_back() {
        for name in ["gfx700", "gfx803", "gfx1010"] {
            let gpu = gpu(name);
            let mut builder = KernelCodeBuilder::new(&gpu);
            let here = |field: &&KernelCodeField| !field.gfx10 || gpu.generation() >= Gfx::Gfx10;
            let value = |at: usize, field: &KernelCodeField| {
                let all = 0x9e37_79b9_7f4a_7c15_u64.rotate_left(at as u32) & field.mask();
                let signed = field.name == CALL_CONVENTION;
                if signed { i64::from(all as i32) } else { all as i64 }
            };
            for (at, field) in FIELDS.iter().filter(here).enumerate() {
                let by = if field.alias.is_empty() { field.name } else { field.alias };
                assert_eq!(builder.set(by, value(at, field)), Ok(()), "{by}");
            }
            let bytes = builder.finish();
            let (found, complete) = fields(&bytes, &gpu);
            assert!(complete, "{name}");
            for (at, field) in FIELDS.iter().filter(here).enumerate() {
                assert!(found.contains(&(field.name, value(at, field))), "{}", field.name);
            }
        }
    }

    #[test]
    fn what_cannot_be_set() {
        let mut builder = KernelCodeBuilder::new(&gpu("gfx803"));
        assert_eq!(builder.set("", 1), Err(KernelCodeError::Unknown));
        assert_eq!(builder.set("control_directives", 1), Err(KernelCodeError::Unknown));
        assert_eq!(builder.set("enable_wgp_mode", 1), Err(KernelCodeError::NotHere));
        assert_eq!(builder.set("enable_wgp_mode", 0), Ok(()));
        assert_eq!(builder.set("is_ptr64", 2), Err(KernelCodeError::Range(2, 1)));
        assert_eq!(builder.set("is_ptr64", -2), Err(KernelCodeError::Range(-2, 1)));
        assert_eq!(builder.set("runtime_loader_kernel_symbol", i64::MIN), Ok(()));
    }

    /// A bit that no field has is not lost silently.
    #[test]
    fn bits_without_a_field() {
        let mut bytes = KernelCodeBuilder::new(&gpu("gfx803")).finish();
        assert!(fields(&bytes, &gpu("gfx803")).1);
        bytes[51] |= 0x20;
        assert!(!fields(&bytes, &gpu("gfx803")).1);
        assert!(fields(&bytes, &gpu("gfx1010")).1);
        bytes[200] = 1;
        assert!(!fields(&bytes, &gpu("gfx1010")).1);
    }
}
