//! What a frame of a capture is. The format marks none.
//!
//! A frame ends with a set of buffers: what was handed to the kernel at once. Where the driver or the application puts
//! text into the command stream (CP_NOP), a frame may be said to end with the set that holds a text.

use crate::adreno::{AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, Flow};

/// Counts frames. Watches walks for the text that ends one.
pub struct Frames {
    number: u32,
    end: Option<Vec<u8>>,
    found: bool,
}

impl Frames {
    /// Frames that end with this text, or else with each set.
    pub fn new(end: Option<String>) -> Frames {
        Frames { number: 0, end: end.map(String::into_bytes), found: false }
    }

    /// The number of the frame that the current set belongs to.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Walks tell where a frame ends.
    pub fn looks(&self) -> bool {
        self.end.is_some()
    }

    /// A set has ended.
    pub fn end_set(&mut self) {
        let found = std::mem::take(&mut self.found);
        if found || self.end.is_none() {
            self.number = self.number.saturating_add(1);
        }
    }
}

impl AdrenoSink for Frames {
    fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if let (AdrenoEvent::Packet(packet), Some(end)) = (event, &self.end)
            && packet.op == AdrenoOp::Nop
        {
            let text: Vec<u8> = packet.payload.stored().iter().flat_map(|word| word.to_le_bytes()).collect();
            self.found |= text.windows(end.len().max(1)).any(|part| part == &end[..]);
        }
        Flow::Continue
    }
}
