//! The native part of unwedge for Python: opens inputs, gives reports and events as JSON text, disassembles.
//!
//! Everything that makes an object of it is in `unwedge/__init__.py`. Never: files, which Python opens.

mod code;
mod events;

use events::Events;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::io::Cursor;
use std::sync::Arc;
use unwedge::files::Input;
use unwedge::hw::{Db, RegSpace};
use unwedge::{DumpPart, FileKind, ShowOptions, sniff};
use unwedge_view::ViewError;
use unwedge_view::regs::chip::intel_platform;
use unwedge_view::regs::{Answers, amd, intel, questions};

create_exception!(_unwedge, UnwedgeError, PyValueError, "An input is not what a function takes, or a name is not known.");

/// Bytes that an input may unpack to.
const MAX_SIZE: u64 = 4 << 30;

fn wrong(error: impl ToString) -> PyErr {
    UnwedgeError::new_err(error.to_string())
}

/// A file, or the files of a folder, with their names.
type Files = Arc<Vec<(String, Vec<u8>)>>;

/// A dump or capture.
#[pyclass(frozen)]
struct Opened {
    files: Files,
    kind: FileKind,
}

impl Opened {
    /// Reads the dump and asks something of it. Other threads of Python run meanwhile.
    fn ask<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&unwedge::Opened<'_>) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        if self.kind == FileKind::RdCapture {
            return Err(wrong("a capture records no hang: it has events only"));
        }
        py.detach(|| ask(&open_parts(&self.files)?))
    }
}

fn open_parts(files: &[(String, Vec<u8>)]) -> PyResult<unwedge::Opened<'_>> {
    let parts: Vec<DumpPart<'_>> = files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    unwedge::open(&parts).map_err(wrong)
}

/// What a function writes, as text.
fn written<E: ToString>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> PyResult<String> {
    let mut out = Vec::new();
    write(&mut out).map_err(wrong)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[pymethods]
impl Opened {
    fn kind(&self) -> &'static str {
        self.kind.id()
    }

    fn signature(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |opened| Ok(opened.signature()))
    }

    fn diagnostics(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, |opened| Ok(opened.diagnostics().iter().map(ToString::to_string).collect()))
    }

    fn explain_json(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |opened| written(|out| opened.explain_json(out)))
    }

    fn explain_text(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |opened| written(|out| opened.explain_text(&ShowOptions::default(), out)))
    }

    fn info_json(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |opened| written(|out| opened.info(true, &ShowOptions::default(), out)))
    }

    fn around_hang(&self, py: Python<'_>) -> PyResult<String> {
        self.ask(py, |opened| {
            written(|out| -> Result<(), ViewError> {
                opened.around_hang(false, &ShowOptions::default(), out).map(drop)
            })
        })
    }

    /// The lines of `decode --json`.
    fn events(&self) -> Events {
        let (files, kind) = (Arc::clone(&self.files), self.kind);
        Events::start(move |out| match (kind, files.first()) {
            (FileKind::RdCapture, Some((_, bytes))) => {
                unwedge::adreno::decode_json(&mut Cursor::new(bytes), MAX_SIZE, out);
            }
            _ => {
                if let Ok(opened) = open_parts(&files) {
                    opened.decode_json(&ShowOptions::default(), out);
                }
            }
        })
    }
}

/// Opens a dump or capture, whose compression is undone.
#[pyfunction]
fn open_bytes(py: Python<'_>, bytes: Vec<u8>, name: String) -> PyResult<Opened> {
    py.detach(|| {
        let input = Input::read(&bytes[..], name, bytes.len() as u64, MAX_SIZE).map_err(wrong)?;
        let kind = sniff(&input.bytes);
        let name = input.name;
        let files = Arc::new(vec![(name.clone(), input.bytes)]);
        if kind == FileKind::RdCapture {
            return Ok(Opened { files, kind });
        }
        let kind = open_parts(&files).map_err(|e| wrong(format!("{name}: {e}")))?.kind();
        Ok(Opened { files, kind })
    })
}

/// Opens the files of a folder that RADV left.
#[pyfunction]
fn open_folder(py: Python<'_>, files: Vec<(String, Vec<u8>)>, name: String) -> PyResult<Opened> {
    py.detach(|| {
        let mut files = files;
        // A single part would be a file.
        files.push((String::new(), Vec::new()));
        let files = Arc::new(files);
        let kind = open_parts(&files).map_err(|e| wrong(format!("{name}: {e}")))?.kind();
        Ok(Opened { files, kind })
    })
}

/// The lines of `unwedge regs --json`.
#[pyfunction]
fn lookup(py: Python<'_>, gpu: String, words: Vec<String>) -> PyResult<String> {
    py.detach(|| {
        let questions = questions(&words);
        let db = Db::builtin();
        if let Some(chip) = db.identify_name(&gpu) {
            let spaces = [RegSpace::Gpu, RegSpace::Gmu, chip.control(), RegSpace::CpPipe, RegSpace::Sqe];
            let answers = Answers::of(&db, chip, &spaces, &questions).map_err(wrong)?;
            return answers.missing().map_or_else(|| written(|out| answers.json(out)), |why| Err(wrong(why)));
        }
        let facts = Db::amd();
        if let Some(gpu) = amd::amd_gpu(&gpu, &facts) {
            let answers = amd::Answers::of(&facts, &gpu, &questions).map_err(wrong)?;
            return answers.missing().map_or_else(|| written(|out| answers.json(out)), |why| Err(wrong(why)));
        }
        let Some((version, _)) = intel_platform(&gpu) else {
            return Err(wrong(format!("{gpu}: not a known GPU")));
        };
        let answers = intel::Answers::of(version, &questions).map_err(wrong)?;
        answers.missing().map_or_else(|| written(|out| answers.json(out)), |why| Err(wrong(why)))
    })
}

#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The module.
#[pymodule]
fn _unwedge(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("UnwedgeError", module.py().get_type::<UnwedgeError>())?;
    module.add_class::<Opened>()?;
    module.add_class::<Events>()?;
    module.add_function(wrap_pyfunction!(open_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(open_folder, module)?)?;
    module.add_function(wrap_pyfunction!(lookup, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(code::disassemble_ir3, module)?)?;
    module.add_function(wrap_pyfunction!(code::disassemble_afuc, module)?)?;
    module.add_function(wrap_pyfunction!(code::disassemble_amdgcn, module)?)
}
