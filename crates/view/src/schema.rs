//! JSON Schemas of the JSON that commands write: generated from the types that are serialized, kept in `schemas/`, compared by a test.
//!
//! A published schema is open, as docs/json-schema.md says: no field is required, and where a string has one of a few values,
//! others may come. Objects of JSON lines have one of several shapes. Never: a schema that is written by hand, but for the few
//! types that serialize themselves.

/// Gives the schemas of a module's outputs to [`documents`](fn@documents): the whole of an object, or each line.
macro_rules! shapes {
    ($name:ident: $($shape:ty),+) => {
        #[cfg(feature = "schema")]
        pub(crate) fn $name(generator: &mut schemars::SchemaGenerator) -> Vec<schemars::Schema> {
            vec![$(generator.subschema_for::<$shape>()),+]
        }
    };
}
pub(crate) use shapes;

/// The schema of a type that serializes itself.
macro_rules! shape {
    ($shape:ty, $schema:tt) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $shape {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($shape).split('<').next().unwrap_or_default().to_owned().into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use shape;

/// The schemas that are checked in: the command, and the text of its schema.
pub const PUBLISHED: &[(&str, &str)] = &[
    ("explain", include_str!("../schemas/explain.schema.json")),
    ("watch", include_str!("../schemas/watch.schema.json")),
    ("demo", include_str!("../schemas/demo.schema.json")),
    ("info", include_str!("../schemas/info.schema.json")),
    ("decode", include_str!("../schemas/decode.schema.json")),
    ("rd info", include_str!("../schemas/rd-info.schema.json")),
    ("rd cat", include_str!("../schemas/rd-cat.schema.json")),
    ("query", include_str!("../schemas/query.schema.json")),
    ("query pixel", include_str!("../schemas/query-pixel.schema.json")),
    ("diff", include_str!("../schemas/diff.schema.json")),
    ("regs", include_str!("../schemas/regs.schema.json")),
    ("lrc show", include_str!("../schemas/lrc-show.schema.json")),
    ("lrc diff", include_str!("../schemas/lrc-diff.schema.json")),
    ("lrc verify", include_str!("../schemas/lrc-verify.schema.json")),
    ("layout", include_str!("../schemas/layout.schema.json")),
    ("layout formats", include_str!("../schemas/layout-formats.schema.json")),
    ("ir3 check", include_str!("../schemas/ir3-check.schema.json")),
    ("eu check", include_str!("../schemas/eu-check.schema.json")),
    ("amd check", include_str!("../schemas/amd-check.schema.json")),
    ("amd run", include_str!("../schemas/amd-run.schema.json")),
    ("replay", include_str!("../schemas/replay.schema.json")),
    ("lint", include_str!("../schemas/lint.schema.json")),
    ("breadcrumbs listen", include_str!("../schemas/breadcrumbs-listen.schema.json")),
    ("shader run", include_str!("../schemas/shader-run.schema.json")),
    ("shader validate", include_str!("../schemas/shader-validate.schema.json")),
    ("shader opt", include_str!("../schemas/shader-opt.schema.json")),
    ("aco compile", include_str!("../schemas/aco-compile.schema.json")),
];

/// The schema of a command, by its words: `rd info`.
pub fn published(verb: &str) -> Option<&'static str> {
    PUBLISHED.iter().find(|(name, _)| *name == verb).map(|(_, text)| *text)
}

/// The name of the file of a command's schema: `rd-info.schema.json`.
pub fn file_name(verb: &str) -> String {
    format!("{}.schema.json", verb.replace(' ', "-"))
}

#[cfg(feature = "schema")]
pub use generated::documents;

#[cfg(feature = "schema")]
mod generated {
    use schemars::generate::SchemaSettings;
    use schemars::{Schema, SchemaGenerator};
    use serde_json::{Map, Value, json};

    /// Adds the schemas of a module's outputs.
    type Shapes = fn(&mut SchemaGenerator) -> Vec<Schema>;

    /// Each command that prints JSON, and what it prints.
    const VERBS: &[(&str, &[Shapes])] = &[
        ("explain", &[crate::report::json::object, crate::batch::object]),
        // In the file that it keeps beside each dump.
        ("watch", &[crate::report::json::object, crate::batch::unread]),
        ("demo", &[crate::report::json::object]),
        ("info", &[crate::info::summary::object, crate::amd::info::object]),
        (
            "decode",
            &[
                crate::lines::lines,
                crate::decode::sections::lines,
                crate::decode::captures::lines,
                crate::decode::stream::lines,
                crate::around::json::lines,
                crate::amd::json::lines,
                crate::amd::lines::lines,
                crate::intel::json::lines,
                crate::intel::commands::lines,
                crate::intel::references::lines,
            ],
        ),
        ("rd info", &[crate::rd::info::object]),
        ("rd cat", &[crate::rd::list::object]),
        ("query", &[crate::query::rows::lines]),
        #[cfg(feature = "sim")]
        ("query pixel", &[crate::replay::pixel::object]),
        (
            "diff",
            &[
                crate::diff::lines,
                crate::diff::verdict::lines,
                crate::diff::show::lines,
                crate::diff::registers::lines,
            ],
        ),
        (
            "regs",
            &[
                crate::regs::lines,
                crate::regs::describe::lines,
                crate::regs::intel::lines,
                crate::regs::amd::lines,
            ],
        ),
        ("lrc show", &[crate::lrc::show::object]),
        ("lrc diff", &[crate::lrc::diff::object]),
        ("lrc verify", &[crate::lrc::verify::object]),
        ("layout", &[crate::layout::object]),
        ("layout formats", &[crate::json::object, crate::layout::formats::object]),
        ("ir3 check", &[crate::asm::ir3_check::object]),
        ("eu check", &[crate::asm::eu_check::object]),
        ("amd check", &[crate::asm::check::object]),
        #[cfg(feature = "sim")]
        ("amd run", &[crate::asm::run::object]),
        #[cfg(feature = "sim")]
        ("replay", &[crate::replay::object]),
        #[cfg(feature = "sim")]
        ("lint", &[crate::lint::object]),
        #[cfg(feature = "sim")]
        ("breadcrumbs listen", &[crate::breadcrumbs::object]),
        #[cfg(feature = "shader")]
        ("shader run", &[crate::shader::run::object]),
        #[cfg(feature = "shader")]
        ("shader validate", &[crate::shader::validity::object]),
        #[cfg(feature = "shader")]
        ("shader opt", &[crate::shader::optimization::object]),
        #[cfg(feature = "aco")]
        ("aco compile", &[crate::aco::statistics::object, crate::aco::pipeline::object]),
    ];

    /// The schema of each command that prints JSON.
    pub fn documents() -> Vec<(&'static str, Value)> {
        VERBS.iter().map(|(verb, shapes)| (*verb, document(verb, shapes))).collect()
    }

    fn document(verb: &str, shapes: &[Shapes]) -> Value {
        let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let all: Vec<Value> =
            shapes.iter().flat_map(|shapes| shapes(&mut generator)).map(Schema::to_value).collect();
        let mut definitions = generator.take_definitions(true);
        definitions.values_mut().for_each(open);
        let about =
            "Generated from the types of unwedge. No field is required, fields and values are added freely.";
        let mut document = Map::new();
        let mut put = |key: &str, value: Value| document.insert(key.to_owned(), value);
        put("$schema", json!("https://json-schema.org/draft/2020-12/schema"));
        put("title", json!(format!("JSON of unwedge {verb}")));
        put("description", json!(about));
        put("anyOf", json!(all));
        put("$defs", Value::Object(definitions));
        Value::Object(document)
    }

    /// Requires nothing, and makes values of strings examples.
    fn open(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("required");
                map.remove("format");
                if map.get("type").and_then(Value::as_str) == Some("string")
                    && let Some(values) = map.remove("enum")
                {
                    map.insert("examples".to_owned(), values);
                }
                // Variants with a comment each.
                if let Some(Value::Array(variants)) = map.get("oneOf") {
                    let values: Vec<Value> = variants
                        .iter()
                        .flat_map(|variant| match (variant.get("const"), variant.get("enum")) {
                            (Some(value), _) => vec![value.clone()],
                            (None, Some(Value::Array(values))) => values.clone(),
                            _ => Vec::new(),
                        })
                        .collect();
                    if values.len() >= variants.len() && values.iter().all(Value::is_string) {
                        map.remove("oneOf");
                        map.insert("type".to_owned(), json!("string"));
                        map.insert("examples".to_owned(), Value::Array(values));
                    } else if let Some(variants) = map.remove("oneOf") {
                        map.insert("anyOf".to_owned(), variants);
                    }
                }
                for (key, value) in map {
                    match value {
                        // The names below are those of fields and types.
                        Value::Object(named) if matches!(key.as_str(), "properties" | "$defs") => {
                            named.values_mut().for_each(open);
                        }
                        value => open(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(open),
            _ => {}
        }
    }
}
