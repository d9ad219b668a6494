//! What a dump or capture holds near an address where no packet is.

use unwedge_base::{Buffer, Memory};

/// A buffer: its first address, the one after its last, its name, whether its contents are there.
#[derive(Clone, Debug)]
struct NearBuffer {
    start: u64,
    end: u64,
    name: String,
    held: bool,
}

/// The buffers nearest to an address.
#[derive(Clone, Debug, Default)]
pub(super) struct Near {
    inside: Option<NearBuffer>,
    below: Option<NearBuffer>,
    above: Option<NearBuffer>,
}

impl Near {
    /// Looks at the buffers that a stream can lead to.
    pub(super) fn see(&mut self, memory: &Memory, iova: u64) {
        let near = |buffer: &Buffer| NearBuffer {
            start: buffer.iova,
            end: buffer.end(),
            name: buffer.name.clone(),
            held: buffer.contents.is_some(),
        };
        if let Some(buffer) = memory.find(iova) {
            if self.inside.as_ref().is_none_or(|inside| !inside.held && buffer.contents.is_some()) {
                self.inside = Some(near(buffer));
            }
            return;
        }
        let (below, above) = memory.neighbours(iova);
        if let Some(buffer) = below
            && self.below.as_ref().is_none_or(|below| below.end < buffer.end())
        {
            self.below = Some(near(buffer));
        }
        if let Some(buffer) = above
            && self.above.as_ref().is_none_or(|above| above.start > buffer.iova)
        {
            self.above = Some(near(buffer));
        }
    }

    /// What is near, for people.
    pub(super) fn text(&self, iova: u64) -> String {
        let name = |buffer: &NearBuffer| {
            let name: String = buffer.name.chars().filter(|c| !c.is_control()).take(64).collect();
            let name = if name.is_empty() { name } else { format!(" ({name})") };
            format!("{:#x}…{:#x}{name}", buffer.start, buffer.end)
        };
        if let Some(buffer) = &self.inside {
            let offset = iova.saturating_sub(buffer.start);
            return match buffer.held {
                true => format!(
                    "it is {offset:#x} bytes into the buffer {}, where no packet that the streams lead to is",
                    name(buffer)
                ),
                false => format!(
                    "it is {offset:#x} bytes into the buffer {}, whose contents are not captured",
                    name(buffer)
                ),
            };
        }
        let below = self.below.as_ref().map(|below| {
            format!(
                "the nearest buffer below is {}, {:#x} bytes before it",
                name(below),
                iova.saturating_sub(below.end)
            )
        });
        let above = self.above.as_ref().map(|above| {
            format!(
                "the nearest above is {}, {:#x} bytes after it",
                name(above),
                above.start.saturating_sub(iova)
            )
        });
        match [below, above].into_iter().flatten().collect::<Vec<_>>() {
            near if near.is_empty() => "there is no buffer at all".to_owned(),
            near => format!("no buffer holds it; {}", near.join("; ")),
        }
    }
}
