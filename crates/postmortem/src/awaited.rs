//! Who could still end a wait: what the packets of a dump write to the awaited memory, weighed in one way for every vendor.
//!
//! Never: which packets write memory; that is in the files of the vendors, which know their layouts.

use crate::args::{Arg, Args};

/// Where a writer is, seen from the packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterOrder {
    /// Before it in the same stream.
    Earlier,
    /// In another stream, which may still run.
    Elsewhere,
    /// After it in the same stream: it is never reached.
    Later,
}

/// A packet that writes the awaited memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AwaitedWrite {
    pub(crate) order: WriterOrder,
    /// The packet, in the words of its vendor.
    pub(crate) args: Args,
    /// What it writes, where the packet holds that.
    pub(crate) value: Option<u64>,
    /// Whether that value ends the wait; `None` where it is not known.
    pub(crate) ends: Option<bool>,
}

/// Who ends a wait, as far as the packets of a dump say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// No packet writes the awaited memory.
    Nobody,
    /// A packet before the wait or in another stream may.
    Writer(AwaitedWrite),
    /// Only a packet after the wait does, so it waits for itself.
    Itself(AwaitedWrite),
    /// Every packet that writes there writes a value that cannot end it.
    WrongValue(AwaitedWrite),
}

impl AwaitedWrite {
    /// The packet with `written`, the value, and `ends`, where they are known.
    pub(crate) fn into_args(self) -> Args {
        self.args.with_some("written", self.value.map(Arg::Value)).with_some("ends", self.ends.map(Arg::Flag))
    }
}

impl WaitEnd {
    /// Weighs what writes the awaited memory, in the order of the streams. Of one stream only the last write before the wait
    /// counts: it leaves what the wait sees.
    pub(crate) fn of(writes: &[AwaitedWrite]) -> WaitEnd {
        let may_end = |w: &&AwaitedWrite| w.ends != Some(false);
        let of = |order: WriterOrder| writes.iter().filter(move |w| w.order == order);
        let earlier = of(WriterOrder::Earlier).next_back();
        let writer = earlier.filter(may_end).or_else(|| of(WriterOrder::Elsewhere).find(may_end));
        if let Some(writer) = writer {
            return WaitEnd::Writer(writer.clone());
        }
        match (of(WriterOrder::Later).find(may_end), earlier.or(writes.first())) {
            (Some(later), _) => WaitEnd::Itself(later.clone()),
            (None, Some(wrong)) => WaitEnd::WrongValue(wrong.clone()),
            (None, None) => WaitEnd::Nobody,
        }
    }

    /// The packet that it is about.
    pub(crate) fn writer(self) -> Option<AwaitedWrite> {
        match self {
            WaitEnd::Nobody => None,
            WaitEnd::Writer(writer) | WaitEnd::Itself(writer) | WaitEnd::WrongValue(writer) => Some(writer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(order: WriterOrder, value: u64) -> AwaitedWrite {
        AwaitedWrite { order, args: Args::new(), value: Some(value), ends: Some(value == 5) }
    }

    #[test]
    fn what_a_wait_is_ended_by() {
        use WriterOrder::{Earlier, Elsewhere, Later};
        let of = |writes: &[(WriterOrder, u64)]| {
            WaitEnd::of(&writes.iter().map(|&(order, value)| write(order, value)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), WaitEnd::Nobody);
        assert_eq!(of(&[(Earlier, 3), (Earlier, 5), (Later, 5)]), WaitEnd::Writer(write(Earlier, 5)));
        assert_eq!(of(&[(Later, 5), (Elsewhere, 5)]), WaitEnd::Writer(write(Elsewhere, 5)));
        assert_eq!(of(&[(Earlier, 3), (Later, 4), (Later, 5)]), WaitEnd::Itself(write(Later, 5)));
        assert_eq!(of(&[(Earlier, 5), (Earlier, 3)]), WaitEnd::WrongValue(write(Earlier, 3)), "overwritten");
        assert_eq!(of(&[(Elsewhere, 3)]), WaitEnd::WrongValue(write(Elsewhere, 3)));
        assert_eq!(of(&[(Later, 3), (Elsewhere, 4), (Earlier, 2)]), WaitEnd::WrongValue(write(Earlier, 2)));
        let unknown = AwaitedWrite { value: None, ends: None, ..write(Later, 0) };
        assert_eq!(WaitEnd::of(std::slice::from_ref(&unknown)), WaitEnd::Itself(unknown), "it may");
    }
}
