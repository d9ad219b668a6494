//! What the fields of a queue say: its class, and which of its jobs hangs.

use super::{XeContext, XeQueue};
use unwedge_hw::intel::EngineClass;

/// The job of a queue that was started last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XeHungJob {
    /// Its number.
    pub seqno: u32,
    /// Its place among those that are not done, counted from 1.
    pub nth: u64,
    /// How many those are.
    pub open: u64,
}

impl XeQueue<'_> {
    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// The class of its engines: kernels print a number as xe counts classes, or a name.
    pub fn class(&self) -> Option<EngineClass> {
        let class = self.field("Class")?.split_whitespace().next()?;
        match class {
            "0" => Some(EngineClass::Render),
            "1" => Some(EngineClass::VideoDecode),
            "2" => Some(EngineClass::VideoEnhance),
            "3" => Some(EngineClass::Copy),
            "4" => Some(EngineClass::Gsc),
            "5" => Some(EngineClass::Compute),
            _ => EngineClass::ALL.into_iter().find(|c| class.starts_with(c.prefix())),
        }
    }

    /// The job that was started last, if it is not done.
    pub fn hung_job(&self) -> Option<XeHungJob> {
        let seqno = self.contexts.iter().find_map(XeContext::started_seqno)?;
        let open = self.jobs.iter().filter(|job| number_after(&job.value, "fence=") == Some(0));
        let open: Vec<u32> = open.filter_map(|job| number_after(&job.value, "seqno=")).collect();
        let nth = open.iter().position(|&of| of == seqno)?;
        Some(XeHungJob { seqno, nth: nth as u64 + 1, open: open.len() as u64 })
    }
}

impl XeContext<'_> {
    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// The number of the job that was started last, from memory.
    pub fn started_seqno(&self) -> Option<u32> {
        number_after(self.field("Start seqno")?, "(memory) ")
    }
}

/// The number after a word. Kernels print these numbers signed.
fn number_after(text: &str, key: &str) -> Option<u32> {
    let digits = text.split_once(key)?.1.trim_start();
    let end = digits.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse::<i64>().ok().map(|value| value as u32)
}
