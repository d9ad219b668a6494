//! A file that is neither a dump nor a capture: code objects, firmware, a context image, a shader, or bytes. Never: a stream.

use super::dump::contexts;
use super::{
    BufferContents, BufferEntry, CodeSet, Document, PageNode, RegisterGroup, Row, RowLook, ShaderEntry,
    StreamEntry, StreamPage,
};
use crate::asm::amd::list_object;
use crate::lrc::contexts::Contexts;
use crate::plural::counted;
use unwedge_capture::FileKind;
use unwedge_capture::bundle::Bundle;
use unwedge_capture::elf;
use unwedge_isa::afuc::FirmwareBlob;
use unwedge_isa::amdgcn::Gpu;
use unwedge_postmortem::ExcerptPacket;

/// Bytes of a listing that are kept.
const LISTING: usize = 16 << 20;
/// Code objects that are listed.
const OBJECTS: usize = 256;
/// The largest context image, in bytes.
const CONTEXT: usize = 4 << 20;
/// The largest firmware, in bytes.
const FIRMWARE: usize = 1 << 20;

/// A part of the file that is code.
struct CodePart {
    title: String,
    rows: Vec<Row>,
}

/// A file.
pub struct FileDocument<'d> {
    name: String,
    kind: FileKind,
    bytes: &'d [u8],
    max_size: u64,
    summary: String,
    parts: Option<Vec<CodePart>>,
    registers: Vec<RegisterGroup>,
    set: Option<CodeSet>,
}

impl<'d> FileDocument<'d> {
    /// The bytes of a file, with what `info` says of it. No more than `max_size` bytes of code objects are unpacked.
    pub fn new(
        name: &str,
        kind: FileKind,
        bytes: &'d [u8],
        max_size: u64,
        summary: String,
    ) -> FileDocument<'d> {
        let mut file = FileDocument {
            name: name.to_owned(),
            kind,
            bytes,
            max_size,
            summary,
            parts: None,
            registers: Vec::new(),
            set: None,
        };
        file.look();
        file
    }

    /// Adds a listing that was made elsewhere, as of a shader in a form of its own.
    pub fn add_listing(&mut self, title: &str, text: &str) {
        let mut end = text.len().min(LISTING);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let part = CodePart { title: title.to_owned(), rows: Row::lines(&text[..end]) };
        self.parts.get_or_insert_default().push(part);
    }

    /// What kind of content it has that its first bytes do not tell.
    fn look(&mut self) {
        match self.kind {
            FileKind::Binary => {
                if self.bytes.len() <= FIRMWARE
                    && let Some(firmware) = FirmwareBlob::new(self.bytes).firmware()
                {
                    self.set = Some(CodeSet::Afuc(firmware));
                } else if self.bytes.len() <= CONTEXT {
                    self.context();
                }
            }
            FileKind::Text if self.bytes.len() <= CONTEXT => self.context(),
            _ => {}
        }
    }

    /// A context image, where it looks like one.
    fn context(&mut self) {
        let found = Contexts::of_image(self.bytes);
        let likely = |context: &crate::lrc::contexts::Context| {
            context.image(None).is_ok_and(|image| crate::lrc::likely(&image).is_some())
        };
        if found.contexts.iter().any(likely) {
            self.registers = contexts(&found);
        }
    }

    fn parts(&mut self) -> &[CodePart] {
        if self.parts.is_none() {
            let parts = match self.kind {
                FileKind::Elf | FileKind::Bundle => self.objects(),
                FileKind::Binary if matches!(self.set, Some(CodeSet::Afuc(_))) => {
                    let rows = firmware(self.bytes);
                    vec![CodePart { title: "firmware of the command processor".to_owned(), rows }]
                }
                _ => Vec::new(),
            };
            self.parts = Some(parts);
        }
        self.parts.as_deref().unwrap_or_default()
    }

    /// The functions of the code objects of AMD.
    fn objects(&self) -> Vec<CodePart> {
        let mut parts = Vec::new();
        match Bundle::read(self.bytes, self.max_size) {
            Some(bundle) => {
                for entry in bundle.code_objects().take(OBJECTS) {
                    object(&entry.name(), bundle.bytes(entry), &mut parts);
                }
            }
            None => object("", self.bytes, &mut parts),
        }
        parts
    }
}

/// The listing of a firmware, with its packet table where there is an emulator to find it.
#[cfg(feature = "sim")]
fn firmware(bytes: &[u8]) -> Vec<Row> {
    use unwedge_isa::afuc::{DbNames, disasm::AfucDisasmOptions};
    let db = unwedge_hw::Db::builtin();
    let text =
        unwedge_sim::adreno::sqe::disassemble(bytes, &AfucDisasmOptions::default(), &DbNames::new(&db));
    text.map_or_else(|error| vec![Row::of(error.to_string(), RowLook::Loss)], |text| Row::lines(&text))
}

#[cfg(not(feature = "sim"))]
fn firmware(bytes: &[u8]) -> Vec<Row> {
    super::code::afuc(bytes, None)
}

/// The functions of a code object.
fn object(name: &str, bytes: &[u8], parts: &mut Vec<CodePart>) {
    let Ok(object) = elf::read(bytes) else { return };
    let Some(gpu) = object.processor().and_then(|processor| Gpu::new(processor).ok()) else {
        let processor = object.processor().unwrap_or("a processor that is not known");
        let why = Row::of(format!("code for {processor} is not disassembled"), RowLook::Loss);
        parts.push(CodePart { title: format!("{name} {processor}"), rows: vec![why] });
        return;
    };
    let mut left = LISTING;
    for function in object.functions() {
        let mut text = String::new();
        let wanted = (!function.name.is_empty()).then_some(function.name);
        if list_object(&object, &gpu, true, wanted, &mut text).is_err() || left < text.len() {
            continue;
        }
        left -= text.len();
        let kernel = if function.kernel { "kernel" } else { "function" };
        let size = counted(function.code.len() as u64, "byte", "bytes");
        let title = format!("{kernel:8}  {}  {size}  {} {name}", function.name, gpu.name());
        parts.push(CodePart { title: Row::plain(title).text, rows: Row::lines(&text) });
    }
}

impl Document for FileDocument<'_> {
    fn title(&self) -> String {
        format!("{} — {}", self.name, self.kind.describe())
    }

    fn has_verdict(&self) -> bool {
        false
    }

    fn verdict(&mut self) -> Vec<Row> {
        let mut rows =
            vec![Row::of("not a dump: there is no verdict", RowLook::Dim), Row::plain(String::new())];
        rows.extend(Row::lines(&self.summary));
        rows
    }

    fn summary(&mut self) -> Vec<Row> {
        Row::lines(&self.summary)
    }

    fn streams(&mut self) -> Vec<StreamEntry> {
        Vec::new()
    }

    fn page(&mut self, _: u32, _: usize) -> Option<StreamPage> {
        None
    }

    fn packet(&self, _: &StreamPage, _: &PageNode) -> ExcerptPacket {
        ExcerptPacket::default()
    }

    fn stop(&mut self) -> Option<(u32, (usize, usize))> {
        None
    }

    fn find(&mut self, _: u64, _: Option<u32>) -> Option<(u32, usize)> {
        None
    }

    fn find_work(&mut self, _: u32) -> Option<(u32, usize)> {
        None
    }

    fn registers(&mut self, _: Option<(u32, usize)>) -> Vec<RegisterGroup> {
        self.registers.clone()
    }

    fn buffers(&mut self, _: Option<u32>) -> Vec<BufferEntry> {
        let name = "the file".to_owned();
        vec![BufferEntry { iova: 0, size: self.bytes.len() as u64, name, held: true, source: 0 }]
    }

    fn contents(&mut self, _: &BufferEntry, _: Option<u32>) -> Option<BufferContents> {
        Some(BufferContents::of_bytes(self.bytes, 0))
    }

    fn shaders(&mut self, _: Option<u32>) -> Vec<ShaderEntry> {
        self.parts().iter().map(|part| ShaderEntry { title: part.title.clone(), marked: false }).collect()
    }

    fn code(&mut self, shader: usize) -> Vec<Row> {
        self.parts().get(shader).map(|part| part.rows.clone()).unwrap_or_default()
    }

    fn code_set(&self) -> Option<CodeSet> {
        self.set
    }
}
