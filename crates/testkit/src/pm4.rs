//! PM4 packets for rings and command buffers.
//!
//! Every function gives a whole packet, header and payload. Headers are composed here without the library's encoder, so that
//! tests compare two writers of them: `stream/tests/headers.rs` holds both to the same bits. Facts: `adreno_pm4.xml` and the packet macros of the msm
//! driver.

/// `CP_NOP`
pub const CP_NOP: u32 = 0x10;
/// `CP_WAIT_FOR_IDLE`
pub const CP_WAIT_FOR_IDLE: u32 = 0x26;
/// `CP_DRAW_INDIRECT_MULTI`
pub const CP_DRAW_INDIRECT_MULTI: u32 = 0x2a;
/// `CP_BLIT`
pub const CP_BLIT: u32 = 0x2c;
/// `CP_LOAD_STATE6_GEOM`
pub const CP_LOAD_STATE6_GEOM: u32 = 0x32;
/// `CP_EXEC_CS`
pub const CP_EXEC_CS: u32 = 0x33;
/// `CP_LOAD_STATE6_FRAG`
pub const CP_LOAD_STATE6_FRAG: u32 = 0x34;
/// `CP_INDIRECT_BUFFER_PFD` of a2xx and a3xx.
pub const CP_INDIRECT_BUFFER_PFD: u32 = 0x37;
/// `CP_DRAW_INDX_OFFSET`
pub const CP_DRAW_INDX_OFFSET: u32 = 0x38;
/// `CP_WAIT_REG_MEM`
pub const CP_WAIT_REG_MEM: u32 = 0x3c;
/// `CP_MEM_WRITE`
pub const CP_MEM_WRITE: u32 = 0x3d;
/// `CP_INDIRECT_BUFFER`
pub const CP_INDIRECT_BUFFER: u32 = 0x3f;
/// `CP_INDIRECT_BUFFER_PFE` of a3xx and a4xx has the number of `CP_INDIRECT_BUFFER`.
pub const CP_INDIRECT_BUFFER_PFE: u32 = 0x3f;
/// `CP_EVENT_WRITE`
pub const CP_EVENT_WRITE: u32 = 0x46;
/// `CP_INDIRECT_BUFFER_CHAIN`
pub const CP_INDIRECT_BUFFER_CHAIN: u32 = 0x57;
/// `CP_SET_MARKER`
pub const CP_SET_MARKER: u32 = 0x65;
/// `CP_MEM_TO_MEM`
pub const CP_MEM_TO_MEM: u32 = 0x73;

/// The bit that makes the number of ones in value and bit odd.
pub fn odd_parity(value: u32) -> u32 {
    !value.count_ones() & 1
}

/// Type 0: register writes of a2xx to a4xx. At most 0x4000 values.
pub fn pkt0(reg: u32, values: &[u32]) -> Vec<u32> {
    let count = values.len() as u32;
    packet((count.wrapping_sub(1) & 0x3fff) << 16 | reg & 0x7fff, values)
}

/// Type 2: a filler of one dword, of a2xx to a4xx.
pub fn pkt2() -> Vec<u32> {
    vec![2 << 30]
}

/// Type 3: opcodes of a2xx to a4xx. At least one dword of payload.
pub fn pkt3(opcode: u32, payload: &[u32]) -> Vec<u32> {
    let count = payload.len() as u32;
    packet(3 << 30 | (count.wrapping_sub(1) & 0x3fff) << 16 | (opcode & 0xff) << 8, payload)
}

/// Type 4: register writes of a5xx on. At most 127 values.
pub fn pkt4(reg: u32, values: &[u32]) -> Vec<u32> {
    let count = values.len() as u32 & 0x7f;
    let reg = reg & 0x3ffff;
    packet(4 << 28 | odd_parity(reg) << 27 | reg << 8 | odd_parity(count) << 7 | count, values)
}

/// Type 7: opcodes of a5xx on. At most 0x3fff dwords of payload.
pub fn pkt7(opcode: u32, payload: &[u32]) -> Vec<u32> {
    let count = payload.len() as u32 & 0x3fff;
    let opcode = opcode & 0x7f;
    packet(7 << 28 | odd_parity(opcode) << 23 | opcode << 16 | odd_parity(count) << 15 | count, payload)
}

/// A call of an indirect buffer, of a5xx on.
pub fn indirect_buffer(iova: u64, dwords: u32) -> Vec<u32> {
    pkt7(CP_INDIRECT_BUFFER, &[iova as u32, (iova >> 32) as u32, dwords])
}

fn packet(header: u32, payload: &[u32]) -> Vec<u32> {
    let mut packet = vec![header];
    packet.extend_from_slice(payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_as_real_rings_have_them() {
        assert_eq!(pkt7(CP_NOP, &[0; 1])[0], 0x7010_0001);
        assert_eq!(pkt7(CP_WAIT_FOR_IDLE, &[]), [0x7026_8000]);
        assert_eq!(pkt7(CP_INDIRECT_BUFFER, &[0; 3])[0], 0x70bf_8003);
        assert_eq!(pkt4(0x8600, &[0])[0], 0x4086_0001);
        assert_eq!(pkt3(CP_NOP, &[0])[0], 0xc000_1000);
        assert_eq!(pkt0(0x578, &[7]), [0x0578, 7]);
    }
}
