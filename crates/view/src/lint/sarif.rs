//! Findings as a log of SARIF 2.1.0 (OASIS Standard, Static Analysis Results Interchange Format).
//!
//! A capture has no lines: a location is the file, with the packet as a logical location and its address in the GPU's address space.

use crate::words::lint::lint_words;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_check::Level;
use unwedge_postmortem::lint::{LINT_RULES, LintFinding, LintPacket};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const VERSION: &str = "2.1.0";

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool,
    artifacts: [Artifact<'a>; 1],
    column_kind: &'static str,
    results: Vec<SarifResult<'a>>,
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Message,
    full_description: Message,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
struct Artifact<'a> {
    location: ArtifactLocation<'a>,
}

#[derive(Serialize)]
struct ArtifactLocation<'a> {
    uri: UriPath<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: Vec<Location<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    physical_location: PhysicalLocation<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation<'a> {
    artifact_location: ArtifactLocation<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    absolute_address: u64,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    name: String,
    fully_qualified_name: String,
    kind: &'static str,
}

/// A path as a relative URI reference: everything but the unreserved characters and `/` is escaped.
struct UriPath<'a>(&'a str);

impl Serialize for UriPath<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let mut uri = String::new();
        // Two slashes at the start would name a host.
        let path = match self.0.strip_prefix("//") {
            Some(rest) => format!("/{}", rest.trim_start_matches('/')),
            None => self.0.to_owned(),
        };
        for byte in path.bytes() {
            match plain(byte) {
                true => uri.push(char::from(byte)),
                false => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        s.serialize_str(&uri)
    }
}

impl<'a> Location<'a> {
    fn of(file: &'a str, packet: Option<&LintPacket>, message: Option<(usize, &str)>) -> Location<'a> {
        let logical = packet.map(|packet| LogicalLocation {
            name: packet.name.clone(),
            fully_qualified_name: format!(
                "set {}/{}/{:#x}/{}",
                packet.set, packet.thread, packet.iova, packet.name
            ),
            kind: "instruction",
        });
        Location {
            id: message.map(|(id, _)| id),
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation { uri: UriPath(file) },
                address: packet.map(|packet| Address { absolute_address: packet.iova, kind: "instruction" }),
            },
            logical_locations: logical.into_iter().collect(),
            message: message.map(|(_, text)| Message { text: text.to_owned() }),
        }
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}

fn result<'a>(file: &'a str, finding: &LintFinding) -> SarifResult<'a> {
    let words = lint_words(finding);
    let related = [
        (finding.writer.as_ref(), "what wrote"),
        (finding.expected.as_ref().filter(|_| finding.expected != finding.writer), "near what is missing"),
    ];
    let related = related.into_iter().filter_map(|(packet, text)| Some((packet?, text)));
    let related_locations =
        (1..).zip(related).map(|(id, (packet, text))| Location::of(file, Some(packet), Some((id, text))));
    let text = if words.why.is_empty() { words.title } else { format!("{}. {}", words.title, words.why) };
    SarifResult {
        rule_id: finding.rule.row().id,
        rule_index: finding.rule as usize,
        level: level(finding.level()),
        message: Message { text },
        locations: vec![Location::of(file, finding.reader.as_ref(), None)],
        related_locations: related_locations.collect(),
    }
}

/// Writes a log with these findings of a file.
pub(super) fn write(file: &str, findings: &[&LintFinding], out: &mut dyn Write) -> io::Result<()> {
    let rules = LINT_RULES.iter().map(|row| Descriptor {
        id: row.id,
        short_description: Message { text: row.summary.to_owned() },
        full_description: Message { text: format!("{} Source: {}.", row.summary, row.source) },
        default_configuration: Configuration { level: level(row.level) },
    });
    let driver =
        Driver { name: "unwedge", semantic_version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    let log = Log {
        schema: SCHEMA,
        version: VERSION,
        runs: [Run {
            tool: Tool { driver },
            artifacts: [Artifact { location: ArtifactLocation { uri: UriPath(file) } }],
            column_kind: "utf16CodeUnits",
            results: findings.iter().map(|finding| result(file, finding)).collect(),
        }],
    };
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}
