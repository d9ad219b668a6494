//! Machine code as text.

use super::{wrong, written};
use pyo3::prelude::*;
use unwedge::hw::Db;
use unwedge::isa::afuc::DbNames;
use unwedge::isa::afuc::disasm::{AfucDisasmOptions, ListingForm};
use unwedge::isa::amdgcn::{Gpu, codec, text};
use unwedge_view::asm::ir3;

/// Bytes as words of a size, and an error if some are left.
fn words<const N: usize>(code: &[u8]) -> PyResult<impl Iterator<Item = [u8; N]> + '_> {
    let (words, left) = code.as_chunks::<N>();
    if !left.is_empty() {
        return Err(wrong(format!("{} bytes are not whole words of {N} bytes", code.len())));
    }
    Ok(words.iter().copied())
}

/// The text of an ir3 shader, which assembles to the same words. `gpu` is as in `a630` or `a7xx`.
#[pyfunction]
pub fn disassemble_ir3(py: Python<'_>, code: Vec<u8>, gpu: String) -> PyResult<String> {
    py.detach(|| {
        let db = Db::builtin();
        let chip = db.identify_name(&gpu).ok_or_else(|| wrong(format!("{gpu}: not a known Adreno")))?;
        let own = chip.device.and_then(|device| device.gpu_id()).filter(|&id| id > 0);
        let gpu_id = own.unwrap_or(100 * chip.generation.number());
        if gpu_id < 300 {
            return Err(wrong(format!("{gpu}: its shaders are not ir3")));
        }
        let words = words::<8>(&code)?.map(u64::from_le_bytes);
        written(|out| ir3::faithful(words, gpu_id, out).map(drop))
    })
}

/// The text of a firmware of the command processor, a6xx and a7xx.
#[pyfunction]
pub fn disassemble_afuc(py: Python<'_>, firmware: Vec<u8>) -> PyResult<String> {
    py.detach(|| {
        let db = Db::builtin();
        let options = AfucDisasmOptions { form: ListingForm::Exact, ..AfucDisasmOptions::default() };
        unwedge::sim::adreno::sqe::disassemble(&firmware, &options, &DbNames::new(&db)).map_err(wrong)
    })
}

/// The text of AMD machine code: of the functions of a code object, or of bare code of the GPU that is named.
#[pyfunction]
#[pyo3(signature = (code, gpu=None))]
pub fn disassemble_amdgcn(py: Python<'_>, code: Vec<u8>, gpu: Option<String>) -> PyResult<String> {
    py.detach(|| {
        let Some(gpu) = gpu else { return unwedge::amd::disassemble(&code).map_err(wrong) };
        let gpu = Gpu::new(&gpu).map_err(wrong)?;
        let words: Vec<u32> = words::<4>(&code)?.map(u32::from_le_bytes).collect();
        let (mut out, mut at) = (String::new(), 0);
        while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
            at += match codec::decode(rest, &gpu) {
                Some(decoded) => {
                    text::write(&decoded.inst, &gpu, &mut out);
                    usize::from(decoded.dwords)
                }
                None => {
                    out.push_str(&format!(".long {:#010x}", rest[0]));
                    1
                }
            };
            out.push('\n');
        }
        Ok(out)
    })
}
