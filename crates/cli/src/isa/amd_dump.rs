//! The shaders of a dump of an AMD GPU, for `amd disasm` and `amd check`.

use super::amd_target::gpu;
use crate::args::{AmdTarget, Global};
use crate::dump::{self, AmdFile, CodeFile, DumpFiles};
use crate::failure::{Failure, complain};
use std::path::Path;
use unwedge::hw::Db;
use unwedge::isa::amdgcn::Gpu;
use unwedge::postmortem::amd::{AmdShader, shaders};
use unwedge_view::asm::amd_shaders;
use unwedge_view::plural::counted;
use unwedge_view::regs::chip::chip_override;

/// What a file holds.
pub(super) enum AmdInput {
    /// A file that is not a dump of an AMD GPU: code, or what may be.
    Code(CodeFile),
    /// The shaders of a dump.
    Dump(DumpShaders),
}

/// The shaders of a dump.
pub(super) struct DumpShaders {
    /// How messages call the dump.
    pub(super) name: String,
    /// What their code is for.
    pub(super) gpu: Option<Gpu>,
    /// Registers of waves alone say so, which several generations have.
    guessed: bool,
    /// At least one.
    pub(super) shaders: Vec<AmdShader>,
}

/// Opens code, or a dump or folder with shaders.
pub(super) fn open(file: &Path, target: &AmdTarget, global: &Global) -> Result<AmdInput, Failure> {
    Ok(match dump::open_amd(file, global.max_size)? {
        AmdFile::Code(file) => AmdInput::Code(file),
        AmdFile::Dump(files) => AmdInput::Dump(read(&files, target)?),
    })
}

fn read(files: &DumpFiles, target: &AmdTarget) -> Result<DumpShaders, Failure> {
    // What is named decides how streams and waves are read, too.
    let chip = target.gpu.as_deref().and_then(|name| chip_override(name).ok());
    let dump = files.read_as(chip.as_ref())?;
    let name = files.name.clone();
    let found = shaders(&dump, &Db::amd()).filter(|found| !found.shaders.is_empty());
    let Some(found) = found else {
        return Err(Failure::NotFound(format!("{name}: {}", amd_shaders::missing(&dump))));
    };
    let own = match target.gpu {
        Some(_) => Some(gpu(target, None)?),
        None => found.gpu.and_then(|gpu| gpu.with_features(target.features.as_deref().unwrap_or("")).ok()),
    };
    Ok(DumpShaders { name, gpu: own, guessed: found.guessed && target.gpu.is_none(), shaders: found.shaders })
}

impl DumpShaders {
    /// A shader by its number, with its code.
    pub(super) fn get(&self, number: usize) -> Result<&AmdShader, Failure> {
        let shader = self.shaders.get(number).ok_or_else(|| {
            let there = counted(self.shaders.len() as u64, "shader", "shaders");
            let are = if self.shaders.len() == 1 { "is" } else { "are" };
            Failure::NotFound(format!("{}: no shader {number}: there {are} {there}", self.name))
        })?;
        if shader.words.is_empty() {
            return Err(Failure::NotFound(format!(
                "{}: the dump does not hold the code of shader {number}",
                self.name
            )));
        }
        Ok(shader)
    }

    /// Says that the GPU is a guess, if it is.
    pub(super) fn say_guess(&self) {
        if let Some(gpu) = self.gpu.filter(|_| self.guessed) {
            complain!(
                "{}: the GPU is not named, and read as {} by the registers of its waves; --gpu names it",
                self.name,
                gpu.name()
            );
        }
    }

    /// What the code of a shader is for. Waves say how many lanes they have, unless that is said.
    pub(super) fn gpu_of(&self, shader: &AmdShader, target: &AmdTarget) -> Result<Gpu, Failure> {
        let gpu = self.gpu.ok_or_else(|| {
            Failure::Usage(format!("{}: the dump does not tell its GPU: name it with --gpu", self.name))
        })?;
        Ok(if target.features.is_some() { gpu } else { amd_shaders::gpu_of(shader, gpu) })
    }
}
