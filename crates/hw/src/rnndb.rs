//! Reads rnndb XML, the register database of Mesa's and the kernel's freedreno drivers.
//!
//! Never: I/O. The caller hands files over by name. What the XML says and [`crate::model`] cannot hold is listed, not
//! lost in silence; prose (`doc`, `brief`, comments, copyright) is skipped. The grammar is that of `rules-fd.xsd`.

use crate::model::*;
use roxmltree::{Document, Node};
use thiserror::Error;

/// Why no database came out of a folder.
#[derive(Debug, Error)]
pub enum ImportError {
    /// None of the files a database starts from is there.
    #[error("no register database there: none of {}", ROOTS.join(", "))]
    NoFiles,
    /// A file is not XML.
    #[error("{file}: {source}")]
    Xml {
        /// Which file.
        file: String,
        /// Where and why.
        source: Box<roxmltree::Error>,
    },
    /// A file is not text.
    #[error("{file}: not UTF-8")]
    Encoding {
        /// Which file.
        file: String,
    },
    /// A file is XML, but its root is not `<database>`.
    #[error("{file}: not a register database")]
    NotDatabase {
        /// Which file.
        file: String,
    },
}

/// The files a database starts from; they import others.
pub const ROOTS: [&str; 9] = [
    "adreno/a2xx.xml",
    "adreno/a3xx.xml",
    "adreno/a4xx.xml",
    "adreno/a5xx.xml",
    "adreno/a6xx.xml",
    "adreno/a6xx_gmu.xml",
    "adreno/adreno_control_regs.xml",
    "adreno/adreno_pipe_regs.xml",
    "adreno/ocmem.xml",
];

const MAX_DEPTH: usize = 12;
const MAX_FILES: usize = 256;

/// Gets a file's (uncompressed) bytes by the name an import gives it, `adreno/a6xx.xml`, or by its last part when that
/// is not there (a flat folder).
pub type Fetch<'f> = dyn FnMut(&str) -> Option<Vec<u8>> + 'f;

/// Reads every file of [`ROOTS`] that exists, and what they import.
///
/// # Errors
///
/// [`ImportError::NoFiles`] if `fetch` has none of [`ROOTS`]; the other variants name the first file that is
/// not UTF-8, not XML or not a register database.
pub fn import(fetch: &mut Fetch<'_>) -> Result<(DbFacts, Vec<FactsIssue>), ImportError> {
    let mut reader = RnndbReader { fetch, files: Vec::new(), seen: Vec::new(), issues: Vec::new() };
    for root in ROOTS {
        reader.file(root, None)?;
    }
    if reader.files.is_empty() {
        return Err(ImportError::NoFiles);
    }
    Ok((DbFacts { files: reader.files, ..DbFacts::default() }, reader.issues))
}

struct RnndbReader<'f, 'g> {
    fetch: &'f mut Fetch<'g>,
    files: Vec<FactsFile>,
    seen: Vec<String>,
    issues: Vec<FactsIssue>,
}

/// `adreno/a6xx.xml` → `a6xx`.
fn stem(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or(path);
    last.strip_suffix(".xml").unwrap_or(last)
}

impl RnndbReader<'_, '_> {
    fn file(&mut self, path: &str, importer: Option<&str>) -> Result<(), ImportError> {
        let name = stem(path).to_string();
        if self.seen.contains(&name) || self.seen.len() >= MAX_FILES {
            return Ok(());
        }
        self.seen.push(name.clone());
        let flat = path.rsplit('/').next().unwrap_or(path);
        let Some(bytes) = (self.fetch)(path).or_else(|| (self.fetch)(flat)) else {
            if let Some(importer) = importer {
                self.issue(importer, format!("imports {path}, which is not there"));
            }
            return Ok(());
        };
        let encoding = |_| ImportError::Encoding { file: path.to_string() };
        let text = std::str::from_utf8(&bytes).map_err(encoding)?;
        let xml = |e| ImportError::Xml { file: path.to_string(), source: Box::new(e) };
        let doc = Document::parse(text).map_err(xml)?;
        let root = doc.root_element();
        if root.tag_name().name() != "database" {
            return Err(ImportError::NotDatabase { file: path.to_string() });
        }
        let mut file = FileReader { path, doc: &doc, items: Vec::new(), issues: Vec::new() };
        for node in root.children().filter(Node::is_element) {
            if !file.top(node, 0) {
                file.stray(node);
            }
        }
        let FileReader { items, issues, .. } = file;
        self.issues.extend(issues);
        let imports: Vec<String> = items
            .iter()
            .filter_map(|item| match item {
                FactsItem::Import(path) => Some(path.clone()),
                _ => None,
            })
            .collect();
        let items = items.into_iter().map(|item| match item {
            FactsItem::Import(path) => FactsItem::Import(stem(&path).to_string()),
            item => item,
        });
        self.files.push(FactsFile { name, items: items.collect() });
        for import in imports {
            self.file(&import, Some(path))?;
        }
        Ok(())
    }

    fn issue(&mut self, place: &str, what: String) {
        self.issues.push(FactsIssue { place: place.to_string(), what });
    }
}

struct FileReader<'a, 'input> {
    path: &'a str,
    doc: &'a Document<'input>,
    items: Vec<FactsItem>,
    issues: Vec<FactsIssue>,
}

impl FileReader<'_, '_> {
    fn complain(&mut self, node: Node<'_, '_>, what: String) {
        let line = self.doc.text_pos_at(node.range().start).row;
        self.issues.push(FactsIssue { place: format!("{}:{line}", self.path), what });
    }

    fn stray(&mut self, node: Node<'_, '_>) {
        let within = node.parent_element().map_or("", |p| p.tag_name().name()).to_string();
        self.complain(node, format!("<{}> inside <{within}>", node.tag_name().name()));
    }

    fn strange(&mut self, node: Node<'_, '_>, key: &str) {
        self.complain(node, format!("attribute {key} of <{}>", node.tag_name().name()));
    }

    fn number(&mut self, node: Node<'_, '_>, text: &str) -> u64 {
        let digits = text.trim_start().trim_start_matches('+');
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let parsed = match hex {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        parsed.unwrap_or_else(|_| {
            self.complain(node, format!("{text:?} is not a number"));
            0
        })
    }

    fn small(&mut self, node: Node<'_, '_>, text: &str) -> u32 {
        let n = self.number(node, text);
        u32::try_from(n).unwrap_or_else(|_| {
            self.complain(node, format!("{n} is too large"));
            0
        })
    }

    fn flag(&mut self, node: Node<'_, '_>, text: &str) -> bool {
        match text {
            "yes" | "1" | "true" => true,
            "no" | "0" | "false" => false,
            _ => {
                self.complain(node, format!("{text:?} is neither yes nor no"));
                false
            }
        }
    }

    fn named(&mut self, node: Node<'_, '_>) -> Option<String> {
        let name = node.attribute("name").map(str::to_string);
        if name.is_none() {
            self.complain(node, format!("<{}> without a name", node.tag_name().name()));
        }
        name
    }

    /// Definitions may stand anywhere; they count as if at the top.
    fn top(&mut self, node: Node<'_, '_>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            self.complain(node, "nested too deeply".to_string());
            return true;
        }
        match node.tag_name().name() {
            "doc" | "brief" | "copyright" => {}
            "import" => match node.attribute("file") {
                // Its only content is the copyright notice of the other files.
                Some(path) if stem(path) == "freedreno_copyright" => {}
                Some(path) => self.items.push(FactsItem::Import(path.to_string())),
                None => self.complain(node, "<import> without a file".to_string()),
            },
            "enum" => self.enumeration(node, depth),
            "bitset" => self.bitset(node, depth),
            "domain" => self.domain(node, depth),
            "group" => {
                if let Some(name) = self.named(node) {
                    let elems = self.elems(node, depth);
                    self.items.push(FactsItem::Group(GroupItem { name, elems }));
                }
            }
            "spectype" => self.spectype(node, depth),
            _ => return false,
        }
        true
    }

    fn inner(&mut self, node: Node<'_, '_>, depth: usize) {
        for child in node.children().filter(Node::is_element) {
            if !self.top(child, depth + 1) {
                self.stray(child);
            }
        }
    }

    fn enumeration(&mut self, node: Node<'_, '_>, depth: usize) {
        let Some(name) = self.named(node) else { return };
        let mut en = EnumItem { name, ..EnumItem::default() };
        for attr in node.attributes() {
            match attr.name() {
                "name" => {}
                "inline" => en.inline = self.flag(node, attr.value()),
                "bare" => en.bare = self.flag(node, attr.value()),
                key if select(&mut en.select, key, attr.value()) => {}
                key => self.strange(node, key),
            }
        }
        for child in node.children().filter(Node::is_element) {
            if child.tag_name().name() == "value" {
                en.values.extend(self.value(child, depth));
            } else if !self.top(child, depth + 1) {
                self.stray(child);
            }
        }
        self.items.push(FactsItem::Enum(en));
    }

    fn value(&mut self, node: Node<'_, '_>, depth: usize) -> Option<EnumValue> {
        let mut value = EnumValue { name: self.named(node)?, ..EnumValue::default() };
        for attr in node.attributes() {
            match attr.name() {
                "name" => {}
                "value" => value.value = Some(self.number(node, attr.value())),
                "prefix" => self.strange(node, "prefix"),
                key if select(&mut value.select, key, attr.value()) => {}
                key => self.strange(node, key),
            }
        }
        self.inner(node, depth);
        Some(value)
    }

    fn bitset(&mut self, node: Node<'_, '_>, depth: usize) {
        let Some(name) = self.named(node) else { return };
        let mut set = BitsetItem { name, ..BitsetItem::default() };
        for attr in node.attributes() {
            match attr.name() {
                "name" => {}
                "inline" => set.inline = self.flag(node, attr.value()),
                "bare" => set.bare = self.flag(node, attr.value()),
                key if select(&mut set.select, key, attr.value()) => {}
                key => self.strange(node, key),
            }
        }
        for child in node.children().filter(Node::is_element) {
            if child.tag_name().name() == "bitfield" {
                set.fields.extend(self.field(child, depth));
            } else if !self.top(child, depth + 1) {
                self.stray(child);
            }
        }
        self.items.push(FactsItem::Bitset(set));
    }

    fn field(&mut self, node: Node<'_, '_>, depth: usize) -> Option<BitField> {
        if depth > MAX_DEPTH {
            self.complain(node, "nested too deeply".to_string());
            return None;
        }
        let mut field = BitField { name: self.named(node)?, ..BitField::default() };
        for attr in node.attributes() {
            match attr.name() {
                "name" => {}
                "prefix" => self.strange(node, "prefix"),
                key if select(&mut field.select, key, attr.value()) => {}
                key if self.type_attribute(node, &mut field.ty, key, attr.value()) => {}
                key => self.strange(node, key),
            }
        }
        self.type_inner(node, &mut field.ty, depth);
        let placed = node.has_attribute("pos") || (node.has_attribute("low") && node.has_attribute("high"));
        if !placed || field.ty.low > field.ty.high || field.ty.high > 63 {
            self.complain(node, format!("bitfield {} without a place in 64 bits", field.name));
            return None;
        }
        Some(field)
    }

    fn type_attribute(&mut self, node: Node<'_, '_>, ty: &mut TypeSpec, key: &str, value: &str) -> bool {
        match key {
            "type" => ty.name = Some(value.to_string()),
            "shr" => ty.shr = self.small(node, value),
            "radix" => ty.radix = Some(self.number(node, value)),
            "align" => ty.align = Some(self.number(node, value)),
            "min" => ty.min = Some(self.number(node, value)),
            "max" => ty.max = Some(self.number(node, value)),
            "addvariant" => ty.addvariant = self.flag(node, value),
            "low" => ty.low = self.small(node, value),
            "high" => ty.high = self.small(node, value),
            "pos" => {
                ty.low = self.small(node, value);
                ty.high = ty.low;
            }
            _ => return false,
        }
        true
    }

    fn type_inner(&mut self, node: Node<'_, '_>, ty: &mut TypeSpec, depth: usize) {
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "value" => ty.values.extend(self.value(child, depth + 1)),
                "bitfield" => ty.fields.extend(self.field(child, depth + 1)),
                _ if self.top(child, depth + 1) => {}
                _ => self.stray(child),
            }
        }
    }

    fn spectype(&mut self, node: Node<'_, '_>, depth: usize) {
        let Some(name) = self.named(node) else { return };
        let mut ty = TypeSpec::default();
        for attr in node.attributes().filter(|a| a.name() != "name") {
            if !self.type_attribute(node, &mut ty, attr.name(), attr.value()) {
                self.strange(node, attr.name());
            }
        }
        self.type_inner(node, &mut ty, depth);
        self.items.push(FactsItem::Spectype(Spectype { name, ty }));
    }

    fn domain(&mut self, node: Node<'_, '_>, depth: usize) {
        let Some(name) = self.named(node) else { return };
        let mut domain = DomainItem { name, width: 8, ..DomainItem::default() };
        for attr in node.attributes() {
            match attr.name() {
                "name" => {}
                "bare" => domain.bare = self.flag(node, attr.value()),
                "size" => domain.size = Some(self.number(node, attr.value())),
                "width" => domain.width = self.small(node, attr.value()),
                key if select(&mut domain.select, key, attr.value()) => {}
                key => self.strange(node, key),
            }
        }
        domain.elems = self.elems(node, depth);
        self.items.push(FactsItem::Domain(domain));
    }

    fn elems(&mut self, node: Node<'_, '_>, depth: usize) -> Vec<DomainElem> {
        let mut elems = Vec::new();
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "reg8" => elems.extend(self.reg(child, 8, depth)),
                "reg16" => elems.extend(self.reg(child, 16, depth)),
                "reg32" => elems.extend(self.reg(child, 32, depth)),
                "reg64" => elems.extend(self.reg(child, 64, depth)),
                "array" => elems.extend(self.block(child, RegBlockKind::Array, depth)),
                "stripe" => elems.extend(self.block(child, RegBlockKind::Stripe, depth)),
                "use-group" => match child.attribute("ref") {
                    Some(name) => elems.push(DomainElem::Use(name.to_string())),
                    None => self.complain(child, "<use-group> without a ref".to_string()),
                },
                _ if self.top(child, depth + 1) => {}
                _ => self.stray(child),
            }
        }
        elems
    }

    fn reg(&mut self, node: Node<'_, '_>, width: u32, depth: usize) -> Option<DomainElem> {
        let ty = TypeSpec { high: width - 1, ..TypeSpec::default() };
        let mut reg = RegSpec { name: self.named(node)?, width, length: 1, ty, ..RegSpec::default() };
        for attr in node.attributes() {
            let value = attr.value();
            match attr.name() {
                "name" => {}
                "offset" => reg.offset = self.number(node, value),
                "length" => reg.length = self.number(node, value),
                "stride" => reg.stride = self.number(node, value),
                "access" => reg.access = Some(value.to_string()),
                "usage" => reg.usage = Some(value.to_string()),
                "prefix" => self.strange(node, "prefix"),
                key if select(&mut reg.select, key, value) => {}
                key if self.type_attribute(node, &mut reg.ty, key, value) => {}
                key => self.strange(node, key),
            }
        }
        self.type_inner(node, &mut reg.ty, depth);
        if reg.ty.low > reg.ty.high || reg.ty.high > 63 {
            self.complain(node, format!("register {} without a place in 64 bits", reg.name));
            return None;
        }
        Some(DomainElem::Reg(reg))
    }

    fn block(&mut self, node: Node<'_, '_>, kind: RegBlockKind, depth: usize) -> Option<DomainElem> {
        if depth > MAX_DEPTH {
            self.complain(node, "nested too deeply".to_string());
            return None;
        }
        let mut block = RegBlock { kind, length: 1, ..RegBlock::default() };
        for attr in node.attributes() {
            let value = attr.value();
            match attr.name() {
                "name" => block.name = Some(value.to_string()),
                "offset" => block.offset = self.number(node, value),
                "offsets" => {
                    for part in value.split(',').filter(|p| !p.trim().is_empty()) {
                        let offset = self.number(node, part.trim_end());
                        block.offsets.push(offset);
                    }
                }
                "doffset" => block.doffset = Some(value.to_string()),
                "doffsets" => block.doffsets = value.split(',').map(str::to_string).collect(),
                "length" => block.length = self.number(node, value),
                "stride" => block.stride = self.number(node, value),
                "index" => block.index = Some(value.to_string()),
                "usage" => block.usage = Some(value.to_string()),
                key if select(&mut block.select, key, value) => {}
                key => self.strange(node, key),
            }
        }
        block.elems = self.elems(node, depth + 1);
        Some(DomainElem::Block(block))
    }
}

fn select(select: &mut Select, key: &str, value: &str) -> bool {
    let slot = match key {
        "varset" => &mut select.varset,
        "variants" => &mut select.variants,
        "prefix" => &mut select.prefix,
        _ => return false,
    };
    *slot = Some(value.to_string());
    true
}
