//! The registers that describe work, as the streams have set them up to a place. Never: which values are right.

use crate::query::{Asked, ValueForm, value_text};
use crate::streams::RegisterSet;
use unwedge_hw::Palette;
use unwedge_postmortem::adreno::hang::describing_registers;
use unwedge_stream::query::RegisterNames;
use unwedge_stream::{Registers, WorkKind};

/// AMD's registers that describe draws; a generation has some of them.
const AMD_DRAW: &[&str] = &[
    "VGT_PRIMITIVE_TYPE",
    "SPI_SHADER_PGM_LO_*",
    "SPI_SHADER_PGM_HI_*",
    "CB_COLOR0_BASE",
    "CB_COLOR0_INFO",
    "DB_Z_INFO",
    "DB_Z_WRITE_BASE",
];
/// And dispatches.
const AMD_DISPATCH: &[&str] = &[
    "COMPUTE_PGM_LO",
    "COMPUTE_PGM_HI",
    "COMPUTE_PGM_RSRC1",
    "COMPUTE_PGM_RSRC2",
    "COMPUTE_NUM_THREAD_X",
    "COMPUTE_NUM_THREAD_Y",
    "COMPUTE_NUM_THREAD_Z",
];
/// Fields of Intel's state commands that describe draws.
const INTEL_DRAW: &[&str] = &[
    "STATE_BASE_ADDRESS.*BaseAddress",
    "3DSTATE_VF_TOPOLOGY.*",
    "3DSTATE_?S.KernelStartPointer*",
    "3DSTATE_DEPTH_BUFFER.Surface*",
];
/// And dispatches.
const INTEL_DISPATCH: &[&str] =
    &["STATE_BASE_ADDRESS.*BaseAddress", "MEDIA_INTERFACE_DESCRIPTOR_LOAD.*", "CFE_STATE.*"];

/// A register or field with its value.
#[derive(Clone, Debug)]
pub(crate) struct StateValue {
    pub(crate) name: String,
    /// The offset that people know the register by.
    pub(super) offset: Option<u32>,
    pub(crate) value: u64,
    pub(crate) text: String,
}

/// The state at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceState {
    /// The work that starts there.
    pub(super) work: Option<(&'static str, u32)>,
    /// What the streams have set.
    pub(super) values: Vec<StateValue>,
}

/// The registers that describe work of each kind.
pub(super) struct Describing<'d> {
    pub(super) registers: RegisterSet<'d>,
    of: Vec<(WorkKind, Vec<Asked<'d>>)>,
}

impl<'d> Describing<'d> {
    /// Of a GPU.
    pub(super) fn new(registers: RegisterSet<'d>) -> Describing<'d> {
        let names = |kind: WorkKind| -> Vec<&'static str> {
            match (registers, kind) {
                (RegisterSet::Adreno(_), kind) => describing_registers(kind).collect(),
                (RegisterSet::Amd(_), WorkKind::Draw) => AMD_DRAW.to_vec(),
                (RegisterSet::Amd(_), WorkKind::Dispatch) => AMD_DISPATCH.to_vec(),
                (RegisterSet::Intel(_), WorkKind::Draw) => INTEL_DRAW.to_vec(),
                (RegisterSet::Intel(_), WorkKind::Dispatch) => INTEL_DISPATCH.to_vec(),
                // The packets of their copies say everything themselves.
                (RegisterSet::Amd(_) | RegisterSet::Intel(_), WorkKind::Blit | WorkKind::Event) => Vec::new(),
            }
        };
        let intel = matches!(registers, RegisterSet::Intel(_));
        let asked = |name: &'static str| {
            // A generation may not have it.
            let columns = registers.select(name).unwrap_or_default();
            columns.into_iter().map(move |column| {
                let selected = column.selected;
                let offset = registers.offset(selected.low);
                let shift = if intel { column.shift } else { selected.mask.trailing_zeros().min(63) };
                Asked { selected, shift, offset }
            })
        };
        let of = WorkKind::ALL.map(|kind| (kind, names(kind).into_iter().flat_map(asked).collect()));
        Describing { registers, of: of.to_vec() }
    }

    /// Of a GPU, for packets alone: no state is remembered.
    pub(super) fn without_state(registers: RegisterSet<'d>) -> Describing<'d> {
        Describing { registers, of: Vec::new() }
    }

    /// What is set: for work of a kind, or for every kind where the place starts none.
    pub(super) fn state(&self, regs: &Registers, work: Option<(WorkKind, u32)>) -> PlaceState {
        let mut values: Vec<StateValue> = Vec::new();
        let intel = matches!(self.registers, RegisterSet::Intel(_));
        for (_, registers) in self.of.iter().filter(|(kind, _)| work.is_none_or(|(of, _)| of == *kind)) {
            for asked in registers {
                let Some(value) = asked.selected.read(|reg| regs.get(reg)) else { continue };
                let known = values.iter().any(|value| value.name == asked.selected.name);
                // Zeros of Intel's commands are what is not used.
                if known || intel && value == 0 {
                    continue;
                }
                let mut text = Vec::new();
                value_text(asked, value, ValueForm::Decoded, &Palette::default(), &mut text);
                values.push(StateValue {
                    name: asked.selected.name.clone(),
                    offset: asked.offset,
                    value,
                    text: String::from_utf8_lossy(&text).into_owned(),
                });
            }
        }
        PlaceState { work: work.map(|(kind, number)| (kind.name(), number)), values }
    }
}
