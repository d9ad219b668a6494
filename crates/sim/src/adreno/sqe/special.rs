//! Where the registers are that do something when touched, on one firmware's GPU.

use unwedge_isa::afuc::{AfucNames, Firmware, SqeSpace};

/// Offsets of the registers the emulator gives a behaviour; `None` where the GPU (or the database) has none.
#[derive(Clone, Debug, Default)]
pub struct SpecialRegs {
    pub mem_read_addr: Option<u32>,
    pub mem_read_dwords: Option<u32>,
    pub mem_read_high: Option<u32>,
    pub reg_read_addr: Option<u32>,
    pub reg_read_dwords: Option<u32>,
    pub reg_write_addr: Option<u32>,
    pub reg_write: Option<u32>,
    pub table_addr: Option<u32>,
    pub table_write: Option<u32>,
    pub load_store_high: Option<u32>,
    pub store_high: Option<u32>,
    pub thread_sync: Option<u32>,
    pub bv_base: Option<u32>,
    pub bv_control: Option<u32>,
    pub lpac_base: Option<u32>,
    pub lpac_control: Option<u32>,
    pub secure_mode: Option<u32>,
    pub ib_level: Option<u32>,
    /// Address registers of IB1, IB2 and IB3.
    pub ib_base: [Option<u32>; 3],
    /// Size registers of IB1, IB2 and IB3.
    pub ib_dwords: [Option<u32>; 3],
    pub sds_base: Option<u32>,
    pub sds_dwords: Option<u32>,
    pub draw_state_set: Option<u32>,
    /// a7xx: the address by way of a register, where `(sds2)` is not used.
    pub draw_state_set_base: Option<u32>,
    pub draw_state_select: Option<u32>,
    pub draw_state_active: Option<u32>,
    pub draw_state_header: Option<u32>,
    pub draw_state_base: Option<u32>,
    pub sqe_base: Option<u32>,
    pub lpac_sqe_base: Option<u32>,
    pub lpac_sqe_control: Option<u32>,
    pub nrt_addr: Option<u32>,
    pub nrt_data: Option<u32>,
    pub stack_pointer: Option<u32>,
    pub stack: Option<u32>,
    pub preempt: Option<u32>,
    /// Opcode of the handler for register writes.
    pub type4: Option<u8>,
    /// Opcode of the handler for the end of an IB.
    pub ib_end: Option<u8>,
}

impl SpecialRegs {
    pub fn new(firmware: Firmware, names: &dyn AfucNames) -> SpecialRegs {
        let control = |name| names.offset(firmware, SqeSpace::Control, name);
        let gpu = |name| names.offset(firmware, SqeSpace::Gpu, name);
        let pipe = |name| names.offset(firmware, SqeSpace::Pipe, name);
        let sqe = |name| names.offset(firmware, SqeSpace::Sqe, name);
        SpecialRegs {
            mem_read_addr: control("MEM_READ_ADDR"),
            mem_read_dwords: control("MEM_READ_DWORDS"),
            mem_read_high: control("MEM_READ_ADDR_HI_PREEMPTION"),
            reg_read_addr: control("REG_READ_ADDR"),
            reg_read_dwords: control("REG_READ_DWORDS"),
            reg_write_addr: control("REG_WRITE_ADDR"),
            reg_write: control("REG_WRITE"),
            table_addr: control("PACKET_TABLE_WRITE_ADDR"),
            table_write: control("PACKET_TABLE_WRITE"),
            load_store_high: control("LOAD_STORE_HI"),
            store_high: control("STORE_HI"),
            thread_sync: control("THREAD_SYNC"),
            bv_base: control("BV_INSTR_BASE"),
            bv_control: control("BV_CNTL"),
            lpac_base: control("LPAC_INSTR_BASE"),
            lpac_control: control("LPAC_CNTL"),
            secure_mode: control("SECURE_MODE"),
            ib_level: control("IB_LEVEL"),
            ib_base: ["IB1_BASE", "IB2_BASE", "IB3_BASE"].map(control),
            ib_dwords: ["IB1_DWORDS", "IB2_DWORDS", "IB3_DWORDS"].map(control),
            sds_base: control("SDS_BASE"),
            sds_dwords: control("SDS_DWORDS"),
            draw_state_set: control("DRAW_STATE_SET_HDR"),
            draw_state_set_base: control("DRAW_STATE_SET_BASE"),
            draw_state_select: control("DRAW_STATE_SEL"),
            draw_state_active: control("DRAW_STATE_ACTIVE_BITMASK"),
            draw_state_header: control("DRAW_STATE_HDR"),
            draw_state_base: control("DRAW_STATE_BASE"),
            sqe_base: gpu("CP_SQE_INSTR_BASE"),
            lpac_sqe_base: gpu("CP_LPAC_SQE_INSTR_BASE"),
            lpac_sqe_control: gpu("CP_LPAC_SQE_CNTL"),
            nrt_addr: pipe("NRT_ADDR"),
            nrt_data: pipe("NRT_DATA"),
            stack_pointer: sqe("SP"),
            stack: sqe("STACK0"),
            preempt: sqe("PREEMPT_INSTR"),
            type4: names.opcode("PKT4"),
            ib_end: names.opcode("IN_IB_END"),
        }
    }
}
