//! Packets about bins: which visibility streams the draws of a thread obey.

use super::{CpStop, Executed};
use crate::adreno::draw::{BinStreams, StreamAddress};
use crate::adreno::machine::AdrenoMachine;

impl AdrenoMachine<'_> {
    /// Packets of bins, by name; `false` for others.
    pub(super) fn bin_packet(&mut self, packet: &Executed<'_>) -> Result<bool, CpStop> {
        let id = packet.thread;
        match self.gpu.packet_name(packet.opcode) {
            Some("CP_SET_BIN_DATA5") => {
                let slot = packet.arg(0)? >> 22 & 0x1f;
                let (draws, size, primitives) = (packet.arg64(1)?, packet.arg64(3)?, packet.arg64(5)?);
                self.thread_mut(id).bin = Some(BinStreams::new(slot, draws, size, primitives));
            }
            Some("CP_SET_BIN_DATA5_OFFSET") => {
                let slot = packet.arg(0)? >> 22 & 0x1f;
                let place = |address, at: usize| {
                    Ok::<u64, CpStop>(self.stream_address(id, address).wrapping_add(packet.arg(at)?.into()))
                };
                let draws = place(StreamAddress::Draws, 1)?;
                let size = place(StreamAddress::Sizes, 2)?;
                let primitives = place(StreamAddress::Primitives, 3)?;
                self.thread_mut(id).bin = Some(BinStreams::new(slot, draws, size, primitives));
            }
            Some("CP_SET_VISIBILITY_OVERRIDE") => self.thread_mut(id).shows_all = packet.arg(0)? & 1 != 0,
            Some("CP_SET_PSEUDO_REG") => {
                for at in (0..packet.payload.len()).step_by(3) {
                    let value = packet.arg64(at + 1)?;
                    if let Some(address) = StreamAddress::of_pseudo_register(packet.arg(at)? & 0x7ff) {
                        self.thread_mut(id).stream_addresses[address as usize] = Some(value);
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
