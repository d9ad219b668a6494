//! Which interface descriptors media and compute commands use. From gen6 on a command loads them. Gen4 and gen5 have a pointer to
//! them in the state of the front end (VFE): in generic mode `MEDIA_OBJECT` picks one, in the modes of a codec a table of the
//! codec's state maps kinds of macroblocks to them.
//!
//! Never: what a descriptor points to.

use super::{
    OwnerFields, Reference, ReferenceTarget, ReferenceWalk, Referenced, StateInMemory, canonical, simd_size,
};
use unwedge_hw::intel::{FieldValue, IntelValue};

/// Commands that start a kernel by an index into the descriptors that are in force.
const PICKS_DESCRIPTOR: [&str; 5] =
    ["GPGPU_WALKER", "GPGPU_OBJECT", "MEDIA_OBJECT", "MEDIA_OBJECT_WALKER", "MEDIA_OBJECT_GRPID"];

/// VFE Mode in which `MEDIA_OBJECT` picks the descriptor.
const GENERIC: u64 = 0;
/// VFE Mode in which the state of the codec is a VLD_STATE.
const VLD: u64 = 1;

pub(super) fn picks_descriptor(command: &str) -> bool {
    PICKS_DESCRIPTOR.contains(&command)
}

impl<'m> ReferenceWalk<'m> {
    /// The descriptors that a command with these fields may start a kernel of.
    pub(super) fn picked_descriptors(&self, fields: &[FieldValue]) -> Option<Reference> {
        let number = |name: &str| fields.iter().find(|f| f.name == name)?.value()?.number();
        let field = "Interface Descriptor Offset";
        let (start, nth, count) = if self.gpu.number() < 60 {
            let state = self.vfe_state()?;
            let start = self.of_state(&state).into_iter().find(is_descriptors)?;
            match state.number("VFE Mode")? {
                GENERIC => (start, number(field)?, 1),
                mode => (start, 0, self.descriptors_of_mode(Some(mode))),
            }
        } else {
            let load = self.state.last("MEDIA_INTERFACE_DESCRIPTOR_LOAD")?;
            (self.of_command(&load.command).into_iter().next()?, number(field)?, 1)
        };
        let size = u64::from(self.gpu.structure("INTERFACE_DESCRIPTOR_DATA")?.dwords()) * 4;
        let offset = nth.checked_mul(size)?;
        Some(Reference {
            field,
            index: None,
            offset: start.offset.wrapping_add(offset),
            base: start.base,
            address: start.address.map(|at| canonical(at.wrapping_add(offset))),
            target: ReferenceTarget::States {
                structure: "INTERFACE_DESCRIPTOR_DATA",
                count,
                stage: None,
                width: number("SIMD Size").and_then(simd_size),
            },
        })
    }

    /// The structure that a pointer of `MEDIA_STATE_POINTERS` leads to: modes other than VLD have another one in its place.
    pub(super) fn media_state(&self, of: &OwnerFields<'_>, structure: &'static str) -> &'static str {
        if structure != "VLD_STATE" {
            return structure;
        }
        let mode = of.number("Pointer to VFE State").and_then(|offset| {
            let at = self.address(super::Base::GeneralState, offset)?;
            self.gpu.structure("VFE_STATE")?.layout().value("VFE Mode", self.words(at)?)?.number()
        });
        if mode.is_none_or(|mode| mode == VLD) { structure } else { "VFE_STATE_EX" }
    }

    /// How many descriptors a VFE Mode uses from the base on: those that the table of the codec's state names. One where that is not
    /// known: `MEDIA_OBJECT` may pick others.
    pub(super) fn descriptors_of_mode(&self, mode: Option<u64>) -> u32 {
        if mode.is_none_or(|mode| mode == GENERIC) {
            return 1;
        }
        let of_codec = self.pointed_by_media(|name| name == "VLD_STATE" || name == "VFE_STATE_EX");
        let indices = of_codec.iter().flat_map(StateInMemory::fields);
        let indices = indices.filter(|field| field.name == "Descriptor Remap Index");
        let last = indices.filter_map(|field| field.value().and_then(IntelValue::number)).max();
        last.map_or(1, |last| u32::try_from(last).unwrap_or(0) + 1)
    }

    fn vfe_state(&self) -> Option<StateInMemory<'m>> {
        self.pointed_by_media(|name| name == "VFE_STATE")
    }

    /// The state that the last `MEDIA_STATE_POINTERS` leads to, as far as the dump holds it.
    fn pointed_by_media(&self, is_named: impl Fn(&str) -> bool) -> Option<StateInMemory<'m>> {
        let pointers = self.of_command(&self.state.last("MEDIA_STATE_POINTERS")?.command);
        let found = pointers.iter().find(
            |found| matches!(found.target, ReferenceTarget::States { structure, .. } if is_named(structure)),
        )?;
        match self.resolve(found) {
            Referenced::States(states) => states.into_iter().next(),
            _ => None,
        }
    }
}

fn is_descriptors(reference: &Reference) -> bool {
    matches!(reference.target, ReferenceTarget::States { structure: "INTERFACE_DESCRIPTOR_DATA", .. })
}
